"""Kill a running sweep again and again, and see that every run still ends bit for bit as if nothing had happened.

    python -m benchmarks.chaos 200                                # kills of sweeps of twelve runs
    python -m benchmarks.chaos 200 --runs 1000 --writers 2 --jobs 1 --episodes 200 --pause 4 --minutes 90
                                                                  # a soak: one large study, two commands at a time

A sweep is started as a person starts it (`omdpd run FILE --jobs 2`) and killed with SIGKILL at random moments: the
whole group of processes, the parent alone (its workers must end by themselves), or one worker (the sweep must go on by
itself).  It is started again with the same command until it is finished; then its runs are compared with those of a
sweep that nobody disturbed: rows, values, states, policies, summaries (except `seconds`), and the files of every
folder; and `omdpd verify` must find nothing wrong.  If kills are left, a new sweep begins.  With several writers the
same command is given as often at the same time, into the same folder; one of them is killed, and the others are told
to terminate.  A kill comes at most `--pause` seconds after new work was committed; after `--minutes` there are no more
of them, and what is there is finished and compared.  With `--folder` the files are kept there, and a storm that was
itself stopped goes on.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omdpd.experiments.writer import COMMIT_VARIABLE
from omdpd.learners.protocol import stored_classes
from omdpd.report.stored import stored_runs
from omdpd.report.verify import verify_tree
from omdpd.storage.npz import npz_of_arrays
from omdpd.storage.packing import unpack
from omdpd.storage.run_folder import RunFolder

SWEEP = """\
episodes = {episodes}
seeds = {seeds}
worlds = [{{ name = "random_dirichlet" }}]
natures = [{{ name = "noisy" }}, {{ name = "adaptive" }}, {{ name = "pool" }}]
learners = [
  {{ name = "ProximalOMDPD.cautious" }},
  {{ name = "OMDPD.tuned" }},
  {{ name = "OptCMDP" }},
  {{ name = "SinhaVaze" }},
]
"""
# Commits are this far apart, so that a kill often meets one.
COMMIT_SECONDS = "0.02"
# What a finished run's folder holds, apart from its three numbered parts.
FILES = {"spec.toml", "provenance.json", "commit.json", "summary.json", "lock"}
KINDS = ("group", "group", "parent", "worker")
# How long a sweep may take once nobody disturbs it, in seconds: a thousand runs on a busy machine take hours.
PATIENCE = 4 * 3600.0
# Runs per seed of the sweep: its natures times its learners.
PER_SEED = 12


@dataclass(frozen=True)
class Plan:
    """How often which sweep is killed: `pause` is how many seconds of work a kill waits for at most.

    After `minutes` no more kills begin.
    """

    kills: int
    episodes: int
    seeds: int = 1
    seed: int = 0
    writers: int = 1
    jobs: int = 2
    pause: float = 1.0
    minutes: float = math.inf


@dataclass
class Tally:
    """What happened: kills by kind, how many came after new commits, half-written files, and what was compared."""

    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*KINDS, "start"), 0))
    sweeps: int = 0
    runs: int = 0
    leftovers: int = 0
    at_work: int = 0

    @property
    def total(self) -> int:
        return sum(self.kills.values())


def storm(plan: Plan, folder: Path) -> Tally:
    """Kill sweeps as planned; raises AssertionError at the first difference."""
    file = folder / "sweep.toml"
    file.write_text(SWEEP.format(episodes=plan.episodes, seeds=plan.seeds))
    calm = folder / "calm"
    _finish(_start(file, calm, 2))
    rng, tally, end = random.Random(plan.seed), Tally(), time.monotonic() + 60.0 * plan.minutes
    while tally.total < plan.kills and time.monotonic() < end:
        out = folder / f"storm-{tally.sweeps}"
        while tally.total < plan.kills and time.monotonic() < end:
            before = _commits(out)
            processes = [_start(file, out, plan.jobs) for _ in range(plan.writers)]
            rng.shuffle(processes)
            done = _kill(processes[0], rng, tally, plan.pause, lambda out=out, before=before: _commits(out) != before)
            for other in processes[1:]:
                _terminate(other)
            if done:
                break
            print(f"{tally.total} kills, {len(_commits(out))} runs begun", flush=True)
            tally.leftovers += sum(1 for _ in out.glob("runs/*/.*.tmp"))
            tally.at_work += _commits(out) != before
        for process in [_start(file, out, plan.jobs) for _ in range(plan.writers)]:
            _finish(process)
        tally.runs += compare(calm, out)
        assert verify_tree(out).wrong == (), "what is left does not verify"
        tally.sweeps += 1
        print(f"{tally.total} kills {tally.kills}, {tally.sweeps} sweeps, {tally.runs} runs identical", flush=True)
    return tally


def compare(calm: Path, out: Path) -> int:
    """Refuse any difference between the runs of two folders; the number of runs compared."""
    names = sorted(path.name for path in (calm / "runs").iterdir() if path.is_dir())
    assert names == sorted(path.name for path in (out / "runs").iterdir() if path.is_dir()), "runs were lost or added"
    for name in names:
        one, other = fingerprint(RunFolder(calm / "runs" / name)), fingerprint(RunFolder(out / "runs" / name))
        for part in one:
            assert one[part] == other[part], f"{part} of run {name} differ"
        files = {path.name for path in (out / "runs" / name).iterdir()}
        manifest = RunFolder(out / "runs" / name).manifest()
        assert manifest is not None
        assert files == FILES | manifest.files, f"run {name} has stray files: {files - FILES - manifest.files}"
    policies = [_policies(folder) for folder in (calm, out)]
    assert policies[0] == policies[1], "final policies differ"
    return len(names)


def fingerprint(record: RunFolder) -> dict[str, Any]:
    """Everything of a run that must not depend on kills, exactly."""
    done, rows, summary = record.last_commit(), record.rows(), dict(record.summary or {})
    assert done is not None, f"{record.path} has no commit"
    assert rows is not None, f"{record.path} has no rows"
    summary.pop("seconds", None)
    episodes = rows["episode"].tolist()
    assert episodes == sorted(set(episodes)), f"{record.path} has an episode twice or out of order"
    progress = done.tree["progress"][:3]
    arrays = {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in done.arrays.items()}
    return {
        "rows": npz_of_arrays(rows), "values": record.values().tobytes(), "summary": summary, "episodes": done.episodes,
        "arrays": arrays, "tree": (progress, done.tree["rng"]),
    }  # fmt: skip


def _policies(folder: Path) -> dict[str, bytes]:
    policies = {}
    for run in stored_runs(folder):
        done = run.folder.last_commit()
        assert done is not None
        learner = run.spec.learner.build()
        state = unpack(done.tree["progress"][0], done.arrays, stored_classes(learner))
        policies[run.id] = learner.policy(state).tobytes()
    return policies


def _start(file: Path, out: Path, jobs: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "omdpd", "run", str(file), "--out", str(out), "--jobs", str(jobs)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env=os.environ | {COMMIT_VARIABLE: COMMIT_SECONDS},
    )  # fmt: skip


def _finish(process: subprocess.Popen[str]) -> None:
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, f"a sweep ended with {process.returncode}: {said}"


def _terminate(process: subprocess.Popen[str]) -> None:
    """Tell a command to stop: it commits and says so, unless it is finished or only begins."""
    process.terminate()
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, 143, -signal.SIGTERM), f"a sweep ended with {process.returncode}: {said}"


def _kill(process: subprocess.Popen[str], rng: random.Random, tally: Tally, pause: float, at_work: Any) -> bool:
    """Kill at a random moment, mostly after work has begun; True if the sweep was finished before that."""
    early = rng.random() < 0.1
    if early:
        time.sleep(rng.uniform(0.0, 1.5))
    else:
        _wait(lambda: process.poll() is not None or at_work(), PATIENCE)
        time.sleep(rng.uniform(0.0, pause))
    kind = "start" if early else rng.choice(KINDS)
    while kind == "worker" and process.poll() is None:
        victims = workers(process.pid)
        if victims and _send(rng.choice(victims)):
            tally.kills["worker"] += 1
        time.sleep(rng.uniform(0.5, 3.0))
        kind = rng.choice(KINDS)
    if process.poll() is not None:
        _finish(process)
        return True
    victims = workers(process.pid)
    if kind == "parent":
        _send(process.pid)
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    tally.kills[kind] += 1
    alive = _wait(lambda: not any(map(_alive, victims)), 20.0)
    assert alive, f"workers {victims} outlived their parent"
    return False


def _commits(out: Path) -> dict[str, int]:
    """When each run of a folder last committed."""
    return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("runs/*/commit.json")}


def workers(pid: int) -> list[int]:
    """The worker processes of a sweep: its children that run somebody's work."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    except OSError:
        return []


def _send(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _wait(happened: Any, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.02)
    return False


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("kills", type=int, nargs="?", default=200)
    words.add_argument("--runs", type=int, default=12, help="runs per sweep, about")
    words.add_argument("--episodes", type=int, default=1500)
    words.add_argument("--writers", type=int, default=1, help="commands at a time on one folder")
    words.add_argument("--jobs", type=int, default=2, help="processes of a command")
    words.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    words.add_argument("--folder", type=Path, help="where to work; a temporary folder without it")
    words.add_argument("--pause", type=float, default=1.0, help="seconds of work before a kill, at most")
    words.add_argument("--minutes", type=float, default=math.inf, help="no more kills after this time")
    given = words.parse_args()
    seeds = max(given.runs // PER_SEED, 1)
    plan = Plan(given.kills, given.episodes, seeds, given.seed, given.writers, given.jobs, given.pause, given.minutes)
    began = time.monotonic()
    if given.folder is None:
        with tempfile.TemporaryDirectory(prefix="omdpd-chaos-", ignore_cleanup_errors=True) as folder:
            tally = storm(plan, Path(folder))
    else:
        given.folder.mkdir(parents=True, exist_ok=True)
        tally = storm(plan, given.folder)
    print(
        f"{tally.total} kills ({', '.join(f'{n} {kind}' for kind, n in tally.kills.items())}) of {tally.sweeps} sweeps "
        f"in {time.monotonic() - began:.0f} s, {tally.at_work} starts killed after new commits, "
        f"{tally.leftovers} half-written files left: "
        f"{tally.runs} runs bit-identical, nothing lost, nothing duplicated, everything verified"
    )


if __name__ == "__main__":
    main()
