import numpy as np
import pytest

from omdpd.learners.greedy_lp import GreedyLP
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from tests.references.instances import bandit, forward, random_cmdp, random_policy, revealed
from tests.references.plain_loop import PlainCounts, cautious_tables, dot, kernel_of
from tests.references.reference_programs import dual_value
from tests.references.trivial_world import BEST, late_averages

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


def pool_of(rng, cmdp, n):
    """Tables that some policy satisfies with room."""
    safe = forward(random_policy(rng, H, S, A), cmdp.transition, cmdp.initial)
    tables = rng.uniform(-0.6, 0.6, (n, I, H, S, A))
    return tables - (np.tensordot(tables, safe, axes=3) / H)[..., None, None, None] - 0.05


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


def test_the_trivial_world_is_solved():
    value, excess, _ = late_averages(GreedyLP(), "bandit", 400)
    assert value > 0.95 * BEST
    assert excess < 0.1


def test_a_negative_margin_is_refused():
    with pytest.raises(InvalidInputError, match="kappa is -1"):
        GreedyLP(kappa=-1.0).init(Setting(H, S, A))
