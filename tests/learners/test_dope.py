import numpy as np
import pytest

from omdpd.learners.dope import DOPE
from omdpd.play.scene import known_safe_policy, with_known_facts
from omdpd.problem.cmdp import CMDP
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.boxes import tighten
from omdpd.solvers.regions import Box
from tests.references.instances import bandit, random_cmdp, random_kernel
from tests.references.plain_loop import PlainCounts, box_of, logarithms
from tests.references.reference_programs import extended_value, pinned

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 100


def box_around(p, reach, seen):
    """p +- reach inside [0, 1], the whole simplex where nothing was seen."""
    lower, upper = np.where(seen, np.maximum(p - reach, 0), 0.0), np.where(seen, np.minimum(p + reach, 1), 1.0)
    return Box(*tighten(lower, upper))


@pytest.mark.parametrize(
    ("n_constraints", "narrow", "known"), [(1, False, False), (I, False, False), (1, True, False), (1, True, True)]
)
def test_every_plan_is_the_baseline_or_an_optimum_of_the_extended_program(n_constraints, narrow, known):
    rng = np.random.default_rng(2)
    cmdp = random_cmdp(rng, H, S, A, n_constraints, budget=0.7)
    if known:
        p = random_kernel(rng, H, S, A) * (np.arange(S) != rng.integers(S, size=(H, S, A, 1)))
        cost = rng.uniform(-0.8, 0.8, (1, H, S, A))
        cmdp = CMDP.from_arrays(p / p.sum(-1, keepdims=True), cmdp.reward, cost, budget=0.7, initial=cmdp.initial)
    safe = known_safe_policy("DOPE", cmdp)
    support = cmdp.transition > 0.0 if known else None
    learner = DOPE(0.2, 0.01, 0.002, narrow=narrow, support=support, safe=safe)
    setting = cmdp.setting(K, "bandit")
    rng = np.random.default_rng(3)
    state, counts = learner.init(setting), PlainCounts(H, S, A, n_constraints)
    L, Lp = logarithms((H, S, A), n_constraints, K)
    solves = planned = 0
    for k in range(1, 31):
        met = bandit(rng, cmdp, learner.policy(state))
        counts.add(met)
        state = learner.update(state, met)
        policy = learner.policy(state)
        if k < 0.002**2 * S**2 * A * H**4 / safe.room**2:
            assert np.array_equal(policy, safe.policy)
            continue
        solves += 1
        n, m = np.maximum(counts.n, 1), np.maximum(counts.moves.sum(-1), 1)[..., None]
        p = np.where(counts.moves.sum(-1, keepdims=True) > 0, counts.moves / m, 1 / S)
        reach = 0.002 * (2 * np.sqrt(p * (1 - p) * Lp / m) + 14 / 3 * Lp / m)
        if narrow:
            reach = 0.002 * np.minimum(np.minimum(np.sqrt(p * (1 - p) * Lp / m) + Lp / m, Lp / np.sqrt(m)), 1)
        possible = cmdp.transition > 0.0 if known else np.ones_like(p, dtype=bool)
        reach = np.where(possible, reach, 0.0)
        bbar = np.minimum(reach.sum(-1), 2.0)
        bbar[-1] = 0.0
        r = counts.reward / n + 0.2 * np.sqrt(L / n) + H**2 / safe.room * bbar
        d = counts.cost / n + 0.01 * np.sqrt(L / n) + H * bbar
        box = box_around(p, reach, counts.moves.sum(-1, keepdims=True) > 0) if narrow else box_of(counts, 0.002, Lp)
        box = Box(*tighten(np.where(possible, box.lower, 0.0), np.where(possible, box.upper, 0.0)))
        value, _ = extended_value(box, setting.mu, r, d)
        if value is None:
            assert np.array_equal(policy, safe.policy)
            continue
        planned += 1
        same, _ = extended_value(box, setting.mu, r, np.concatenate([d, pinned(policy)]))
        assert same == pytest.approx(value, abs=1e-5)
    said = learner.report(state)
    assert (said.log.solves, said.infeasible) == (solves, solves - planned)
    assert planned > 0


def test_a_run_tells_the_support_where_it_is_to_be_known():
    cmdp = random_cmdp(np.random.default_rng(2), H, S, A, 1, budget=0.7)
    told = with_known_facts(DOPE(known_support=True), cmdp, "bandit")
    assert np.array_equal(told.support, cmdp.transition > 0.0)
    assert with_known_facts(DOPE(), cmdp, "bandit").support is None


def test_the_published_first_phase_is_long():
    assert DOPE(transition_scale=1.0).warm_up(Setting(5, 5, 3, n_episodes=K), 0.5) == 5**2 * 3 * 5**4 / 0.25
