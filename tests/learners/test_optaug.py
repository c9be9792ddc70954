import numpy as np
import pytest

from omdpd.learners.optaug import OptAug
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.boxes import box_values_of_policy
from tests.references.augmented_qp import by_general_solver, objective
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts, optimistic_tables

H, S, A = 4, 3, 2
K = 50


@pytest.mark.parametrize("n_constraints", [1, 2])
def test_every_plan_maximises_the_augmented_lagrangian(n_constraints):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, n_constraints, budget=-0.8)
    learner, rng = OptAug(penalty_power=0.5, max_penalty=4.0), np.random.default_rng(1)
    setting = cmdp.setting(K, "bandit")
    state, counts, before = learner.init(setting), PlainCounts(H, S, A, n_constraints), np.zeros(n_constraints)
    for k in range(20):
        r, d, _, _, box = optimistic_tables(counts, K)
        eta = min((k + 1) ** 0.5, 4.0)
        expected = by_general_solver(box, setting.mu, r, d, before, eta)
        best = objective(expected, r, d, before, eta)
        policy = learner.policy(state)
        # The multipliers after the plan are those of the general solver's plan ...
        reached = np.maximum(before + eta * np.tensordot(d, expected, axes=3), 0.0)
        assert np.allclose(state.lam, reached, rtol=0, atol=1e-4)
        # ... and the policy with the kernel that suits the Lagrangian best is worth as much as that plan.
        table = r - np.tensordot(state.lam, d, axes=1)
        value = setting.mu @ box_values_of_policy(policy, box.lower, box.upper, table)[1][0]
        assert value + (0.5 * state.lam @ state.lam - before @ state.lam) / eta == pytest.approx(best, abs=1e-5)
        before = state.lam
        met = bandit(rng, cmdp, policy)
        counts.add(met)
        state = learner.update(state, met)
    said = learner.report(state)
    assert said.log.solves == 21
    assert said.log.failures == 0
    assert said.log.max_gap <= 1e-8
    assert before.max() > 0.0


def test_the_penalty_grows_and_stops():
    learner = OptAug()
    state = learner.init(Setting(H, S, A))
    assert learner.report(state).step_size == 1.0
    assert OptAug(max_penalty=7.0).penalty(99) == 7.0
