"""An agent with the verbs that other libraries have: learn, predict, evaluate, save, load.

It is a thin front of `gym.learn`, which has more settings; give it a `Task` to use those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.gym.contact import TRIED, episode_seeds
from omdpd.gym.learned import Learned, Played
from omdpd.gym.learning import learn
from omdpd.gym.table import opened
from omdpd.gym.task import StepCost, Task
from omdpd.learners.protocol import Learner
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.problem.arrays import InvalidInputError

# Episodes of random actions that ranges are taken from, and the largest number in them that can be read exactly enough.
PROBES, LARGEST = 5, 1e6


class Agent:
    """Learn a policy that keeps a cost limit in a Gymnasium environment.

    Parameters
    ----------
    env
        An environment, its id, or a `Task`, which says everything below itself.
    budget
        What an episode may cost in expectation, one number or one per constraint.  None: no limit, a baseline that
        maximises reward alone.
    horizon
        Steps per episode; by default the environment's own time limit.
    learner
        By default `ProximalOMDPD.standard(stationary=True)`: the same rules hold at every step.
    cost
        A function of (state, action, next state), or a key of `info`; by default what the environment reports.
    state_of
        The state of an observation that is no whole number (`omdpd.gym.Bins`).
    reward_range, cost_scale
        As of `Task`.  By default they are taken from the environment's table where it publishes one, and else from
        five episodes of random actions; `repr(agent)` shows them.  A value that does not fit later is refused.

    Examples
    --------
    >>> agent = Agent("omdpd/Streaming-v0", budget=5.0, horizon=10)
    >>> agent
    Agent(10 states, 2 actions, horizon 10, budget 5; rewards in 0..1, costs divided by 1.455; has not learnt)
    >>> agent.learn(20).predict(observation=3, step=0) in (0, 1)
    True
    """

    def __init__(
        self,
        env: Any,
        budget: npt.ArrayLike | None = None,
        horizon: int | None = None,
        *,
        learner: Learner[Any] | None = None,
        cost: StepCost | str | None = None,
        state_of: Callable[[Any], int] | None = None,
        reward_range: tuple[float, float] | None = None,
        cost_scale: npt.ArrayLike | None = None,
    ) -> None:
        self.learner: Learner[Any] = ProximalOMDPD.standard(stationary=True) if learner is None else learner
        self.limited = budget is not None or isinstance(env, Task)
        self.learned: Learned | None = None
        if isinstance(env, Task):
            self.task = env
            return
        env = opened(env)
        steps = horizon or getattr(getattr(env, "spec", None), "max_episode_steps", None)
        if steps is None:
            raise InvalidInputError("the environment has no time limit of its own: give a horizon")
        inner = getattr(env, "unwrapped", env)
        first = getattr(inner, "initial_state_distrib", None)
        task = Task(env, steps, 0.0, cost, None if state_of else first, state_of=state_of, max_entries=None)
        if budget is not None:
            task = replace(task, budget=np.zeros_like(budget, dtype=np.float64))
        self.task = _with_ranges(task, budget, reward_range, cost_scale)

    def __repr__(self) -> str:
        S, A = self.task.sizes
        low, high = self.task.reward_range
        budget = ", ".join(f"{b:g}" for b in self.task.limits) if self.limited else "none"
        scale = ", ".join(f"{s:.4g}" for s in self.task.scale)
        state = "has not learnt" if self.learned is None else f"learnt from {len(self.learned.rewards)} episodes"
        return (
            f"Agent({S} states, {A} actions, horizon {self.task.horizon}, budget {budget}; "
            f"rewards in {low:g}..{high:g}, costs divided by {scale}; {state})"
        )

    def learn(self, n_episodes: int, seed: int = 0) -> Agent:
        """Learn from this many episodes, from the start, and give back the agent itself."""
        found = learn(self.task, self.learner, n_episodes, seed=seed)
        self.learned = found if self.limited else replace(found, budget=np.full(found.budget.shape, np.inf))
        return self

    def predict(
        self, observation: Any, step: int, *, deterministic: bool = False, rng: np.random.Generator | None = None
    ) -> int:
        """Choose an action at a zero-based step of an episode; the best actions depend on the step."""
        policy, s = self._done.policy, self.task.state(observation)
        first = int(getattr(self.task.env.action_space, "start", 0))
        return first + (int(np.asarray(policy)[step, s].argmax()) if deterministic else policy.act(step, s, rng))

    def evaluate(self, n_episodes: int = 100, seed: int = 0) -> Played:
        """Play the policy without learning: mean reward and costs with their 95 % intervals."""
        played = self._done.evaluate(self.task, n_episodes, seed)
        return replace(played, budget=self._done.budget)

    def save(self, file: str | Path) -> Path:
        """Keep policy and returns in an ``.npz`` file."""
        return self._done.save(file)

    @staticmethod
    def load(file: str | Path, env: Any, **settings: Any) -> Agent:
        """Read what `save` wrote; `env` and settings are those that the agent was made with."""
        found = Learned.load(file)
        budget = found.budget if np.isfinite(found.budget).all() else None
        given = {} if isinstance(env, Task) else {"budget": budget, "horizon": len(np.asarray(found.policy))}
        agent = Agent(env, **given | settings)
        agent.learned = found
        return agent

    @property
    def _done(self) -> Learned:
        if self.learned is None:
            raise InvalidInputError("the agent has not learnt yet: call learn first")
        return self.learned


def _with_ranges(
    task: Task,
    budget: npt.ArrayLike | None,
    reward_range: tuple[float, float] | None,
    cost_scale: npt.ArrayLike | None,
) -> Task:
    """A task of no budget with its budget, and with ranges of rewards and costs where none are given."""
    try:
        rewards, costs = _observed(task)
    except InvalidInputError:
        if budget is not None or task.cost is not None:
            raise
        task = replace(task, cost=lambda state, action, next_state: 0.0)  # no limit, and no cost to limit
        rewards, costs = _observed(task)
    if (table := _rewards_of_table(task.env)) is not None:
        rewards = table
    low, high = min(0.0, rewards.min()), max(0.0, rewards.max())
    found = (float(low), float(high) if high > low else float(low) + 1.0)
    largest = np.maximum(np.abs(costs).max(axis=1), 1.0)
    steps = task.horizon + int(task.initial is None)
    limits = largest * steps if budget is None else np.atleast_1d(np.asarray(budget, dtype=np.float64))
    scale = largest + np.abs(limits) / steps if cost_scale is None else cost_scale
    return replace(task, budget=limits, cost_scale=scale, reward_range=found if reward_range is None else reward_range)


def _observed(task: Task) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Rewards (n,) and costs (I, n) of the steps of some episodes of random actions."""
    wide = replace(task, reward_range=(-LARGEST, LARGEST), cost_scale=LARGEST)
    policy = np.full(wide.setting(None).shape, 1.0 / wide.sizes[1])
    fed = [wide.play(policy, *episode_seeds(0, TRIED, k)).feedback for k in range(PROBES)]
    rewards = np.concatenate([f.rewards for f in fed]) * 2.0 * LARGEST - LARGEST
    return np.round(rewards, 9), np.round(np.concatenate([f.costs for f in fed], axis=1) * LARGEST, 9)


def _rewards_of_table(env: Any) -> npt.NDArray[np.float64] | None:
    """All rewards of an environment that publishes its table `P`."""
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    if not isinstance(table, Mapping):
        return None
    return np.array([way[2] for actions in table.values() for ways in actions.values() for way in ways], dtype=float)
