"""`python -m benchmarks.studies`: what it lists, refuses, writes and goes on with."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.studies import STUDIES
from benchmarks.studies.__main__ import app
from omdpd.experiments.executors import InProcess
from omdpd.experiments.many_runs import run_all
from omdpd.problem.arrays import InvalidInputError


def said(*words):
    return CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "200"})


def test_without_a_name_it_lists_the_studies_with_their_questions():
    result = said()
    assert result.exit_code == 0
    for study in STUDIES.values():
        assert study.name in result.output
        assert study.question in result.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("growht",), "there is no study 'growht' (did you mean 'growth'?); there are known-model, constants"),
        (("growth", "--seeds", 0), "--seeds is 0, but must be"),
        (("growth", "--jobs", -1), "--jobs is -1, but must not be negative"),
    ],
)
def test_what_is_impossible_is_refused_in_a_sentence(words, sentence, tmp_path):
    result = said(*words, "--out", tmp_path / "out")
    assert isinstance(result.exception, InvalidInputError)
    assert sentence in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_a_study_goes_on_with_the_runs_that_are_there(tmp_path):
    study = STUDIES["growth"]
    specs = study.runs(study.size(quick=True, seeds=1))
    run_all(specs[:10], tmp_path / "runs", InProcess(), lambda done: None)
    before = times(tmp_path)
    assert len(before) == 10
    result = said("growth", "--quick", "--seeds", 1, "--jobs", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    after = times(tmp_path)
    assert len(after) == len(specs)
    assert {name: after[name] for name in before} == before
    assert "| costs | learner | K | regret | strong violation |" in result.output
    assert {"page.md", "study.json", "figure.svg", "summary.csv"} <= {file.name for file in tmp_path.iterdir()}


def times(folder: Path) -> dict[str, int]:
    """When every run of a folder was finished."""
    return {file.parent.name: file.stat().st_mtime_ns for file in folder.glob("runs/*/summary.json")}
