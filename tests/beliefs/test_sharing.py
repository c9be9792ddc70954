from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omdpd.beliefs.counts import Counts
from omdpd.beliefs.drift import table_drift
from omdpd.beliefs.evidence import Evidence, counted
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.memory import TableMemory
from omdpd.beliefs.rules import (
    COST_TRUSTS,
    POOLED,
    WEIGHTS,
    best_pair,
    best_weight,
    cost_of_unit,
    noise_share,
    overall_mean,
    reward_levels,
    unit_cost,
)
from omdpd.beliefs.standard import Prices
from omdpd.learners.standard.believing import Dials
from omdpd.learners.standard.stored import believed_by
from omdpd.problem.cmdp import CMDP
from omdpd.problem.setting import BanditFeedback, Setting, Trajectory
from tests.references import plain_beliefs as plain
from tests.references.doors import plainly, shared_kernel, shared_table
from tests.references.instances import bandit, forward, random_cmdp, random_kernel, random_policy, revealed

H, S, A, I = 4, 3, 2, 5  # noqa: E741


def counts_of(seed, episodes, cmdp=None, kind="bandit"):
    """Counts and evidence after some episodes of random policies, and the episodes."""
    rng = np.random.default_rng(seed)
    cmdp = random_cmdp(rng, H, S, A, I) if cmdp is None else cmdp
    setting = cmdp.setting(100, kind)
    met = [episode_of(rng, cmdp, kind) for _ in range(episodes)]
    return cmdp, *counted(Counts.empty(setting), Evidence.empty(setting), met), met


def episode_of(rng, cmdp, kind="bandit"):
    policy = random_policy(rng, *cmdp.shape)
    return bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, cmdp.excess)


def past_of(cmdp, met):
    """The plain version of the same past."""
    past = plain.Past(*cmdp.shape, len(cmdp.cost))
    for each in met:
        past.add(each.trajectory.states, each.trajectory.actions, each.rewards, getattr(each, "costs", ()))
    return past


def believed_of(setting, counts, evidence, exploration=0.0, stationary=False):
    """What the standard learner believes before a plan and without prices."""
    dials = Dials(
        setting.feedback == "bandit", 100, 1.0, exploration, stationary, 10.0, 16.0, 1e6, True, 1 / 16, True, 8
    )
    prices, uniform = Prices(np.zeros(0), np.zeros((0, *setting.shape))), np.full(setting.shape, 1 / setting.shape[2])
    memory = (TableMemory(8),) * setting.n_constraints
    return believed_by(dials, setting, counts, evidence, Caution(), memory, uniform, prices)[0]


def test_two_steps_share_as_worked_out_by_hand():
    n, X = np.array([3.0, 1.0]).reshape(2, 1, 1), np.array([2.0, 1.0]).reshape(2, 1, 1)
    x, own, common = shared_table(X, n, 2.0, 0.5, 1.0)
    # f = 2/5, 2/3; T = 1 + 6/5 + 2/3 = 43/15; level = (1/2 + 4/5 + 2/3) / T = (59/30) (15/43) = 59/86.
    assert x.ravel() == pytest.approx([float((2 + Fraction(59, 43)) / 5), float((1 + Fraction(59, 43)) / 3)], rel=1e-14)
    assert own.ravel() == pytest.approx([1 / 5, 1 / 3], rel=1e-14)
    assert common.ravel() == pytest.approx([4 / 25 * 15 / 43, 4 / 9 * 15 / 43], rel=1e-14)


@pytest.mark.parametrize("m", [0.5, 10.0, 1000.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_shared_mean_is_the_posterior_of_the_model_it_states(seed, m):
    """x_h = level + e_h, level ~ (base, v/a), e_h ~ (0, v/m), row means ~ (x_h, v/n_h): conditioning a Gaussian."""
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 6, 5).astype(float)
    X, base, a, v = n * rng.random(5), 0.3, 2.0, 0.7
    x, own, common = (table.ravel() for table in shared_table(X.reshape(5, 1, 1), n.reshape(5, 1, 1), m, base, a))
    prior = v / a + v / m * np.eye(5)  # covariance of the x_h
    seen = n > 0
    noisy = prior[np.ix_(seen, seen)] + np.diag(v / n[seen])
    gain = np.linalg.solve(noisy, prior[seen]).T
    expected = base + gain @ (X[seen] / n[seen] - base)
    assert np.allclose(x, expected, rtol=0.0, atol=1e-12)
    covariance = v * (np.diag(own) + np.sqrt(np.outer(common, common)))
    assert np.allclose(covariance, prior - gain @ prior[seen], rtol=0.0, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-9, *plain.WEIGHTS, POOLED]), st.sampled_from(plain.COST_TRUSTS))
def test_the_compiled_sharing_is_the_formula(seed, m, a):
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 6, (H, S, A)).astype(float)
    sums, moves = n * rng.random((H, S, A)), rng.multinomial(n.astype(int), np.full(S, 1 / S)).astype(float)
    moves[-1] = 0.0
    base = rng.random()
    for found, expected in zip(shared_table(sums, n, m, base, a), plain.shared_table(sums, n, m, base, a), strict=True):
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-14)
    for found, expected in zip(shared_kernel(moves, n, m), plain.shared_kernel(moves, n, m), strict=True):
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_infinite_weight_pools_the_steps_and_none_keeps_them_apart():
    _, counts, _, _ = counts_of(1, 30)
    n, X = counts.visits, counts.reward_sum
    pooled, own, common = shared_table(X, n, POOLED, 0.5, 1.0)
    assert np.allclose(pooled, (X.sum(0) + 0.5) / (n.sum(0) + 1.0), rtol=0.0, atol=1e-9)
    assert np.allclose(1.0 / (own + common), n.sum(0) + 1.0, rtol=1e-6, atol=0.0)
    apart, _, _ = shared_table(X, n, 1e-9, 0.5, 1.0)
    assert np.allclose(apart[n > 0], (X / np.maximum(n, 1.0))[n > 0], rtol=0.0, atol=1e-8)


def test_a_kernel_is_shared_entry_by_entry_like_a_table():
    _, counts, _, _ = counts_of(2, 25)
    for m in (0.5, 30.0):
        p, own, common = shared_kernel(counts.transitions, counts.visits, m)
        assert np.allclose(p.sum(-1), 1.0, rtol=0.0, atol=1e-14)
        for t in range(S):
            seen = counts.transitions[:-1, ..., t].copy()
            x, *parts = shared_table(seen, counts.visits[:-1], m, 1.0 / S, 1.0)
            assert np.allclose(p[:-1, ..., t], x, rtol=0.0, atol=1e-12)
            assert np.allclose([own[:-1], common[:-1]], parts, rtol=1e-12, atol=0.0)
        assert np.all(p[-1] == 1.0 / S)  # nothing follows the last step
        assert np.all((own[-1] == 1.0) & (common[-1] == 0.0))


def test_scores_are_the_logarithms_of_predictions_made_before():
    """Brute force: every observation is predicted by the whole compiled estimate from the counts before its episode."""
    cmdp, counts, evidence, _ = counts_of(3, 8)
    met = episode_of(np.random.default_rng(30), cmdp)
    _, after = counted(counts, evidence, [met])
    states, actions = met.trajectory.states, met.trajectory.actions
    u, sums = (met.costs[1] + 1.0) / 2.0, (counts.cost_sum[1] + counts.visits) / 2.0
    kernel, cost = after.kernel_score - evidence.kernel_score, after.cost_score[1] - evidence.cost_score[1]
    base = overall_mean(sums.sum(), counts.visits.sum())
    assert base == pytest.approx((sums.sum() + 0.5) / (counts.visits.sum() + 1.0), rel=1e-14)
    for i, m in enumerate(WEIGHTS):
        p, _, _ = shared_kernel(counts.transitions, counts.visits, m)
        seen = [p[h, states[h], actions[h], states[h + 1]] for h in range(H - 1)]
        assert kernel[i] == pytest.approx(np.log(seen).sum(), rel=1e-10)
        for j, trust in enumerate(COST_TRUSTS):
            x, _, _ = shared_table(sums, counts.visits, m, base, trust)
            chance = np.clip(x[np.arange(H), states, actions], 1e-3, 1.0 - 1e-3)
            assert cost[i, j] == pytest.approx((u * np.log(chance) + (1 - u) * np.log(1 - chance)).sum(), rel=1e-10)


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_counts_and_evidence_are_the_plain_ones(kind):
    cmdp, counts, evidence, met = counts_of(5, 12, kind=kind)
    past = past_of(cmdp, met)
    for name, table in (vars(counts) | vars(evidence)).items():
        assert np.allclose(table, getattr(past, name), rtol=1e-12, atol=1e-12), name
    assert evidence.cost_score.any() == counts.cost_sum.any() == (kind == "bandit")


def test_a_long_episode_of_surprises_is_scored_without_underflow():
    """120 steps of what was never seen in thousands: chances of 1e-3 at least, whose product is no number any more."""
    steps, often = 120, 5000.0
    past = plain.Past(steps, S, A, I)
    past.visits[...] = often
    past.transitions[:-1, ..., 0] = often
    past.cost_sum[...] = -often
    counts = Counts(*(getattr(past, name).copy() for name in ("visits", "transitions", "reward_sum", "cost_sum")))
    walk = Trajectory(np.ones(steps, np.int64), np.zeros(steps, np.int64))
    met = BanditFeedback(walk, np.ones(steps), np.ones((I, steps)))
    _, evidence = counted(counts, Evidence.empty(Setting(steps, S, A, I)), [met])
    past.add(walk.states, walk.actions, met.rewards, met.costs)
    assert np.allclose(past.reward_score[0], steps * np.log(1e-3), rtol=1e-12, atol=0.0)
    for name in ("kernel_score", "reward_score", "cost_score"):
        assert getattr(past, name).max() < np.log(np.finfo(float).tiny)
        assert np.allclose(getattr(evidence, name), getattr(past, name), rtol=1e-11, atol=0.0), name


def test_evidence_adds_up_squares():
    _, counts, evidence, _ = counts_of(4, 7)
    # Rewards are 0 or 1 here, and u too: squares are the sums.
    assert np.array_equal(evidence.reward_squares, counts.reward_sum)
    assert np.allclose(evidence.cost_squares, (counts.cost_sum + counts.visits) / 2.0, rtol=0.0, atol=1e-12)


def test_ties_go_to_sharing():
    assert best_weight(np.zeros(WEIGHTS.size), False) == WEIGHTS[-1]
    score = np.zeros((WEIGHTS.size, COST_TRUSTS.size)) - 10.0
    assert best_pair(score, False) == (WEIGHTS[-1], COST_TRUSTS[0])
    score[3, 2] = -8.0
    score[5, 1] = -8.9
    assert best_pair(score, False) == (WEIGHTS[5], COST_TRUSTS[1])


def test_in_a_world_that_is_said_to_be_stationary_the_steps_are_one_and_trust_is_still_learnt():
    score = np.zeros((WEIGHTS.size, COST_TRUSTS.size)) - 10.0
    score[3, 2] = -8.0
    assert best_weight(score[:, 2].copy(), True) == 1e12
    assert best_pair(score, True) == (1e12, COST_TRUSTS[2])


@given(st.integers(0, 2**32 - 1))
def test_the_best_weights_are_the_plain_ones(seed):
    score = np.random.default_rng(seed).normal(0.0, 2.0, (9, 5))
    assert best_weight(score[:, 0].copy(), False) == plain.best_weight(score[:, 0])
    assert best_pair(score, False) == plain.best_pair(score)


def stationary_world(seed):
    rng = np.random.default_rng((seed, 7))
    shape = (6, 3, 2)
    p = np.repeat(random_kernel(rng, 1, 3, 2), 6, axis=0)
    r, d = np.repeat(rng.random((1, 3, 2)), 6, axis=0), np.repeat(rng.uniform(-1, 1, (1, 1, 3, 2)), 6, axis=1)
    assert r.shape == shape
    return CMDP.from_arrays(p, r, d, budget=0.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_stationary_world_is_recognised_within_fifty_episodes(seed):
    _, _, evidence, _ = counts_of((seed, 8), 50, stationary_world(seed))
    assert best_weight(evidence.kernel_score, False) >= 1000.0


@pytest.mark.parametrize("seed", range(3))
def test_a_world_of_unrelated_steps_is_recognised_too(seed):
    _, _, evidence, _ = counts_of(seed, 150)
    assert best_weight(evidence.kernel_score, False) <= 10.0
    assert best_weight(evidence.reward_score[:, 0].copy(), False) <= 10.0


def test_coins_are_all_noise_and_exact_numbers_have_none():
    rng = np.random.default_rng(9)
    n = np.full(2, 50.0)
    coins = rng.random((50, 2)) < 0.3
    assert noise_share(coins.sum(0) * 1.0, coins.sum(0) * 1.0, n) == pytest.approx(1.0, rel=1e-12)
    exact = np.full(2, 0.3)
    assert noise_share(50 * exact, 50 * exact**2, n) == pytest.approx(0.25 / (0.25 + 100 * 0.21), rel=1e-9)
    assert noise_share(0 * n, 0 * n, 0 * n) == 1.0
    once = np.array([1.0, 0.0])  # a row met once says nothing of its noise
    assert noise_share(0.5 * once, 0.25 * once, once) == 1.0


def test_hope_starts_at_one_and_follows_the_rows_met():
    zero = np.zeros(H * S * A)
    assert reward_levels(zero, zero, 1.0) == (1.0, 1.0, 0.25)
    n = zero.copy()
    n[:8] = 4.0
    mean, hope, floor = reward_levels(n * 0.05, n, 0.5)
    rows = [0.05] * 8 + [1.0]
    assert mean == pytest.approx(np.mean(rows), rel=1e-12)
    assert hope == pytest.approx(np.mean(rows) + 2.0 * np.std(rows), rel=1e-12)
    assert hope < 1.0
    assert floor == pytest.approx(0.5 * np.mean(rows) * (1 - np.mean(rows)), rel=1e-12)
    n[1:] = 0.0
    assert reward_levels(n * 0.2, n, 0.5)[1:] == (
        1.0,
        0.125,
    )  # mean .6 and deviation .4; above one half, a coin's noise
    assert reward_levels(n * 0.2, n, 0.0) == (0.6, 1.0, 0.0)


def test_a_reward_of_nothing_is_believed_to_be_a_little_noisy():
    n = np.full(10**5, 4.0)
    *_, floor = reward_levels(0.0 * n, n, 0.7)
    assert floor == pytest.approx(0.7 * 1e-4, rel=1e-12)


def test_a_cost_is_a_number_between_zero_and_one_there_and_back():
    assert plainly(unit_cost)(-0.5, 1.0) == 0.25
    assert plainly(unit_cost)(3.0, 5.0) == 4.0  # a sum of five costs
    assert plainly(cost_of_unit)(0.25, 0.5) == (-0.5, 4.0 * 0.5 * 0.25 * 0.75)


def test_nothing_seen_is_uniform_hopeful_and_indifferent():
    setting = random_cmdp(np.random.default_rng(10), H, S, A, I).setting(10, "bandit")
    found = believed_of(setting, Counts.empty(setting), Evidence.empty(setting))
    assert np.allclose(found.region.transition, 1.0 / S, rtol=0.0, atol=1e-15)
    assert np.allclose(found.reward, 1.0, rtol=0.0, atol=1e-15)
    assert np.allclose(found.counted_cost, 0.0, rtol=0.0, atol=1e-12)
    assert np.array_equal(found.cost, found.counted_cost)  # no margin before a plan


def test_costs_are_shared_in_their_own_units():
    cmdp, counts, evidence, _ = counts_of(11, 40)
    setting = cmdp.setting(100, "bandit")
    found = believed_of(setting, counts, evidence)
    for i, cost in enumerate(found.counted_cost):
        m, trust = best_pair(evidence.cost_score[i], False)
        sums = (counts.cost_sum[i] + counts.visits) / 2.0
        u, _, _ = shared_table(sums, counts.visits, m, overall_mean(sums.sum(), counts.visits.sum()), trust)
        assert np.allclose(cost, 2 * u - 1, rtol=0.0, atol=1e-12)
        coin = noise_share(sums.ravel(), evidence.cost_squares[i].ravel(), counts.visits.ravel())
        assert coin == pytest.approx(1.0, rel=1e-9)  # -1/+1 costs
    unknown = believed_of(replace(setting, feedback="full"), counts, evidence)
    assert not unknown.counted_cost.any()


@pytest.mark.parametrize("stationary", [False, True])
def test_rewards_and_laws_are_shared_as_the_past_says_or_as_one(stationary):
    cmdp, counts, evidence, met = counts_of(12, 40)
    past = past_of(cmdp, met)
    for name in ("kernel_score", "reward_score", "cost_score"):
        getattr(past, name)[...] = getattr(evidence, name)
    found = believed_of(cmdp.setting(100, "bandit"), counts, evidence, 0.3, stationary)
    b = past.beliefs(True, stationary)
    assert np.allclose(found.region.transition, b.p, rtol=0.0, atol=1e-12)
    assert np.allclose(found.counted_cost, [d.mean for d in b.costs], rtol=0.0, atol=1e-12)
    extra = plain.bonus(b, past.visits, np.zeros(0), ())
    assert np.allclose(found.reward, b.reward.mean + 0.3 * extra, rtol=0.0, atol=1e-12)
    assert np.allclose(np.ptp(found.region.transition[:-1], axis=0), 0.0, rtol=0.0, atol=1e-9) == stationary


def test_drift_bounds_how_far_any_occupancy_moves():
    rng = np.random.default_rng(12)
    for _ in range(20):
        p, q = random_kernel(rng, H, S, A), random_kernel(rng, H, S, A)
        near = 0.9 * p + 0.1 * q
        policy, mu = random_policy(rng, H, S, A), rng.dirichlet(np.ones(S))
        moved = np.abs(forward(policy, p, mu) - forward(policy, near, mu)).sum()
        found = table_drift(near.reshape(-1, S), p.reshape(-1, S), H)
        assert moved <= found + 1e-12
        assert found == pytest.approx(plain.drift(near, p), rel=1e-12)
