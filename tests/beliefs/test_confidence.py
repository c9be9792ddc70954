import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omdpd.beliefs.confidence import (
    BoxEstimator,
    EmpiricalEstimator,
    KnownModel,
    confidence_box,
    effective_episodes,
    log_term,
    log_term_transition,
    radius,
)
from omdpd.beliefs.counts import Counts
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Box, Kernel
from tests.references.instances import SIZES, random_box, random_kernel

H, S, A, I = SIZES  # noqa: E741
K = 1000
SETTING = Setting(H, S, A, I, n_episodes=K)
# ln(6 (I+1) SAHK / delta) and ln(6 SAHK / delta) for these sizes and delta = .01, worked out here.
L = math.log(6 * (I + 1) * S * A * H * K / 0.01)
LP = math.log(6 * S * A * H * K / 0.01)
OPTIMISTIC = BoxEstimator(0.2, 0.0, 0.005, clip=True, trusting=True)


def random_counts(rng, unseen=0.3):
    transitions = rng.integers(0, 6, (H, S, A, S)).astype(float) * (rng.random((H, S, A, 1)) > unseen)
    transitions[-1] = 0.0
    visits = transitions.sum(axis=-1)
    visits[-1] = rng.integers(0, 6, (S, A))
    reward_sum, cost_sum = visits * rng.random((H, S, A)), visits * rng.uniform(-1.0, 1.0, (I, H, S, A))
    return Counts(visits, transitions, reward_sum, cost_sum)


def test_the_logarithms_count_one_more_kind_of_estimate_per_constraint():
    assert log_term(SETTING, 0, 0.01) == pytest.approx(L, rel=1e-14)
    assert log_term_transition(SETTING, 0, 0.01) == pytest.approx(LP, rel=1e-14)


def test_with_one_constraint_the_logarithm_is_the_papers():
    assert log_term(Setting(5, 5, 3, n_episodes=3000), 0, 0.01) == pytest.approx(math.log(12 * 75 * 3000 / 0.01))


def test_an_unknown_number_of_episodes_is_replaced_by_the_episode_but_at_least_256():
    open_ended = Setting(H, S, A, I)
    assert [effective_episodes(open_ended, k) for k in (0, 1, 256, 257, 1000)] == [256, 256, 256, 257, 1000]
    assert effective_episodes(SETTING, 5000) == K
    assert log_term_transition(open_ended, 511, 0.01) == pytest.approx(math.log(6 * S * A * H * 512 / 0.01))


def test_a_radius_by_hand():
    # p = 1/4, n = 4, Lp = 9: 2 sqrt(3/16 * 9/4) + 14/3 * 9/4.
    expected = 2.0 * math.sqrt(3.0 / 16.0 * 9.0 / 4.0) + 10.5
    assert radius(np.array([0.25]), np.array([4.0]), 1.0, 9.0)[0] == pytest.approx(expected, rel=1e-14)
    assert radius(np.array([0.25]), np.array([4.0]), 0.1, 9.0)[0] == pytest.approx(0.1 * expected, rel=1e-14)
    assert radius(np.array([0.25]), np.array([0.0]), 1.0, 1.0)[0] == pytest.approx(math.sqrt(0.75) + 14.0 / 3.0)


def test_a_box_is_the_radius_around_the_mean_cut_to_the_simplex():
    counts = random_counts(np.random.default_rng(0))
    box = confidence_box(counts, 0.05, LP)
    n = counts.transitions.sum(axis=-1)
    for h, s, a in np.argwhere(n > 0):
        p = counts.transitions[h, s, a] / n[h, s, a]
        reach = 0.05 * (2.0 * np.sqrt(p * (1 - p) * LP / n[h, s, a]) + 14.0 / 3.0 * LP / n[h, s, a])
        low, high = np.maximum(p - reach, 0.0), np.minimum(p + reach, 1.0)
        for t in range(S):
            others = np.arange(S) != t
            assert box.lower[h, s, a, t] == pytest.approx(max(low[t], 1.0 - high[others].sum()), abs=1e-14)
            assert box.upper[h, s, a, t] == pytest.approx(min(high[t], 1.0 - low[others].sum()), abs=1e-14)
    assert np.array_equal(box.lower[n == 0], np.zeros_like(box.lower[n == 0]))
    assert np.array_equal(box.upper[n == 0], np.ones_like(box.upper[n == 0]))


@given(st.integers(0, 2**32 - 1))
def test_a_box_contains_its_centre_and_grows_with_its_scale(seed):
    counts = random_counts(np.random.default_rng(seed))
    narrow, wide = confidence_box(counts, 0.01, LP), confidence_box(counts, 0.1, LP)
    assert narrow.contains(counts.transition_mean())
    assert np.all(wide.lower <= narrow.lower + 1e-15)
    assert np.all(wide.upper >= narrow.upper - 1e-15)


def test_contains_looks_at_every_step_but_the_last():
    rng = np.random.default_rng(1)
    box, inside = random_box(rng, H, S, A, width=0.05, share_free=0.0)
    other = random_kernel(rng, H, S, A)
    assert box.contains(inside)
    assert not box.contains(np.concatenate([other[:1], inside[1:]]))
    assert box.contains(np.concatenate([inside[:-1], other[-1:]]))
    kernel = Kernel(inside)
    assert kernel.contains(np.concatenate([inside[:-1], other[-1:]]))
    assert not kernel.contains(other)


def row_box(lower, upper):
    return Box(np.array(lower).reshape(1, 1, 1, -1), np.array(upper).reshape(1, 1, 1, -1))


def test_nesting_cuts_a_box_with_the_earlier_one():
    nested, resets = row_box([0.2, 0.2], [0.8, 0.8]).within(row_box([0.0, 0.3], [0.7, 1.0]))
    assert resets == 0
    assert np.allclose(nested.lower.ravel(), [0.2, 0.3], rtol=0.0, atol=1e-15)
    assert np.allclose(nested.upper.ravel(), [0.7, 0.8], rtol=0.0, atol=1e-15)


def test_nesting_falls_back_to_the_new_box_where_bounds_cross():
    new = row_box([0.4, 0.4], [0.6, 0.6])
    nested, resets = new.within(row_box([0.9, 0.0], [1.0, 0.1]))
    assert resets == 1
    assert np.array_equal(nested.lower, new.lower)
    assert np.array_equal(nested.upper, new.upper)


def test_nesting_falls_back_to_the_new_box_where_no_law_is_left_though_no_bounds_cross():
    new = row_box([0.3, 0.3, 0.0, 0.0], [0.7, 0.7, 0.4, 0.4])
    nested, resets = new.within(row_box([0.0, 0.0, 0.3, 0.3], [0.4, 0.4, 0.7, 0.7]))
    assert resets == 1
    assert np.array_equal(nested.lower, new.lower)
    assert np.array_equal(nested.upper, new.upper)


@given(st.integers(0, 2**32 - 1))
def test_a_nested_box_is_inside_both_and_keeps_their_common_kernel(seed):
    rng = np.random.default_rng(seed)
    first, inside = random_box(rng, H, S, A, width=0.3)
    reach = 0.2 * rng.random((H, S, A, S))
    second = Box(np.maximum(inside - reach, 0.0), np.minimum(inside + reach, 1.0))
    nested, resets = second.within(first)
    assert resets == 0
    assert nested.contains(inside)
    for outer in (first, second):
        assert np.all(nested.lower >= outer.lower - 1e-15)
        assert np.all(nested.upper <= outer.upper + 1e-15)


def test_theory_means_plus_and_minus_the_bonus_unclipped():
    counts = random_counts(np.random.default_rng(2))
    believed = BoxEstimator().estimate(SETTING, counts, 0)
    n = np.maximum(counts.visits, 1.0)
    assert np.allclose(believed.reward, counts.reward_sum / n + np.sqrt(L / n), rtol=1e-14)
    assert np.allclose(believed.cost, counts.cost_sum / n - np.sqrt(L / n), rtol=1e-13)
    assert np.array_equal(believed.cost, believed.counted_cost)
    unseen = counts.visits == 0
    assert np.allclose(believed.reward[unseen], math.sqrt(L), rtol=1e-14)
    assert np.allclose(believed.cost[:, unseen], -math.sqrt(L), rtol=1e-14)
    assert not believed.margin.any()


def test_optimistic_clips_and_trusts_what_it_has_not_seen():
    counts = random_counts(np.random.default_rng(3))
    believed = OPTIMISTIC.estimate(SETTING, counts, 0)
    n, unseen = np.maximum(counts.visits, 1.0), counts.visits == 0
    expected = np.minimum(counts.reward_sum / n + 0.2 * np.sqrt(L / n), 1.0)
    assert np.allclose(believed.reward[~unseen], expected[~unseen], rtol=1e-14)
    assert np.allclose(believed.cost[:, ~unseen], (counts.cost_sum / n)[:, ~unseen], rtol=0.0, atol=1e-15)
    assert np.all(believed.reward[unseen] == 1.0)
    assert np.all(believed.cost[:, unseen] == -1.0)
    assert isinstance(believed.region, Box)


def test_a_cost_bonus_is_clipped_at_minus_one():
    counts = random_counts(np.random.default_rng(3))
    cost = BoxEstimator(0.2, 1.0, 0.005, clip=True, trusting=True).estimate(SETTING, counts, 0).cost
    assert cost.min() == -1.0


def test_cautious_explores_in_the_reward_and_keeps_a_margin_on_the_cost():
    counts = random_counts(np.random.default_rng(4))
    believed = EmpiricalEstimator(kappa=0.02).estimate(SETTING, counts, 0)
    n, unseen = counts.visits, counts.visits == 0
    seen = np.where(unseen, 1.0, n)
    reward = counts.reward_sum / seen + 0.1 * np.sqrt(L / seen) + 1.0 / seen
    cost = np.clip(counts.cost_sum / (n + 2.0) + 0.02 * np.sqrt(L / seen), -1.0, 1.0)
    assert np.allclose(believed.reward[~unseen], reward[~unseen], rtol=1e-14)
    assert np.allclose(believed.reward[unseen], 2.0 + 0.1 * math.sqrt(L), rtol=1e-14)
    assert np.allclose(believed.cost[:, ~unseen], cost[:, ~unseen], rtol=0.0, atol=1e-14)
    assert np.all(believed.cost[:, unseen] == 0.0)
    assert np.allclose(believed.counted_cost, counts.cost_sum / seen, rtol=0.0, atol=1e-15)
    assert np.allclose(believed.margin, 0.02 * np.sqrt(L / seen), rtol=1e-14)
    assert np.array_equal(believed.region.transition, counts.transition_mean())


def test_balanced_is_cautious_without_the_margin_and_keeps_the_pseudo_observations():
    counts = random_counts(np.random.default_rng(5))
    balanced = EmpiricalEstimator(kappa=0.0).estimate(SETTING, counts, 0)
    assert not balanced.margin.any()
    assert np.allclose(balanced.cost, counts.cost_sum / (counts.visits + 2.0), rtol=0.0, atol=1e-15)
    assert np.array_equal(balanced.reward, EmpiricalEstimator(kappa=0.02).estimate(SETTING, counts, 0).reward)


@pytest.mark.parametrize("estimator", [BoxEstimator, EmpiricalEstimator])
def test_stationary_estimates_use_the_pooled_counts(estimator):
    counts = random_counts(np.random.default_rng(6))
    pooled = estimator(stationary=True).estimate(SETTING, counts, 0)
    expected = estimator().estimate(SETTING, counts.pooled(), 0)
    assert np.array_equal(pooled.reward, expected.reward)
    assert np.array_equal(pooled.cost, expected.cost)
    assert np.array_equal(pooled.reward[0], pooled.reward[-1])
    if isinstance(pooled.region, Box):
        assert np.array_equal(pooled.region.upper, expected.region.upper)
    else:
        assert np.array_equal(pooled.region.transition, expected.region.transition)


def test_a_known_model_estimates_nothing():
    rng = np.random.default_rng(7)
    p, r, d = random_kernel(rng, H, S, A), rng.random((H, S, A)), rng.uniform(-1.0, 1.0, (I, H, S, A))
    believed = KnownModel(p, r, d).estimate(SETTING, random_counts(rng), 3)
    assert np.array_equal(believed.reward, r)
    assert np.array_equal(believed.cost, d)
    assert np.array_equal(believed.region.transition, p)
    assert not believed.margin.any()


def test_a_known_model_that_does_not_fit_is_refused():
    rng = np.random.default_rng(7)
    p, r = random_kernel(rng, H, S, A), rng.random((H, S, A))
    with pytest.raises(InvalidInputError, match="do not fit"):
        KnownModel(p, r[:-1]).check(SETTING)
    with pytest.raises(InvalidInputError, match=r"the known cost needs shape \(5, 4, 3, 2\)"):
        KnownModel(p, r, np.zeros((1, H, S, A))).check(SETTING)
    with pytest.raises(InvalidInputError, match="needs full feedback"):
        KnownModel(p, r).check(SETTING)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.5, float("nan")])
@pytest.mark.parametrize("estimator", [BoxEstimator, EmpiricalEstimator])
def test_a_delta_outside_its_range_is_refused(estimator, delta):
    with pytest.raises(InvalidInputError, match=r"delta is .* strictly between 0 and 1"):
        estimator(delta=delta).check(SETTING)


@pytest.mark.parametrize("kappa", [-0.01, float("nan")])
def test_a_negative_safety_dial_is_refused(kappa):
    with pytest.raises(InvalidInputError, match=r"kappa is .* must be at least 0"):
        EmpiricalEstimator(kappa=kappa).check(SETTING)


def test_only_sets_that_are_meant_to_hold_the_truth_say_so():
    assert BoxEstimator().covers_truth
    assert KnownModel(np.zeros(0), np.zeros(0)).covers_truth
    assert not EmpiricalEstimator().covers_truth


@given(seed=st.integers(0, 999))
def test_the_papers_box_holds_the_truth(seed):
    rng = np.random.default_rng(seed)
    p = random_kernel(rng, H, S, A)
    transitions = np.zeros((H, S, A, S))
    for h in range(H - 1):
        for s in range(S):
            for a in range(A):
                transitions[h, s, a] = rng.multinomial(rng.integers(0, 200), p[h, s, a])
    counts = Counts(transitions.sum(-1), transitions, np.zeros((H, S, A)), np.zeros((I, H, S, A)))
    assert BoxEstimator().estimate(SETTING, counts, 0).region.contains(p)
