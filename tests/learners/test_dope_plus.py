import numpy as np
import pytest

from omdpd.beliefs.counts import Counts
from omdpd.learners.dope_plus import DOPEPlus
from omdpd.learners.needs import SafePolicy
from omdpd.play.scene import known_safe_policy
from omdpd.problem.setting import Setting
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts, box_of, logarithms
from tests.references.reference_programs import extended_value, pinned

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 100
FINE = SafePolicy(np.full((H, S, A), 1 / A), np.array([-0.25]))
SCALE = 0.002


def plain_rows(counts):
    """p_hat, spread and u, one row after another."""
    p, spread, u = np.full((H, S, A, S), 1 / S), np.zeros((H, S, A)), np.zeros((H, S, A))
    for h, s, a in np.ndindex(H - 1, S, A):
        n = counts.moves[h, s, a].sum()
        if n > 0:
            p[h, s, a] = counts.moves[h, s, a] / n
        spread[h, s, a] = (np.sum(p[h, s, a] > 0) - 1) / max(n, 1)
        u[h, s, a] = S / max(n, 1)
    return p, spread, u


def occupancy(policy, p, mu):
    """Mass sent forward."""
    q, mass = np.zeros((H, S, A)), mu
    for h in range(H):
        q[h] = mass[:, None] * policy[h]
        mass = np.einsum("sa,sat->t", q[h], p[h])
    return q


def error(q, spread, u, Lp):
    """E(q), scaled."""
    return SCALE * (2 * H * np.sqrt(Lp * np.sum(spread * q)) + 14 / 3 * H * Lp * np.sum(u * q))


def some_episodes(learner, cmdp, n_episodes, rng):
    """The state after some episodes, and its counts kept apart."""
    state, counts = learner.init(cmdp.setting(K, "bandit")), PlainCounts(H, S, A, len(cmdp.cost))
    for _ in range(n_episodes):
        met = bandit(rng, cmdp, learner.policy(state))
        counts.add(met)
        state = learner.update(state, met)
    return state, counts


@pytest.mark.parametrize("n_constraints", [1, I])
def test_every_plan_is_the_baseline_or_an_optimum_of_the_program_with_the_tangent(n_constraints):
    cmdp = random_cmdp(np.random.default_rng(2), H, S, A, n_constraints, budget=0.7)
    safe, rng = known_safe_policy("DOPEPlus", cmdp), np.random.default_rng(3)
    learner, setting = (
        DOPEPlus(reward_scale=0.2, cost_scale=0.01, transition_scale=SCALE, safe=safe),
        cmdp.setting(K, "bandit"),
    )
    state, counts = learner.init(setting), PlainCounts(H, S, A, n_constraints)
    L, Lp = logarithms((H, S, A), n_constraints, K)
    planned = 0
    for k in range(1, 26):
        before = learner.policy(state)
        met = bandit(rng, cmdp, before)
        counts.add(met)
        state = learner.update(state, met)
        policy = learner.policy(state)
        p, spread, u = plain_rows(counts)
        x = max(np.sum(spread * occupancy(before, p, setting.mu)), 1 / k)
        slope = SCALE * H * (np.sqrt(Lp / x) * spread + 14 / 3 * Lp * u)
        b = np.minimum(slope, 2 * H) + SCALE * np.sqrt(Lp * x)
        n = np.maximum(counts.n, 1)
        r = counts.reward / n + 0.2 * np.sqrt(L / n) + H / safe.room * b
        d = counts.cost / n + 0.01 * np.sqrt(L / n) + b
        box = box_of(counts, SCALE, Lp)
        value, _ = extended_value(box, setting.mu, r, d)
        if value is None:
            assert np.array_equal(policy, safe.policy)
            continue
        planned += 1
        same, _ = extended_value(box, setting.mu, r, np.concatenate([d, pinned(policy)]))
        assert same == pytest.approx(value, abs=1e-5)
    reported = learner.report(state)
    assert (reported.log.solves, reported.infeasible) == (25, 25 - planned)
    assert planned > 0


def test_the_tangent_is_the_error_at_the_plan_in_play_and_never_below_it():
    cmdp, rng = random_cmdp(np.random.default_rng(5), H, S, A, 1, budget=0.7), np.random.default_rng(6)
    learner = DOPEPlus(
        reward_scale=0.2, cost_scale=0.01, transition_scale=SCALE, safe=known_safe_policy("DOPEPlus", cmdp)
    )  # fmt: skip
    state, counts = some_episodes(learner, cmdp, 30, rng)
    _, Lp = logarithms((H, S, A), 1, K)
    p, spread, u = plain_rows(counts)
    policy = rng.dirichlet(np.ones(A), (H, S))
    b = learner.error_table(state.setting, state.counts, state.k, policy)
    here = occupancy(policy, p, cmdp.initial)
    assert np.sum(b * here) == pytest.approx(error(here, spread, u, Lp), rel=1e-12)
    for _ in range(50):
        q = occupancy(rng.dirichlet(np.full(A, 0.2), (H, S)), rng.dirichlet(np.ones(S), (H, S, A)), cmdp.initial)
        assert np.sum(b * q) >= error(q, spread, u, Lp) - 1e-12


def test_the_error_of_an_episode_grows_by_a_root_of_the_horizon_less_than_the_sum_of_the_rows():
    def ratio(horizon):
        shape, n = (horizon, S, A), 10**12
        moves = np.full((*shape, S), n / S)
        moves[-1] = 0.0
        counts = Counts(np.full(shape, float(n)), moves, np.zeros(shape), np.zeros((1, *shape)))
        setting = Setting(horizon, S, A, n_episodes=K)
        policy = np.full(shape, 1 / A)
        b = DOPEPlus(safe=FINE, transition_scale=1.0).error_table(setting, counts, n, policy)
        p, Lp = 1 / S, np.log(6 * S * A * horizon * K / 0.01)
        row = S * 2 * np.sqrt(p * (1 - p) * Lp / n)
        q = np.full(shape, 1 / (S * A))
        return horizon * row * (horizon - 1) / np.sum(b * q)

    # Every pair is equally well known here, and the terms of order 1/n are negligible.
    assert ratio(17) / ratio(5) == pytest.approx(np.sqrt(16 / 4), rel=1e-3)


def test_a_world_without_chance_has_no_error_but_that_of_the_order_one_over_n_and_the_floor():
    shape = (H, S, A)
    moves = np.zeros((*shape, S))
    moves[:-1, :, :, 0] = 50.0
    counts = Counts(np.full(shape, 50.0), moves, np.zeros(shape), np.zeros((1, *shape)))
    b = DOPEPlus(safe=FINE, transition_scale=SCALE).error_table(
        Setting(H, S, A, n_episodes=K), counts, 10_000, FINE.policy
    )
    _, Lp = logarithms(shape, 1, K)
    floor = SCALE * np.sqrt(Lp / 10_000)
    assert np.allclose(b[:-1], SCALE * 14 / 3 * H * S * Lp / 50.0 + floor)
    assert np.allclose(b[-1], floor)
