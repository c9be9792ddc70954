"""`omdpd verify`, and what refuses results that do not check: resume, `ls`, `table`, `plot`, `load_runs`."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.one_run import run as play
from omdpd.experiments.spec import Experiment
from omdpd.problem.arrays import InvalidInputError
from omdpd.report.results import load_runs
from omdpd.report.verify import verify_tree
from omdpd.storage.manifest import Commit
from omdpd.storage.run_folder import RunFolder
from tests.references.invoked import command
from tests.references.mutations import flip
from tests.references.named import LEARNERS, NATURES, WORLDS
from tests.references.work import calls_of

EXPERIMENT = Experiment((WORLDS["cyclic"](),), (NATURES["noisy"](),), (LEARNERS["Uniform"](),), 5, seeds=2)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good") / "out"
    run_experiment(EXPERIMENT, folder, InProcess())
    return folder


@pytest.fixture
def results(good, tmp_path):
    shutil.copytree(good, tmp_path / "out")
    return tmp_path / "out"


def test_results_as_they_were_written_are_clean(results):
    said = command("verify", results)
    assert said.exit_code == 0
    assert said.output == "2 runs and 0 sessions read: every file is what was written\n"


@pytest.mark.parametrize(
    "name", ["commit.json", "summary.json", "spec.toml", "provenance.json", "rows-*", "values-*", "state-*"]
)
def test_a_flipped_bit_is_named_by_verify_and_refused_by_every_reader(results, name):
    file = next(iter(sorted((results / "runs").glob(f"*/{name}"))))
    flip(file)
    said = command("verify", results)
    assert said.exit_code == 2
    assert str(file) in said.output.replace("\n", "")
    for words in (("ls", results), ("table", results), ("plot", results, "--out", results.parent)):
        assert isinstance(command(*words).exception, InvalidInputError), words
    for call in (lambda: load_runs(results), lambda: run_experiment(EXPERIMENT, results, InProcess())):
        with pytest.raises(InvalidInputError, match=r"runs failed|damaged|JSON|belongs"):
            call()


def test_exchanged_runs_are_refused(results):
    one, two = sorted((results / "runs").iterdir())
    one.rename(results / "x")
    two.rename(one)
    (results / "x").rename(two)
    assert command("verify", results).output.count("belongs to the run") >= 2
    with pytest.raises(InvalidInputError, match="belongs to the run"):
        load_runs(results)


def test_another_runs_summary_is_refused(results):
    one, two = sorted((results / "runs").iterdir())
    shutil.copy(one / "summary.json", two / "summary.json")
    with pytest.raises(InvalidInputError, match=r"summary\.json belongs to the run"):
        load_runs(results)


def test_the_summary_of_the_whole_is_held_against_those_of_its_runs(results):
    file = results / "summary.json"
    records = json.loads(file.read_text())
    records[0]["violation"] += 1.0
    file.write_text(json.dumps(records))
    assert "does not say of the run" in command("verify", results).output


def test_rows_that_do_not_fit_their_values_are_seen(results):
    """Written by somebody who knows how to seal a file."""
    path = sorted((results / "runs").iterdir())[0]
    record = RunFolder(path, path.name)
    summary, done = record.summary, record.last_commit()
    rows, values = record.rows() | {"value": np.zeros(5)}, record.values()
    (path / "commit.json").unlink()
    record.commit(rows, values, Commit(5, done.tree, done.arrays))
    record.finish(summary)
    assert any("other values" in line for line in verify_tree(results).wrong)


def test_a_folder_without_runs_or_sessions_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="holds no run and no session"):
        verify_tree(tmp_path)


def test_a_run_of_version_0_1_is_read_and_said_to_be_unsealed(tmp_path):
    stored = Path(__file__).parents[1] / "recorded" / "stored" / "tuned"
    shutil.copytree(stored, tmp_path / "old")
    said = command("verify", tmp_path)
    assert said.exit_code == 0
    assert "1 runs are of version 0.1" in said.output


def test_a_run_is_verified_with_little_work(tmp_path):
    """Copies of one run of 200 episodes; so many calls take about a millisecond a run."""
    spec = Experiment((WORLDS["cyclic"](),), (NATURES["noisy"](),), (LEARNERS["Uniform"](),), 200, seeds=1).runs()[0]
    play(spec, tmp_path / "runs" / spec.id)
    for i in range(99):
        shutil.copytree(tmp_path / "runs" / spec.id, tmp_path / str(i) / "runs" / spec.id)
    calls, verdict = calls_of(lambda: verify_tree(tmp_path))
    assert calls < 100 * 8000
    assert (verdict.runs, verdict.wrong) == (100, ())
