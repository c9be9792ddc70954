"""Runs of very many episodes stay small: few files, few rows, memory that does not grow with K."""

import os
import subprocess
import sys

import numpy as np
import pytest

import omdpd.storage.run_folder as records
from omdpd.experiments.executors import InProcess
from omdpd.experiments.many_runs import run_all
from omdpd.experiments.one_run import run
from omdpd.experiments.spec import RunSpec
from omdpd.play.judging import MAX_NUMBERS
from omdpd.play.loop import record_grid, with_key
from omdpd.storage.manifest import Commit
from omdpd.storage.run_folder import RunFolder
from tests.references.columns import same_columns
from tests.references.named import LEARNERS, NATURES, WORLDS

pytestmark = pytest.mark.whole

WORLD = WORLDS["random_dirichlet"](n_states=3, n_actions=2, horizon=3, binding=False)


def spec_of(learner="Uniform", nature="noisy", episodes=40):
    return RunSpec(WORLD, NATURES[nature](), LEARNERS[learner](), episodes, 0)


def test_many_commits_make_few_files(tmp_path, monkeypatch):
    monkeypatch.setenv("OMDPD_COMMIT_SECONDS", "0")
    monkeypatch.setattr(records, "MAX_PARTS", 5)
    most = 0

    def watch(_):
        nonlocal most
        most = max(most, len(list(tmp_path.glob("*/*.npz"))))

    spec = spec_of("ProximalOMDPD.cautious")
    run_all([spec], tmp_path, InProcess(), watch)
    run(spec, tmp_path / "calm")
    record = RunFolder(tmp_path / spec.id)
    assert len(list(record.path.iterdir())) == 9  # a spec, its provenance, a lock, two JSON files, four parts
    assert record.manifest().number > 40  # it did commit after every episode
    assert same_columns(record.rows(), RunFolder(tmp_path / "calm").rows())


def test_merging_keeps_every_row_in_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_PARTS", 3)
    folder = RunFolder(tmp_path)
    for n in range(20):
        rows = {"episode": np.array([n + 1])}
        values = np.array([float(n)])
        folder.commit(rows, values, Commit(n + 1, {"k": n}, {"a0": np.array([n])}))
        assert len(list(tmp_path.glob("values-*.npz"))) <= 4
        assert folder.values().tolist() == list(range(n + 1))
    folder.compact()
    assert folder.rows()["episode"].tolist() == list(range(1, 21))
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == ["commit.json", "rows", "state", "values"]


def test_a_long_run_records_a_few_thousand_rows():
    wanted = record_grid(10**6, full=False)
    chosen = [k for k in range(1, 10**6 + 1) if wanted(k)]
    assert chosen[:1000] == list(range(1, 1001))
    assert chosen[-1] == 10**6
    assert 250_000 in chosen
    assert len(chosen) < 3000


def test_tables_that_were_met_take_little_room_however_many_they_are():
    ranges = ()
    for key in range(10_000):
        ranges = with_key(ranges, key)
    assert ranges == ((0, 10_000),)
    shuffled = ()
    for key in np.random.default_rng(0).permutation(200).tolist():
        shuffled = with_key(shuffled, key)
    assert shuffled == ((0, 200),)


def test_key_ranges_are_the_set_of_keys():
    rng = np.random.default_rng(1)
    ranges, keys = (), set()
    for key in rng.integers(0, 60, size=200).tolist():
        ranges, keys = with_key(ranges, key), keys | {key}
        assert [k for first, stop in ranges for k in range(first, stop)] == sorted(keys)


PEAK = """
import resource, sys
from pathlib import Path
from omdpd.experiments.one_run import run
from omdpd.experiments.spec import RunSpec
from tests.references.columns import same_columns
from tests.references.named import LEARNERS, NATURES, WORLDS
spec = RunSpec(WORLDS["random_dirichlet"](), NATURES[sys.argv[1]](), LEARNERS["Uniform"](), int(sys.argv[2]), 0)
run(spec, Path(sys.argv[3]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("nature", "episodes"), [("noisy", 1_000_000), ("anchored", 200_000)])
def test_a_run_of_a_million_episodes_stays_small(tmp_path, nature, episodes):
    """At paper size: under 300 MB of memory and 100 MB of disk, also where no table comes twice."""
    assert MAX_NUMBERS < 200_000 * 75  # the tables of the shorter run do not fit into what is kept either
    words = [sys.executable, "-c", PEAK, nature, str(episodes), str(tmp_path)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=1800, env=env)
    assert float(done.stdout) < 300.0
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 100e6
