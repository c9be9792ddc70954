"""Rewards, costs and budgets as a problem keeps them: by constraint and step, divided so that they fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import MIN_SPREAD, Floats, InvalidInputError, as_budget, check_number, numbers

# Budgets as they may be given: the number of the only constraint, one for each, or by name; None for no limit.
Budget = npt.ArrayLike | Sequence[float | None] | Mapping[str, float | None] | None
# What `budget` is where nobody gave one: it is asked for then.
ASKED_FOR: Any = object()


def sizes(reward: npt.NDArray[np.generic], transition: Any) -> tuple[int, int]:
    """(S, A), as the reward has them; a table has sizes of its own, so that it may be the reward that is wrong."""
    if reward.ndim in (2, 3):
        return reward.shape[-2], reward.shape[-1]
    if not isinstance(transition, np.ndarray | list | tuple):
        raise InvalidInputError(f"reward has shape {reward.shape}, but needs (state, action) or (step, state, action)")
    return 0, 0


def with_steps(
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


def cost_with_steps(cost: npt.ArrayLike, shape: tuple[int, int, int]) -> npt.NDArray[np.generic]:
    """A cost table in any of the accepted shapes as (I, n, S, A): n = H if it ends in (H, S, A), else 1."""
    c = numbers("cost", cost)
    if c.shape[-3:] == shape and c.ndim in (3, 4):
        return c if c.ndim == 4 else c[None]
    if c.shape[-2:] == shape[1:] and c.ndim in (2, 3):
        return c[:, None] if c.ndim == 3 else c[None, None]
    raise InvalidInputError(f"a cost table has shape {c.shape}, but the problem asks for {shape} or {shape[1:]}")


def stacked(tables: Sequence[npt.NDArray[np.generic]], horizon: int) -> Sequence[npt.NDArray[np.generic]]:
    """Tables (I, n, S, A) of as many steps each: one if all have one, else H."""
    if all(table.shape[1] == 1 for table in tables):
        return tables
    return [table if table.shape[1] == horizon else np.repeat(table, horizon, axis=1) for table in tables]


def limits(budget: Budget, names: Sequence[str], now: Floats | None = None) -> Floats:
    """A budget for every constraint of these names, (I,), of a list or by name; infinite where None: no limit.

    Those that are not named stay as they are `now`.

    >>> limits([2.0, None], ("hours", "euros")), limits({"hours": 3.0}, ("hours", "euros"), np.array([2.0, 5.0]))
    (array([ 2., inf]), array([3., 5.]))
    """
    if budget is ASKED_FOR:
        return as_budget(None)
    entries: Any = budget
    if isinstance(budget, Mapping):
        for name in (*budget, *(names if now is None else ())):
            if name not in names or name not in budget:
                known = "there is no constraint" if name in budget else "budget leaves out"
                raise InvalidInputError(f"{known} {name!r}; there are {', '.join(names)}")
        entries = [budget.get(name, np.inf if now is None else float(now[i])) for i, name in enumerate(names)]
        entries = [None if each == np.inf else each for each in entries]
    entries = [None] * len(names) if budget is None else entries
    listed = isinstance(entries, list | tuple)
    b = as_budget([0.0 if each is None else each for each in entries] if listed else entries, names)
    return np.where([each is None for each in entries], np.inf, b) if listed else b


def reached_limits(cost: Floats, budget: Floats, horizon: float) -> Floats:
    """The budgets; where there is no limit, so far above what any episode costs that it never matters."""
    most, spread = cost.max(axis=(1, 2, 3)), np.ptp(cost, axis=(1, 2, 3))
    return np.where(np.isinf(budget), horizon * (most + 9.0 * np.where(spread > 0.0, spread, 1.0)), budget)


def wide(values: Floats) -> Floats:
    """One number per constraint, ready for a table (..., I, H, S, A)."""
    return values[:, None, None, None]


def cost_scale(cost: Floats, budget: Floats, horizon: float, rescale: npt.NDArray[np.bool_]) -> Floats:
    """By how much each constraint has to be divided so that cost - budget/H lies in [-1, 1]; refused unless it may."""
    excess = cost - wide(budget / horizon)
    largest = np.abs(excess).reshape(cost.shape[0], -1).max(axis=1)
    scale = np.where(largest > 1.0 + 1e-12, largest, 1.0)
    if np.all(rescale | (scale == 1.0)):
        return scale
    i = int(np.argmax(np.where(rescale, 1.0, scale)))
    h, s, a = np.unravel_index(int(np.argmax(np.abs(excess[i]))), cost.shape[1:])
    raise InvalidInputError(
        f"cost[{i}, {h}, {s}, {a}] (constraint {i}, step {h}, state {s}, action {a}) less its budget per step is "
        f"{excess[i, h, s, a]:.6g}, outside [-1, 1]; divide cost and budget of constraint {i} by {scale[i]:.6g}, "
        "or leave rescale=False out"
    )


def as_discount(discount: float | None, criterion: str | None, horizon: int | None) -> float | None:
    """The discount of a problem without an end, 1 for averages; None where there is a horizon."""
    if criterion not in (None, "average"):
        raise InvalidInputError(f"criterion is {criterion!r}, but must be 'average' (or give a horizon, or a discount)")
    if criterion is None and discount is None:
        return None
    if horizon is not None or (criterion is not None and discount is not None):
        raise InvalidInputError("give one of horizon, discount and criterion='average'")
    if discount is None:
        return 1.0
    check_number("discount", discount, "a share")
    return float(discount)


def long_run_steps(discount: float | None, horizon: int) -> float:
    """Over how many steps a budget is spread."""
    if discount is None:
        return float(horizon)
    return 1.0 if discount == 1.0 else 1.0 / (1.0 - discount)


def long_run_name(discount: float) -> str:
    """How a problem without an end is called."""
    return "average per step" if discount == 1.0 else f"discount {discount:.6g}"


def spanned(reward: Floats) -> tuple[float, float]:
    """A range that holds all rewards: [0, 1] where that does, else from the least to the largest.

    >>> spanned(np.array([0.0, 0.5])), spanned(np.array([-3.0, 9.0])), spanned(np.array([7.0]))
    ((0.0, 1.0), (-3.0, 9.0), (7.0, 14.0))
    """
    low, high = float(reward.min()), float(reward.max())
    if low >= -1e-12 and high <= 1.0 + 1e-12:  # rounding is forgiven
        return 0.0, 1.0
    return low, high if high - low > MIN_SPREAD * max(abs(low), abs(high)) else low + abs(low)


# What an infinite budget is called.
NO_LIMIT = "no limit"


def limit_name(budget: float) -> str:
    """A budget for a person.

    >>> limit_name(1.5), limit_name(np.inf)
    ('1.5', 'no limit')
    """
    return NO_LIMIT if budget == np.inf else f"{budget:.6g}"
