"""Runs in memory from Python: one, or one per seed on several processes, with a progress bar."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from typing import Any, overload

from omdpd.experiments.executors import executor
from omdpd.experiments.registry import Registry
from omdpd.experiments.writer import snapshot_grid
from omdpd.learners.protocol import Learner
from omdpd.natures.protocol import Nature
from omdpd.play.history import History, Watched, play_history
from omdpd.play.logs import Log
from omdpd.play.progress_bar import progress_bar
from omdpd.play.rows import Row
from omdpd.play.scene import Metric
from omdpd.play.start import Before, Start, setting_in_units, whole_episodes
from omdpd.problem.arrays import InvalidInputError, positive_integer, whole_number
from omdpd.problem.cmdp import CMDP
from omdpd.problem.setting import Feedback, FeedbackKind, FullFeedback, checked_feedback


@overload
def run(
    cmdp: CMDP, learner: Learner[Any] | str | None, nature: str | Nature = ..., n_episodes: int = ..., seed: int = ...,
    label: str | None = ..., metrics: Mapping[str, Metric] | None = ..., *, seeds: None = ..., jobs: int = ...,
    progress: bool | None = ..., callback: Callable[[Row], None] | None = ..., policies: bool = ...,
    logged: Log | Sequence[Feedback] = ..., start: Start = ...,
) -> History: ...  # fmt: skip


@overload
def run(
    cmdp: CMDP, learner: Learner[Any] | str | None, nature: str | Nature = ..., n_episodes: int = ..., seed: int = ...,
    label: str | None = ..., metrics: Mapping[str, Metric] | None = ..., *, seeds: int | Sequence[int], jobs: int = ...,
    progress: bool | None = ..., callback: Callable[[Row], None] | None = ..., policies: bool = ...,
    logged: Log | Sequence[Feedback] = ..., start: Start = ...,
) -> list[History]: ...  # fmt: skip


def run(
    cmdp: CMDP,
    learner: Learner[Any] | str | None,
    nature: str | Nature = "fixed",
    n_episodes: int = 1000,
    seed: int = 0,
    label: str | None = None,
    metrics: Mapping[str, Metric] | None = None,
    *,
    seeds: int | Sequence[int] | None = None,
    jobs: int = 1,
    progress: bool | None = None,
    callback: Callable[[Row], None] | None = None,
    policies: bool = False,
    logged: Log | Sequence[Feedback] = (),
    start: Start = "safe",
) -> History | list[History]:
    """Play `learner` on `cmdp` for `n_episodes` and judge it exactly.

    Parameters
    ----------
    learner
        An object, such as ``OptCMDP()`` of `omdpd.learners`, or a name that ``omdpd list`` prints.
    nature
        One of the names that ``omdpd list`` prints, or an object of your own (see `natures/protocol.py`).
    seed
        The same seed gives every learner the same luck and the same rounds.
    metrics
        Functions of (cmdp, round, policy) whose numbers stand in every row.
    seeds
        Several runs, and a list of their histories: this many seeds from `seed` on, or these.
    jobs
        Processes that play them; 0: one per core.  In a script they need ``if __name__ == "__main__":``.
    progress
        Whether to show a bar; None: in a terminal or a notebook, if it takes more than a second.
    callback
        Called with every episode's row while it plays, in the user's units; for a single run.
    policies
        Whether the history keeps policies on the way, some 40 on a logarithmic grid of episodes.
    logged, start
        Whole episodes from before, in the user's units.  With them the first episode is within its budgets as far as
        they certify it (without a learner by `SafeStart`), unless `start` is "explore".

    What a learner must be told in advance (a safe policy, the Slater gap, the model) it is told, as the truth is known.
    """
    if not isinstance(cmdp, CMDP):
        raise InvalidInputError(f"cmdp is a {type(cmdp).__name__}, but must be a CMDP: build one with CMDP.from_arrays")
    positive_integer("n_episodes", n_episodes)
    whole_number("seed", seed, 0)
    player = Registry.installed().spec("learners", learner).build() if isinstance(learner, str) else learner
    label = label or (learner if isinstance(learner, str) else None)
    before = Before(_in_learner_units(cmdp, logged), start)
    keep = snapshot_grid(n_episodes, cmdp.reward.size) if policies else frozenset[int]()
    if seeds is None:
        with progress_bar(label or type(player).__name__, n_episodes, progress) as tell:
            watched = Watched(callback, tell, keep, metrics)
            return play_history(cmdp, player, nature, n_episodes, seed, label, watched, before)
    if callback is not None:
        raise InvalidInputError("a callback goes with a single run: call run once for every seed instead of seeds")
    wanted = _seeds(seeds, seed)
    given = (cmdp, player, nature, n_episodes)
    title = f"{label or type(player).__name__}, {len(wanted)} seeds"
    with progress_bar(title, len(wanted) * n_episodes, progress) as tell:
        if (workers := _workers(jobs, len(wanted))) == 1:
            return [
                play_history(*given, s, label, Watched(None, _after(tell, i * n_episodes), keep, metrics), before)
                for i, s in enumerate(wanted)
            ]
        with executor("local", workers) as pool:
            watched = Watched(None, None, keep, metrics)
            waiting = [pool.submit(play_history, *given, s, label, watched, before) for s in wanted]
            for n_done, future in enumerate(as_completed(waiting), 1):
                future.result()  # a failure is raised at once, not behind the others
                tell(n_done * n_episodes)
            return [future.result() for future in waiting]


def _seeds(seeds: int | Sequence[int], first: int) -> list[int]:
    """The seeds that are meant."""
    if not isinstance(seeds, Sequence):
        return list(range(first, first + positive_integer("seeds", seeds)))
    if not seeds:
        raise InvalidInputError("seeds is empty, but must name at least one seed")
    return [whole_number("seeds", seed, 0) for seed in seeds]


def _workers(jobs: int, n_runs: int) -> int:
    return min(whole_number("jobs", jobs, 0) or os.cpu_count() or 1, n_runs)


def _after(tell: Callable[[int], None], before: int) -> Callable[[int], None]:
    """Move the same bar on, for a run that begins after `before` steps."""
    return lambda done: tell(before + done)


def _in_learner_units(cmdp: CMDP, logged: Log | Sequence[Feedback]) -> tuple[Feedback, ...]:
    """What was logged, as a learner sees it; an entry that does not fit is refused."""
    if not len(logged):
        return ()
    kind: FeedbackKind = "full" if any(isinstance(each, FullFeedback) for each in logged) else "bandit"
    setting = setting_in_units(cmdp, kind)
    return tuple(checked_feedback(setting, feedback) for feedback in whole_episodes(logged, setting))
