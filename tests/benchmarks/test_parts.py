"""Benchmarks that are run in part say which parts there are, and do no other."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.solvers import scaling

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("program", "parts"),
    [
        (["-m", "benchmarks.solvers"], "steps, planning, scaling, loop"),
        (["-m", "benchmarks.durability"], "kills, crashes, spoilt, flips"),
    ],
    ids=["solvers", "durability"],
)
def test_a_part_that_is_not_there_is_answered_with_those_that_are(program, parts):
    words = [sys.executable, *program, "--parts", "bogus"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"--parts names 'bogus', but must be of {parts}" in done.stderr


def test_scaling_goes_no_further_than_it_is_asked_to(monkeypatch):
    monkeypatch.setattr(scaling, "GRID", {"S": (2, 3, 4), "A": (2, 4)})
    monkeypatch.setattr(scaling, "BASE", {"S": 2, "A": 2, "H": 2})
    found = scaling.measure_growth(seed=0, largest=3)
    assert [(row.varied, row.size) for row in found] == [("S", 2), ("S", 3), ("A", 2)]
    assert all(row.box_iterations >= 1 and row.kernel_iterations >= 1 for row in found)
