"""Commands over many runs take little work, and a study that is finished takes next to none."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omdpd.experiments.spec import Experiment, RunSpec, toml_of
from omdpd.storage.run_folder import RunFolder
from omdpd.storage.sealed import sealed_json, sealed_toml
from tests.references.invoked import command
from tests.references.named import LEARNERS, NATURES, WORLDS
from tests.references.studies import play
from tests.references.work import calls_of

COMMAND = Path(sys.executable).with_name("omdpd")
N = 300
SWEEP = """\
episodes = 10
seeds = 2
worlds = [{ name = "cyclic" }]
natures = [{ name = "noisy" }]
learners = [{ name = "Uniform" }, { name = "Oracle" }]
"""


def omdpd(*words, cwd=None):
    """What a command printed."""
    return subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, check=True, cwd=cwd).stdout


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A study of one run that was played and copies of it under other seeds, each sealed as its own."""
    folder = tmp_path_factory.mktemp("many")
    parts = WORLDS["cyclic"](), NATURES["noisy"](), LEARNERS["Uniform"]()
    play(Experiment((parts[0],), (parts[1],), (parts[2],), 10, 1), folder)
    (first,) = (folder / "runs").iterdir()
    summary = RunFolder(first, first.name).summary
    for seed in range(1, N):
        spec = RunSpec(*parts, 10, seed)
        path = folder / "runs" / spec.id
        shutil.copytree(first, path)
        (path / "spec.toml").write_bytes(sealed_toml(spec.id, toml_of(spec)))
        for name in ("provenance.json", "commit.json"):
            content = {k: v for k, v in json.loads((path / name).read_text()).items() if k not in ("sha256", "format")}
            (path / name).write_bytes(sealed_json(spec.id, content | {"run": spec.id}))
        RunFolder(path, spec.id).finish(summary | {"seed": seed, "run": spec.id})
    return folder


@pytest.mark.parametrize("words", [("ls",), ("table",), ("table", "--format", "csv")], ids=" ".join)
def test_many_runs_are_read_with_little_work(many, words):
    """So many calls take about three milliseconds a run."""
    calls, said = calls_of(lambda: command(words[0], many, *words[1:]))
    assert said.exit_code == 0, said.output
    assert calls < N * 10_000
    if words == ("ls",):
        assert said.output.count("finished") == N
        assert "budget" in said.output.splitlines()[0]


@pytest.mark.whole
def test_a_finished_study_is_neither_played_nor_drawn_again(tmp_path):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    omdpd("run", "sweep.toml", "--jobs", 1, cwd=tmp_path)
    folder = tmp_path / "results" / "sweep"
    drawn = (folder / "figure.png").stat().st_mtime_ns
    text = omdpd("run", "sweep.toml", "--jobs", 2, cwd=tmp_path)
    assert "4 of 4 runs are finished already" in text
    assert "Means over 2 seeds" in text
    assert (folder / "figure.png").stat().st_mtime_ns == drawn
    (folder / "figure.svg").unlink()
    omdpd("run", "sweep.toml", "--jobs", 2, cwd=tmp_path)
    assert (folder / "figure.svg").exists()


def test_an_unknown_format_is_refused_with_all_there_are(many):
    said = subprocess.run(
        [COMMAND, "table", many, "--format", "bogus"], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert said.returncode == 2
    assert "there is no format 'bogus'; there are terminal, markdown, csv, latex" in said.stderr
