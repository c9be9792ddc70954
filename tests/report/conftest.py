"""Studies to look at."""

from __future__ import annotations

import numpy as np
import pytest

from omdpd import CMDP, save_problem
from omdpd.experiments.files import pinned
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment
from tests.references.named import LEARNERS, NATURES, WORLDS
from tests.references.studies import play


@pytest.fixture(scope="session")
def study_folder(tmp_path_factory):
    """Two natures (one without a safe policy), three learners, three seeds."""
    experiment = Experiment(
        (WORLDS["random_dirichlet"](n_states=3, n_actions=2, horizon=3),),
        (NATURES["noisy"](), NATURES["independent"]()),
        (LEARNERS["ProximalOMDPD.cautious"](), LEARNERS["SinhaVaze"](), LEARNERS["Uniform"]()),
        episodes=60,
        seeds=3,
    )
    return play(experiment, tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def grid_folder(tmp_path_factory):
    """A world with a map."""
    learners = (LEARNERS["ProximalOMDPD.cautious"](stationary=True), LEARNERS["Uniform"]())
    experiment = Experiment((WORLDS["grid"](),), (NATURES["fixed"](),), learners, episodes=40, seeds=1)
    return play(experiment, tmp_path_factory.mktemp("grid"))


@pytest.fixture(scope="session")
def infeasible_folder(tmp_path_factory):
    """A problem whose budget nobody can meet."""
    folder = tmp_path_factory.mktemp("infeasible")
    transition = np.full((2, 2, 2), 0.5)
    cmdp = CMDP.from_arrays(transition, [[0.0, 1.0]] * 2, [[0.5, 0.9]] * 2, budget=0.6, horizon=3)
    save_problem(cmdp, folder / "hard.npz")
    world = pinned(Registry.installed().spec("worlds", "file", {"path": "hard.npz"}), folder)
    learners = (LEARNERS["ProximalOMDPD.cautious"](), LEARNERS["Uniform"]())
    return play(Experiment((world,), (NATURES["fixed"](),), learners, episodes=20, seeds=2), folder / "out")
