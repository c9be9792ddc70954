"""Let a process die before, or in the middle of, each of its calls to the file system, and see what is there after it.

    python -m benchmarks.crash_points

A session is taught and a run is played; every call that changes files is counted, and then the same is done once for
every call: there the process "dies" (this call and all later ones raise, so that no clean-up happens either).  Opened
again, the session must have every update that was acknowledged and the same policy; the run, gone on with, must end
with the same rows and scores.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from omdpd import BanditFeedback, ProximalOMDPD, Session, Setting, Trajectory
from omdpd.experiments.one_run import advance, run
from omdpd.experiments.registry import Registry, run_of
from omdpd.report.verify import verify_tree
from omdpd.storage import locks
from omdpd.storage.journal import SessionWarning
from omdpd.storage.npz import npz_of_arrays
from omdpd.storage.run_folder import RunFolder

CALLS = ("open", "pwrite", "fsync", "fdatasync", "replace", "ftruncate", "unlink", "mkdir")
SETTING = Setting(2, 2, 2)
SNAPSHOT_EVERY = 3
# What is shorter is written whole or not at all.
SECTOR = 512


class Death(BaseException):
    """The process died."""


@contextmanager
def dying(at: int, half: bool) -> Iterator[list[int]]:
    """Death at the call of this number, or after half of it if it writes; the list counts the calls."""
    count = [0]

    def deadly(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            count[0] += 1
            if count[0] == at and half and name == "pwrite" and len(args[1]) > SECTOR:
                real(args[0], args[1][: len(args[1]) // 2], args[2])
            if count[0] >= at:
                raise Death
            return real(*args, **more)

        return call

    patches = [patch.object(os, name, deadly(name, getattr(os, name))) for name in CALLS]
    for each in patches:
        each.start()
    try:
        yield count
    except Death:
        pass
    finally:
        for each in patches:
            each.stop()
        locks._let_go()  # the system does that for a dead process


def feedback(k: int) -> BanditFeedback:
    rng = np.random.default_rng(k)
    met = Trajectory(rng.integers(0, 2, 2), rng.integers(0, 2, 2))
    return BanditFeedback(met, rng.random(2), rng.uniform(-1.0, 1.0, (1, 2)))


def opened(folder: Path) -> Session:
    return Session.open(folder, ProximalOMDPD.cautious(), SETTING, SNAPSHOT_EVERY)


def teach(session: Session, until: int, acknowledged: list[int]) -> None:
    while session.episodes < until:
        session.update(feedback(session.episodes))
        acknowledged[0] = session.episodes


def session_points(folder: Path, updates: int) -> int:
    """The number of crash points of a session, each of which is tried; raises at the first loss."""
    calm = Session(ProximalOMDPD.cautious(), SETTING)
    policies = [calm.policy()]
    for k in range(updates + 1):
        calm.update(feedback(k))
        policies.append(calm.policy())
    tried = at = 0
    reached = True
    while reached:
        at += 1
        for half in (False, True):
            place, acknowledged = folder / f"{at}-{half}", [0]
            with dying(at, half) as count, opened(place) as session:
                teach(session, updates, acknowledged)
            reached = count[0] >= at
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SessionWarning)  # an entry that was cut off is dropped, and said
                again = opened(place)
            with again:
                assert acknowledged[0] <= again.episodes <= acknowledged[0] + 1, f"updates are lost at call {at}"
                assert np.array_equal(again.policy(), policies[again.episodes]), f"another policy after call {at}"
                teach(again, updates, [0])
                assert np.array_equal(again.policy(), policies[updates]), f"another end after call {at}"
            assert verify_tree(place).wrong == ()
            tried += reached
    return tried


def run_points(folder: Path, episodes: int, step: int = 1) -> int:
    """The number of crash points of a run, every `step`-th of which is tried; raises at the first difference."""
    parts = {"world": {"name": "cyclic"}, "nature": {"name": "noisy"}, "learner": {"name": "ProximalOMDPD.cautious"}}
    spec = run_of(parts | {"episodes": episodes, "seed": 0}, Registry.installed())
    whole = run(spec, folder / "calm")
    rows = RunFolder(folder / "calm").rows()
    tried, at, reached = 0, 0, True
    while reached:
        at += step
        place = folder / "runs" / f"{at}" / "runs" / spec.id
        with dying(at, half=False) as count:
            record = RunFolder(place, spec.id)
            with record.owned():
                advance(spec, record, None, 0.0)
        reached = count[0] >= at
        again = run(spec, place)
        assert {**again, "seconds": 0} == {**whole, "seconds": 0}, f"other scores after call {at}"
        assert npz_of_arrays(RunFolder(place).rows()) == npz_of_arrays(rows), f"other rows after call {at}"
        assert verify_tree(place.parent).wrong == (), f"damage after call {at}"
        tried += reached
    return tried


def main() -> None:
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with tempfile.TemporaryDirectory(prefix="omdpd-crash-") as folder:
        sessions = session_points(Path(folder) / "sessions", updates=28)
        print(f"{sessions} crash points of a session: nothing acknowledged is lost, policies are the same", flush=True)
        runs = run_points(Path(folder) / "runs", episodes=8, step=step)
    print(f"{runs} crash points of a run: rows and scores are the same, every folder verifies")


if __name__ == "__main__":
    main()
