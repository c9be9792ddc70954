"""Names of runs and stored states outlive a version: what 0.1 wrote is found again and gone on with.

`ids.json` has a run's spec and its id for every learner, world and nature; `stored/` has runs that 0.1 left half-way
and what it made of them in the end, and a session.  None of it is ever written again.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from omdpd.experiments.one_run import run
from omdpd.experiments.registry import Registry, run_of
from omdpd.experiments.spec import toml_of
from omdpd.learners.protocol import restored, stored_classes
from omdpd.play.judging import Totals
from omdpd.play.loop import Progress
from omdpd.play.scene import known_safe_policy
from omdpd.play.start import fingerprint_of
from omdpd.report.results import load_runs
from omdpd.storage.atomic import RecordError
from omdpd.storage.packing import classes_of, unpack
from omdpd.storage.run_folder import RunFolder
from tests.recorded import rivals_0_2
from tests.recorded.standard_0_2 import FOLDER, LEFT_AT, continued, scenes, stored
from tests.references.named import LEARNERS, NATURES, WORLDS

HERE = Path(__file__).parent
PINS = json.loads((HERE / "ids.json").read_text())
ENDS = json.loads((HERE / "stored" / "ends.json").read_text())
# What depends on the machine, not on the run; iterations may differ by a processor's last bits.
UNSTABLE = ("seconds", "iterations", "max_gap", "max_residual")


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: pin["id"])
def test_a_spec_has_the_name_it_always_had(pin):
    assert run_of(pin["spec"], Registry.installed()).id == pin["id"]


def test_every_part_of_version_0_1_has_a_pinned_name():
    for kind, table in (("learner", LEARNERS), ("nature", NATURES), ("world", WORLDS)):
        assert {pin["spec"][kind]["name"] for pin in PINS} <= set(table)


@pytest.mark.parametrize("name", ENDS)
def test_a_run_that_an_earlier_version_left_half_way_is_gone_on_with(tmp_path, name):
    folder = tmp_path / name
    shutil.copytree(HERE / "stored" / name, folder)
    spec = run_of(next(pin["spec"] for pin in PINS if pin["id"] == ENDS[name]["id"]), Registry.installed())
    found = run(spec, folder)
    for key, value in ENDS[name]["summary"].items():
        if key not in UNSTABLE:
            assert found[key] == (pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value), key


@pytest.mark.parametrize("name", ENDS)
def test_a_run_keeps_the_columns_that_it_began_with_and_they_are_read_under_today_s_names(tmp_path, name):
    folder = tmp_path / "runs" / ENDS[name]["id"]
    shutil.copytree(HERE / "stored" / name, folder)
    spec = run_of(next(pin["spec"] for pin in PINS if pin["id"] == ENDS[name]["id"]), Registry.installed())
    run(spec, folder)
    stored = RunFolder(folder, spec.id).rows()
    assert "optimism" not in stored
    read = load_runs(tmp_path)
    assert read.n_rows == spec.episodes
    assert np.array_equal(read["optimism"], stored["good_event"], equal_nan=True)


@pytest.mark.parametrize("k", LEFT_AT)
@pytest.mark.parametrize("name", scenes())
def test_a_run_of_the_default_learner_goes_on_as_version_0_2_went_on_with_it(name, k):
    scene, wanted = scenes()[name], json.loads((FOLDER / f"{name}.json").read_text())[str(k)]
    state, totals = unpack(*stored(name, k), stored_classes(scene.learner) | classes_of(Totals, "the totals"))
    found = continued(scene, Progress(restored(scene.learner, state), totals, (), 0.0))
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        # A certificate adds what inexact solves may cost: roots of gaps, which are rounding.
        tolerance = 1e-8 if key.startswith("certified") else 1e-12
        assert found[key] == pytest.approx(value, rel=tolerance, abs=tolerance), key


RIVALS = json.loads((rivals_0_2.FOLDER / "states.json").read_text())


# Methods that were put right since: their states are read, and what follows is another method's.
CORRECTED = {"EpisodeSafe", "GhoshZhouShroff.hard", "UOptRPGPD.published", "CVOPS"}
# Settings of theirs that version 0.2 had, where the defaults are others now: a session with other ones is another one.
GAP = known_safe_policy("CVOPS", rivals_0_2.world()).room
AS_BEFORE = {"EpisodeSafe": {"cost_transition_scale": 0.0, "compensation": 0.0}, "CVOPS": {"room": GAP}}


@pytest.mark.parametrize("case", RIVALS)
def test_a_rival_goes_on_with_a_state_that_version_0_2_kept(case):
    name, kind = case.split(" ")
    learner, stored = rivals_0_2.learner_of(name, kind), RIVALS[case]
    with np.load(rivals_0_2.FOLDER / "arrays.npz") as file:
        arrays = {key.rpartition(" ")[2]: file[key] for key in file.files if key.rpartition(" ")[0] == case}
    state = restored(learner, unpack(stored["state"], arrays, stored_classes(learner)))
    end = rivals_0_2.played(learner, kind, state, rivals_0_2.BEFORE, rivals_0_2.AFTER)
    for at, wanted in ((state, stored["then"]), (end, stored["end"]))[: 1 if name in CORRECTED else 2]:
        found = rivals_0_2.numbers(learner, at)
        assert found == {
            key: pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float | list) else value
            for key, value in wanted.items()
        }


@pytest.mark.parametrize("case", RIVALS)
def test_a_session_with_a_rival_has_the_fingerprint_that_version_0_2_gave_it(case):
    name, kind = case.split(" ")
    setting = rivals_0_2.world().setting(rivals_0_2.KNOWN, kind)
    learner = replace(rivals_0_2.learner_of(name, kind), **AS_BEFORE.get(name, {}))
    assert fingerprint_of(learner, setting)[0] == RIVALS[case]["fingerprint"]


@pytest.mark.parametrize(("nature", "name"), [("noisy", "d7a3c42137d645f92859"), ("pool", "76fdb78094fa1547977b")])
def test_a_run_of_the_default_of_version_0_2_keeps_its_name_and_today_s_has_another(nature, name):
    """The names are those that version 0.2 gave to its `ProximalOMDPD.standard`."""
    made = Registry.installed().run
    assert made("random_dirichlet", nature, "ProximalOMDPD.settling", 3000, 0).id == name
    assert made("random_dirichlet", nature, "ProximalOMDPD.standard", 3000, 0).id != name


def test_an_unfinished_run_of_the_default_of_version_0_2_goes_on_under_today_s_name(tmp_path):
    """Version 0.2 wrote `standard`, without `persistence`, into the spec of the same run."""
    spec = Registry.installed().run("cyclic", "noisy", "ProximalOMDPD.settling", 6, 0)
    folder = tmp_path / spec.id
    RunFolder(folder, spec.id).create(toml_of(spec).replace("settling", "standard"), {})
    assert run(spec, folder)["learner"] == "ProximalOMDPD.settling"
    other = Registry.installed().run("cyclic", "noisy", "ProximalOMDPD.cautious", 6, 0)
    with pytest.raises(RecordError, match="not the spec of this run"):
        RunFolder(folder, spec.id).create(toml_of(other), {})
