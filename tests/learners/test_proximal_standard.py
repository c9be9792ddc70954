"""The standard preset: shared estimates, lagged weights, a margin in standard errors."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from numba import njit

from omdpd.beliefs.confidence import KnownModel
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.memory import KEPT
from omdpd.beliefs.rules import margin_is_useless
from omdpd.beliefs.standard import SharingEstimator
from omdpd.learners.protocol import stored_classes
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.standard import state as at
from omdpd.learners.standard.believing import Dials, has_overflowed
from omdpd.learners.standard.steps import write_prices
from omdpd.learners.surrogate import Stepping, Weighting
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from omdpd.storage.packing import pack, unpack
from tests.references.instances import bandit, random_cmdp, random_policy, revealed
from tests.references.opened import opened
from tests.references.plain_beliefs import Past, standard_error
from tests.references.plain_loop import Solves

H, S, A, I = 4, 3, 2, 2  # noqa: E741


def cmdp_of(seed, n_constraints=I, budget=-0.3, horizon=H):
    return random_cmdp(np.random.default_rng((seed, 1)), horizon, S, A, n_constraints, budget)


def pool_of(cmdp, n):
    rng = np.random.default_rng(3)
    return [np.clip(cmdp.excess + rng.uniform(-0.2, 0.2, cmdp.excess.shape), -1, 1) for _ in range(n)]


def play(learner, cmdp, kind, episodes, n_tables=3, n_episodes=60):
    """The states of a run, the first one included."""
    return [state for state, _ in play_noting(learner, cmdp, kind, episodes, n_tables, n_episodes)]


def play_noting(learner, cmdp, kind, episodes, n_tables=3, n_episodes=60):
    """The same, each with the past that a plain loop has counted by then."""
    rng, tables = np.random.default_rng(5), pool_of(cmdp, n_tables)
    state, past = learner.init(cmdp.setting(n_episodes, kind)), Past(*cmdp.shape, cmdp.n_constraints)
    yield state, past
    for k in range(episodes):
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, tables[k % n_tables])
        state = learner.update(state, met)
        past.add(met.trajectory.states, met.trajectory.actions, met.rewards, met.costs if kind == "bandit" else ())
        yield state, past


@njit
def prices_and_futility(dials, sizes, parts, prices):
    """A door into two rules that only compiled code calls."""
    write_prices(dials, sizes, parts, parts.q, prices)
    return margin_is_useless(has_overflowed(dials, parts), parts.account[at.NOVELTY])


def dials_of(learner, state):
    return Dials(*map(float, learner._dials(state.setting)))


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_every_plan_minimises_the_surrogate_that_is_described(kind):
    learner, cmdp = ProximalOMDPD.standard(), cmdp_of(0)
    gamma, before = 16 / math.sqrt(I * H * 60), None
    for found, past in play_noting(learner, cmdp, kind, 14):
        state, before, last = opened(found), found, before
        if state.k < 9:
            continue
        beliefs = past.beliefs(kind == "bandit", persistence=1.0)
        weights = np.minimum(10.0 * np.exp(gamma * state.V), 1e6)
        z = 1.0 if kind == "bandit" else 1.5
        tables = [(i, cost.mean, cost) for i, cost in enumerate(beliefs.costs)]
        if kind == "full":
            tables = [(i, d, None) for i, held in enumerate(state.kept) for d in held]
        lifted = [
            (weights[i], d + z * state.share * standard_error(beliefs, last.q, d, observed) / H)
            for i, d, observed in tables
        ]
        assert np.array_equal(state.plan, last.q)
        assert np.allclose(state.predicted.hinges.tables, [d for _, d in lifted], rtol=0.0, atol=1e-12)
        assert np.allclose(state.predicted.hinges.weights, [w for w, _ in lifted], rtol=1e-12, atol=0.0)
        assert np.allclose(state.believed.region.transition, beliefs.p, rtol=0.0, atol=1e-12)
        assert np.all(state.believed.reward >= beliefs.reward.mean)
        Solves(state.believed.region, state.setting.mu, state.q_hat, state.eta).check(
            state.q, state.believed.reward, lifted
        )


def test_costs_that_are_met_take_one_solve_per_episode_and_a_constant_step():
    states = play(ProximalOMDPD.standard(), cmdp_of(1), "bandit", 25)
    for k, state in enumerate(states):
        assert state.log.solves == k + 1
        assert state.eta == H * 0.1
        if k:
            assert np.array_equal(opened(state).q_hat, states[k - 1].q)
    assert states[-1].V.max() > 0.0


def test_a_pool_that_is_remembered_never_slows_the_steps():
    states = play(ProximalOMDPD.standard(), cmdp_of(2), "full", 25)
    assert {state.eta for state in states} == {float(H)}
    # One more solve for every table that is new, and none afterwards.
    assert states[-1].log.solves == 26 + 3


def test_tables_beyond_the_memory_slow_the_steps_and_end_the_margin():
    learner = replace(ProximalOMDPD.standard(), memory=2)
    cmdp = cmdp_of(2)
    rng = np.random.default_rng(6)
    state = learner.init(cmdp.setting(60, "full"))
    for _ in range(20):
        state = learner.update(state, revealed(rng, cmdp, learner.policy(state), rng.uniform(-1, 1, (I, H, S, A))))
    assert state.eta < H
    assert prices_and_futility(dials_of(learner, state), state.sizes, state.parts, np.zeros(2 * I))
    assert [len(held) for held in opened(state).kept] == [2, 2]
    assert np.array_equal(opened(state).predicted.hinges.tables, np.concatenate(opened(state).kept))


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_the_dial_raises_the_tables_in_proportion(kind):
    states = {z: play(ProximalOMDPD.standard(z=z), cmdp_of(3), kind, 1) for z in (0.0, 0.5, 2.0)}
    # The first plan is the same for all, so the second differs by the dial alone.
    lifts = {}
    for z, (_, state) in states.items():
        raw = state.believed.counted_cost if kind == "bandit" else np.concatenate(opened(state).kept)
        lifts[z] = opened(state).predicted.hinges.tables - raw
    assert not lifts[0.0].any()
    assert np.allclose(lifts[2.0], 4.0 * lifts[0.5], rtol=0.0, atol=1e-12)
    assert lifts[2.0].min() > 0.0


@pytest.mark.parametrize("cost", [-0.01, 0.01])
def test_the_bonus_sees_high_prices_only_of_revealed_tables_that_are_not_met(cost):
    learner = ProximalOMDPD.standard()
    state = play(learner, cmdp_of(3), "full", 5)[-1].copy()
    state.parts.account[at.HINGES], state.parts.tally[:, KEPT], state.parts.kept[:] = I, 1, cost
    for multipliers, wanted in ([30.0, 90.0], [2.5, 7.5] if cost < 0.0 else [30.0, 90.0]), ([3.0, 6.0], [3.0, 6.0]):
        prices, state.parts.multipliers[:I] = np.zeros(I), np.array(multipliers) * state.eta
        prices_and_futility(dials_of(learner, state), state.sizes, state.parts, prices)
        assert np.allclose(prices, wanted, rtol=1e-12, atol=0.0)


def test_the_margin_is_counted_in_no_violation():
    states = play(ProximalOMDPD.standard(z=3.0), cmdp_of(4), "bandit", 10)
    for before, state in pairwise(states):
        paid = np.maximum(np.tensordot(before.believed.counted_cost, before.q, axes=3), 0.0)
        assert np.allclose(state.V - before.V, np.where(paid > 1e-6, paid, 0.0), rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("kind", ["bandit", "full"])
@pytest.mark.parametrize("horizon", [1, 2])
def test_short_horizons_work(kind, horizon):
    cmdp = cmdp_of(5, budget=-0.1, horizon=horizon)
    learner = ProximalOMDPD.standard()
    rng = np.random.default_rng(7)
    state = learner.init(cmdp.setting(30, kind))
    for _ in range(12):
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, cmdp.excess)
        state = learner.update(state, met)
    assert state.log.failures == 0
    assert state.log.max_gap <= 1e-8
    assert learner.report(state).certificate is None if state.capped else opened(state).drift >= 0.0


def test_an_unknown_number_of_episodes_enters_the_weights_alone():
    cmdp = cmdp_of(6)
    open_end, planned = (play(ProximalOMDPD.standard(), cmdp, "bandit", 6, n_episodes=n) for n in (None, 256))
    for one, other in zip(open_end, planned, strict=True):
        assert np.array_equal(one.q, other.q)


def test_a_stationary_world_may_be_declared_one():
    state = play(ProximalOMDPD.standard(stationary=True), cmdp_of(7), "bandit", 8)[-1]
    kernel = state.believed.region.transition
    assert np.allclose(kernel[0], kernel[-2], rtol=0.0, atol=1e-9)
    assert np.allclose(state.believed.counted_cost[:, 0], state.believed.counted_cost[:, -1], rtol=0.0, atol=1e-9)


def test_a_known_model_has_neither_bonus_nor_margin():
    cmdp = cmdp_of(8)
    learner = replace(ProximalOMDPD.standard(), estimator=KnownModel(cmdp.transition, cmdp.reward, cmdp.excess))
    state = play(learner, cmdp, "bandit", 5)[-1]
    assert np.array_equal(state.believed.reward, cmdp.reward)
    assert np.array_equal(state.predicted.hinges.tables, cmdp.excess)
    assert state.evidence is None


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_a_state_survives_being_stored(kind):
    learner = ProximalOMDPD.standard()
    cmdp = cmdp_of(9)
    state = play(learner, cmdp, kind, 4)[-1]
    again = learner.restored(unpack(*pack(state), stored_classes(learner)))
    rng, policy = np.random.default_rng(1), learner.policy(state)
    met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, cmdp.excess)
    one, other = learner.update(state, met), learner.update(again, met)
    assert np.array_equal(one.vector, other.vector)


def test_before_the_first_episode_there_is_no_margin():
    state = ProximalOMDPD.standard(z=5.0).init(Setting(H, S, A, I, n_episodes=10))
    assert opened(state).plan is None
    assert not opened(state).predicted.hinges.tables.any()
    assert Caution().plan is None


def test_the_preset_is_what_it_is_called():
    learner = ProximalOMDPD.standard()
    assert learner.estimator == SharingEstimator(1.0, 1.0, False, 1.0)
    assert learner.weighting == Weighting(10.0, 16.0, lagged=True)
    assert learner.stepping == Stepping(eta_bandit=0.1, patient=True)
    assert learner.memory == 8


@dataclass(frozen=True)
class Flatter(Weighting):
    """A weighting of the user's."""

    def potential(self, setting, k):
        return super().potential(setting, 1000 * k)


def test_parts_of_ones_own_are_asked_on_a_graph_and_refused_where_nobody_would_ask_them():
    learner = replace(ProximalOMDPD.standard(), weighting=Flatter(10.0, lagged=True))
    with pytest.raises(InvalidInputError, match="weighting is a Flatter, but the compiled step knows Weighting alone"):
        learner.init(Setting(H, S, A, I))
    flat, usual = (
        play(replace(each, layout="graph"), cmdp_of(4), "bandit", 6, n_episodes=None)[-1]
        for each in (learner, ProximalOMDPD.standard())
    )
    assert usual.V.max() > 0.0
    assert flat.weights.max() < usual.weights.max()


@pytest.mark.parametrize("dial", ["z", "exploration"])
def test_a_negative_dial_is_refused(dial):
    with pytest.raises(InvalidInputError, match=f"{dial} is -1"):
        ProximalOMDPD.standard(**{dial: -1.0}).init(Setting(H, S, A, n_episodes=10))


def test_policies_are_stochastic_matrices_of_the_setting():
    policy = ProximalOMDPD.standard().policy(ProximalOMDPD.standard().init(Setting(H, S, A, n_episodes=10)))
    assert policy.shape == random_policy(np.random.default_rng(0), H, S, A).shape
    assert np.allclose(policy.sum(-1), 1.0, rtol=0.0, atol=1e-12)
