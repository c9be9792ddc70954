"""Measure a task before it is learnt: the span of its rewards and costs, and what its environment publishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from omdpd.gym.contact import TRIED, episode_seeds, published, time_limit
from omdpd.gym.episode import Met
from omdpd.gym.task import Task
from omdpd.problem.arrays import Floats, InvalidInputError

# Episodes of random actions that ranges are taken from.
PROBES = 5


class Span(NamedTuple):
    """The least and the largest reward, with 0 between, and the largest cost (I,), at least 1."""

    low: float
    high: float
    costs: Floats

    def with_episode(self, met: Met) -> Span:
        """The span that holds an episode, too."""
        low, high = min(self.low, float(met.rewards.min())), max(self.high, float(met.rewards.max()))
        return Span(low, high, np.maximum(self.costs, np.abs(met.costs).max(axis=1)))


def own_horizon(env: Any) -> Any:
    """The steps per episode that an environment publishes, as a time limit or as its horizon."""
    found = time_limit(env) or published(env, "horizon")
    if found is None:
        raise InvalidInputError("horizon is missing: give the steps of an episode; the environment has no time limit")
    return found


def own_budget(env: Any) -> Any:
    """The budget that an environment publishes, as an attribute or in its metadata; else it is asked for."""
    found, metadata = published(env, "budget"), published(env, "metadata")
    if (found is None or callable(found)) and isinstance(metadata, Mapping):
        found = metadata.get("budget")
    if found is None or callable(found):
        raise InvalidInputError(
            "budget is missing, and the environment publishes none: give what an episode may cost in expectation, "
            "or budget=None for no limit"
        )
    return found


def no_cost(state: int, action: int, next_state: int) -> float:
    """Nothing is paid: there is no limit, and no cost to limit."""
    return 0.0


def measured(task: Task, needs_cost: bool) -> tuple[Task, Span]:
    """Measure the span of a task's rewards and costs; a cost that is missing and not needed counts as zero."""
    try:
        span = _observed(task)
    except InvalidInputError:
        if needs_cost or task.cost is not None or task.observation_cost is not None:
            raise
        task = replace(task, cost=no_cost)
        span = _observed(task)
    rewards = _rewards_of_table(task.env)
    if rewards is not None:
        span = Span(min(0.0, rewards.min()), max(0.0, rewards.max()), span.costs)
    return task, span


def _observed(task: Task) -> Span:
    """The span of some episodes of random actions."""
    boundless, span = task.boundless(), Span(0.0, 0.0, np.ones(task.limits.size))
    policy = np.full(task.setting(None).shape, 1.0 / task.sizes[1])
    for k in range(PROBES):
        span = span.with_episode(boundless.play(policy, *episode_seeds(0, TRIED, k)).met)
    return span


def _rewards_of_table(env: Any) -> npt.NDArray[np.float64] | None:
    """All rewards of an environment that publishes its table `P`."""
    table = published(env, "P")
    if not isinstance(table, Mapping):
        return None
    return np.array([way[2] for actions in table.values() for ways in actions.values() for way in ways], dtype=float)
