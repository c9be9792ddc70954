"""Trouble that is not a run's own: workers that die, clusters that go, disks that fill.  A study stops and can go on.

What a run itself raises is kept in its folder as ``error.json``; nothing in this module ever is.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from omdpd.experiments.executors import ClusterLostError
from omdpd.experiments.local_processes import WorkersError
from omdpd.experiments.registry import WorkerMismatchError
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.run_folder import RunFolder

# How often a run is sent again after its worker or its cluster failed.  The environment variable changes it.
RETRIES = 3
RETRIES_VARIABLE = "OMDPD_RETRIES"
# What trying again at once would not mend: the machine's disk or memory, a cluster without its head, or workers that
# cannot be used.
LASTING = (MemoryError, BrokenProcessPool, ClusterLostError, WorkersError, WorkerMismatchError)
# Kinds of OSError that are about a worker or a connection, not about this machine's files.
PASSING = (InterruptedError, ConnectionError, TimeoutError)


class StudyStoppedError(InvalidInputError):
    """Something beside the runs failed; the message says which run met it, why, and how to go on."""


@dataclass
class Trouble:
    """How often each run was sent again because of something that is not its own fault."""

    budget: int = field(default_factory=lambda: retry_budget())
    sent_again: Counter[str] = field(default_factory=Counter)

    def is_run_failure(self, record: RunFolder, error: BaseException) -> bool:
        """Whether an error is the run's own: a refusal, or an error that the run's worker kept."""
        if isinstance(error, LASTING):
            return False
        return isinstance(error, InvalidInputError) or record.error is not None

    def send_again(self, name: str, error: BaseException) -> bool:
        """Whether a run may be tried once more after this."""
        lasting = isinstance(error, LASTING) or (isinstance(error, OSError) and not isinstance(error, PASSING))
        if lasting or self.sent_again[name] >= self.budget:
            return False
        self.sent_again[name] += 1
        return True

    def stopped(self, record: RunFolder, error: BaseException, n_done: int, n_runs: int) -> StudyStoppedError:
        """The sentence that ends a study for now."""
        if isinstance(error, WorkersError | WorkerMismatchError):
            return StudyStoppedError(str(error))
        tries = self.sent_again[record.path.name]
        again = f" (sent again {tries} times)" if tries else ""
        return StudyStoppedError(
            f"stopped at run {record.path.name}{again}: {_why(error)}; {n_done} of {n_runs} runs are finished, and "
            f"what was done is kept in {record.path.parent}: once that is mended, the same command goes on"
        )


def retry_budget() -> int:
    """How often a run is sent again: the constant, or what the environment says."""
    text = os.environ.get(RETRIES_VARIABLE, str(RETRIES))
    if not text.isascii() or not text.isdigit() or int(text) > 1000:
        raise InvalidInputError(f"{RETRIES_VARIABLE} is {text!r}, but must be a whole number from 0 to 1000")
    return int(text)


def _why(error: BaseException) -> str:
    """An error as a part of a sentence, with the file or the class that says what kind of trouble it is."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"this machine has not enough memory{f' ({text})' if text else ''}"
    if isinstance(error, BrokenProcessPool):
        return f"{text}, as happens when the system runs out of memory"
    if isinstance(error, ClusterLostError):
        return text
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
