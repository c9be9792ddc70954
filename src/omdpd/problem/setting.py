"""A learner may know and see this: the setting before the first episode, the feedback after each one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import (
    Floats,
    Integers,
    InvalidInputError,
    as_budget,
    as_law,
    as_range,
    as_table,
    numbers,
    positive_integer,
    refuse_where,
    within,
)
from omdpd.problem.masks import as_mask, fitted
from omdpd.problem.records import WHERE_SET, fast_init

# Laws of first states that nobody said, by their place in memory: uniform ones, for want of anything better.
_UNSAID: WeakValueDictionary[int, Floats] = WeakValueDictionary()
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
        The law of the first state, ``(S,)``.  If None, that of logged episodes where there are some, else uniform.
    n_episodes
        K if it is known in advance, else None.
    feedback
        ``"bandit"`` if costs are observed on the way, ``"full"`` if their tables are revealed after the episode.
    budget
        What an episode may cost in expectation, one number per constraint; feedback then holds costs as they are.
        None if budgets are taken off already (cost - budget / horizon in [-1, 1]).
    cost_scale
        How far a step's cost may be from budget / horizon, one number or one per constraint; 1 if None.
    reward_range
        The least and the largest reward of a step, if it is not (0, 1).
    seed
        For learners that draw random numbers of their own: where they come from.  None counts as 0.
    allowed
        Which actions exist, (S, A) or (H, S, A); all of them if None.  Sessions and runs play these alone, whatever the
        learner (`omdpd.learners.Masked`).
    windows
        Whether episodes are windows of one long run, each of which begins where the last ended; None counts as no.
    names
        What the costs are called where people read of them, one name per constraint; "cost 0", "cost 1" if None.

    >>> setting = Setting(6, 4, 2, budget=30.0, cost_scale=10.0, reward_range=(0, 500))
    >>> setting.scaled().budget is None
    True
    """

    horizon: int
    n_states: int
    n_actions: int
    n_constraints: int = 1
    initial: npt.ArrayLike | None = None
    n_episodes: int | None = None
    feedback: FeedbackKind = "bandit"
    budget: npt.ArrayLike | None = field(default=None, kw_only=True)
    cost_scale: npt.ArrayLike | None = field(default=None, kw_only=True)
    reward_range: tuple[float, float] | None = field(default=None, kw_only=True)
    seed: int | None = field(default=None, kw_only=True)
    allowed: npt.ArrayLike | None = field(default=None, kw_only=True, metadata=WHERE_SET)
    names: tuple[str, ...] | None = field(default=None, kw_only=True, metadata=WHERE_SET)
    windows: bool | None = field(default=None, kw_only=True, metadata=WHERE_SET)

    def __post_init__(self) -> None:
        for name in ("horizon", "n_states", "n_actions", "n_constraints"):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        if self.n_episodes is not None:
            object.__setattr__(self, "n_episodes", positive_integer("n_episodes", self.n_episodes))
        if self.feedback not in ("bandit", "full"):
            raise InvalidInputError(f"feedback is {self.feedback!r}, but must be 'bandit' or 'full'")
        given = np.full(self.n_states, 1.0 / self.n_states) if self.initial is None else self.initial
        law = as_law("initial", given, ["state"], [self.n_states])
        if not self.says_starts:
            _UNSAID[id(law)] = law
        object.__setattr__(self, "initial", law)
        mask = fitted(as_mask(self.allowed, (self.n_states, self.n_actions)), self.horizon)
        object.__setattr__(self, "allowed", None if mask is None else mask.allowed)
        if self.names is not None:
            object.__setattr__(self, "names", tuple(str(name) for name in self.names))
            if len(set(self.names)) != self.n_constraints:
                raise InvalidInputError(f"names are {self.names}, but must be {self.n_constraints} different ones")
        self._check_units()

    def _check_units(self) -> None:
        """One positive scale and one budget per constraint, and a range of rewards, where they are given."""
        if self.cost_scale is not None and self.budget is None:
            raise InvalidInputError("cost_scale is given without a budget: give both, or take budgets off yourself")
        if self.budget is not None:
            object.__setattr__(self, "budget", as_budget(self.budget, self.cost_names))
        if self.cost_scale is not None:
            given = numbers("cost_scale", self.cost_scale)
            each = np.repeat(given, self.n_constraints) if given.ndim == 0 else given
            scale = as_table("cost_scale", each, ["constraint"], [self.n_constraints])
            object.__setattr__(self, "cost_scale", scale)
            refuse_where(scale <= 0.0, "cost_scale", scale, "is not positive", ["constraint"])
        if self.reward_range is not None:
            object.__setattr__(self, "reward_range", as_range("reward_range", self.reward_range))

    @property
    def in_units(self) -> bool:
        """Whether feedback comes in the user's units and has to be scaled for a learner."""
        return self.budget is not None or self.reward_range is not None

    def scaled(self) -> Setting:
        """What a learner is told: the same without units, because feedback is scaled before it comes."""
        return replace(self, budget=None, cost_scale=None, reward_range=None) if self.in_units else self

    @property
    def says_starts(self) -> bool:
        """Whether the user said where episodes begin; copies with other fields (`replace`) know it, too."""
        return self.initial is not None and _UNSAID.get(id(self.initial)) is not self.initial

    @property
    def mu(self) -> Floats:
        """The initial law as an array."""
        return np.asarray(self.initial)

    @property
    def limits(self) -> Floats:
        """The budgets (I,): zero without any, because costs come with theirs taken off then."""
        return np.zeros(self.n_constraints) if self.budget is None else np.asarray(self.budget, dtype=np.float64)

    @property
    def scales(self) -> Floats:
        """What a cost of 1 is where feedback is told, (I,)."""
        return np.ones(self.n_constraints) if self.cost_scale is None else np.asarray(self.cost_scale)

    @property
    def cost_names(self) -> tuple[str, ...]:
        """What the costs are called, (I,)."""
        return self.names or tuple(f"cost {i}" for i in range(self.n_constraints))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        return (self.horizon, self.n_states, self.n_actions)


@fast_init
@dataclass(frozen=True, eq=False)
class Trajectory:
    """The states and actions of one episode, ``(H,)`` each."""

    states: Integers
    actions: Integers


@fast_init
@dataclass(frozen=True, eq=False)
class BanditFeedback:
    """One episode with the rewards ``(H,)`` and the costs ``(I, H)`` met on the way (costs less budget per step)."""

    trajectory: Trajectory
    rewards: Floats
    costs: Floats


@fast_init
@dataclass(frozen=True, eq=False)
class FullFeedback:
    """One episode with the rewards met ``(H,)`` and the whole cost tables ``(I, H, S, A)``."""

    trajectory: Trajectory
    rewards: Floats
    cost: Floats


Feedback = BanditFeedback | FullFeedback


def checked_feedback(setting: Setting, feedback: Feedback) -> Feedback:
    """Return `feedback` with plain arrays of the right sizes and a learner's ranges, or say which entry is wrong.

    For somebody's own loop: inside the library feedback comes from `simulate` and is right by construction.  Where the
    setting has units, feedback is in them and is scaled here.
    """
    H, S, A = setting.shape
    wanted = BanditFeedback if setting.feedback == "bandit" else FullFeedback
    if not isinstance(feedback, wanted):
        raise InvalidInputError(f"the setting promises {wanted.__name__}, but {type(feedback).__name__} came")
    states = _indices("states", feedback.trajectory.states, H, S)
    actions = _indices("actions", feedback.trajectory.actions, H, A)
    trajectory = Trajectory(states, actions)
    rewards = _scaled_rewards(setting, as_table("rewards", feedback.rewards, ["step"], [H]))
    if isinstance(feedback, BanditFeedback):
        costs = as_table("costs", np.atleast_2d(feedback.costs), ["constraint", "step"], [setting.n_constraints, H])
        return BanditFeedback(trajectory, rewards, _scaled_costs(setting, "costs", costs, ["constraint", "step"]))
    axes = ["constraint", "step", "state", "action"]
    table = np.asarray(feedback.cost)
    table = table[None] if table.ndim == 3 else table
    cost = as_table("cost", table, axes, [setting.n_constraints, H, S, A])
    return FullFeedback(trajectory, rewards, _scaled_costs(setting, "cost", cost, axes))


def checked_steps(setting: Setting, rewards: npt.ArrayLike, costs: Floats, why: str = "") -> tuple[Floats, Floats]:
    """Rewards (n,) and costs (I, n) of some steps, or () and (I,) of one; refused as `checked_feedback` does.

    A sentence of refusal begins with `why`.
    """
    axes = ["constraint", "step"][: costs.ndim]
    try:
        met = as_table("reward", rewards, axes[1:], [None] * (costs.ndim - 1))
        paid = as_table("cost", costs, axes, [setting.n_constraints, *met.shape])
        _scaled_rewards(setting, met, "reward"), _scaled_costs(setting, "cost", paid, axes)
    except InvalidInputError as error:
        raise InvalidInputError(f"{why}{error}") from None
    return met, paid


def _scaled_rewards(setting: Setting, rewards: Floats, name: str = "rewards") -> Floats:
    """Rewards on the scale [0, 1]; one outside the declared range is refused."""
    low, high = setting.reward_range or (0.0, 1.0)
    hint = "declare a wider reward_range in the setting" if setting.reward_range else (
        "rewards in other units need a reward_range in the setting"
    )  # fmt: skip
    within(name, rewards, low, high, ["step"] * rewards.ndim, hint)
    return np.clip((rewards - low) / (high - low), 0.0, 1.0) if setting.reward_range else rewards


def _scaled_costs(setting: Setting, name: str, costs: Floats, axes: Sequence[str]) -> Floats:
    """Costs less budget per step on the scale [-1, 1]; one beyond the declared scale is refused."""
    if setting.budget is None:
        within(name, costs, -1.0, 1.0, axes, "costs in other units need budget and cost_scale in the setting")
        return costs
    wide = (slice(None), *(None,) * (costs.ndim - 1))
    excess = (costs - setting.limits[wide] / setting.horizon) / setting.scales[wide]
    beyond = np.abs(excess) > 1.0 + 1e-12
    for i in np.flatnonzero(beyond.any(axis=tuple(range(1, costs.ndim))))[:1]:
        need = float(np.abs(excess[i]).max() * setting.scales[i])
        least = f"{need:.6g}" if float(f"{need:.6g}") >= need * (1.0 - 1e-12) else f"{need * (1.0 + 1e-5):.6g}"
        why = (
            f"is further from budget / horizon ({setting.limits[i] / setting.horizon:.6g}) than cost_scale "
            f"({setting.scales[i]:.6g}): declare a cost_scale of at least {least} for {setting.cost_names[i]}"
        )
        refuse_where(beyond, name, costs, why, axes)
    return np.clip(excess, -1.0, 1.0)


def _indices(name: str, values: npt.ArrayLike, length: int, bound: int) -> Integers:
    array = np.asarray(values)
    if array.shape != (length,) or array.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must be {length} whole numbers, one per step")
    for step, value in enumerate(array.tolist()):
        if not 0 <= value < bound:
            raise InvalidInputError(f"{name}[{step}] = {value} is not between 0 and {bound - 1}")
    return array.astype(np.int64)
