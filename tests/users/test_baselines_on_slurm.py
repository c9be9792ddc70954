"""Somebody with thirty baselines and a SLURM cluster: an array of jobs, one folder, one table."""

import csv
import io
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

EXAMPLE = Path(__file__).parents[2] / "examples" / "slurm"
N_JOBS = 3


def job(folder, i, *words):
    """One job of the array, as SLURM would start it; `srun` here runs its command on this machine."""
    slurm = {"SLURM_ARRAY_TASK_ID": i, "SLURM_ARRAY_TASK_COUNT": N_JOBS, "SLURM_CPUS_PER_TASK": 1}
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = os.environ | {name: str(value) for name, value in slurm.items()} | {"PATH": path}
    return subprocess.run(
        ["bash", "array.sh", *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )  # fmt: skip


def test_an_array_of_jobs_plays_thirty_baselines_into_one_table(tmp_path):
    folder = tmp_path / "slurm"
    shutil.copytree(EXAMPLE, folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "srun").write_text('#!/bin/sh\nexec "$@"\n')
    (folder / "bin" / "srun").chmod(0o755)
    learners = [table["name"] for table in tomllib.loads((folder / "thirty_baselines.toml").read_text())["learners"]]
    assert len(learners) == 30

    short = ("--set", "episodes=6", "--set", "seeds=1")
    said = [job(folder, i, *short) for i in range(1, N_JOBS + 1)]
    assert [each.returncode for each in said] == 3 * [0], said[0].stderr
    assert "10 of all 30 are not" in said[1].stdout
    assert "Means over 1 seed" in said[2].stdout

    command = [Path(sys.executable).with_name("omdpd"), "table", "results/baselines", "--format", "csv"]
    table = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["learner"] for row in rows] == learners
    assert all(row["regret"] and row["violation"] for row in rows)
