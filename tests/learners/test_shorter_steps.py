"""A step that the solver cannot take is taken shorter."""

from dataclasses import replace

import numpy as np
import pytest
from instances import bandit, forward, random_cmdp

from omdpd.learners import proximal_steps
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.solvers.mirror import Status, mirror_step

H, S, A = 4, 3, 2


@pytest.mark.parametrize("solvable", [10.0, 100.0])
def test_a_step_that_fails_is_tried_at_a_tenth_and_a_hundredth(monkeypatch, solvable):
    cmdp = random_cmdp(np.random.default_rng(1), H, S, A)
    learner = ProximalOMDPD.standard()
    rng = np.random.default_rng(2)
    state = learner.init(cmdp.setting(40, "bandit"))
    for _ in range(3):
        state = learner.update(state, bandit(rng, cmdp, learner.policy(state)))
    lengths = []

    def choosy(region, mu, reference, loss, eta, hinges):
        step = mirror_step(region, mu, reference, loss, eta, hinges)
        lengths.append(state.eta / eta)
        return step if lengths[-1] > 0.99 * solvable else fails(step)

    monkeypatch.setattr(proximal_steps, "mirror_step", choosy)
    met = bandit(rng, cmdp, learner.policy(state))
    after = learner.update(state, met)
    assert lengths == pytest.approx([1.0, 10.0, 100.0][: len(lengths)])
    assert lengths[-1] == pytest.approx(solvable)
    assert after.log.failures == 0
    # No farther from where it came from than the whole step would be, and the certificate pays for it.
    monkeypatch.undo()
    whole = learner.update(state, met)
    assert ((after.q - after.q_hat) ** 2).sum() <= ((whole.q - whole.q_hat) ** 2).sum() + 1e-9
    assert after.drift == pytest.approx(whole.drift + (solvable - 1.0) * H / state.eta, rel=1e-9)
    assert np.all(after.multipliers <= whole.weights * state.eta * (1.0 + 1e-9))
    assert np.allclose(
        after.q, forward(learner.policy(after), after.believed.region.transition, cmdp.initial), atol=1e-9
    )


def fails(step):
    return replace(step, status=Status.FAILED)
