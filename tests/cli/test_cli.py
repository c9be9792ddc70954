import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from omdpd import __version__
from tests.references.named import LEARNERS, NATURES, WORLDS

COMMAND = Path(sys.executable).with_name("omdpd")
# What one record of the paper's simulation holds at least.
COLUMNS = {
    "learner", "nature", "seed", "episodes", "regret", "regret_positive", "lagrangian_regret", "violation",
    "weak_violation", "regret_exponent", "violation_exponent", "comparator_value", "comparator_exists", "solves",
    "failures", "max_gap", "seconds",
}  # fmt: skip
NATURES_OF_THE_PAPER = {"fixed", "noisy", "scaled", "pool", "adaptive", "anchored", "independent"}


def omdpd(*words, cwd):
    return subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    """A tiny run of the paper's simulation: (result of the command, its folder, the words)."""
    folder = tmp_path_factory.mktemp("paper")
    words = ["paper", "--episodes", 8, "--seeds", 1, "--jobs", 1, "--learners", "Uniform,ProximalOMDPD.cautious"]
    words += ["--out", folder / "out"]
    return omdpd(*words, cwd=folder), folder / "out", words


def test_the_version_is_printed(tmp_path):
    said = omdpd("--version", cwd=tmp_path)
    assert said.returncode == 0
    assert said.stdout.strip() == f"omdpd {__version__}"


def test_every_learner_nature_and_world_has_a_line(tmp_path):
    said = omdpd("list", cwd=tmp_path)
    assert said.returncode == 0
    for name in (*LEARNERS, *NATURES, *WORLDS):
        assert any(line.split()[:1] == [name] and len(line.split()) > 2 for line in said.stdout.splitlines()), name


def test_the_papers_simulation_ends_well_with_a_table(paper):
    said, folder, _ = paper
    assert said.returncode == 0, said.stderr
    assert "ProximalOMDPD.cautious" in said.stdout
    assert "0.146" in said.stdout
    assert str(folder / "figure.png").replace("\n", "") in said.stdout.replace("\n", "")


def test_the_papers_simulation_writes_its_figure_and_summaries(paper):
    _, folder, _ = paper
    for name in ("figure.png", "figure.svg", "figure.pdf", "summary.json", "summary.csv"):
        assert (folder / name).stat().st_size > 0, name


def test_the_summary_has_a_record_per_learner_and_nature_with_every_column(paper):
    _, folder, _ = paper
    records = json.loads((folder / "summary.json").read_text())
    assert {(r["learner"], r["nature"]) for r in records} == {
        (learner, nature) for learner in ("Uniform", "ProximalOMDPD.cautious") for nature in NATURES_OF_THE_PAPER
    }
    for record in records:
        assert set(record) >= COLUMNS
        assert record["episodes"] == 8
        assert record["failures"] == 0
        assert record["max_gap"] <= 1e-8
        if not record["comparator_exists"]:
            assert record["regret"] is None


def test_the_two_summaries_hold_the_same_numbers(paper):
    _, folder, _ = paper
    records = json.loads((folder / "summary.json").read_text())
    with open(folder / "summary.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(records)
    for row, record in zip(rows, records, strict=True):
        assert set(row) == set(record)
        for key, value in record.items():
            assert row[key] == ("" if value is None else str(value)), key


def test_a_second_call_reuses_what_is_finished(paper):
    _, folder, words = paper
    before = (folder / "summary.json").read_text()
    said = omdpd(*words, cwd=folder)
    assert said.returncode == 0
    # The seconds a run took are part of its summary: equal text means that nothing was played again.
    assert (folder / "summary.json").read_text() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["paper", "--learners", "Nobody"], "there is no learner 'Nobody'; there are "),
        (["paper", "--episodes", "0"], "episodes"),
        (["paper", "--seeds", "0"], "seeds"),
        (["paper", "--first-seed", "-1"], "seed"),
        (["paper", "--jobs", "-1"], "--jobs"),
        (["paper", "--out", "file/below", "--episodes", "2", "--seeds", "1", "--learners", "Uniform"], "file"),
    ],
)
def test_a_mistake_ends_with_one_sentence_and_exit_code_two(tmp_path, words, sentence):
    (tmp_path / "file").write_text("in the way")
    said = omdpd(*words, cwd=tmp_path)
    assert said.returncode == 2
    assert "Traceback" not in said.stderr + said.stdout
    assert len(said.stderr.strip().splitlines()) == 1
    assert said.stderr.startswith("omdpd: ")
    assert sentence in said.stderr


@pytest.mark.parametrize(("option", "wrong"), [("--on", "mars"), ("--jobs", "-1")])
def test_a_dry_run_refuses_what_the_run_would_refuse(tmp_path, option, wrong):
    assert omdpd("new", "sweep.toml", cwd=tmp_path).returncode == 0
    said = omdpd("run", "sweep.toml", "--dry-run", option, wrong, cwd=tmp_path)
    assert said.returncode == 2
    assert said.stdout == ""
    assert wrong in said.stderr


def test_an_unknown_command_or_option_ends_with_exit_code_two_and_no_traceback(tmp_path):
    for words in (["nonsense"], ["paper", "--nonsense"], ["paper", "--episodes", "many"]):
        said = omdpd(*words, cwd=tmp_path)
        assert said.returncode == 2
        assert "Traceback" not in said.stderr


def test_damaged_results_end_with_one_sentence(paper, tmp_path):
    import shutil

    _, folder, words = paper
    copy = tmp_path / "out"
    shutil.copytree(folder, copy)
    run = next(iter((copy / "runs").iterdir()))
    (run / "summary.json").write_text("{")
    said = omdpd(*words[:-1], copy, cwd=tmp_path)
    assert said.returncode == 2
    assert "Traceback" not in said.stderr
    assert "summary.json" in said.stderr
