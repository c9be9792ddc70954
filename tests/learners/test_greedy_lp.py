import numpy as np
import pytest

from omdpd.learners.greedy_lp import GreedyLP
from tests.references.instances import bandit, forward, pool_of, random_cmdp, revealed
from tests.references.plain_loop import PlainCounts, cautious_tables, dot, kernel_of
from tests.references.reference_programs import dual_value

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_the_greedy_program_trusts_the_mean(kind):
    cmdp = random_cmdp(np.random.default_rng(1), H, S, A, I, budget=0.5)
    learner = GreedyLP()
    setting = cmdp.setting(K, kind)
    rng = np.random.default_rng(2)
    tables = pool_of(rng, cmdp, 12)
    state, counts, total, infeasible = learner.init(setting), PlainCounts(H, S, A, I), np.zeros((I, H, S, A)), 0
    for k, table in enumerate(tables):
        r, d, _, _, _ = cautious_tables(0.0)(counts, K)
        mean = d if kind == "bandit" else total / max(k, 1)
        p = kernel_of(counts).transition
        policy = learner.policy(state)
        q = forward(policy, p, setting.mu)
        best, _ = dual_value(p, setting.mu, r, mean)
        if best is None:
            infeasible += 1
        else:
            assert dot(r, q) == pytest.approx(best, abs=1e-6)
            assert all(dot(x, q) <= 1e-6 for x in mean)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, table)
        counts.add(met)
        total = total + table
        state = learner.update(state, met)
    assert infeasible <= 2
    assert learner.report(state).log.solves == len(tables) + 1
