"""OMDPD with the Kullback-Leibler divergence: its constants, its smoothing, and its certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from omdpd import OMDPD, run
from omdpd.problem.setting import FullFeedback, Setting, Trajectory
from omdpd.solvers.mirror import Divergence, Hinges, mirror_step, smoothed
from omdpd.worlds import random_dirichlet

KL = replace(OMDPD.tuned(), divergence=Divergence.KL)
H, S, A, K = 3, 4, 2, 50


def test_the_diameter_is_that_of_smoothed_references():
    state = KL.init(Setting(H, S, A, n_episodes=K))
    assert state.diameter == pytest.approx(H * np.log(S * A * K))
    assert state.eta == pytest.approx(np.sqrt(state.diameter))


def test_both_steps_start_from_smoothed_references():
    rng = np.random.default_rng(0)
    setting = Setting(H, S, A, n_episodes=K, feedback="full")
    state = KL.init(setting)
    met = Trajectory(rng.integers(S, size=H), rng.integers(A, size=H))
    feedback = FullFeedback(met, rng.random(H), rng.uniform(-1.0, 1.0, (1, H, S, A)))
    after = KL.update(state, feedback)
    region = KL.estimator.estimate(setting, after.counts, 1).region
    none = Hinges.none((H, S, A))
    first = mirror_step(region, setting.mu, smoothed(state.q_hat, 1 / K), after.grad, state.eta, none, Divergence.KL)
    second = mirror_step(
        region, setting.mu, smoothed(first.occupancy, 1 / K), after.grad, after.eta, none, Divergence.KL
    )
    assert np.allclose(after.q_hat, first.occupancy, atol=1e-9)
    assert np.allclose(after.q, second.occupancy, atol=1e-9)


@pytest.mark.parametrize("nature", ["noisy", "pool"])
def test_a_run_is_certified_and_learns(nature):
    cmdp = random_dirichlet.make(np.random.default_rng(3), S, A, H, binding=False)
    history = run(cmdp, KL, nature, 200, seed=1)
    assert history.report.log.failures == 0
    assert history.report.log.max_gap <= 1e-9
    assert history.values[-50:].mean() > history.values[:10].mean()
