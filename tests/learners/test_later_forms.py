"""Later forms of learners: restarts, windows, cores without constraints, epochs, an unknown K."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from omdpd.learners.bvops import BVOPS
from omdpd.learners.cpdpo import CPDPO
from omdpd.learners.opdop import OPDOP
from omdpd.learners.optcmdp import OptCMDP
from omdpd.learners.optprimaldual import OptPrimalDual
from omdpd.learners.sinha_vaze import SinhaVaze
from omdpd.learners.triple_q import TripleQ
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.boxes import tighten
from omdpd.solvers.regions import Box
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts
from tests.references.reference_programs import extended_value

H, S, A, K = 4, 3, 2, 40


def played(learner, n, seed=1, budget=-0.2):
    """The states of `n` episodes and what was met in them."""
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, 1, budget=budget)
    rng = np.random.default_rng(seed)
    states, met = [learner.init(cmdp.setting(K, "bandit"))], []
    for _ in range(n):
        met.append(bandit(rng, cmdp, learner.policy(states[-1])))
        states.append(learner.update(states[-1], met[-1]))
    return cmdp, states, met


def test_triple_q_forgets_everything_at_a_restart_and_not_before():
    _, states, _ = played(TripleQ.restarted(restart_every=10), 25)
    first = states[0]
    for k, state in enumerate(states[1:], 1):
        fresh = np.array_equal(state.Q, first.Q) and not state.visits.any() and state.queue == 0.0
        assert fresh == (k % 10 == 0)
        assert state.setting.n_episodes == 10
        assert state.k == k


def test_a_window_counts_the_last_episodes_alone():
    _, states, met = played(OPDOP.restarted(window=7, restart_every=12, room=0.8), 30)
    for k in (5, 7, 8, 30):
        plain = PlainCounts(H, S, A, 1)
        for feedback in met[max(k - 7, 0) : k]:
            plain.add(feedback)
        counts = states[k].counts
        assert np.array_equal(counts.visits, plain.n)
        assert np.array_equal(counts.transitions, plain.moves)
        assert np.allclose(counts.reward_sum, plain.reward, atol=1e-12)
        assert np.allclose(counts.cost_sum, plain.cost, atol=1e-12)


def test_opdop_restarts_its_policy_and_dual_and_keeps_its_counts():
    _, states, _ = played(OPDOP.restarted(window=None, restart_every=12, room=0.8), 30)
    for k, state in enumerate(states):
        assert np.array_equal(state.policy, np.full((H, S, A), 1 / A)) == (k % 12 == 0)
    assert states[24].counts.visits.sum() == 24 * H


@pytest.mark.parametrize("learner", [BVOPS.unconstrained(), CPDPO.unconstrained()])
def test_a_core_without_constraints_heeds_no_cost(learner):
    cmdp, states, met = played(learner, 12)
    setting = cmdp.setting(K, "bandit")
    state = learner.init(setting)
    for feedback in met:
        dear = type(feedback)(feedback.trajectory, feedback.rewards, np.ones_like(feedback.costs))
        state = learner.update(state, dear)
    assert np.array_equal(learner.policy(state), learner.policy(states[-1]))
    assert not np.allclose(learner.policy(state), 1 / A)


def test_the_plan_of_an_epoch_stays_until_visits_double():
    _, states, _ = played(OptCMDP(epochs=True), 30)
    renewed = 0
    for before, after in itertools.pairwise(states):
        grown = after.counts.visits - before.renewed_at
        doubled = bool((grown >= np.maximum(before.renewed_at, 1)).any())
        renewed += doubled
        assert (after.solves == before.solves + 1) == doubled
        assert doubled or np.array_equal(before.policy, after.policy)
    assert 0 < renewed < 30


def test_hoeffding_s_box_does_not_look_at_the_estimate():
    learner = OptCMDP.practical(transition_scale=0.05, hoeffding=True)
    cmdp, states, met = played(learner, 20, budget=0.3)
    plain = PlainCounts(H, S, A, 1)
    for feedback in met:
        plain.add(feedback)
    Lp = math.log(6 * S * A * H * K / 0.01)
    m = plain.moves.sum(-1, keepdims=True)
    p = np.where(m > 0, plain.moves / np.maximum(m, 1), 1 / S)
    reach = 0.05 * np.sqrt(2 * Lp / np.maximum(m, 1))
    lower, upper = np.where(m > 0, np.maximum(p - reach, 0), 0.0), np.where(m > 0, np.minimum(p + reach, 1), 1.0)
    box, mine = Box(*tighten(lower, upper)), learner.believed(states[-1])
    assert np.allclose(mine.region.lower, box.lower)
    assert np.allclose(mine.region.upper, box.upper)
    value, _ = extended_value(box, cmdp.initial, mine.reward, mine.cost)
    assert value is not None


def test_without_k_the_growth_of_the_potential_falls_with_k():
    learner = SinhaVaze.anytime(beta_root=2.0)
    setting = Setting(H, S, A)
    assert learner.init(setting).k == 0
    _, states, _ = played(learner, 12)
    assert [s.potential.beta for s in states[1:]] == pytest.approx([2.0 / math.sqrt(H * k) for k in range(1, 13)])


def test_the_dial_trades_regret_for_violation_through_the_growth_rate():
    setting = Setting(H, S, A, n_episodes=K)
    rates = [SinhaVaze.practical(dial=dial).init(setting).potential.beta for dial in (0.25, 0.5, 0.75)]
    assert rates == pytest.approx([(H * K) ** -0.75, (H * K) ** -0.5, (H * K) ** -0.25])
    with pytest.raises(InvalidInputError, match=r"dial is 1\.0"):
        SinhaVaze.practical(dial=1.0).init(setting)


def test_a_tightened_dual_sees_a_dearer_cost():
    plain, tight = OptPrimalDual(room=0.5), OptPrimalDual(room=0.5, tightening=0.7)
    cmdp, _, met = played(plain, 1)
    begun = replace(plain.init(cmdp.setting(K, "bandit")), lam=np.array([5.0]))  # far from both ends of [0, H / room]
    less, more = plain.update(begun, met[0]).lam[0], tight.update(begun, met[0]).lam[0]
    assert 0.0 < less < more < H / 0.5
    assert more - less == pytest.approx(plain.rates(begun.setting, 0).rate * 0.7 * H / math.sqrt(K))
