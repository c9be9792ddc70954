"""An environment read as a CMDP of unknown dynamics: anything with Gymnasium's `reset` and `step`.

An episode has `horizon` steps, whatever the environment does:

- it ends early (`terminated`): the rest of the episode is spent in one more state, "ended" (number S), where every
  action earns reward 0 and costs 0;
- it is cut short (`truncated`) before the horizon: refused, because what would have come is not known, unless the task
  says that a cut is an end like any other (which is exact for a time limit and a learner that tells steps apart);
- the law of the first state is not known: the episode gets one more step in front, spent in one more state, "before"
  (number S + 1), where every action earns 0, costs 0 and leads to the first state.

Actions that may not be taken are known in advance (`allowed`), or said on the way: ``info["action_mask"]`` of `reset`
and of every `step`, or ``env.action_masks()``.  None of them is ever sent to the environment: an action of the policy
that is not in the mask stands for one that is, so that a learner meets a problem in which it may do everything.

Costs come from ``info["cost"]``, ``info["costs"]``, the third of six values of `step` (safety-gymnasium), another key
of `info`, or a function of states or of observations.  Gymnasium is needed only to open an environment by its id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from omdpd.gym.contact import (
    StepAnswer,
    action_mask,
    allowed_action,
    as_function,
    at,
    discrete,
    first_number,
    reset,
    single_environment,
    step,
    time_limit,
    whole,
)
from omdpd.gym.episode import DoesNotFitError, Episode, Met
from omdpd.play.compiled.rollout import index_of_uniform
from omdpd.play.logs import Log
from omdpd.play.policy import Policy
from omdpd.problem.arrays import (
    MAX_MAGNITUDE,
    Floats,
    InvalidInputError,
    as_budget,
    as_range,
    as_table,
    numbers,
    positive_integer,
    shown,
)
from omdpd.problem.masks import Allowed, as_mask, fitted
from omdpd.problem.setting import BanditFeedback, Setting, Trajectory
from omdpd.problem.strangers import strangers_code

# A learner keeps several tables of H S A S numbers; one of them may have this many at most (1 GiB).
MAX_ENTRIES = 2**27

# cost(state, action, next_state): one number, or one per constraint.
StepCost = Callable[[int, int, int], Any]
# The same of what the environment itself says: cost(observation, action, next_observation).
ObservationCost = Callable[[Any, int, Any], Any]
Truncation = Literal["refuse", "end"]


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
        For other observations, or to lump states together: the state of an observation, and how many states there are
        (`omdpd.gym.Bins` is both).
    max_entries
        Refuse a problem whose H S A S is larger; None for a learner that keeps no table of transitions, or one of what
        it visits alone (`learn` sees to that itself).
    observation_cost
        Instead of `cost`: ``cost(observation, action, next_observation)``, of what the environment itself says.
    truncation
        What an episode is that the environment cuts short: refused, or (``"end"``) ended.
    allowed
        Which actions exist, if that is known in advance: (S, A), (H, S, A), or a function of state and action.  A
        learner then has no number for the others.
    """

    env: Any
    horizon: int
    budget: npt.ArrayLike | None = None
    cost: StepCost | str | None = None
    initial: npt.ArrayLike | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    cost_scale: npt.ArrayLike = 1.0
    state_of: Callable[[Any], int] | None = None
    n_states: int | None = None
    max_entries: int | None = MAX_ENTRIES
    observation_cost: ObservationCost | None = None
    truncation: Truncation = "refuse"
    allowed: Allowed = None

    def __post_init__(self) -> None:
        positive_integer("horizon", self.horizon)
        single_environment(self.env)
        as_function("state_of", self.state_of, "the observation, such as omdpd.gym.Bins")
        as_function("observation_cost", self.observation_cost, "(observation, action, next observation)")
        as_function("cost", self.cost, "(state, action, next state), or a key of info", str)
        if not isinstance(self.truncation, str) or self.truncation not in ("refuse", "end"):
            raise InvalidInputError(f"truncation is {shown(self.truncation)}, but must be 'refuse' or 'end'")
        if self.cost is not None and self.observation_cost is not None:
            raise InvalidInputError("cost and observation_cost are both given; a step has one of them")
        low, high = as_range("reward_range", self.reward_range)
        if not low <= 0.0 <= high:
            raise InvalidInputError(f"reward_range is {self.reward_range}, but must be two numbers with 0 between them")
        if not (self.scale > 0.0).all():
            raise InvalidInputError(f"cost_scale is {self.cost_scale}, but must be positive")
        with strangers_code("the environment raised"):
            self._check_size()
            limit = time_limit(self.env)
        if limit is not None and limit < self.horizon and self.truncation == "refuse":
            raise InvalidInputError(
                f"the environment cuts its episodes after {limit} steps, before the horizon {self.horizon}; choose a "
                "shorter horizon, make it with a larger max_episode_steps, or say truncation='end'"
            )
        self.setting(None)  # refused here rather than in the first episode

    def _check_size(self) -> None:
        """Refuse a problem whose tables would be too large, before anything is allocated for it."""
        before = int(self.initial is None)
        H, S, A = self.horizon + before, self.sizes[0] + 1 + before, self.sizes[1]
        if H * S * A > MAX_ENTRIES:
            raise InvalidInputError(
                f"{S} states, {A} actions and {H} steps need a policy of {H * S * A * 8 / 2**30:.1f} GiB; choose a "
                "shorter horizon, or lump states together with state_of"
            )
        if self.max_entries is not None and self.max_entries < H * S * A * S:
            raise InvalidInputError(
                f"{S} states, {A} actions and {H} steps need tables of {H * S * A * S * 8 / 2**30:.1f} GiB each; "
                "choose a shorter horizon, lump states together with state_of, or (for a learner that keeps no "
                "table of transitions, or of what it visits alone) pass max_entries=None"
            )

    @cached_property
    def limits(self) -> Floats:
        """Budgets, (I,)."""
        return as_budget(self.budget)

    @cached_property
    def scale(self) -> Floats:
        """The divisor of every constraint, (I,)."""
        given = as_table("cost_scale", np.atleast_1d(numbers("cost_scale", self.cost_scale)), ["constraint"], [None])
        if given.size not in (1, self.limits.size):
            raise InvalidInputError(f"there are {given.size} of cost_scale, but {self.limits.size} budgets")
        return np.broadcast_to(given, self.limits.shape)

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """S and A of the environment itself."""
        A = discrete(self.env, "action_space", "actions", "; a wrapper can offer a few of them")
        if self.state_of is None:
            hint = "; give state_of and n_states, or omdpd.gym.Bins, which is both: where an observation lies"
            return discrete(self.env, "observation_space", "observations", hint), A
        n_states = getattr(self.state_of, "n_states", None) if self.n_states is None else self.n_states
        if n_states is None:
            raise InvalidInputError("n_states is missing: say how many states state_of has (omdpd.gym.Bins says so)")
        return positive_integer("n_states", n_states), A

    def setting(self, n_episodes: int | None) -> Setting:
        """What a learner is told: the sizes with the added states, and the law of the first state."""
        S, A = self.sizes
        before = int(self.initial is None)
        mu = np.zeros(S + 1 + before)
        if self.initial is None:
            mu[S + 1] = 1.0
        else:
            n = discrete(self.env, "observation_space", "observations", "; leave initial out")
            law = as_table("initial", self.initial, ["observation"], [n])
            start = first_number(self.env, "observation_space")
            for observation in np.flatnonzero(law > 0.0):
                mu[self.state(start + int(observation))] += law[observation]
        mask, allowed = fitted(as_mask(self.allowed, (S, A)), self.horizon), None
        if mask is not None:
            # In the added states one action is as good as another: they have the first alone.
            added = np.eye(1, A, dtype=bool).repeat(1 + before, axis=0)
            allowed = np.stack([np.concatenate([known, added]) for known in mask.allowed])
            allowed = np.concatenate([allowed[:1], allowed]) if before and len(allowed) > 1 else allowed
        sizes = self.horizon + before, S + 1 + before, A, self.limits.size
        return Setting(*sizes, mu, n_episodes, "bandit", allowed=allowed)

    def own_policy(self, policy: Policy | Floats) -> Policy:
        """A learner's policy without the added steps and states, (H, S, A), by the masks that were last seen."""
        own: Floats = np.array(policy[int(self.initial is None) :, : self.sizes[0]])
        for s, mask in self._masks.items():
            for a in np.flatnonzero(~mask).tolist():
                own[:, s, allowed_action(a, mask)] += own[:, s, a]
                own[:, s, a] = 0.0
        return Policy(own)

    @cached_property
    def _masks(self) -> dict[int, npt.NDArray[np.bool_]]:
        """The mask that each state had when it was last met, where there was one."""
        return {}

    @property
    def masked(self) -> bool:
        """Whether the environment said, when it was played, which actions may be taken."""
        return bool(self._masks)

    def padded_policy(self, policy: Policy | Floats) -> Floats:
        """A policy of the environment's own steps and states as `play` takes it: uniform where it does not matter."""
        own = np.asarray(policy)
        H, S, A = self.setting(None).shape
        if own.shape != (self.horizon, self.sizes[0], A):
            raise InvalidInputError(
                f"the policy is {own.shape}, but the task has {self.horizon} steps, {self.sizes[0]} states, {A} actions"
            )
        padded = np.full((H, S, A), 1.0 / A)
        padded[H - self.horizon :, : self.sizes[0]] = own
        return padded

    def play(self, policy: Policy | Floats, rng: np.random.Generator, seed: int | None = None) -> Episode:
        """Play one episode of a learner's policy; `seed` goes to the reset, and `rng` is not made from it."""
        observation, info = reset(self.env, seed)
        return self.play_from(observation, policy, rng, info)

    def play_from(
        self, observation: Any, policy: Policy | Floats, rng: np.random.Generator, info: Mapping[Any, Any]
    ) -> Episode:
        """Play one episode of an environment that was reset and gave `observation` and `info`."""
        S, _ = self.sizes
        table = np.asarray(policy)
        uniforms = rng.random((len(table),))
        states, actions, rewards, costs = [], [], [], []
        first = int(self.initial is None)
        if first:
            states.append(S + 1)
            actions.append(index_of_uniform(table[0, S + 1], uniforms[0]))
        with at("reset of the environment"):
            s, ended = self.state(observation), False
            mask = self._mask(s, info)
        seen = observation
        for h in range(self.horizon):
            a = index_of_uniform(table[first + h, s], uniforms[first + h])
            states.append(s)
            actions.append(a)
            if ended:
                continue
            with at(f"step {h} of the environment"):
                s, answer, cost, ended = self._step(s, a if mask is None else allowed_action(a, mask), h, seen)
                mask = mask if ended else self._next_mask(s, answer.info, mask is not None)
            reward, seen = answer.reward, answer.observation
            rewards.append(reward)
            costs.append(cost)
        return self.told(Met(states, actions, np.array(rewards), np.array(costs).T))

    def _mask(self, s: int, info: Mapping[Any, Any]) -> npt.NDArray[np.bool_] | None:
        """What the environment allows in state s, where it says so."""
        mask = action_mask(self.env, info, self.sizes[1])
        if mask is not None:
            self._masks[s] = mask
        return mask

    def _next_mask(self, s: int, info: Mapping[Any, Any], said: bool) -> npt.NDArray[np.bool_] | None:
        """The mask after a step; an environment that says it at some steps alone is refused."""
        mask = self._mask(s, info)
        if said != (mask is not None):
            now, before = ("no action_mask", "had one") if said else ("an action_mask", "had none")
            raise InvalidInputError(
                f"info has {now}, but {before} before: give one at reset and at every step, or allowed= for all states"
            )
        return mask

    def logged(self, log: Log) -> list[BanditFeedback]:
        """Logged episodes of the environment's own states and units as this task would have played them."""
        S, A = self.sizes
        log.checked(Setting(self.horizon, S, A, self.limits.size))
        if log.short == "cut" and log.lengths.min() < self.horizon:
            raise InvalidInputError("episodes whose ends were not logged cannot be learnt from: leave them out")
        first, found = int(self.initial is None), []
        for episode in log:
            states, actions = (each.tolist() for each in (episode.trajectory.states, episode.trajectory.actions))
            after = self.horizon - len(states)
            padded = [S + 1] * first + states + [S] * after, [0] * first + actions + [0] * after
            found.append(self.told(Met(*padded, episode.rewards, episode.costs)).feedback)
        return found

    def _step(self, s: int, a: int, h: int, seen: Any) -> tuple[int, StepAnswer, Floats, bool]:
        """One step of the environment: next state, what it answered, costs (I,), whether it ended."""
        action = first_number(self.env, "action_space") + a
        answer = step(self.env, action)
        t = self.state(answer.observation)
        cost = self._cost(answer, (s, a, t), (seen, action, answer.observation))
        if answer.truncated and not answer.terminated and h + 1 < self.horizon and self.truncation == "refuse":
            raise InvalidInputError(
                f"the environment cut an episode short after {h + 1} steps, before the horizon {self.horizon}; "
                "choose a shorter horizon, lift its time limit, or say truncation='end'"
            )
        ended = answer.terminated or answer.truncated
        return (self.sizes[0] if ended else t), answer, cost, ended

    def _cost(self, answer: StepAnswer, states: tuple[int, int, int], seen: tuple[Any, int, Any]) -> Floats:
        """The costs (I,) of a step, from wherever they come."""
        info = answer.info
        if self.observation_cost is not None:
            with strangers_code("observation_cost raised"):
                observed = self.observation_cost(*seen)
        elif callable(self.cost):
            with strangers_code("cost raised"):
                observed = self.cost(*states)
        elif self.cost is not None:
            if self.cost not in info:
                raise InvalidInputError(
                    f"info has no {shown(self.cost)}; it has {', '.join(map(str, info)) or 'nothing'}"
                )
            observed = info[self.cost]
        elif "costs" in info and np.size(info["costs"]) == self.limits.size:
            observed = info["costs"]
        elif answer.cost is not None:
            observed = answer.cost
        elif "cost" in info or "costs" in info:
            observed = info["cost" if "cost" in info else "costs"]
        else:
            raise InvalidInputError(
                f"the environment reports no cost (info has {', '.join(map(str, info)) or 'nothing'}); give cost as a "
                "key of info or as a function of (state, action, next state), or observation_cost"
            )
        costs = as_table("the cost", np.atleast_1d(numbers("the cost", observed)), ["constraint"], [None])
        if costs.shape != self.limits.shape:
            raise InvalidInputError(f"a step reported {costs.size} costs, but there are {self.limits.size} budgets")
        return costs

    def told(self, met: Met) -> Episode:
        """The episode in a learner's units, with zeros before the first and after the last step that was played."""
        H, first = len(met.states), int(self.initial is None)
        played = slice(first, first + met.rewards.size)
        low, high = self.reward_range
        all_rewards, all_costs = np.zeros(H), np.zeros((self.limits.size, H))
        all_rewards[played] = met.rewards
        all_costs[:, played] = met.costs
        seen = (all_rewards - low) / (high - low)
        excess = (all_costs - self.limits[:, None] / H) / self.scale[:, None]
        too_far = np.asarray((np.abs(excess) > 1.0 + 1e-9).any(axis=0))
        for kind, values, wrong, parameter in (
            ("reward", all_rewards, (seen < -1e-9) | (seen > 1.0 + 1e-9), "reward_range"),
            ("cost", all_costs.max(axis=0), too_far, "cost_scale"),
        ):
            if wrong.any():
                step = int(np.flatnonzero(wrong)[0])
                raise DoesNotFitError(
                    f"the {kind} {values[step]:.6g} at step {step - first} does not fit; give a wider {parameter} "
                    f"(now {getattr(self, parameter)})",
                    met,
                )
        observed = Trajectory(np.array(met.states, dtype=np.int64), np.array(met.actions, dtype=np.int64))
        return Episode(BanditFeedback(observed, np.clip(seen, 0.0, 1.0), np.clip(excess, -1.0, 1.0)), met)

    def changed(self, **fields: Any) -> Task:
        """The same task with other fields; both know the masks that one of them met."""
        other = replace(self, **fields)
        other.__dict__["_masks"] = self._masks
        return other

    def boundless(self) -> Task:
        """The same task, which refuses no reward and no cost: to play without learning."""
        return self.changed(reward_range=(-MAX_MAGNITUDE, MAX_MAGNITUDE), cost_scale=MAX_MAGNITUDE)

    def state(self, observation: Any) -> int:
        """Give the state of an observation; refuse a number that no state has."""
        S = self.sizes[0]
        if self.state_of is None:
            s = whole("the observation", observation) - first_number(self.env, "observation_space")
        else:
            with strangers_code("state_of raised"):
                s = whole(f"the state of the observation {shown(observation)}", self.state_of(observation))
        if not 0 <= s < S:
            raise InvalidInputError(
                f"the observation {shown(observation)} is state {shown(s)}, but states go from 0 to {S - 1}"
            )
        return s
