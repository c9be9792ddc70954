"""Learn from an environment without its table, episode by episode; see `gym.task` for how an environment is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from omdpd.gym.checkpoints import Returns, opened_checkpoint
from omdpd.gym.contact import during, episode_seeds, published, reset, whole
from omdpd.gym.episode import Episode, EpisodeRow
from omdpd.gym.learned import Learned
from omdpd.gym.settings import USUAL, functions_of, refuse_unknown
from omdpd.gym.table import opened
from omdpd.gym.task import MAX_ENTRIES, ObservationCost, StepCost, Task, Truncation
from omdpd.learners.protocol import Learner
from omdpd.play.logs import Log
from omdpd.play.progress_bar import progress_bar
from omdpd.play.session import Session
from omdpd.play.start import Start
from omdpd.problem.arrays import InvalidInputError, positive_integer, shown, whole_number
from omdpd.problem.setting import Feedback
from omdpd.problem.strangers import strangers_code


class TaskSettings(TypedDict, total=False):
    """What may be said by name of an environment that is read as a task: see `Task`, which has what is usual."""

    observation_cost: ObservationCost | None
    initial: npt.ArrayLike | None
    reward_range: tuple[float, float]
    cost_scale: npt.ArrayLike
    state_of: Callable[[Any], int] | None
    n_states: int | None
    max_entries: int | None
    truncation: Truncation
    allowed: npt.ArrayLike | None


def learn(
    env: Any,
    learner: Learner[Any] | None,
    n_episodes: int,
    horizon: int | None = None,
    budget: npt.ArrayLike | None = None,
    cost: StepCost | str | None = None,
    seed: int = 0,
    *,
    logged: Log | Sequence[Feedback] = (),
    start: Start = "safe",
    checkpoint: str | Path | None = None,
    callback: Callable[[EpisodeRow], None] | None = None,
    progress: bool | None = None,
    **settings: Unpack[TaskSettings],
) -> Learned:
    """Let `learner` play `n_episodes` of an environment whose table is unknown.

    Parameters
    ----------
    env
        An environment or its id (then `horizon` and `budget` are needed), or a `Task`, which says all of this itself.
    cost, and observation_cost, initial, reward_range, cost_scale, state_of, n_states, max_entries, truncation, allowed
        As of `Task`, by name.  Without `initial` the law of the first state is read from ``initial_state_distrib``, if
        the environment publishes it.
    seed
        The same seed gives the same run.
    logged, start
        Episodes from before: a `Log` of the environment's states in its units, or what a task played.  With them the
        first episode is within its budgets as far as they certify it (without a learner by `SafeStart`), unless `start`
        is "explore".
    checkpoint
        A folder that keeps every episode as it is learnt from.  The same call again, after a crash too, goes on from
        there; with an environment whose randomness comes from its seed, as if nothing had happened.
    callback
        Called with every episode's row after it was learnt from.
    progress
        Whether to show a bar; None: in a terminal or a notebook, if it takes more than a second.
    """
    task = _task(env, learner, {"horizon": horizon, "budget": budget, "cost": cost, **settings})
    setting = task.setting(positive_integer("n_episodes", n_episodes))
    whole_number("seed", seed, 0)
    before = task.logged(logged) if isinstance(logged, Log) else logged
    with progress_bar(type(learner).__name__, n_episodes, progress) as tell:
        kept = None
        if checkpoint is None:
            session = Session(learner, setting, logged=before, start=start)
        else:
            session, kept = opened_checkpoint(Path(checkpoint), learner, task, n_episodes, before, start)
        try:
            rows = [] if kept is None else list(kept.kept)
            for k, episode in played(task, session, range(session.episodes, n_episodes), seed, kept):
                rows.append(EpisodeRow.of(k, episode))
                if callback is not None:
                    callback(rows[-1])
                tell(k + 1)
            return learned_by(task, session, rows)
        finally:
            if kept is not None:
                kept.close()
            session.close()


def played(
    task: Task, session: Session, episodes: range, seed: int, kept: Returns | None = None
) -> Iterator[tuple[int, Episode]]:
    """Play and learn from episodes, each with random numbers of its own; every one comes after it was learnt from."""
    for k in episodes:
        with during(f"episode {k + 1}"):
            episode = task.play(session.policy(), *episode_seeds(seed, k))
        if kept is not None:
            kept.append(EpisodeRow.of(k, episode))
        session.update(episode.feedback)
        yield k, episode


def learn_by_context(
    task: Task, learner: Learner[Any], n_episodes: int, context_of: Callable[[Any], int], n_contexts: int, seed: int = 0
) -> tuple[Learned, ...]:
    """`learn` with one learner per context: what the first observation shows and an episode never changes.

    Each learner sees the states of its own context alone (`state_of` of the task), which is much cheaper, and each
    keeps the whole budget, which is safe on average too.  A context that changes within an episode is refused.
    """
    tasks = [_within(task, context_of, c) for c in range(positive_integer("n_contexts", n_contexts))]
    sessions = [Session(learner, part.setting(None)) for part in tasks]
    rows: list[list[EpisodeRow]] = [[] for _ in tasks]
    whole_number("seed", seed, 0)
    for k in range(positive_integer("n_episodes", n_episodes)):
        rng, env_seed = episode_seeds(seed, k)
        with during(f"episode {k + 1}"):
            observation, info = reset(task.env, env_seed)
        c = _context(context_of, observation)
        if not 0 <= c < n_contexts:
            raise InvalidInputError(
                f"the observation {shown(observation)} is in context {c}, but there are {n_contexts}"
            )
        with during(f"episode {k + 1}"):
            episode = tasks[c].play_from(observation, sessions[c].policy(), rng, info)
        rows[c].append(EpisodeRow.of(len(rows[c]), episode))
        sessions[c].update(episode.feedback)
    return tuple(learned_by(*observed) for observed in zip(tasks, sessions, rows, strict=True))


def _within(task: Task, context_of: Callable[[Any], int], context: int) -> Task:
    """The task of one context: its law of the first state, and a check that the context stays."""

    def state_of(observation: Any) -> int:
        if _context(context_of, observation) != context:
            raise InvalidInputError(
                f"the observation {shown(observation)} left the context {context} within an episode"
            )
        return task.state(observation)

    law = None if task.initial is None else np.array(task.initial, dtype=np.float64)
    if law is not None:
        start = int(task.env.observation_space.start)
        law *= np.array([_context(context_of, start + o) == context for o in range(law.size)])
        law = law / law.sum() if law.sum() > 0.0 else None
    return replace(task, state_of=state_of, n_states=task.sizes[0], initial=law)


def _context(context_of: Callable[[Any], int], observation: Any) -> int:
    with strangers_code("context_of raised"):
        return whole(f"the context of the observation {shown(observation)}", context_of(observation))


def learned_by(task: Task, session: Session, rows: Sequence[EpisodeRow]) -> Learned:
    """What a session learnt in a task, with what its episodes came to."""
    return Learned(
        task.own_policy(session.policy()), np.array([row.reward for row in rows]),
        np.array([row.costs for row in rows]).reshape(len(rows), task.limits.size),
        np.array([row.length for row in rows], dtype=np.int64), task.limits, session.report(), task,
        np.array(task.reward_range), task.scale, tuple(functions_of(task)),
    )  # fmt: skip


def _task(env: Any, learner: Learner[Any] | None, settings: dict[str, Any]) -> Task:
    """The task that a call of `learn` means; its size is checked only for a learner that keeps tables of it."""
    refuse_unknown(settings)
    if isinstance(env, Task):
        for name, value in settings.items():
            if not np.array_equal(value, USUAL[name]):
                raise InvalidInputError(f"{name} is given beside a Task, which says it itself")
        return env
    env = opened(env)
    if settings["horizon"] is None or settings["budget"] is None:
        raise InvalidInputError("learn needs a horizon and a budget, unless it is given a Task")
    if settings.get("initial") is None:
        settings = settings | {"initial": published(env, "initial_state_distrib")}
    task = Task(env, **(settings | {"max_entries": None}))
    return task if _keeps_none(learner, task) else replace(task, max_entries=settings.get("max_entries", MAX_ENTRIES))


def _keeps_none(learner: Learner[Any] | None, task: Task) -> bool:
    """Whether a learner says that on such a problem it keeps what it visits alone, not tables."""
    keeps_tables = getattr(learner, "keeps_tables", None)
    return callable(keeps_tables) and not keeps_tables(task.setting(None))
