from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from instances import bandit, forward, random_cmdp, random_kernel, random_policy

from omdpd.beliefs.counts import Counts
from omdpd.beliefs.sharing import (
    COST_TRUSTS,
    POOLED,
    REWARD_TRUSTS,
    TRUST,
    WEIGHTS,
    Evidence,
    best_pair,
    best_weight,
    shared_beliefs,
)
from omdpd.problem.cmdp import CMDP
from omdpd.solvers.compiled.scores import kernel_scores, table_scores
from omdpd.solvers.compiled.sharing import (
    kernel_drift,
    noise_share,
    overall_mean,
    rows_met,
    shared_kernel,
    shared_table,
)

H, S, A, I = 4, 3, 2, 2  # noqa: E741


def counts_of(seed, episodes, cmdp=None, kind="bandit"):
    """Counts and evidence after some episodes of random policies."""
    rng = np.random.default_rng(seed)
    cmdp = random_cmdp(rng, H, S, A, I) if cmdp is None else cmdp
    shape = cmdp.shape
    counts, evidence = Counts.empty(cmdp.setting(100, kind)), Evidence.empty(cmdp.setting(100, kind))
    for _ in range(episodes):
        met = bandit(rng, cmdp, random_policy(rng, *shape))
        counts, evidence = counts.add(met), evidence.after(counts, met)
    return cmdp, counts, evidence


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


def test_infinite_weight_pools_the_steps_and_none_keeps_them_apart():
    _, counts, _ = counts_of(1, 30)
    n, X = counts.visits, counts.reward_sum
    pooled, own, common = shared_table(X, n, POOLED, 0.5, 1.0)
    assert np.allclose(pooled, (X.sum(0) + 0.5) / (n.sum(0) + 1.0), rtol=0.0, atol=1e-9)
    assert np.allclose(1.0 / (own + common), n.sum(0) + 1.0, rtol=1e-6, atol=0.0)
    apart, _, _ = shared_table(X, n, 1e-9, 0.5, 1.0)
    assert np.allclose(apart[n > 0], (X / np.maximum(n, 1.0))[n > 0], rtol=0.0, atol=1e-8)


def test_a_kernel_is_shared_entry_by_entry_like_a_table():
    _, counts, _ = counts_of(2, 25)
    for m in (0.5, 30.0):
        p, own, common = shared_kernel(counts.transitions, counts.visits, m, 1.0)
        assert np.allclose(p.sum(-1), 1.0, rtol=0.0, atol=1e-14)
        for t in range(S):
            seen = counts.transitions[:-1, ..., t].copy()
            x, *parts = shared_table(seen, counts.visits[:-1], m, 1.0 / S, 1.0)
            assert np.allclose(p[:-1, ..., t], x, rtol=0.0, atol=1e-12)
            assert np.allclose([own[:-1], common[:-1]], parts, rtol=1e-12, atol=0.0)


def test_scores_are_the_logarithms_of_predictions_made_before():
    """Brute force: every observation is predicted by the whole estimate from the counts before its episode."""
    rng = np.random.default_rng(3)
    cmdp, counts, _ = counts_of(3, 8)
    met = bandit(rng, cmdp, random_policy(rng, H, S, A))
    states, actions = met.trajectory.states, met.trajectory.actions
    u, sums = (met.costs[1] + 1.0) / 2.0, (counts.cost_sum[1] + counts.visits) / 2.0
    kernel = kernel_scores(states, actions, counts.transitions, counts.visits, WEIGHTS, TRUST)
    cost = table_scores(states, actions, u, sums, counts.visits, WEIGHTS, COST_TRUSTS)
    base = overall_mean(sums, counts.visits)
    assert base == pytest.approx((sums.sum() + 0.5) / (counts.visits.sum() + 1.0), rel=1e-14)
    for i, m in enumerate(WEIGHTS):
        p, _, _ = shared_kernel(counts.transitions, counts.visits, m, TRUST)
        seen = [p[h, states[h], actions[h], states[h + 1]] for h in range(H - 1)]
        assert kernel[i] == pytest.approx(np.log(seen).sum(), rel=1e-10)
        for j, trust in enumerate(COST_TRUSTS):
            x, _, _ = shared_table(sums, counts.visits, m, base, trust)
            chance = np.clip(x[np.arange(H), states, actions], 1e-3, 1.0 - 1e-3)
            assert cost[i, j] == pytest.approx((u * np.log(chance) + (1 - u) * np.log(1 - chance)).sum(), rel=1e-10)


def test_evidence_adds_up_scores_and_squares():
    cmdp, counts, evidence = counts_of(4, 6)
    rng = np.random.default_rng(40)
    met = bandit(rng, cmdp, random_policy(rng, H, S, A))
    after = evidence.after(counts, met)
    states, actions = met.trajectory.states, met.trajectory.actions
    gained = table_scores(states, actions, met.rewards, counts.reward_sum, counts.visits, WEIGHTS, REWARD_TRUSTS)
    assert np.array_equal(after.reward_score, evidence.reward_score + gained)
    # Rewards are 0 or 1 here, and u too: squares are the sums.
    counts = counts.add(met)
    assert np.array_equal(after.reward_squares, counts.reward_sum)
    assert np.allclose(after.cost_squares, (counts.cost_sum + counts.visits) / 2.0, rtol=0.0, atol=1e-12)


def test_ties_go_to_sharing():
    assert best_weight(np.zeros(WEIGHTS.size)) == WEIGHTS[-1]
    score = np.zeros((WEIGHTS.size, COST_TRUSTS.size)) - 10.0
    assert best_pair(score) == (WEIGHTS[-1], COST_TRUSTS[0])
    score[3, 2] = -8.0
    score[5, 1] = -8.9
    assert best_pair(score) == (WEIGHTS[5], COST_TRUSTS[1])


def stationary_world(seed):
    rng = np.random.default_rng((seed, 7))
    shape = (6, 3, 2)
    p = np.repeat(random_kernel(rng, 1, 3, 2), 6, axis=0)
    r, d = np.repeat(rng.random((1, 3, 2)), 6, axis=0), np.repeat(rng.uniform(-1, 1, (1, 1, 3, 2)), 6, axis=1)
    assert r.shape == shape
    return CMDP.from_arrays(p, r, d, budget=0.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_stationary_world_is_recognised_within_fifty_episodes(seed):
    _, _, evidence = counts_of((seed, 8), 50, stationary_world(seed))
    assert best_weight(evidence.kernel_score) >= 1000.0


@pytest.mark.parametrize("seed", range(3))
def test_a_world_of_unrelated_steps_is_recognised_too(seed):
    _, _, evidence = counts_of(seed, 150)
    assert best_weight(evidence.kernel_score) <= 10.0
    assert best_weight(evidence.reward_score[:, 0]) <= 10.0


def test_coins_are_all_noise_and_exact_numbers_have_none():
    rng = np.random.default_rng(9)
    n = np.full((1, 1, 2), 50.0)
    coins = rng.random((50, 1, 1, 2)) < 0.3
    assert noise_share(coins.sum(0) * 1.0, coins.sum(0) * 1.0, n) == pytest.approx(1.0, rel=1e-12)
    exact = np.full((1, 1, 2), 0.3)
    assert noise_share(50 * exact, 50 * exact**2, n) == pytest.approx(0.25 / (0.25 + 100 * 0.21), rel=1e-9)
    assert noise_share(0 * n, 0 * n, 0 * n) == 1.0


def test_hope_starts_at_one_and_follows_the_rows_met():
    zero = np.zeros((H, S, A))
    assert rows_met(zero, zero) == (1.0, 0.0)
    n = zero.copy()
    n[0, 0] = 4.0
    mean, spread = rows_met(n * 0.25, n)
    rows = [0.25, 0.25, 1.0]
    assert (mean, spread) == pytest.approx((np.mean(rows), np.std(rows)), rel=1e-12)


def test_nothing_seen_is_uniform_hopeful_and_indifferent():
    cmdp = random_cmdp(np.random.default_rng(10), H, S, A, I)
    setting = cmdp.setting(10, "bandit")
    found = shared_beliefs(setting, Counts.empty(setting), Evidence.empty(setting))
    assert np.allclose(found.kernel, 1.0 / S, rtol=0.0, atol=1e-15)
    assert np.allclose(found.reward.mean, 1.0, rtol=0.0, atol=1e-15)
    assert all(np.allclose(cost.mean, 0.0, rtol=0.0, atol=1e-12) for cost in found.costs)


def test_costs_are_shared_in_their_own_units():
    _, counts, evidence = counts_of(11, 40)
    setting = random_cmdp(np.random.default_rng(11), H, S, A, I).setting(100, "bandit")
    found = shared_beliefs(setting, counts, evidence)
    for i, cost in enumerate(found.costs):
        m, trust = best_pair(evidence.cost_score[i])
        sums = (counts.cost_sum[i] + counts.visits) / 2.0
        u, own, common = shared_table(sums, counts.visits, m, overall_mean(sums, counts.visits), trust)
        assert np.allclose(cost.mean, 2 * u - 1, rtol=0.0, atol=1e-12)
        assert np.allclose(cost.noise, 1 - cost.mean**2, rtol=0.0, atol=1e-9)  # -1/+1 costs
        assert np.allclose(cost.size, 1.0 / (own + common), rtol=1e-12, atol=0.0)
    assert shared_beliefs(revealing(setting), counts, evidence).costs == ()


def revealing(setting):
    return replace(setting, feedback="full")


def test_drift_bounds_how_far_any_occupancy_moves():
    rng = np.random.default_rng(12)
    for _ in range(20):
        p, q = random_kernel(rng, H, S, A), random_kernel(rng, H, S, A)
        near = 0.9 * p + 0.1 * q
        policy, mu = random_policy(rng, H, S, A), rng.dirichlet(np.ones(S))
        moved = np.abs(forward(policy, p, mu) - forward(policy, near, mu)).sum()
        rows = np.abs(p - near).sum(-1).max(axis=(1, 2))
        assert moved <= kernel_drift(near, p) + 1e-12
        assert kernel_drift(near, p) == pytest.approx(sum((H - 1 - h) * rows[h] for h in range(H - 1)), rel=1e-12)
