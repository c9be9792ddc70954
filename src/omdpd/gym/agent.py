"""An agent with the verbs that other libraries have: learn, predict, evaluate, save, load.

It is a thin front of `gym.learn`, and takes what a `Task` takes.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.gym.contact import allowed_action, as_action_mask, during, first_number, published, single_environment
from omdpd.gym.episode import DoesNotFitError, Episode, EpisodeRow
from omdpd.gym.learned import RANGES, Learned, Played, plot_learned
from omdpd.gym.learning import learned_by, played
from omdpd.gym.measuring import Span, measured, no_cost, own_budget, own_horizon
from omdpd.gym.settings import ask_again, refuse_unknown
from omdpd.gym.table import opened
from omdpd.gym.task import StepCost, Task
from omdpd.learners.protocol import Learner
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.play.guards import as_learner
from omdpd.play.progress_bar import progress_bar
from omdpd.play.session import Session
from omdpd.problem.arrays import Floats, InvalidInputError, as_budget, positive_integer, whole_number
from omdpd.problem.tables import ASKED_FOR
from omdpd.report.canvas import Figure
from omdpd.report.statistics import half_width

# Costs are judged by the last third of the episodes, and by this many at least.
LAST = 10


class Agent:
    """Learn a policy that keeps a cost limit in a Gymnasium environment.

    Parameters
    ----------
    env
        An environment, its id, or a `Task`, which says everything below itself.
    budget
        What an episode may cost in expectation, one number or one per constraint.  None: no limit, a baseline that
        maximises reward alone.  Left out, it is the one that the environment publishes (``env.unwrapped.budget`` or
        its metadata), and `repr(agent)` says so.  Without one it is asked for.
    horizon
        Steps per episode; by default the environment's own time limit or horizon.
    learner
        By default `ProximalOMDPD.standard(stationary=True)`: the same rules hold at every step.
    cost
        A function of (state, action, next state), or a key of `info`; by default what the environment reports.
    state_of
        The state of an observation that is no whole number (`omdpd.gym.Bins`).
    reward_range, cost_scale
        As of `Task`.  By default they are taken from the environment's table where it publishes one, and else from
        five episodes of random actions; `repr(agent)` shows them.  A value that does not fit later widens them, and
        learning goes on from what was observed.  Ranges that you give are held: a value outside is refused.
    settings
        What else a `Task` takes: observation_cost, n_states, truncation, initial, allowed.

    Attributes
    ----------
    learned
        None before `learn`; then a `Learned`, with `rewards` (K,), `costs` (K, I) and `lengths` (K,) of the K episodes
        that were learnt from.  What `evaluate` gives has the same names.
    task
        The environment as it is read, with the ranges that were found.

    Examples
    --------
    >>> agent = Agent("omdpd/Streaming-v0", budget=5.0)
    >>> agent
    Agent(10 states, 2 actions, horizon 10, budget 5; has not learnt)
    Inside, rewards lie in 0..1 and costs are divided by 1.455; results stay in your units.
    >>> agent.learn(20).predict(observation=3, step=0) in (0, 1)
    True
    """

    __slots__ = ("_episodes", "_held", "_own", "_session", "_since", "_span", "learned", "learner", "limited", "task")

    def __init__(
        self,
        env: Any,
        budget: npt.ArrayLike | None = ASKED_FOR,
        horizon: int | None = None,
        *,
        learner: Learner[Any] | None = None,
        cost: StepCost | str | None = None,
        state_of: Callable[[Any], int] | None = None,
        reward_range: tuple[float, float] | None = None,
        cost_scale: npt.ArrayLike | None = None,
        **settings: Any,
    ) -> None:
        self.learner = ProximalOMDPD.standard(stationary=True) if learner is None else as_learner(learner)
        self.learned: Learned | None = None
        self.limited, self._own = budget is not None, False
        self._episodes: list[Episode] = []
        self._since = 0
        self._session: Session | None = None
        self._span: Span | None = None
        self._held = {"reward_range": reward_range, "cost_scale": cost_scale}
        refuse_unknown(settings)
        if isinstance(env, Task):
            given = {"budget": budget, "horizon": horizon, "cost": cost, "state_of": state_of, **self._held, **settings}
            for name in (name for name, value in given.items() if value is not None and value is not ASKED_FOR):
                raise InvalidInputError(f"{name} is given beside a Task, which says it itself")
            self.task, self.limited = env, True
            return
        env = single_environment(opened(env))
        steps = own_horizon(env) if horizon is None else horizon
        self._own = budget is ASKED_FOR
        limits = np.zeros(1) if budget is None else as_budget(own_budget(env) if self._own else budget)
        if state_of is None:
            settings = {"initial": published(env, "initial_state_distrib")} | settings
        task = Task(env, steps, np.zeros_like(limits), cost, state_of=state_of, **{"max_entries": None} | settings)
        self.task, self._span = measured(task, needs_cost=self.limited)
        self.task = self._ranged(self._span, limits if self.limited else None)

    def __repr__(self) -> str:
        S, A = self.task.sizes
        low, high = self.task.reward_range
        budget = ", ".join(f"{b:g}" for b in self.task.limits) if self.limited else "none"
        budget += " of the environment's own" if self._own else ""
        scale = ", ".join(f"{s:.4g}" for s in self.task.scale)
        state = "has not learnt" if self.learned is None else f"learnt from {len(self.learned.rewards)} episodes"
        return (
            f"Agent({S} states, {A} actions, horizon {self.task.horizon}, budget {budget}; {state})\n"
            f"Inside, rewards lie in {low:g}..{high:g} and costs are divided by {scale}; results stay in your units."
        )

    @property
    def budget(self) -> Floats | None:
        """What an episode may cost, (I,); None of an agent without a limit.  `with_budget` gives another agent."""
        return self.task.limits if self.limited else None

    @budget.setter
    def budget(self, budget: npt.ArrayLike) -> None:
        raise AttributeError(f"an agent's budget stays: agent.with_budget({budget!r}) gives an agent of another")

    def learn(
        self,
        n_episodes: int,
        seed: int = 0,
        *,
        callback: Callable[[EpisodeRow], None] | None = None,
        progress: bool | None = None,
    ) -> Agent:
        """Learn from this many more episodes, and give back the agent itself.

        A second call goes on where the first ended.  What was learnt stays if the environment fails or you stop it.
        `callback` and `progress` are those of `omdpd.gym.learn`, which can keep a checkpoint:
        ``learn(agent.task, agent.learner, 500, checkpoint="folder")``.
        """
        self._refuse_loaded("learn")
        before, whole = len(self._episodes), whole_number("seed", seed, 0)
        goal = before + positive_integer("n_episodes", n_episodes)
        if getattr(getattr(self.learner, "needs", None), "episodes", False):
            self._session = None  # it counts on the number of episodes, which is another now
        with progress_bar(type(self.learner).__name__, n_episodes, progress) as tell:

            def take(episode: Episode) -> None:
                self._episodes.append(episode)
                if callback is not None:
                    callback(EpisodeRow.of(len(self._episodes) - 1, episode))
                tell(len(self._episodes) - before)

            try:
                while (k := len(self._episodes)) < goal:
                    try:
                        for _, episode in played(self.task, self._playing(goal), range(k, goal), whole):
                            take(episode)
                    except DoesNotFitError as error:
                        take(self._widened(error))
            finally:
                if self._episodes:
                    self.learned = self._outcome()
        self._warn_if_over()
        return self

    def with_budget(self, budget: npt.ArrayLike | None) -> Agent:
        """Give an agent of another budget, whose policy is planned anew from the episodes that this one observed.

        That plan is cautious: let it `learn` some more.
        """
        self._refuse_loaded("with_budget")
        if budget is not None and self.task.cost is no_cost:
            raise InvalidInputError("the agent knows no cost: make another with Agent(env, budget=..., cost=...)")
        limits = None if budget is None else as_budget(budget)
        if limits is not None and limits.shape != self.task.limits.shape:
            raise InvalidInputError(f"there are {limits.size} budgets, but the agent has {self.task.limits.size}")
        other = copy.copy(self)
        other.limited, other.learned, other._session = limits is not None, None, None
        other._own, other._since = False, len(self._episodes)
        other.task = self._ranged(self._span, limits)
        other._episodes = [other.task.told(episode.met) for episode in self._episodes]
        if other._episodes:
            other.learned = other._outcome()
        return other

    def predict(
        self,
        observation: Any,
        step: int | None = None,
        *,
        deterministic: bool = False,
        rng: np.random.Generator | None = None,
        action_mask: npt.ArrayLike | None = None,
    ) -> int:
        """Choose an action at a step of an episode, counted from 0; the best actions depend on the step.

        The learnt policy draws its actions, and keeps its budget by drawing: with ``deterministic=True`` it may cost
        more, which is warned of.  Give `action_mask` where the environment says ``info["action_mask"]``.
        """
        policy, s = self._done.policy, self.task.state(observation)
        if step is None:
            raise InvalidInputError(
                "step is missing: the best actions depend on it; it is 0 after reset, then 1, 2, ..."
            )
        if action_mask is None and self.task.masked:
            raise InvalidInputError(
                'action_mask is missing: this environment forbids actions; give info["action_mask"]'
            )
        mask = None if action_mask is None else as_action_mask(action_mask, self.task.sizes[1])
        a = policy.act(step, s, rng, deterministic=deterministic)
        if deterministic and self.limited:
            warnings.warn(
                "the policy keeps its budget by drawing actions; with deterministic=True it may cost more", stacklevel=2
            )
        return first_number(self.task.env, "action_space") + (a if mask is None else allowed_action(a, mask))

    def evaluate(self, n_episodes: int = 100, seed: int = 0) -> Played:
        """Play the policy without learning: mean reward and costs with their 95 % intervals.

        What comes back has `rewards` (n,), `costs` (n, I) and `lengths` (n,) of the episodes, as ``agent.learned`` has.
        """
        found = self._done.evaluate(self.task, n_episodes, seed)
        return replace(found, budget=self._done.budget)

    def plot(self, file: str | Path | None = None, title: str = "") -> Figure:
        """Draw reward and costs of the episodes that were learnt from (`omdpd.gym.plot_learned`)."""
        return plot_learned(self._done, file, title)

    def save(self, file: str | Path) -> Path:
        """Keep policy, returns and ranges in an ``.npz`` file; the episodes themselves are not kept."""
        return self._done.save(file)

    @staticmethod
    def load(file: str | Path, env: Any, **settings: Any) -> Agent:
        """Read what `save` wrote, to predict and evaluate.

        Give `env`, and the functions `cost`, `observation_cost` and `state_of` if the agent had them: no file keeps
        them, and they are asked for.  Budget, horizon and ranges are in the file: others are refused.
        """
        found = Learned.load(file)
        budget = found.budget if np.isfinite(found.budget).all() else None
        kept: dict[str, Any] = {"budget": budget, "horizon": len(np.asarray(found.policy))}
        kept |= {name: value for name in RANGES if (value := getattr(found, name)) is not None}
        given = {"budget": env.limits} if isinstance(env, Task) else settings
        for name in (name for name in kept if name in given):
            if not np.array_equal(np.atleast_1d(kept[name]), np.atleast_1d(given[name])):
                raise InvalidInputError(
                    f"{file} was learnt with {name} {kept[name]}, not {given[name]}: leave {name} out, or learn anew"
                )
        ask_again(found.functions, env if isinstance(env, Task) else settings, str(file))
        with during("load needs the settings that the agent was made with, such as cost= or state_of="):
            agent = Agent(env, **settings if isinstance(env, Task) else kept | settings)
        with during(f"{file} does not fit the environment"):
            agent.task.padded_policy(found.policy)
        agent.learned = found
        return agent

    @property
    def _done(self) -> Learned:
        if self.learned is None:
            raise InvalidInputError("the agent has not learnt yet: call learn first")
        return self.learned

    def _refuse_loaded(self, verb: str) -> None:
        if self.learned is not None and not self._episodes:
            raise InvalidInputError(
                f"the agent was loaded, and its file has no episodes that {verb} could go on from: make a new Agent"
            )

    def _playing(self, n_episodes: int) -> Session:
        """The session that plays on, or one that starts from the episodes so far."""
        if self._session is None:
            setting, before = self.task.setting(n_episodes), [episode.feedback for episode in self._episodes]
            self._session = Session(self.learner, setting, logged=before, start="explore")
        return self._session

    def _outcome(self) -> Learned:
        rows = [EpisodeRow.of(k, episode) for k, episode in enumerate(self._episodes)]
        found = learned_by(self.task, self._playing(len(rows)), rows)
        return found if self.limited else replace(found, budget=np.full(found.budget.shape, np.inf))

    def _ranged(self, span: Span | None, limits: Floats | None) -> Task:
        """The task with a budget, and with ranges that hold the span where none are given; those of a Task stay."""
        task = self.task
        steps = task.horizon + int(task.initial is None)
        costs = task.scale if span is None else span.costs
        limits = costs * steps if limits is None else limits
        changes: dict[str, Any] = {"budget": limits}
        if span is not None:
            found = {
                "reward_range": (span.low, span.high if span.high > span.low else span.low + 1.0),
                "cost_scale": span.costs + np.abs(limits) / steps,
            }
            changes |= {name: found[name] if held is None else held for name, held in self._held.items()}
        return task.changed(**changes)

    def _widened(self, error: DoesNotFitError) -> Episode:
        """The episode that did not fit, told in wider ranges, which all others are then told in; or the refusal."""
        if self._span is None:
            raise error
        span = self._span.with_episode(error.met)
        task = self._ranged(span, self.budget)
        try:
            episode = task.told(error.met)
        except DoesNotFitError:
            raise error from None
        self._episodes = [task.told(each.met) for each in self._episodes]
        self.task, self._span, self._session = task, span, None
        return episode

    def _warn_if_over(self) -> None:
        """Warn of a limit that the last third of the episodes with this budget did not keep."""
        n = (len(self._episodes) - self._since) // 3
        if not self.limited or n < LAST:
            return
        costs = np.array([episode.costs for episode in self._episodes[-n:]])
        half = half_width(costs)
        for i, limit in enumerate(self.task.limits):
            if half is not None and costs[:, i].mean() - half[i] > limit:
                warnings.warn(
                    f"the last {n} episodes cost {costs[:, i].mean():.4g} on average, of a budget of {limit:.4g}: "
                    "either no policy keeps it, or it takes more episodes",
                    stacklevel=3,
                )
