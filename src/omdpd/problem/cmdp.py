"""The truth: a constrained Markov decision process, and what one episode of it holds.  Closed to learners.

A policy is safe in an episode when V(d_i) <= 0 for every constraint i, where d_i = c_i - b_i / H is the cost
table with its budget spread over the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import (
    Floats,
    InvalidInputError,
    as_law,
    as_range,
    as_table,
    numbers,
    positive_integer,
    within,
)
from omdpd.problem.markup import facts_html, table_html
from omdpd.problem.setting import FeedbackKind, Setting

if TYPE_CHECKING:
    from omdpd.play.solution import Solution

Noise = Literal["exact", "two-point", "beta"]

# A stationary kernel that would need more numbers than this when repeated over the steps (256 MB) is kept once, as a
# view with a step axis of stride zero: exact evaluation reads it like any other.
MAX_REPEATED = 2**25


@dataclass(frozen=True)
class Labels:
    """Names for people: of states, actions and constraints, and the rows of a map whose cells are the states.

    Empty where nothing was given; a map's cell (i, j) is state ``i * width + j``.
    """

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Cost tables (n, I, H, S, A), budgets taken off, among which a natural adversary of the world may pick."""

    names: tuple[str, ...]
    tables: Floats


@dataclass(frozen=True, eq=False)
class CMDP:
    """A finite-horizon constrained MDP with mean tables; build one with `from_arrays`, which checks them.

    Attributes
    ----------
    transition : (H, S, A, S)
        p_h(s'|s,a); the last step's rows lead nowhere and are kept for a uniform shape.
    initial : (S,)
    reward : (H, S, A)
        Mean rewards in [0, 1].
    cost : (I, H, S, A)
        Mean costs in the user's units (after `cost_scale`).
    budget : (I,)
        What an episode may cost in expectation, in the same units.
    cost_scale : (I,)
        The number by which the user's costs and budgets were divided to fit; 1 if they fitted.
    reward_range : (float, float)
        What rewards of 0 and 1 are in the user's units.
    labels, scenarios
        Names for people; other cost tables that a natural adversary may pick.
    """

    transition: Floats
    initial: Floats
    reward: Floats
    cost: Floats
    budget: Floats
    cost_scale: Floats
    name: str = "own"
    reward_range: tuple[float, float] = (0.0, 1.0)
    labels: Labels = Labels()
    scenarios: Scenarios | None = None

    @staticmethod
    def from_arrays(
        transition: npt.ArrayLike,
        reward: npt.ArrayLike,
        cost: npt.ArrayLike,
        budget: npt.ArrayLike = 0.0,
        initial: npt.ArrayLike | None = None,
        horizon: int | None = None,
        rescale: bool = False,
        *,
        reward_range: npt.ArrayLike = (0.0, 1.0),
    ) -> CMDP:
        """Build a CMDP from tables, and say which entry is wrong if one is.

        Step-dependent: transition (H, S, A, S), reward (H, S, A), cost (H, S, A) or (I, H, S, A).
        Stationary: transition (S, A, S) with `horizon`, reward (S, A), cost (S, A) or (I, S, A).
        `budget` is one number or one per constraint; `initial` is uniform if not given.  With ``rescale=True`` the
        costs and budget of a constraint that does not fit into [-1, 1] per step are divided by what makes them fit
        (see `cost_scale`).  Rewards in other units than [0, 1] need `reward_range`, the least and the largest that a
        step can earn; what is shown of them is in those units again.

        >>> p = np.full((2, 2, 2), 0.5)
        >>> cmdp = CMDP.from_arrays(p, [[0, 1], [0, 1]], [[0, 1], [0, 1]], budget=1.5, horizon=3)
        >>> cmdp.shape, float(cmdp.excess.max())
        ((3, 2, 2), 0.5)
        """
        transition, reward, cost = _by_step(transition, reward, cost, horizon)
        H, S, A = reward.shape
        p = _kernel(transition, (H, S, A))
        r = as_table("reward", reward, ["step", "state", "action"], [H, S, A])
        low, high = as_range("reward_range", reward_range)
        within("reward", r, low, high, ["step", "state", "action"], "give the range of rewards as reward_range")
        r = (r - low) / (high - low)
        c = as_table("cost", cost, ["constraint", "step", "state", "action"], [None, H, S, A])
        start = np.full(S, 1.0 / S) if initial is None else initial
        mu = as_law("initial", start, ["state"], [S])
        limits = np.atleast_1d(numbers("budget", budget))
        limits = np.repeat(limits, c.shape[0]) if limits.shape == (1,) else limits
        b = as_table("budget", limits, ["constraint"], [c.shape[0]])
        scale = _cost_scale(c, b, rescale)
        return CMDP(p, mu, r, c / scale[:, None, None, None], b / scale, scale, reward_range=(low, high))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        H, S, A = self.reward.shape
        return (H, S, A)

    @property
    def n_constraints(self) -> int:
        """I."""
        return int(self.cost.shape[0])

    @property
    def excess(self) -> Floats:
        """d_i = c_i - b_i / H, ``(I, H, S, A)``: an episode is safe when its expected sum is at most zero."""
        return self.cost - (self.budget / self.shape[0])[:, None, None, None]

    @property
    def stationary(self) -> bool:
        """Whether the dynamics are the same at every step."""
        p = self.transition
        return p.strides[0] == 0 or bool((p[1:] == p[:1]).all())

    def labelled(self, name: str, labels: Labels | None = None) -> CMDP:
        """The same problem with a name and labels; a list of the wrong length is refused."""
        labels = Labels() if labels is None else labels
        _, S, A = self.shape
        cells = sum(len(row) for row in labels.layout)
        sizes = (("state", len(labels.states), S), ("action", len(labels.actions), A), ("map", cells, S))
        for kind, given, wanted in (*sizes, ("constraint", len(labels.constraints), self.n_constraints)):
            if given not in (0, wanted):
                raise InvalidInputError(f"there are {given} {kind} labels, but {wanted} of that kind")
        return replace(self, name=name, labels=labels)

    def with_scenarios(self, costs: Mapping[str, npt.ArrayLike]) -> CMDP:
        """The same problem with other cost tables in the user's units, each of the shape that `from_arrays` takes.

        They keep the budgets.  Where one of them leaves [-1, 1] per step, the constraint is divided once more, here
        and in the means, so that all of them share one scale.
        """
        H, S, A = self.shape
        axes = ["scenario", "constraint", "step", "state", "action"]
        stacked = [_cost_by_step(cost, (H, S, A)) for cost in costs.values()]
        tables = as_table("scenarios", stacked, axes, [None, self.n_constraints, H, S, A])
        excess = tables / _wide(self.cost_scale) - _wide(self.budget / H)
        more = np.maximum(np.abs(excess).max(axis=(0, 2, 3, 4)), 1.0)
        more = np.where(more > 1.0 + 1e-12, more, 1.0)
        return replace(
            self, cost=self.cost / _wide(more), budget=self.budget / more, cost_scale=self.cost_scale * more,
            scenarios=Scenarios(tuple(costs), excess / _wide(more)),
        )  # fmt: skip

    def _repr_html_(self) -> str:
        """The problem in a notebook: sizes and budgets; `omdpd.worlds.card.problem_card` solves it."""
        H, S, A = self.shape
        names = self.labels.constraints or tuple(f"constraint {i}" for i in range(self.n_constraints))
        rows = [(name, f"{b:.6g}") for name, b in zip(names, self.budget * self.cost_scale, strict=True)]
        facts = {"states": S, "actions": A, "steps": H, "dynamics": "stationary" if self.stationary else "by step"}
        return facts_html(f"problem {self.name}", facts, table_html(("constraint", "budget per episode"), rows))

    def solve(self) -> Solution:
        """The optimum under the budgets with its policy and shadow prices; or that none exists, and what comes nearest.

        >>> two = CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.0, 1.0]], budget=1.5, horizon=3)
        >>> two.solve().value, two.solve().shadow_prices.tolist()
        (1.5, [1.0])
        """
        # The one import that goes up (see the contract in pyproject.toml): who has a problem looks here for its answer.
        from omdpd.play.solution import solve

        return solve(self)

    def setting(self, n_episodes: int | None, feedback: FeedbackKind) -> Setting:
        """What a learner is told about this problem."""
        H, S, A = self.shape
        return Setting(H, S, A, self.n_constraints, self.initial, n_episodes, feedback)


@dataclass(frozen=True, eq=False)
class Round:
    """One episode's mean tables: `reward` (H, S, A), `cost` (I, H, S, A, budget taken off), and how they are observed.

    `key` names the cost table among nature's distinct ones (equal keys: the same table up to a positive factor).
    """

    reward: Floats
    cost: Floats
    key: int = 0
    reward_noise: Noise = "exact"
    cost_noise: Noise = "exact"


def _by_step(
    transition: npt.ArrayLike, reward: npt.ArrayLike, cost: npt.ArrayLike, horizon: int | None
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    """Repeat stationary tables over the steps; give the cost its constraint axis."""
    p, r, c = numbers("transition", transition), numbers("reward", reward), numbers("cost", cost)
    if p.ndim == 3:
        if horizon is None:
            raise InvalidInputError("transition has axes (state, action, next state), so a horizon is needed")
        if r.ndim == 3 and c.ndim == 3:
            raise InvalidInputError(
                "cost has 3 axes beside a stationary transition and a reward by step, which could mean constraints or "
                "steps: give it as (constraint, step, state, action)"
            )
        H = positive_integer("horizon", horizon)
        c = c[None] if c.ndim == 2 else c
        p = np.broadcast_to(p[None], (H, *p.shape))
        r = np.repeat(r[None], H, axis=0) if r.ndim == 2 else r
        c = np.repeat(c[:, None], H, axis=1) if c.ndim == 3 else c
    elif p.ndim == 4:
        if horizon is not None and horizon != p.shape[0]:
            raise InvalidInputError(f"horizon is {horizon}, but transition has {p.shape[0]} steps")
        c = c[None] if c.ndim == 3 else c
    else:
        raise InvalidInputError(f"transition has {p.ndim} axes, but needs 4 (step, state, action, next state) or 3")
    if 0 in p.shape:
        label = ("step", "state", "action", "next state")[p.shape.index(0)]
        raise InvalidInputError(f"transition has length 0 along its {label} axis (axis {p.shape.index(0)})")
    if r.ndim != 3 or r.shape != p.shape[:3]:
        raise InvalidInputError(f"reward has shape {r.shape}, but transition asks for {p.shape[:3]}")
    return p, r, c


def _kernel(transition: npt.NDArray[np.generic], shape: tuple[int, int, int]) -> Floats:
    """The checked kernel (H, S, A, S); a large stationary one stays a view of its one step."""
    H, S, A = shape
    axes = ["step", "state", "action", "next state"]
    if transition.strides[0] != 0 or H * S * A * S <= MAX_REPEATED:
        return as_law("transition", transition, axes, [H, S, A, S])
    return np.broadcast_to(as_law("transition", transition[:1], axes, [1, S, A, S]), (H, S, A, S))


def _cost_by_step(cost: npt.ArrayLike, shape: tuple[int, int, int]) -> npt.NDArray[np.generic]:
    """A cost table in any of the accepted shapes as (I, H, S, A): by step if its last three axes are (H, S, A)."""
    c = numbers("cost", cost)
    if c.shape[-3:] == shape and c.ndim in (3, 4):
        return c if c.ndim == 4 else c[None]
    if c.shape[-2:] == shape[1:] and c.ndim in (2, 3):
        c = c if c.ndim == 3 else c[None]
        return np.repeat(c[:, None], shape[0], axis=1)
    raise InvalidInputError(f"a cost table has shape {c.shape}, but the problem asks for {shape} or {shape[1:]}")


def _wide(values: Floats) -> Floats:
    """One number per constraint, ready for a table (..., I, H, S, A)."""
    return values[:, None, None, None]


def _cost_scale(cost: Floats, budget: Floats, rescale: bool) -> Floats:
    """By how much each constraint has to be divided so that cost - budget/H lies in [-1, 1]."""
    excess = cost - (budget / cost.shape[1])[:, None, None, None]
    largest = np.abs(excess).reshape(cost.shape[0], -1).max(axis=1)
    scale = np.where(largest > 1.0 + 1e-12, largest, 1.0)
    if rescale or np.all(scale == 1.0):
        return scale
    i = int(np.argmax(scale))
    h, s, a = np.unravel_index(int(np.argmax(np.abs(excess[i]))), cost.shape[1:])
    raise InvalidInputError(
        f"cost[{i}, {h}, {s}, {a}] (constraint {i}, step {h}, state {s}, action {a}) less its budget per step is "
        f"{excess[i, h, s, a]:.6g}, outside [-1, 1]; divide cost and budget of constraint {i} by {scale[i]:.6g}, "
        "or pass rescale=True"
    )
