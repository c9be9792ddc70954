"""What a learner may know and see: the setting before the first episode, the feedback after each one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, Integers, InvalidInputError, as_law, as_table, positive_integer, within

# "bandit": rewards and costs met along the trajectory.  "full": the rewards met, and the whole cost tables.
FeedbackKind = Literal["bandit", "full"]


@dataclass(frozen=True, eq=False)
class Setting:
    """The facts a learner starts from.

    Parameters
    ----------
    horizon, n_states, n_actions, n_constraints
        Sizes H, S, A and I.
    initial
        The law of the first state, ``(S,)``; uniform if None.
    n_episodes
        K if it is known in advance, else None.
    feedback
        ``"bandit"`` if costs are met along the trajectory, ``"full"`` if their tables are revealed after the episode.
    """

    horizon: int
    n_states: int
    n_actions: int
    n_constraints: int = 1
    initial: npt.ArrayLike | None = None
    n_episodes: int | None = None
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        for name in ("horizon", "n_states", "n_actions", "n_constraints"):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        if self.n_episodes is not None:
            object.__setattr__(self, "n_episodes", positive_integer("n_episodes", self.n_episodes))
        if self.feedback not in ("bandit", "full"):
            raise InvalidInputError(f"feedback is {self.feedback!r}, but must be 'bandit' or 'full'")
        given = np.full(self.n_states, 1.0 / self.n_states) if self.initial is None else self.initial
        object.__setattr__(self, "initial", as_law("initial", given, ["state"], [self.n_states]))

    @property
    def mu(self) -> Floats:
        """The initial law as an array."""
        return np.asarray(self.initial)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        return (self.horizon, self.n_states, self.n_actions)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The states and actions of one episode, ``(H,)`` each."""

    states: Integers
    actions: Integers


@dataclass(frozen=True, eq=False)
class BanditFeedback:
    """One episode with the rewards ``(H,)`` and the costs ``(I, H)`` met on the way (costs less budget per step)."""

    trajectory: Trajectory
    rewards: Floats
    costs: Floats


@dataclass(frozen=True, eq=False)
class FullFeedback:
    """One episode with the rewards met ``(H,)`` and the whole cost tables ``(I, H, S, A)``."""

    trajectory: Trajectory
    rewards: Floats
    cost: Floats


Feedback = BanditFeedback | FullFeedback


def checked_feedback(setting: Setting, feedback: Feedback) -> Feedback:
    """Return `feedback` with plain arrays of the right sizes and ranges, or say which entry is wrong.

    For somebody's own loop: inside the library feedback comes from `simulate` and is right by construction.
    """
    H, S, A = setting.shape
    wanted = BanditFeedback if setting.feedback == "bandit" else FullFeedback
    if not isinstance(feedback, wanted):
        raise InvalidInputError(f"the setting promises {wanted.__name__}, but {type(feedback).__name__} came")
    states = _indices("states", feedback.trajectory.states, H, S)
    actions = _indices("actions", feedback.trajectory.actions, H, A)
    trajectory = Trajectory(states, actions)
    rewards = as_table("rewards", feedback.rewards, ["step"], [H])
    within("rewards", rewards, 0.0, 1.0, ["step"])
    if isinstance(feedback, BanditFeedback):
        costs = as_table("costs", np.atleast_2d(feedback.costs), ["constraint", "step"], [setting.n_constraints, H])
        within("costs", costs, -1.0, 1.0, ["constraint", "step"])
        return BanditFeedback(trajectory, rewards, costs)
    axes = ["constraint", "step", "state", "action"]
    table = np.asarray(feedback.cost)
    table = table[None] if table.ndim == 3 else table
    cost = as_table("cost", table, axes, [setting.n_constraints, H, S, A])
    within("cost", cost, -1.0, 1.0, axes)
    return FullFeedback(trajectory, rewards, cost)


def _indices(name: str, values: npt.ArrayLike, length: int, bound: int) -> Integers:
    array = np.asarray(values)
    if array.shape != (length,) or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInputError(f"{name} must be {length} whole numbers, one per step")
    for step, value in enumerate(array):
        if not 0 <= value < bound:
            raise InvalidInputError(f"{name}[{step}] = {value} is not between 0 and {bound - 1}")
    return array.astype(np.int64)
