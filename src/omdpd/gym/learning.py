"""Learn from an environment without its table: any environment with Gymnasium's `reset` and `step`.

An episode has `horizon` steps, whatever the environment does:

- it ends early (`terminated`): the rest of the episode is spent in one more state, "ended" (number S), where every
  action earns reward 0 and costs 0;
- it is cut short (`truncated`) before the horizon: refused, because what would have come is not known;
- the law of the first state is not known: the episode gets one more step in front, spent in one more state, "before"
  (number S + 1), where every action earns 0, costs 0 and leads to the first state.

Costs come from ``info["cost"]``, ``info["costs"]``, the third of six values of `step` (safety-gymnasium), another key
of `info`, or a function.  Gymnasium is needed only to open an environment by its id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.gym.table import opened
from omdpd.learners.protocol import Learner, Report
from omdpd.play.policy import Policy
from omdpd.play.session import Session
from omdpd.problem.arrays import Floats, InvalidInputError, as_table, numbers, positive_integer, whole_number
from omdpd.problem.setting import BanditFeedback, Setting, Trajectory
from omdpd.solvers.compiled.rollout import index_of_uniform

# A learner keeps several tables of H S A S numbers; one of them may have this many at most (1 GiB).
MAX_ENTRIES = 2**27

# cost(state, action, next_state): one number, or one per constraint.
StepCost = Callable[[int, int, int], Any]


@dataclass(frozen=True, eq=False)
class Episode:
    """One played episode: what a learner is told, and its length, reward and costs (I,) in the environment's units."""

    feedback: BanditFeedback
    length: int
    reward: float
    costs: Floats


@dataclass(frozen=True, eq=False)
class Task:
    """An environment read as a CMDP of unknown dynamics.

    Parameters
    ----------
    env
        An environment with discrete actions, and discrete observations unless `state_of` is given.
    horizon
        Steps per episode.
    budget
        What an episode may cost in expectation, one number or one per constraint.
    cost
        None (from `info` or the six values of `step`), a key of `info`, or ``cost(state, action, next_state)``.
    initial
        The law of the first observation of an environment with discrete observations, if it is known.
    reward_range
        The rewards that a learner sees as 0 and 1; it must hold every reward, and 0.
    cost_scale
        What costs and budgets are divided by, one number or one per constraint: cost less budget / horizon must then
        lie in [-1, 1].
    state_of, n_states
        For other observations, or to lump states together: the state of an observation, and how many states there are.
    max_entries
        Refuse a problem whose H S A S is larger; None for a learner that keeps no table of transitions.
    """

    env: Any
    horizon: int
    budget: npt.ArrayLike
    cost: StepCost | str | None = None
    initial: npt.ArrayLike | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    cost_scale: npt.ArrayLike = 1.0
    state_of: Callable[[Any], int] | None = None
    n_states: int | None = None
    max_entries: int | None = MAX_ENTRIES

    def __post_init__(self) -> None:
        positive_integer("horizon", self.horizon)
        low, high = self.reward_range
        if not low <= 0.0 <= high or low == high:
            raise InvalidInputError(f"reward_range is {self.reward_range}, but must be two numbers with 0 between them")
        if np.any(self.scale <= 0.0):
            raise InvalidInputError(f"cost_scale is {self.cost_scale}, but must be positive")
        limit = getattr(getattr(self.env, "spec", None), "max_episode_steps", None)
        if limit is not None and limit < self.horizon:
            raise InvalidInputError(
                f"the environment cuts its episodes after {limit} steps, before the horizon {self.horizon}; choose a "
                "shorter horizon, or make it with a larger max_episode_steps"
            )
        H, S, A = self.setting(None).shape
        if self.max_entries is not None and self.max_entries < H * S * A * S:
            raise InvalidInputError(
                f"{S} states, {A} actions and {H} steps need tables of {H * S * A * S * 8 / 2**30:.1f} GiB each; "
                "choose a shorter horizon, lump states together with state_of, or (for a learner without a table of "
                "transitions) pass max_entries=None"
            )

    @cached_property
    def limits(self) -> Floats:
        """Budgets, (I,)."""
        return as_table("budget", np.atleast_1d(numbers("budget", self.budget)), ["constraint"], [None])

    @cached_property
    def scale(self) -> Floats:
        """The divisor of every constraint, (I,)."""
        return np.broadcast_to(np.asarray(self.cost_scale, dtype=np.float64), self.limits.shape)

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """S and A of the environment itself."""
        A = _discrete(self.env, "action_space", "actions", "")
        if self.state_of is None:
            hint = "; give state_of and n_states, which say in which of n states an observation lies"
            return _discrete(self.env, "observation_space", "observations", hint), A
        return positive_integer("n_states", self.n_states), A

    def setting(self, n_episodes: int | None) -> Setting:
        """What a learner is told: the sizes with the added states, and the law of the first state."""
        S, A = self.sizes
        before = int(self.initial is None)
        mu = np.zeros(S + 1 + before)
        if self.initial is None:
            mu[S + 1] = 1.0
        else:
            n = _discrete(self.env, "observation_space", "observations", "; leave initial out")
            law = as_table("initial", self.initial, ["observation"], [n])
            start = int(self.env.observation_space.start)
            for observation in np.flatnonzero(law > 0.0):
                mu[self._state(start + int(observation))] += law[observation]
        return Setting(self.horizon + before, S + 1 + before, A, self.limits.size, mu, n_episodes, "bandit")

    def own_policy(self, policy: Policy | Floats) -> Policy:
        """A learner's policy without the added steps and states, (H, S, A)."""
        return Policy(policy[int(self.initial is None) :, : self.sizes[0]])

    def play(self, policy: Policy | Floats, rng: np.random.Generator, seed: int | None = None) -> Episode:
        """Play one episode of a learner's policy; `seed` goes to the environment's reset."""
        return self.play_from(self.env.reset(seed=seed)[0], policy, rng)

    def play_from(self, observation: Any, policy: Policy | Floats, rng: np.random.Generator) -> Episode:
        """Play one episode of an environment that was reset and gave `observation`."""
        S, _ = self.sizes
        table = np.asarray(policy)
        uniforms = rng.random((len(table),))
        states, actions, rewards, costs = [], [], [], []
        first = int(self.initial is None)
        if first:
            states.append(S + 1)
            actions.append(index_of_uniform(table[0, S + 1], uniforms[0]))
        s, ended, length = self._state(observation), False, 0
        for h in range(self.horizon):
            a = index_of_uniform(table[first + h, s], uniforms[first + h])
            states.append(s)
            actions.append(a)
            if ended:
                continue
            s, reward, cost, ended = self._step(s, a, h)
            rewards.append(reward)
            costs.append(cost)
            length += 1
        return self._episode(states, actions, np.array(rewards), np.array(costs).T, length)

    def _step(self, s: int, a: int, h: int) -> tuple[int, float, Floats, bool]:
        """One step of the environment: next state, reward, costs (I,), whether it ended."""
        start = int(getattr(self.env.action_space, "start", 0))
        answer = self.env.step(start + a)
        if len(answer) not in (5, 6):
            raise InvalidInputError(f"step of the environment gave {len(answer)} values, but 5 or 6 are needed")
        observation, (terminated, truncated, info) = answer[0], answer[-3:]
        t = self._state(observation)
        cost = self._cost(answer, info, (s, a, t))
        if truncated and not terminated and h + 1 < self.horizon:
            raise InvalidInputError(
                f"the environment cut an episode short after {h + 1} steps, before the horizon {self.horizon}; "
                "choose a shorter horizon, or lift its time limit"
            )
        return (self.sizes[0] if terminated else t), float(answer[1]), cost, bool(terminated)

    def _cost(self, answer: Any, info: Any, step: tuple[int, int, int]) -> Floats:
        """The costs (I,) of a step, from wherever they come."""
        if callable(self.cost):
            observed = self.cost(*step)
        elif self.cost is not None:
            if self.cost not in info:
                raise InvalidInputError(f"info has no {self.cost!r}; it has {', '.join(map(str, info)) or 'nothing'}")
            observed = info[self.cost]
        elif "costs" in info and np.size(info["costs"]) == self.limits.size:
            observed = info["costs"]
        elif len(answer) == 6:
            observed = answer[2]
        elif "cost" in info:
            observed = info["cost"]
        else:
            raise InvalidInputError(
                f"the environment reports no cost (info has {', '.join(map(str, info)) or 'nothing'}); give cost as a "
                "key of info or as a function of (state, action, next state)"
            )
        costs = np.atleast_1d(numbers("the cost of a step", observed)).astype(np.float64)
        if costs.shape != self.limits.shape:
            raise InvalidInputError(f"a step reported {costs.size} costs, but there are {self.limits.size} budgets")
        return costs

    def _episode(self, states: list[int], actions: list[int], rewards: Floats, costs: Floats, length: int) -> Episode:
        """The episode in a learner's units, with zeros before the first and after the last step that was played."""
        H, first = len(states), int(self.initial is None)
        low, high = self.reward_range
        all_rewards, all_costs = np.zeros(H), np.zeros((self.limits.size, H))
        all_rewards[first : first + length] = rewards
        all_costs[:, first : first + length] = costs
        seen = (all_rewards - low) / (high - low)
        excess = (all_costs - self.limits[:, None] / H) / self.scale[:, None]
        self._refuse("reward", all_rewards, (seen < -1e-9) | (seen > 1.0 + 1e-9), "reward_range")
        too_far = np.asarray((np.abs(excess) > 1.0 + 1e-9).any(axis=0))
        self._refuse("cost", all_costs.max(axis=0), too_far, "cost_scale")
        observed = Trajectory(np.array(states, dtype=np.int64), np.array(actions, dtype=np.int64))
        feedback = BanditFeedback(observed, np.clip(seen, 0.0, 1.0), np.clip(excess, -1.0, 1.0))
        return Episode(feedback, length, float(rewards.sum()), costs.sum(axis=1))

    def _refuse(self, kind: str, values: Floats, wrong: npt.NDArray[np.bool_], parameter: str) -> None:
        if wrong.any():
            step = int(np.flatnonzero(wrong)[0])
            raise InvalidInputError(
                f"the {kind} {values[step]:.6g} at step {step - int(self.initial is None)} does not fit; give a wider "
                f"{parameter} (now {getattr(self, parameter)})"
            )

    def _state(self, observation: Any) -> int:
        S = self.sizes[0]
        start = int(getattr(self.env.observation_space, "start", 0)) if self.state_of is None else 0
        s = int(observation) - start if self.state_of is None else int(self.state_of(observation))
        if not 0 <= s < S:
            raise InvalidInputError(f"the observation {observation!r} is state {s}, but states go from 0 to {S - 1}")
        return s


@dataclass(frozen=True, eq=False)
class Learned:
    """What came of learning: the next policy (H, S, A), and per episode reward (K,), costs (K, I) and length (K,).

    Returns are those of single episodes in the environment's units: without the table nothing exact can be said.
    """

    policy: Policy
    rewards: Floats
    costs: Floats
    lengths: npt.NDArray[np.int64]
    budget: Floats
    report: Report

    def act(self, step: int, state: int, rng: np.random.Generator) -> int:
        """An action of the learnt policy at a zero-based step."""
        return self.policy.act(step, state, rng)


def learn(
    env: Any,
    learner: Learner[Any],
    n_episodes: int,
    horizon: int | None = None,
    budget: npt.ArrayLike | None = None,
    cost: StepCost | str | None = None,
    seed: int = 0,
) -> Learned:
    """Let `learner` play `n_episodes` of an environment whose table nobody knows.

    `env` is an environment or its id (then `horizon` and `budget` are needed, and the law of its first state is read
    from ``initial_state_distrib`` if it is published), or a `Task`, which can say more.  The same seed gives the same
    run.
    """
    task = env if isinstance(env, Task) else _task(env, horizon, budget, cost)
    session = Session(learner, task.setting(positive_integer("n_episodes", n_episodes)))
    rng = np.random.default_rng(whole_number("seed", seed, 0))
    episodes = []
    for k in range(n_episodes):
        episodes.append(task.play(session.policy(), rng, seed if k == 0 else None))
        session.update(episodes[-1].feedback)
    return _learned(task, session, episodes)


def learn_by_context(
    task: Task,
    learner: Learner[Any],
    n_episodes: int,
    context_of: Callable[[Any], int],
    n_contexts: int,
    seed: int = 0,
) -> tuple[Learned, ...]:
    """`learn` with one learner per context: what the first observation shows and an episode never changes.

    Each learner sees the states of its own context alone (`state_of` of the task), which is much cheaper, and each
    keeps the whole budget, which is safe on average too.  A context that changes within an episode is refused.
    """
    tasks = [_within(task, context_of, c) for c in range(positive_integer("n_contexts", n_contexts))]
    sessions = [Session(learner, part.setting(None)) for part in tasks]
    episodes: list[list[Episode]] = [[] for _ in tasks]
    rng = np.random.default_rng(whole_number("seed", seed, 0))
    for k in range(positive_integer("n_episodes", n_episodes)):
        observation, _ = task.env.reset(seed=seed if k == 0 else None)
        c = int(context_of(observation))
        if not 0 <= c < n_contexts:
            raise InvalidInputError(f"the observation {observation!r} is in context {c}, but there are {n_contexts}")
        episodes[c].append(tasks[c].play_from(observation, sessions[c].policy(), rng))
        sessions[c].update(episodes[c][-1].feedback)
    return tuple(_learned(*observed) for observed in zip(tasks, sessions, episodes, strict=True))


def _within(task: Task, context_of: Callable[[Any], int], context: int) -> Task:
    """The task of one context: its law of the first state, and a check that the context stays."""

    def state_of(observation: Any) -> int:
        if int(context_of(observation)) != context:
            raise InvalidInputError(f"the observation {observation!r} left the context {context} within an episode")
        return task._state(observation)

    law = None if task.initial is None else np.array(task.initial, dtype=np.float64)
    if law is not None:
        start = int(task.env.observation_space.start)
        law *= np.array([int(context_of(start + o)) == context for o in range(law.size)])
        law = law / law.sum() if law.sum() > 0.0 else None
    return replace(task, state_of=state_of, n_states=task.sizes[0], initial=law)


def _learned(task: Task, session: Session, episodes: Sequence[Episode]) -> Learned:
    return Learned(
        task.own_policy(session.policy()),
        np.array([e.reward for e in episodes]),
        np.array([e.costs for e in episodes]).reshape(len(episodes), task.limits.size),
        np.array([e.length for e in episodes], dtype=np.int64),
        task.limits,
        session.report(),
    )


def _task(env: Any, horizon: int | None, budget: npt.ArrayLike | None, cost: StepCost | str | None) -> Task:
    env = opened(env)
    if horizon is None or budget is None:
        raise InvalidInputError("learn needs a horizon and a budget, unless it is given a Task")
    law = getattr(getattr(env, "unwrapped", env), "initial_state_distrib", None)
    return Task(env, horizon, budget, cost, initial=law)


def _discrete(env: Any, attribute: str, what: str, hint: str) -> int:
    """The size of a discrete space."""
    space = getattr(env, attribute, None)
    n = getattr(space, "n", None)
    if not isinstance(n, int | np.integer) or not hasattr(space, "start"):
        raise InvalidInputError(f"the environment's {what} are {space}, not Discrete(n){hint}")
    return int(n)
