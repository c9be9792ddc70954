"""Damage is never averaged away: every reader of results names the run, in its exit code and on the page."""

import json
import os
import shutil

import pytest

from benchmarks.forged_folders import ESCAPE, failures
from benchmarks.forger import Forger
from omdpd.cli import main
from omdpd.experiments.spec import Experiment
from omdpd.problem.arrays import InvalidInputError
from omdpd.report.stored import all_runs, read_run, stored_runs
from omdpd.report.study import load_study
from omdpd.report.verify import verify_tree
from tests.references.mutations import flip
from tests.references.named import LEARNERS, NATURES, WORLDS
from tests.references.studies import play
from tests.report.test_study import respelled, runs_of

KINDS = (
    "spec.toml", "commit.json", "summary.json", "provenance.json", "rows-*", "values-*", "state-*", "policies-*",
)  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """One learner, three seeds."""
    grid = (WORLDS["cyclic"](n_places=2),), (NATURES["noisy"](),), (LEARNERS["GreedyLP"](), LEARNERS["Uniform"]())
    return play(Experiment(*grid, episodes=8, seeds=3), tmp_path_factory.mktemp("good"))


@pytest.fixture
def results(good, tmp_path):
    return shutil.copytree(good, tmp_path / "out")


@pytest.fixture
def omdpd(monkeypatch, capsys):
    """The command as it is typed, in this process: its exit code, and what it wrote."""

    def command(*words):
        monkeypatch.setattr("sys.argv", ["omdpd", *map(str, words)])
        with monkeypatch.context() as streams:
            streams.setattr("sys.stdout", __import__("sys").stdout)  # which the command replaces
            streams.setattr("sys.stderr", __import__("sys").stderr)
            streams.setattr("gc.freeze", lambda: None)
            with pytest.raises(SystemExit) as stop:
                main.main()
        said = capsys.readouterr()
        return stop.value.code or 0, said.out, said.err

    return command


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_of_any_file_is_told_by_the_report_and_its_exit_code(results, omdpd, kind):
    run = runs_of(results)[0]
    group = next(
        i for i, runs in enumerate(load_study(results).groups().values()) if any(r.id == run.name for r in runs)
    )
    flip(next(iter(run.glob(kind))))
    code, _, said = omdpd("report", results)
    assert code == 2
    assert said.count("\n") == 1
    assert run.name in said
    text = (results / "report.html").read_text()
    parts = json.loads(text.split('id="study">')[1].split("</script>")[0])
    (row,) = (row for row in parts["progress"]["runs"] if row["run"] == run.name)
    assert row["state"] == "damaged"
    assert row["error"]
    shown = parts[f"group-{group}"]
    assert (shown["n_mean"], shown["n_finished"], shown["n_runs"], shown["damaged"]) == (2, 2, 3, [run.name])


def test_a_flipped_bit_anywhere_in_a_run_is_noticed_by_the_reader_that_all_share(results):
    """Of every byte of every file: `tests/storage/test_sealed.py`, which reads with the same checksums."""
    run = runs_of(results)[0]
    n = 0
    for file in sorted(path for path in run.iterdir() if path.name != "lock"):
        whole = file.read_bytes()
        for place in range(0, len(whole), 60):
            flip(file, place)
            found = read_run(run)
            assert (found.state, found.summary) == ("damaged", None), (file.name, place)
            assert run.name in found.told
            n += 1
        file.write_bytes(whole)
    assert n > 100
    assert read_run(run).state == "finished"


def test_ls_lists_the_others_beside_a_damaged_run(results, omdpd):
    run = runs_of(results)[0]
    flip(next(iter(run.glob("values-*"))))
    code, out, said = omdpd("ls", results)
    assert code == 2
    assert said.startswith("omdpd: ")
    assert said.count("\n") == 1
    assert str(run / "values-") in said
    lines = [line for line in out.splitlines() if "/8 " in line]
    assert len(lines) == 6
    assert sum("finished" in line for line in lines) == 5
    assert "damaged" in next(line for line in lines if line.startswith(run.name))


@pytest.mark.parametrize("how", ["link", "pipe", "file"])
def test_something_else_in_the_place_of_a_run_is_told(results, omdpd, how):
    run = runs_of(results)[0]
    run.rename(results.parent / "elsewhere")
    {"link": lambda: run.symlink_to(results.parent / "elsewhere"), "pipe": lambda: os.mkfifo(run), "file": run.touch}[
        how
    ]()
    for command in ("verify", "ls", "table", "report"):
        code, out, said = omdpd(command, results)
        assert code == 2, command
        assert str(run) in (out if command == "verify" else said).replace("\n", "")
    with pytest.raises(InvalidInputError, match=run.name):
        stored_runs(results)


def test_verify_says_that_a_link_was_not_read_even_if_nothing_else_is_there(results):
    (results.parent / "empty").mkdir()
    (results.parent / "empty" / "latest").symlink_to(results)
    (line,) = verify_tree(results.parent / "empty").wrong
    assert "latest is a link" in line


def test_a_run_without_its_spec_is_damaged_and_not_left_out(results):
    run = runs_of(results)[0]
    (run / "spec.toml").unlink()
    (found,) = (each for each in all_runs(results) if each.state == "damaged")
    assert found.told == f"{run / 'spec.toml'} is missing"


def test_a_damaged_experiment_is_told_by_the_report(results, omdpd):
    flip(results / "experiment.toml")
    code, _, said = omdpd("report", results)
    assert code == 2
    assert "experiment.toml is damaged" in said


def test_a_table_says_over_how_many_seeds_each_mean_is(results, omdpd):
    (run, *_) = (path for path in runs_of(results) if b"Uniform" in (path / "spec.toml").read_bytes())
    shutil.rmtree(run)
    _, out, _ = omdpd("table", results)
    assert "Means over 2 to 3 seeds" in out
    assert "Uniform (2 seeds)" in out


def test_a_sample_of_forged_folders_ends_in_one_sentence_each():
    """All of them are read by `make fuzz-files`."""
    found = dict(failures(most=40, figures=False))
    assert len(found) == 40
    assert {name: wrong for name, wrong in found.items() if wrong is not None} == {}


def test_no_escape_sequence_of_a_strangers_name_reaches_the_terminal(results, omdpd, tmp_path):
    hostile = tmp_path / f"out{ESCAPE}"
    shutil.copytree(results, hostile)
    (hostile / "experiment.toml").unlink()
    run = runs_of(hostile)[0]
    known = next(name for name in ("GreedyLP", "Uniform") if name in (run / "spec.toml").read_text())
    respelled(run, f'"{known}"', json.dumps(ESCAPE))
    Forger(run).summary("learner", ESCAPE)
    (tmp_path / "x.toml").write_text(
        'episodes = 8\nseeds = 3\nworlds = [{name = "cyclic", n_places = 2}]\nnatures = [{name = "noisy"}]\n'
        'learners = [{name = "GreedyLP"}, {name = "Uniform"}]\n'
    )
    commands = (
        ("ls", hostile), ("table", hostile), ("table", hostile, "--format", "csv"), ("plot", hostile, "--out", hostile),
        ("report", hostile), ("verify", hostile), ("animate", hostile), ("ls", hostile / ESCAPE),
        ("run", tmp_path / "x.toml", "--out", hostile, "--jobs", "1", "--no-figures"),
    )  # fmt: skip
    for words in commands:
        _, out, said = omdpd(*words)
        assert "gotcha" in out + said, words
        assert not {symbol for symbol in out + said if not symbol.isprintable()} - {"\n"}, words
