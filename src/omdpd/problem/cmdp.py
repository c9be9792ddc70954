"""The truth: a constrained Markov decision process, and what one episode of it holds.  Closed to learners.

A policy is safe in an episode when V(d_i) <= 0 for every constraint i, where d_i = c_i - b_i / H is the cost
table with its budget spread over the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import (
    Floats,
    InvalidInputError,
    as_budget,
    as_law,
    as_range,
    as_table,
    numbers,
    one_step,
    over_steps,
    positive_integer,
    within,
)
from omdpd.problem.forms import Axes, LawFunction, filled_tables, read_laws
from omdpd.problem.laws import Laws
from omdpd.problem.markup import facts_html, table_html
from omdpd.problem.records import quick
from omdpd.problem.setting import FeedbackKind, Setting

if TYPE_CHECKING:
    from omdpd.play.solution import Solution

Noise = Literal["exact", "two-point", "beta"]


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

    @property
    def rows(self) -> Floats:
        """All tables of all scenarios, (n I, H, S, A)."""
        return self.tables.reshape(-1, *self.tables.shape[2:])


@dataclass(frozen=True, eq=False)
class CMDP:
    """A finite-horizon constrained MDP with mean tables; build one with `from_arrays`, which checks them.

    Attributes
    ----------
    laws : Laws
        p_h(s'|s,a), as lists of successors or as a table; the last step's rows lead nowhere and are kept for a uniform
        shape.
    initial : (S,)
    reward : (H, S, A)
        Mean rewards in [0, 1].
    cost : (I, H, S, A)
        Mean costs in the user's units (after `cost_scale`).
    budget : (I,)
        What an episode may cost in expectation, in the same units; `with_budget` takes the user's.
    cost_scale : (I,)
        The number by which the user's costs and budgets were divided to fit; 1 if they fitted.
    reward_range : (float, float)
        What rewards of 0 and 1 are in the user's units.
    labels, scenarios
        Names for people; other cost tables that a natural adversary may pick.

    Tables that are the same at every step are views of one step where they are large.
    """

    laws: Laws
    initial: Floats
    reward: Floats
    cost: Floats
    budget: Floats
    cost_scale: Floats
    name: str = "own"
    reward_range: tuple[float, float] = (0.0, 1.0)
    labels: Labels = Labels()
    scenarios: Scenarios | None = None
    _divided: tuple[Floats, Floats] | None = None

    def __post_init__(self) -> None:
        """Refuse costs or budgets that came past whoever divides them: nobody knows in which units they are."""
        kept = (self.cost, self.budget)
        if self._divided is not None and any(new is not old for new, old in zip(kept, self._divided, strict=True)):
            raise InvalidInputError(
                "cost and budget of a problem are kept divided by its cost_scale and cannot be replaced: give budgets "
                "in your units to cmdp.with_budget, and other costs to CMDP.from_arrays"
            )
        object.__setattr__(self, "_divided", kept)

    @staticmethod
    def from_arrays(
        transition: Any,
        reward: npt.ArrayLike,
        cost: npt.ArrayLike,
        budget: npt.ArrayLike | None = None,
        initial: npt.ArrayLike | None = None,
        horizon: int | None = None,
        rescale: bool = False,
        *,
        axes: Axes | None = None,
        reward_range: npt.ArrayLike = (0.0, 1.0),
    ) -> CMDP:
        """Build a CMDP from tables, and say which entry is wrong if one is.

        Step-dependent: transition (H, S, A, S), reward (H, S, A), cost (H, S, A) or (I, H, S, A).
        Stationary: transition (S, A, S) with `horizon`, reward (S, A), cost (S, A) or (I, S, A).
        `budget`, which is always asked for, is one number or one per constraint; `initial` is uniform if not given.
        With ``rescale=True`` the costs and budget of a constraint that does not fit into [-1, 1] per step are divided
        by what makes them fit (see `cost_scale`).  Rewards in other units than [0, 1] need `reward_range`, the least
        and the largest that a step can earn; what is shown of them is in those units again.

        `transition` may also be a sparse matrix (S A, S), a list of A sparse matrices (S, S), a list of either per
        step, lists ``laws[s][a] = [(probability, next state), ...]``, a function of state and action that gives such a
        list, or `Laws` (see `omdpd.problem.forms`); then nothing of size S A S is ever made.  A table with the action
        first is said to be so with ``axes="ASS"`` (``"HASS"`` by step).

        >>> p = np.full((2, 2, 2), 0.5)
        >>> cmdp = CMDP.from_arrays(p, [[0, 1], [0, 1]], [[0, 1], [0, 1]], budget=1.5, horizon=3)
        >>> cmdp.shape, float(cmdp.excess.max())
        ((3, 2, 2), 0.5)
        """
        r, c = numbers("reward", reward), numbers("cost", cost)
        laws, once = read_laws(transition, _sizes(r, transition), horizon, axes)
        H, S, A = laws.shape
        r, c = _with_steps(r, c, laws.shape, once)
        r = as_table("reward", r, ["step", "state", "action"], [r.shape[0], S, A])
        low, high = as_range("reward_range", reward_range)
        within("reward", r, low, high, ["step", "state", "action"], "give the range of rewards as reward_range")
        r = (r - low) / (high - low)
        c = as_table("cost", c, ["constraint", "step", "state", "action"], [None, None, S, A])
        start = np.full(S, 1.0 / S) if initial is None else initial
        mu = as_law("initial", start, ["state"], [S])
        b = _per_constraint(budget, c.shape[0])
        scale = _cost_scale(c, b, H, rescale)
        c = over_steps(c / _wide(scale), H, 1)
        return CMDP(laws, mu, over_steps(r, H, 0), c, b / scale, scale, reward_range=(low, high))

    @staticmethod
    def from_functions(
        sizes: tuple[int, int, int],
        law: LawFunction,
        reward: Callable[[int, int], float],
        cost: Callable[[int, int], Any],
        budget: npt.ArrayLike | None = None,
        initial: npt.ArrayLike | None = None,
        rescale: bool = False,
        *,
        reward_range: npt.ArrayLike = (0.0, 1.0),
    ) -> CMDP:
        """Build a stationary CMDP of `sizes` (H, S, A) from functions of state and action.

        `law` gives pairs (probability, next state), `cost` one number or one per constraint.

        >>> fair = [(0.5, 0), (0.5, 1)]
        >>> coin = CMDP.from_functions((4, 2, 1), lambda s, a: fair, lambda s, a: s, lambda s, a: [0, s], budget=1)
        >>> coin.shape, coin.n_constraints
        ((4, 2, 1), 2)
        """
        names = ("horizon", "n_states", "n_actions")
        H, *pair = (positive_integer(name, n) for name, n in zip(names, sizes, strict=True))
        rewards, costs = (
            filled_tables(f, (pair[0], pair[1]), name) for name, f in (("reward", reward), ("cost", cost))
        )
        return CMDP.from_arrays(law, rewards, costs, budget, initial, H, rescale, reward_range=reward_range)

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
        H = self.shape[0]
        return over_steps(one_step(self.cost, 1) - _wide(self.budget / H), H, 1)

    @property
    def transition(self) -> Floats:
        """The laws as a table (H, S, A, S); refused with its size where it would be too large."""
        return self.laws.expand()

    @property
    def stationary(self) -> bool:
        """Whether the dynamics are the same at every step."""
        return self.laws.stationary

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

    def with_budget(self, budget: npt.ArrayLike, rescale: bool = False) -> CMDP:
        """The same problem with another budget in the user's units, one number or one per constraint.

        It is the problem that `from_arrays` would have built.  Where constraints were divided to fit they are divided
        anew; where they were not, one that does not fit any more needs ``rescale=True``.

        >>> one = CMDP.from_arrays(np.ones((1, 2, 1)), [[0, 1]], [[0, 30]], budget=45, horizon=3, rescale=True)
        >>> one.with_budget(60)
        CMDP(own: 1 states, 2 actions, 3 steps, budget 60)
        """
        H, old = self.shape[0], self.cost_scale
        b = _per_constraint(budget, self.n_constraints)
        cost = one_step(self.cost, 1) * _wide(old)
        scale = _cost_scale(cost, b, H, rescale or bool(np.any(old != 1.0)))
        changed = replace(
            self, cost=over_steps(cost / _wide(scale), H, 1), budget=b / scale, cost_scale=scale, scenarios=None,
            _divided=None,
        )  # fmt: skip
        if self.scenarios is None:
            return changed
        tables = one_step(self.scenarios.tables, 2)
        costs = (tables + _wide(self.budget / H)) * _wide(old)
        named = {name: c if c.shape[1] == H else c[:, 0] for name, c in zip(self.scenarios.names, costs, strict=True)}
        return changed.with_scenarios(named)

    def with_scenarios(self, costs: Mapping[str, npt.ArrayLike]) -> CMDP:
        """The same problem with other cost tables in the user's units, each of the shape that `from_arrays` takes.

        They keep the budgets.  Where one of them leaves [-1, 1] per step, the constraint is divided once more, here
        and in the means, so that all of them share one scale.
        """
        if not costs:
            raise InvalidInputError("with_scenarios needs at least one cost table")
        H, S, A = self.shape
        axes = ["scenario", "constraint", "step", "state", "action"]
        stacked = _stacked([_cost_with_steps(cost, (H, S, A)) for cost in costs.values()], H)
        excess = as_table("scenarios", stacked, axes, [None, self.n_constraints, None, S, A])
        excess /= _wide(self.cost_scale)
        excess -= _wide(self.budget / H)
        more = np.maximum(np.maximum(excess.max(axis=(0, 2, 3, 4)), -excess.min(axis=(0, 2, 3, 4))), 1.0)
        more = np.where(more > 1.0 + 1e-12, more, 1.0)
        excess /= _wide(more)
        return replace(
            self, cost=over_steps(one_step(self.cost, 1) / _wide(more), H, 1), budget=self.budget / more,
            cost_scale=self.cost_scale * more, scenarios=Scenarios(tuple(costs), over_steps(excess, H, 2)),
            _divided=None,
        )  # fmt: skip

    def __repr__(self) -> str:
        H, S, A = self.shape
        budgets = ", ".join(f"{b:.6g}" for b in self.budget * self.cost_scale)
        return f"CMDP({self.name}: {S} states, {A} actions, {H} steps, budget {budgets})"

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


@quick
@dataclass(frozen=True, eq=False)
class Round:
    """One episode's mean tables: `reward` (H, S, A), `cost` (I, H, S, A, budget taken off), and how they are observed.

    `key` names the cost table among nature's distinct ones: `cost` is `factor`, a positive number, times the table of
    that name.
    """

    reward: Floats
    cost: Floats
    key: int = 0
    reward_noise: Noise = "exact"
    cost_noise: Noise = "exact"
    factor: float = 1.0


def _sizes(reward: npt.NDArray[np.generic], transition: Any) -> tuple[int, int]:
    """(S, A), as the reward has them; a table has sizes of its own, so that it may be the reward that is wrong."""
    if reward.ndim in (2, 3):
        return reward.shape[-2], reward.shape[-1]
    if not isinstance(transition, np.ndarray | list | tuple):
        raise InvalidInputError(f"reward has shape {reward.shape}, but needs (state, action) or (step, state, action)")
    return 0, 0


def _with_steps(
    reward: npt.NDArray[np.generic], cost: npt.NDArray[np.generic], shape: tuple[int, int, int], once: bool
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    """Reward (n, S, A) and cost (I, n, S, A), n = H or 1; beside laws of one step they may be of one step too."""
    if once and reward.ndim == 3 and cost.ndim == 3:
        raise InvalidInputError(
            "cost has 3 axes beside a stationary transition and a reward by step, which could mean constraints or "
            "steps: give it as (constraint, step, state, action)"
        )
    wanted = shape[1:] if once and reward.ndim == 2 else shape
    if reward.shape != wanted:
        shapes = f"{shape} or {shape[1:]}" if once else f"{shape}"
        raise InvalidInputError(f"reward has shape {reward.shape}, but transition asks for {shapes}")
    if cost.ndim == 4 and cost.shape[1] not in (0, shape[0]):
        raise InvalidInputError(f"cost has length {cost.shape[1]} along its step axis (axis 1), but needs {shape[0]}")
    if not once:
        return reward, cost[None] if cost.ndim == 3 else cost
    cost = cost[None] if cost.ndim == 2 else cost
    return reward[None] if reward.ndim == 2 else reward, cost[:, None] if cost.ndim == 3 else cost


def _cost_with_steps(cost: npt.ArrayLike, shape: tuple[int, int, int]) -> npt.NDArray[np.generic]:
    """A cost table in any of the accepted shapes as (I, n, S, A): n = H if it ends in (H, S, A), else 1."""
    c = numbers("cost", cost)
    if c.shape[-3:] == shape and c.ndim in (3, 4):
        return c if c.ndim == 4 else c[None]
    if c.shape[-2:] == shape[1:] and c.ndim in (2, 3):
        return c[:, None] if c.ndim == 3 else c[None, None]
    raise InvalidInputError(f"a cost table has shape {c.shape}, but the problem asks for {shape} or {shape[1:]}")


def _stacked(tables: Sequence[npt.NDArray[np.generic]], horizon: int) -> Sequence[npt.NDArray[np.generic]]:
    """Tables (I, n, S, A) of as many steps each: one if all have one, else H."""
    if all(table.shape[1] == 1 for table in tables):
        return tables
    return [table if table.shape[1] == horizon else np.repeat(table, horizon, axis=1) for table in tables]


def _per_constraint(budget: npt.ArrayLike | None, n_constraints: int) -> Floats:
    """A budget for every constraint, (I,)."""
    b = as_budget(budget)
    return as_table("budget", np.repeat(b, n_constraints) if len(b) == 1 else b, ["constraint"], [n_constraints])


def _wide(values: Floats) -> Floats:
    """One number per constraint, ready for a table (..., I, H, S, A)."""
    return values[:, None, None, None]


def _cost_scale(cost: Floats, budget: Floats, horizon: int, rescale: bool) -> Floats:
    """By how much each constraint has to be divided so that cost - budget/H lies in [-1, 1]."""
    excess = cost - _wide(budget / horizon)
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
