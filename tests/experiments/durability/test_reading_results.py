"""Reading results back: `ls`, `table`, `plot`, `load_runs`; failed runs, metrics, provenance."""

import csv
import io
import json

import numpy as np
import pytest

from omdpd import InvalidInputError, load_runs
from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import forget, run_experiment
from omdpd.experiments.files import load_experiment
from omdpd.experiments.one_run import RunFailedError, advance, run, scene_of
from omdpd.report.stored import stored_runs
from omdpd.storage.provenance import commit_of
from omdpd.storage.run_folder import RunFolder
from tests.references.real_commands import omdpd, write_experiment

K = 30


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A finished experiment with two seeds, an unfinished run beside it, and the file of the experiment."""
    folder = tmp_path_factory.mktemp("results")
    file = write_experiment(folder, episodes=K, seeds=2)
    run_experiment(load_experiment(file), folder / "out", InProcess())
    return file, folder / "out"


def peak(cmdp, round_, policy):
    """The largest probability of an action: somebody's own metric."""
    return float(policy.max())


def entropy(cmdp, round_, policy):
    return float(-(policy * np.log(np.maximum(policy, 1e-300))).sum())


def test_ls_shows_states_progress_and_last_numbers(results, tmp_path):
    file, _ = results
    experiment = load_experiment(file)
    done, begun = experiment.runs()
    run(done, tmp_path / "runs" / done.id)
    record = RunFolder(tmp_path / "runs" / begun.id)
    record.path.mkdir()
    advance(begun, record, None, 0.0, 0.0)
    code, said = omdpd("ls", tmp_path)
    assert code == 0
    lines = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    assert "finished" in lines[done.id]
    assert f"{K}/{K}" in lines[done.id]
    assert "unfinished" in lines[begun.id]
    assert f"1/{K}" in lines[begun.id]


def test_tables_come_in_three_formats(results):
    _, out = results
    code, markdown = omdpd("table", out, "--format", "markdown")
    assert code == 0
    assert markdown.splitlines()[1].count("---") == markdown.splitlines()[0].count("|") - 1
    _, latex = omdpd("table", out, "--format", "latex")
    assert r"\begin{tabular}" in latex
    assert r"random\_dirichlet" in latex
    _, text = omdpd("table", out, "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(text))
    paid = [record.folder.summary["violation"] for record in stored_runs(out)]
    assert float(row["violation"]) == pytest.approx(np.mean(paid))
    assert row["violation_half"] == ""  # two seeds have no interval
    code, said = omdpd("table", out, "--format", "html")
    assert code == 2
    assert "there are terminal, markdown, csv, latex" in said


def test_plot_writes_figures(results, tmp_path):
    _, out = results
    code, _ = omdpd("plot", out, "--out", tmp_path)
    assert code == 0
    assert {path.suffix for path in tmp_path.iterdir()} == {".png", ".svg", ".pdf"}


def test_load_runs_is_one_table_with_the_numbers_of_the_summaries(results):
    _, out = results
    table = load_runs(out)
    assert table.n_rows == 2 * K
    for record in stored_runs(out):
        own = table.where(run=record.spec.id)
        assert own["episode"].tolist() == list(range(1, K + 1))
        regret = record.folder.summary["regret"]  # None where no policy is safe
        assert own["regret"][-1] == pytest.approx(np.nan if regret is None else regret, nan_ok=True)
        assert own["violation_sum"].tolist()[-1] == pytest.approx(record.folder.summary["violation"])
        assert set(own["learner"].tolist()) == {"ProximalOMDPD.cautious"}


def test_a_metric_is_a_column_and_survives_a_resume(results, tmp_path):
    spec = load_experiment(results[0]).runs()[0]
    run(spec, tmp_path / "whole", {"peak": peak})
    record = RunFolder(tmp_path / "parts")
    record.path.mkdir()
    while advance(spec, record, {"peak": peak}, 0.0, 0.0) is None:
        pass
    assert record.rows()["peak"].tolist() == RunFolder(tmp_path / "whole").rows()["peak"].tolist()
    assert len(record.rows()["peak"].tolist()) == K


@pytest.mark.parametrize("other", [None, {"entropy": entropy}, {"peak": peak, "entropy": entropy}])
def test_a_resume_with_other_metrics_is_refused_with_a_sentence(results, tmp_path, other):
    spec = load_experiment(results[0]).runs()[0]
    record = RunFolder(tmp_path)
    advance(spec, record, {"peak": peak}, 0.0, 0.0)
    with pytest.raises(InvalidInputError, match="has rows with the metrics peak, but"):
        run(spec, tmp_path, other)
    run(spec, tmp_path, {"peak": peak})
    run(spec, tmp_path)  # finished: nothing is missing for somebody who asks for nothing
    with pytest.raises(InvalidInputError, match="metrics entropy"):
        run(spec, tmp_path, {"entropy": entropy})


@pytest.mark.parametrize("name", ["value", "episode", "regret", "run", ""])
def test_a_metric_cannot_have_the_name_of_another_column(results, tmp_path, name):
    spec = load_experiment(results[0]).runs()[0]
    with pytest.raises(InvalidInputError, match="a metric cannot be named"):
        run(spec, tmp_path, {name: peak})


def test_a_failed_run_is_kept_shown_and_tried_again_on_request(tmp_path):
    file, out = write_experiment(tmp_path, episodes=K), tmp_path / "out"
    experiment = load_experiment(file)
    bad = experiment.runs()[0]

    def fails(cmdp, round_, policy):
        if np.array_equal(cmdp.transition, scene.cmdp.transition):
            raise ZeroDivisionError("a bad day")
        return 0.0

    scene = scene_of(bad)
    with pytest.raises(RunFailedError, match=r"1 of 2 runs failed; .*ZeroDivisionError: a bad day"):
        run_experiment(experiment, out, InProcess(), metrics={"m": fails})
    _, said = omdpd("ls", out)
    assert "failed" in said
    assert "ZeroDivisionError: a bad day" in said
    assert "a bad day" in RunFolder(out / "runs" / bad.id).error["traceback"]
    code, said = omdpd("run", file, "--out", out, "--jobs", 1)
    assert code == 2
    assert "failed before" in said
    assert "Traceback" not in said
    forget(experiment.runs(), out, failed_only=True)
    run_experiment(experiment, out, InProcess(), metrics={"m": lambda *_: 0.0})
    assert all(record.state == "finished" for record in stored_runs(out))


def test_retry_failed_is_an_option_of_the_command(tmp_path):
    file, out = write_experiment(tmp_path, episodes=K), tmp_path / "out"
    bad = load_experiment(file).runs()[1]
    RunFolder(out / "runs" / bad.id, bad.id).fail({"error": "a bad day"})
    code, said = omdpd("run", file, "--out", out, "--jobs", 1)
    assert code == 2
    assert "a bad day" in said
    code, said = omdpd("run", file, "--out", out, "--jobs", 1, "--retry-failed")
    assert code == 0, said
    assert RunFolder(out / "runs" / bad.id).error is None


def test_provenance_says_versions_platform_and_commit(results, tmp_path):
    _, out = results
    record = stored_runs(out)[0]
    stored = json.loads((record.folder.path / "provenance.json").read_text())
    assert stored["packages"]["numpy"] == np.__version__
    assert stored["platform"]
    assert {"commit", "library_commit"} <= set(stored)
    assert commit_of(tmp_path) is None
