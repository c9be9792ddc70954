"""Nothing is lost, in one table: ``python -m benchmarks.durability [--quick] [--parts NAME,NAME]``.

What it prints is the table of docs/reliability.md.

Kills of sweeps (`chaos.py`), deaths at single calls to the file system (`crash_points.py`), spoilt files
(`fuzz_files.py`), a flipped bit in every byte of a run, and what it costs: `omdpd verify`, and an update of a session
that is on disk when it returns.  The named programs go on for longer.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks.chaos import Plan, storm
from benchmarks.crash_points import run_points, session_points
from benchmarks.fuzz_files import fuzz, targets
from omdpd import BanditFeedback, ProximalOMDPD, Session, Setting, Trajectory
from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment
from omdpd.report.verify import verify_tree
from omdpd.storage.atomic import RecordError
from omdpd.storage.run_folder import RunFolder

# What was tried, how often, how often it went wrong, what it took, and what was asked for.
Line = tuple[str, str, str, str, str]
# The paper's size.
H, S, A = 5, 5, 3


def experiment(learner: str, episodes: int, seeds: int) -> Experiment:
    """Runs in random worlds of the paper's size with noisy costs."""
    registry = Registry.installed()
    parts = (("worlds", "random_dirichlet"), ("natures", "noisy"), ("learners", learner))
    return Experiment(*((registry.spec(kind, name),) for kind, name in parts), episodes=episodes, seeds=seeds)


def kills(folder: Path, quick: bool) -> Line:
    """Sweeps of twelve runs that are killed at random moments."""
    tally = storm(Plan(1 if quick else 20, 60 if quick else 400), folder)
    return "kills of sweeps", f"{tally.total} kills, {tally.runs} runs", "0", "the same bits, all verified", ""


def crashes(folder: Path, quick: bool) -> Iterator[Line]:
    """A process that dies at a call to the file system."""
    session = session_points(folder / "sessions", 2 if quick else 16)
    yield "crash points of a session", str(session), "0", "nothing acknowledged is lost", "500 with the next"
    run = run_points(folder / "runs", 6, 40 if quick else 1)
    yield "crash points of a run", str(run), "0", "the same bits", ""


def spoilt(folder: Path, quick: bool) -> Line:
    """Files of every kind, spoilt at random."""
    n, found = fuzz(3600.0, 0, 2 if quick else 100)
    kinds = len(targets(folder))
    return "spoilt files", str(n), str(len(found)), f"{kinds} kinds, each one sentence or read", "1500"


def flips(folder: Path, quick: bool) -> Line:
    """A bit in every byte of all files of a run."""
    run_experiment(experiment("Uniform", 2, 1), folder / "out", InProcess())
    (path,) = (folder / "out" / "runs").iterdir()
    run, n, unnoticed = RunFolder(path, path.name), 0, 0
    rng = random.Random(0)
    for file in sorted(file for file in path.iterdir() if file.stat().st_size):
        good = file.read_bytes()
        for place in range(0, len(good), 50 if quick else 1):
            file.write_bytes(good[:place] + bytes([good[place] ^ (1 << rng.randrange(8))]) + good[place + 1 :])
            n += 1
            try:
                run.check()
                unnoticed += 1
            except RecordError:
                pass
        file.write_bytes(good)
    return "flipped bits of a run", str(n), str(unnoticed), "one in every byte", "every byte"


def verifying(folder: Path, quick: bool) -> Line:
    """Reading and checking many finished runs."""
    n = 3 if quick else 200
    run_experiment(experiment("Uniform", 3000, n), folder, InProcess())
    began = process_time()
    wrong = verify_tree(folder).wrong
    spent = process_time() - began
    shown = f"{1000.0 * spent / n:.1f} s of processor time per 1000"
    return "`verify`, runs of 3000 episodes", str(n), str(len(wrong)), shown, "10 s"


def updating(folder: Path, quick: bool) -> Line:
    """What an update on disk takes beyond the same update in memory, and a bare write with its sync."""
    n, setting = 20 if quick else 350, Setting(horizon=H, n_states=S, n_actions=A, n_episodes=1000)
    rng = np.random.default_rng(0)
    learner = ProximalOMDPD.standard()
    feedback = [
        BanditFeedback(
            Trajectory(rng.integers(0, S, H), rng.integers(0, A, H)), rng.random(H), rng.random((1, H)) - 0.5
        )
        for _ in range(n)
    ]
    with Session.open(folder / "session", learner, setting) as session:
        disk = _each(session.update, feedback)
    memory = _each(Session(learner, setting).update, feedback)
    with (folder / "bare").open("wb") as stream:

        def bare(content: bytes) -> None:
            stream.write(content)
            stream.flush()
            os.fdatasync(stream.fileno())

        sync = _each(bare, [bytes(512)] * n)
    shown = f"{disk - memory:.2f} ms beyond its update; a bare write and sync {sync:.2f}"
    return "durable `Session.update` (median)", str(n), "0", shown, "3 ms"


def _each(call, arguments) -> float:
    """The median of some calls, in milliseconds by the clock."""
    spent = []
    for argument in arguments:
        began = perf_counter()
        call(argument)
        spent.append(1e3 * (perf_counter() - began))
    return float(np.median(spent))


PARTS = {part.__name__: part for part in (kills, crashes, spoilt, flips, verifying, updating)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few of each")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    given = parser.parse_args()
    if unknown := [name for name in given.parts.split(",") if name not in PARTS]:
        parser.error(f"--parts names {unknown[0]!r}, but must be of {', '.join(PARTS)}")
    print("| what | tried | went wrong | measured | bar |\n|---|---:|---:|---|---|")
    with tempfile.TemporaryDirectory(prefix="omdpd-durability-", ignore_cleanup_errors=True) as scratch:
        for name in given.parts.split(","):
            folder = Path(scratch) / name
            folder.mkdir()
            with redirect_stdout(sys.stderr):
                found = PARTS[name](folder, given.quick)
                lines = [found] if isinstance(found, tuple) else list(found)
            for line in lines:
                print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
