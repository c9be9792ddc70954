"""A step that the solver cannot take is taken shorter."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from omdpd.beliefs.confidence import EmpiricalEstimator
from omdpd.learners import proximal_loop
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.standard import on_tables
from omdpd.learners.surrogate import Weighting
from omdpd.solvers.compiled.newton.certificate import FAILED
from omdpd.solvers.mirror import Status, mirror_step
from tests.references.instances import bandit, forward, random_cmdp
from tests.references.opened import opened

H, S, A = 4, 3, 2


def check(learner, solvable, part, name, choosy_about):
    """Let steps fail unless they are so much shorter; `choosy_about` makes such a solver, which notes its lengths."""
    cmdp = random_cmdp(np.random.default_rng(1), H, S, A)
    rng = np.random.default_rng(2)
    state = learner.init(cmdp.setting(40, "bandit"))
    for _ in range(3):
        state = learner.update(state, bandit(rng, cmdp, learner.policy(state)))
    etas, met = [], bandit(rng, cmdp, learner.policy(state))
    whole, eta = opened(learner.update(state, met)), state.eta
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part, name, choosy_about(lambda each: etas.append(each) or eta / each > 0.99 * solvable))
        last = learner.update(state, met)
    after, lengths = opened(last), [eta / each for each in etas]
    assert lengths == pytest.approx([1.0, 10.0, 100.0][: len(lengths)])
    assert lengths[-1] == pytest.approx(solvable)
    assert after.log.failures == 0
    # No farther from where it came from than the whole step would be, and the certificate pays for it.
    assert ((after.q - after.q_hat) ** 2).sum() <= ((whole.q - whole.q_hat) ** 2).sum() + 1e-9
    assert after.drift == pytest.approx(whole.drift + (solvable - 1.0) * H / eta, rel=1e-9)
    assert np.all(after.multipliers <= whole.weights * eta * (1.0 + 1e-9))
    assert np.allclose(
        after.q, forward(learner.policy(last), after.believed.region.transition, cmdp.initial), atol=1e-9
    )


@pytest.mark.parametrize("solvable", [10.0, 100.0])
def test_a_step_that_fails_is_tried_at_a_tenth_and_a_hundredth(solvable):
    def choosy_about(solved):
        def step(region, mu, reference, loss, eta, hinges):
            found = mirror_step(region, mu, reference, loss, eta, hinges)
            return found if solved(eta) else replace(found, status=Status.FAILED)

        return step

    learner = ProximalOMDPD(EmpiricalEstimator(kappa=0.0), Weighting(lagged=True))
    check(learner, solvable, proximal_loop, "solve", choosy_about)


def check_standard(solvable):
    solve = on_tables.solve_step

    def choosy_about(solved):
        def step(reference, loss, eta, *rest):
            gap, scale, steps, status, residual = solve(reference, loss, eta, *rest)
            return gap, scale, steps, status if solved(eta) else FAILED, residual

        return step

    check(ProximalOMDPD.standard(), solvable, on_tables, "solve_step", choosy_about)


def test_the_standard_learner_shortens_its_steps_in_the_same_way():
    """Without the compiler, where the solver within its one compiled step can be another."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    program = "from tests.learners import test_shorter_steps as t; t.check_standard(10.0); t.check_standard(100.0)"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
