"""Names of runs and stored states outlive a version: what 0.1 wrote is found again and gone on with.

`ids.json` has a run's spec and its id for every learner, world and nature; `stored/` has runs that 0.1 left half-way
and what it made of them in the end, and a session.  None of it is ever written again.
"""

import json
import shutil
from pathlib import Path

import pytest
from named import LEARNERS, NATURES, WORLDS
from standard_0_2 import FOLDER, LEFT_AT, continued, scenes, stored

from omdpd.experiments.one_run import run
from omdpd.experiments.registry import Registry, run_of
from omdpd.learners.protocol import restored, stored_classes
from omdpd.play.judging import Totals
from omdpd.play.loop import Progress
from omdpd.report.results import load_runs
from omdpd.storage.packing import classes_of, unpack
from omdpd.storage.run_folder import RunFolder

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
    assert "optimism" not in stored.column_names
    read = load_runs(tmp_path)
    assert read.num_rows == spec.episodes
    assert read["optimism"].to_pylist() == stored["good_event"].to_pylist()


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
