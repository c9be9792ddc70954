"""Runs, comparisons and files of experiments whose learners are told episodes of a safe policy before the first one."""

import numpy as np
import pytest

from omdpd import InvalidInputError, Policy, compare
from omdpd.experiments.files import parse_experiment
from omdpd.experiments.one_run import run, scene_of
from omdpd.experiments.registry import Registry, from_wire, to_wire
from omdpd.experiments.spec import RunSpec, toml_of
from omdpd.play.loop import start_of_run
from omdpd.play.scene import known_safe_policy, logging_policy
from omdpd.storage.run_folder import RunFolder
from tests.references.named import LEARNERS, NATURES, WORLDS

WORLD = WORLDS["streaming"]()


def spec_of(learner="SafeStart", **more):
    return RunSpec(WORLD, NATURES["fixed"](), LEARNERS[learner](), 10, 3, **more)


def test_only_a_run_with_logs_has_another_name():
    assert spec_of(logged=0, start="safe").id == spec_of().id
    assert spec_of(logged=40).id != spec_of().id
    assert spec_of("Uniform", logged=40, start="explore").id != spec_of("Uniform", logged=40).id
    assert "logged" not in toml_of(spec_of(logged=0))
    assert "logged = 40" in toml_of(spec_of(logged=40))
    assert from_wire(to_wire(spec_of(logged=40))) == spec_of(logged=40)
    with pytest.raises(InvalidInputError, match="logged is -1, but must be between 0 and"):
        spec_of(logged=-1)


def test_logs_are_by_a_policy_between_the_safest_and_the_best():
    cmdp = scene_of(spec_of()).cmdp
    played, best = Policy(logging_policy(cmdp)).evaluate(cmdp), cmdp.solve()
    assert played.safe
    assert played.value < best.value
    assert played.value > Policy(known_safe_policy("", cmdp).policy).evaluate(cmdp).value


def test_a_run_starts_from_its_logs_and_goes_on_where_it_stopped(tmp_path):
    scene = scene_of(spec_of(logged=60))
    assert len(scene.logged) == 60
    assert scene.learner.safe is None  # what is safe, the logs say
    assert start_of_run(scene).learner_state.forecast.certified
    values = []
    for folder in ("one", "other"):
        run(spec_of(logged=60), tmp_path / folder)
        values.append(RunFolder(tmp_path / folder, spec_of(logged=60).id).values())
    assert np.array_equal(*values)
    assert start_of_run(scene_of(spec_of("ProximalOMDPD.standard", logged=60, start="explore"))).k == 0
    with pytest.raises(InvalidInputError, match="say start='explore'"):
        scene_of(spec_of("ProximalOMDPD.standard", logged=60))


def test_a_file_names_logs():
    part = {"worlds": [{"name": "streaming"}], "natures": [{"name": "fixed"}], "learners": [{"name": "SafeStart"}]}
    found = parse_experiment({"episodes": 5, "logged": 60, **part}, "a file", Registry.installed(), None)
    assert found.runs()[0].logged == 60
    with pytest.raises(InvalidInputError, match="start"):
        parse_experiment({"episodes": 5, "start": "boldly", **part}, "a file", Registry.installed(), None)


def test_a_comparison_leaves_out_and_names_who_does_not_start_safely():
    found = compare("streaming", ["SafeStart", "EpisodeSafe", "ProximalOMDPD.standard"], 1, 1, "fixed", 5, logged=60)
    assert [record["learner"] for record in found.records] == ["SafeStart", "EpisodeSafe"]
    assert "ProximalOMDPD may try first what the logs never tried" in found.left_out[0]
    assert len(compare("streaming", "Uniform", 1, 1, "fixed", 5, logged=60, start="explore").records) == 1
