"""Let threads, forked children and kills lay hands on one session, and count the acknowledged updates that are lost.

    python -m benchmarks.shared_sessions [TRIALS]

In each trial a process opens a session, forks a child that tells it things before, while and after its own threads do,
and is killed with SIGKILL at a random moment (in every second trial) or closes.  An update that returned is written
down, outside the session, by its reward alone.  Opened again, the session must hold each of them once, and at most one
more per thread, which was durable and not yet written down.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from omdpd import BanditFeedback, InvalidInputError, Session, Setting, Trajectory
from omdpd.learners.uniform import Uniform
from omdpd.storage.journal import Journal, SessionWarning

SETTING = Setting(horizon=2, n_states=2, n_actions=2, n_episodes=None, reward_range=(0.0, 1e9))
THREADS, UPDATES = 8, 12
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Trial:
    """What one trial came to: updates that were acknowledged, lost, twice there, and told by children."""

    acknowledged: int
    lost: int
    odd: int
    by_children: int


def feedback(number: int) -> BanditFeedback:
    zeros = np.zeros(2, dtype=int)
    return BanditFeedback(Trajectory(zeros, zeros), np.full(2, float(number)), np.zeros((1, 2)))


def opened(folder: Path) -> Session:
    return Session.open(folder, Uniform(), SETTING, snapshot_every=10**9)


def owner(folder: Path, notes: int, seed: int, until: int) -> None:
    """The process that has the session: threads tell it things, and children that are forked meanwhile try to."""
    rng = random.Random(seed)
    session = opened(folder)

    def note(number: int) -> None:
        os.write(notes, number.to_bytes(8, "little"))

    def tell(first: int) -> None:
        for number in range(first, first + UPDATES):
            session.update(feedback(number))
            note(number)

    def child() -> None:
        for number in range(900_000, 900_003):
            try:
                session.update(feedback(number))
                note(number)
            except InvalidInputError:
                pass
        session.close()

    threads = [threading.Thread(target=tell, args=(1000 * (i + 1),)) for i in range(THREADS)]
    children = []
    for i, thread in enumerate(threads):
        if i % 3 == 0:
            children.append(FORK.Process(target=child))
            children[-1].start()
        thread.start()
    if until:
        threading.Thread(
            target=lambda: (time.sleep(rng.random() * until / 1000), os.kill(os.getpid(), signal.SIGKILL))
        ).start()
    for worker in (*threads, *children):
        worker.join()
    session.close()
    late = FORK.Process(target=child)
    late.start()
    late.join()


def numbers_of(folder: Path) -> Iterator[int]:
    """The rewards of every episode that the session holds."""
    low, high = SETTING.reward_range or (0.0, 1.0)
    journal = Journal(folder)
    try:
        journal.identify()
        for (told, _), _ in journal.entries(0):
            yield round(low + (high - low) * float(told.rewards[0]))
    finally:
        journal.close()


def trial(folder: Path, seed: int) -> Trial:
    ours, theirs = os.pipe()
    until = 120 if seed % 2 else 0
    process = FORK.Process(target=owner, args=(folder, theirs, seed, until))
    process.start()
    os.close(theirs)
    with open(ours, "rb") as stream:
        said = stream.read()
    process.join()
    noted = Counter(int.from_bytes(said[i : i + 8], "little") for i in range(0, len(said) - 7, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SessionWarning)
        opened(folder).close()
    there = Counter(numbers_of(folder))
    more = sum((there - noted).values())
    odd = more if more > (THREADS if until else 0) else 0
    children = sum(number >= 900_000 for number in [*noted, *there])
    return Trial(noted.total(), (noted - there).total(), odd, children)


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
    with tempfile.TemporaryDirectory(prefix="omdpd-shared-") as folder:
        found = [trial(Path(folder) / str(seed), seed) for seed in range(trials)]
    print(
        f"{trials} trials of {THREADS} threads and 4 forked children, every second one killed: "
        f"{sum(t.acknowledged for t in found)} updates acknowledged, {sum(t.lost for t in found)} lost, "
        f"{sum(t.odd for t in found)} too many, {sum(t.by_children for t in found)} told by children"
    )
    if any(t.lost or t.odd or t.by_children for t in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
