import numpy as np
import pytest

from omdpd.learners.cautious_lp import CautiousLP
from tests.references.instances import forward, pool_of, random_cmdp, revealed
from tests.references.plain_loop import PlainCounts, cautious_tables, dot
from tests.references.reference_programs import dual_value

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


def test_the_cautious_program_satisfies_every_table_seen_with_its_margin():
    cmdp = random_cmdp(np.random.default_rng(1), H, S, A, I)
    learner = CautiousLP()
    setting = cmdp.setting(K, "full")
    rng = np.random.default_rng(2)
    pool = pool_of(rng, cmdp, 10)
    state, counts, met_so_far = learner.init(setting), PlainCounts(H, S, A, I), set()
    q, infeasible = np.zeros((H, S, A)), 0
    for j in [*range(10), 0]:
        r, _, _, margin, region = cautious_tables(0.02)(counts, K)
        lift = dot(q, margin) / H
        tables = np.array([d + lift * np.abs(d).max() for i in sorted(met_so_far) for d in pool[i]]).reshape(
            -1, H, S, A
        )
        policy = learner.policy(state)
        q = forward(policy, region.transition, setting.mu)
        best, _ = dual_value(region.transition, setting.mu, r, tables)
        if best is None:
            infeasible += 1
        else:
            assert dot(r, q) == pytest.approx(best, abs=1e-6)
            assert all(dot(d, q) <= 1e-6 for d in tables)
        assert learner.report(state).infeasible == infeasible
        q = state.q
        met = revealed(rng, cmdp, policy, pool[j])
        counts.add(met)
        met_so_far.add(j)
        state = learner.update(state, met)
    assert infeasible < 5
    assert sum(len(kept.tables) for kept in state.memory) == 20


def test_the_cautious_program_may_use_a_box():
    cmdp = random_cmdp(np.random.default_rng(1), H, S, A)
    learner = CautiousLP(box=True)
    rng = np.random.default_rng(2)
    state = learner.init(cmdp.setting(K, "full"))
    d = np.full((1, H, S, A), -0.25)
    d[..., 1] = 0.25
    for _ in range(5):
        state = learner.update(state, revealed(rng, cmdp, learner.policy(state), d))
    assert dot(d, state.q) <= 1e-7
    assert learner.report(state).infeasible == 0
