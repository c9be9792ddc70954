import numpy as np
import pytest

from omdpd import ProximalOMDPD, run
from omdpd.natures import fixed, revealed
from omdpd.play.simulate import observe_costs, play_judged
from omdpd.problem.cmdp import CMDP
from tests.references.instances import random_cmdp
from tests.references.reference_programs import dual_value, least_worst_excess

H, S, A, I = 4, 3, 2, 2  # noqa: E741
NOWHERE = np.zeros((H, S, A))


def world(seed, budget=0.0):
    return random_cmdp(np.random.default_rng(seed), H, S, A, I, budget)


def test_fixed_costs_are_the_means_less_the_budget_in_every_episode():
    cmdp = world(0, budget=0.4)
    nature = fixed.make(cmdp, 7)
    for k in (0, 5):
        met = nature.draw(k, NOWHERE)
        assert np.array_equal(met.cost, cmdp.cost - 0.4 / H)
        assert np.array_equal(met.reward, cmdp.reward)
        assert (met.reward_noise, met.cost_noise, met.key) == ("exact", "exact", 0)
    assert nature.feedback == "bandit"


def test_noisy_costs_have_the_same_means_and_are_observed_through_noise():
    cmdp = world(0)
    met = fixed.make_noisy(cmdp, 7).draw(3, NOWHERE)
    assert np.array_equal(met.cost, cmdp.excess)
    assert (met.reward_noise, met.cost_noise) == ("two-point", "two-point")
    assert fixed.make_noisy(cmdp, 7, noise="beta").draw(3, NOWHERE).cost_noise == "beta"


@pytest.mark.parametrize("budget", [-0.8, 0.0, 0.8])
@pytest.mark.parametrize("seed", range(4))
def test_the_verdict_on_fixed_costs_is_the_linear_programs(seed, budget):
    cmdp = world(seed, budget)
    verdict = fixed.make(cmdp, 0).safety()
    assert verdict.exists == (dual_value(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)[0] is not None)
    if not verdict.exists:
        least = least_worst_excess(cmdp.transition, cmdp.initial, cmdp.excess)
        assert f"at least {least:.4g}" in verdict.why


def test_both_verdicts_on_fixed_costs_are_met_above():
    verdicts = {fixed.make(world(seed, budget), 0).safety().exists for seed in range(4) for budget in (-0.8, 0.0, 0.8)}
    assert verdicts == {True, False}


def test_scaled_costs_are_the_mean_table_times_one_of_seven_numbers():
    cmdp = world(1)
    nature = revealed.make_scaled(cmdp, 11)
    factors = []
    for k in range(700):
        met = nature.draw(k, NOWHERE)
        factor = float(met.cost.ravel()[0] / cmdp.excess.ravel()[0])
        assert np.allclose(met.cost, factor * cmdp.excess, rtol=0.0, atol=1e-14)
        # The key names the table up to a positive factor.
        assert np.allclose(np.abs(factor) * nature.table(met.key), met.cost, rtol=0.0, atol=1e-14)
        factors.append(round(factor, 9))
    assert set(factors) == {-1.0, -0.6, -0.2, 0.0, 0.2, 0.6, 1.0}
    counts = np.array([factors.count(level) for level in sorted(set(factors))])
    # Six degrees of freedom: mean 6, standard deviation sqrt(12).
    assert ((counts - 100.0) ** 2 / 100.0).sum() < 30.0


def test_scaled_keys_tell_the_sign_and_nothing_else():
    nature = revealed.make_scaled(world(1), 11)
    keys = {nature.draw(k, NOWHERE).key for k in range(100)}
    assert keys == {0, 1, 2}
    assert np.array_equal(nature.table(1), -nature.table(2))
    assert not nature.table(0).any()


@pytest.mark.parametrize("seed", range(6))
def test_the_verdict_on_scaled_costs_is_that_every_cost_can_be_met_exactly(seed):
    cmdp = world(seed)
    both = np.concatenate([cmdp.excess, -cmdp.excess])
    exists = dual_value(cmdp.transition, cmdp.initial, cmdp.reward, both)[0] is not None
    assert revealed.make_scaled(cmdp, 0).safety().exists == exists


def test_no_policy_is_safe_for_a_cost_that_never_changes_sign():
    p = np.full((2, 2, 2), 0.5)
    cmdp = CMDP.from_arrays(p, np.zeros((2, 2)), np.full((2, 2), 0.5), budget=0.0, horizon=3)
    assert not revealed.make_scaled(cmdp, 0).safety().exists


def test_noise_of_the_own_range_never_leaves_it_and_keeps_the_means():
    cmdp = world(0, budget=0.4)
    round_ = fixed.make_noisy(cmdp, 7, noise="own-range").draw(3, NOWHERE)
    assert (round_.reward_noise, round_.cost_noise) == ("two-point", "own-range")
    low, high = round_.cost.min(axis=(1, 2, 3)), round_.cost.max(axis=(1, 2, 3))
    means = round_.cost.reshape(I, -1)
    uniforms = np.broadcast_to((np.arange(2000) + 0.5) / 2000, (I, 2000))
    for x in range(means.shape[1]):
        seen = observe_costs(round_, np.repeat(means[:, x : x + 1], 2000, axis=1), uniforms)
        assert np.isin(seen[0], (low[0], high[0])).all()
        assert seen.mean(axis=1) == pytest.approx(means[:, x], abs=1e-3)


def test_a_run_meets_the_noise_that_its_problem_has():
    costs = np.array([[0.0, 0.02], [0.01, 0.0]])
    small = CMDP.from_arrays(np.full((2, 2, 2), 0.5), [[0.0, 1.0], [0.5, 0.0]], costs, 0.02, horizon=4)
    met = set()
    rng = np.random.default_rng(1)
    round_ = fixed.make_noisy(small, 0, noise="own-range").draw(0, NOWHERE)
    policy = np.full((4, 2, 2), 0.5)
    for _ in range(40):
        seen, _ = play_judged(small, round_, policy, np.zeros((4, 2, 2)), "bandit", rng)
        met |= set(np.round(seen.costs[0], 12).tolist())
    assert met == {-0.005, 0.015}
    played = run(small, ProximalOMDPD.standard(), fixed.make_noisy(small, 0, noise="own-range"), n_episodes=5)
    assert len(played.values) == 5
