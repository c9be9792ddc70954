"""Runs whose learners are not told how many episodes there will be."""

import numpy as np
import pytest

from omdpd.experiments.experiment import suitable_runs
from omdpd.experiments.files import parse_experiment
from omdpd.experiments.one_run import run, scene_of
from omdpd.experiments.registry import Registry, from_wire, run_of, to_wire
from omdpd.experiments.spec import Experiment, RunSpec, toml_of
from omdpd.storage.run_folder import RunFolder
from tests.references.named import LEARNERS, NATURES, WORLDS

WORLD = WORLDS["random_dirichlet"](n_states=3, n_actions=2, horizon=3, binding=False)


def spec_of(episodes=20, known=False, learner="ProximalOMDPD.cautious"):
    return RunSpec(WORLD, NATURES["pool"](), LEARNERS[learner](), episodes, 3, episodes_known=known)


def test_only_a_run_whose_learner_is_not_told_has_another_name():
    plain = RunSpec(WORLD, NATURES["pool"](), LEARNERS["ProximalOMDPD.cautious"](), 20, 3)
    assert spec_of(known=True).id == plain.id
    assert spec_of().id != plain.id
    assert "episodes_known" not in toml_of(spec_of(known=True))
    assert "episodes_known = false" in toml_of(spec_of())


def test_the_learner_is_told_nothing_and_the_run_is_as_long_as_it_should():
    scene = scene_of(spec_of())
    assert scene.setting.n_episodes is None
    assert scene.episodes == 20
    assert scene_of(spec_of(known=True)).setting.n_episodes == 20


def test_a_shorter_run_is_the_beginning_of_a_longer_one(tmp_path):
    values = []
    for episodes in (300, 330):
        spec = spec_of(episodes)
        run(spec, tmp_path / spec.id)
        values.append(RunFolder(tmp_path / spec.id, spec.id).values())
    np.testing.assert_array_equal(values[0], values[1][:300])


def test_it_reaches_workers_files_and_folders_of_results():
    spec = spec_of()
    assert from_wire(to_wire(spec)) == spec
    experiment = Experiment((WORLD,), (NATURES["pool"](),), (LEARNERS["Uniform"](),), 5, 1, episodes_known=False)
    assert [each.episodes_known for each in experiment.runs()] == [False]
    part = {"worlds": [{"name": "cyclic"}], "natures": [{"name": "fixed"}], "learners": [{"name": "Uniform"}]}
    again = parse_experiment({"episodes": 5, "episodes_known": False, **part}, "a file", Registry.installed(), None)
    assert again.runs()[0].episodes_known is False
    plain = {"world": {"name": "cyclic"}, "nature": {"name": "fixed"}, "learner": {"name": "Uniform"}}
    found = run_of({**plain, "episodes": 5, "seed": 0, "episodes_known": False}, Registry.installed())
    assert found.episodes_known is False


@pytest.mark.parametrize("learner", ["OMDPD.tuned", "LekeufackJordan"])
def test_a_learner_whose_constants_need_the_number_says_so(learner):
    experiment = Experiment((WORLD,), (NATURES["pool"](),), (LEARNERS[learner](),), 5, 1, episodes_known=False)
    runs, (why,) = suitable_runs(experiment)
    assert runs == []
    assert "constants need the number of episodes" in why
