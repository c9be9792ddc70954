"""What was spent so far as a part of the state: limits that hold in every episode, and chances to exceed them, exactly.

    state (s, level)      --a-->      (t, the level of: levels[level] + c_h(s,a))       with probability p_h(t|s,a)

Beyond the last level there is one more, from which nobody comes back; the step into it costs 1 by a constraint of its
own.  So its expected cost is the chance to spend more than the last level, and a budget of 0 is a hard limit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, Integers, InvalidInputError, as_table, check_number, one_step
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.problem.laws import SparseLaws
from omdpd.problem.machine_memory import refuse_beyond_memory
from omdpd.problem.tables import wide

# Sums that differ from a level by less, relative to the last one, are equal to it.
ROUNDING = 1e-9


def with_spent(cmdp: CMDP, constraint: int, levels: npt.ArrayLike, chance: float, round_up: bool) -> CMDP:
    """What `CMDP.with_spent` promises."""
    names = cmdp.labels.constraints or tuple(f"constraint {i}" for i in range(cmdp.n_constraints))
    whole = np.asarray(constraint).dtype.kind in "iu"
    if not whole or constraint not in range(cmdp.n_constraints):
        raise InvalidInputError(f"there is no constraint {constraint!r}; there are {cmdp.n_constraints}, from 0 on")
    if cmdp.discount is not None:
        raise InvalidInputError("what an episode spent needs episodes, but this problem has no end")
    if cmdp.mask is not None and len(cmdp.mask.allowed) > 1:
        raise InvalidInputError("what was spent cannot be added where allowed actions change from step to step")
    check_number("chance", chance, "at least 0")
    if chance > 1.0:
        raise InvalidInputError(f"chance is {chance!r}, but must lie between 0 and 1")
    grid, (n_states, n_bytes) = as_levels(levels), size_with_spent(cmdp, levels)
    refuse_beyond_memory(f"a problem of {n_states} states", n_bytes, "give fewer levels, with round_up=True")
    cost = one_step(cmdp.cost, 1) * wide(cmdp.cost_scale)
    after = levels_after(grid, cost[constraint], round_up)
    n, n_levels, S, A = after.shape
    over = ((after == n_levels - 1) & (np.arange(n_levels) < n_levels - 1)[:, None, None]).astype(np.float64)
    costs = np.concatenate([np.tile(cost, (1, 1, n_levels, 1)), over.reshape(1, n, n_levels * S, A)])
    low, high = cmdp.reward_range
    reward = np.tile(low + (high - low) * one_step(cmdp.reward, 0), (1, n_levels, 1))
    laws = laws_with_levels(cmdp.laws.listed(), after)
    steps = cmdp.shape[0] if max(n, len(reward), laws.n_steps) > 1 else 1
    start = np.zeros((n_levels, S))
    start[int(np.flatnonzero(grid == 0.0)[0])] = cmdp.initial
    found = CMDP.from_arrays(
        laws, reward[0] if steps == 1 else np.broadcast_to(reward, (steps, *reward.shape[1:])),
        costs[:, 0] if steps == 1 else np.broadcast_to(costs, (len(costs), steps, *costs.shape[2:])),
        [*(None if b == np.inf else float(b) for b in cmdp.limits), chance], start.ravel(), rescale=True,
        reward_range=cmdp.reward_range,
        allowed=None if cmdp.mask is None else np.tile(cmdp.mask.allowed, (1, n_levels, 1))[0],
    )  # fmt: skip
    own = cmdp.labels.states or tuple(f"state {s}" for s in range(S))
    amounts = [*(f"{level:.6g} spent" for level in grid), "over the limit"]
    states = tuple(f"{state}, {amount}" for amount in amounts for state in own)
    limit = f"chance of {names[constraint]} above {grid[-1]:.6g}"
    return found.labelled(cmdp.name, Labels(states, cmdp.labels.actions, (*names, limit)))


def size_with_spent(cmdp: CMDP, levels: npt.ArrayLike) -> tuple[int, float]:
    """How many states `with_spent` would have with these levels, and how many bytes its laws and tables would take."""
    _, S, A = cmdp.shape
    n, steps = len(as_levels(levels)) + 1, max(cmdp.laws.n_steps, one_step(cmdp.cost, 1).shape[1])
    entries = cmdp.laws.n_entries * steps / cmdp.laws.n_steps
    return n * S, n * (12.0 * entries + 8.0 * S * A * steps * (3 + 2 * cmdp.n_constraints))


def as_levels(levels: npt.ArrayLike) -> Floats:
    """Amounts that ascend and hold 0, where an episode begins; anything else is refused."""
    given = as_table("levels", np.atleast_1d(np.asarray(levels)), ["level"], [None])
    if np.any(np.diff(given) <= 0.0):
        place = int(np.argmax(np.diff(given) <= 0.0)) + 1
        raise InvalidInputError(f"levels[{place}] = {given[place]:.6g} is not above the one before it")
    if not np.any(given == 0.0):
        raise InvalidInputError("levels must hold 0, which is what was spent before the first step")
    return given


def levels_after(levels: Floats, cost: Floats, round_up: bool) -> Integers:
    """The level after every step, (n, L + 1, S, A), for costs (n, S, A); L stands for more than the last one.

    A sum between two levels counts as the upper one if it may, and is refused otherwise.
    """
    L, slack = len(levels), ROUNDING * max(1.0, float(np.abs(levels).max()))
    total = levels[None, :, None, None] + cost[:, None]
    after = np.searchsorted(levels, total - slack).astype(np.int64)
    off = (after < L) & (np.abs(levels[np.minimum(after, L - 1)] - total) > slack)
    if off.any() and not round_up:
        h, level, s, a = (int(i) for i in np.argwhere(off)[0])
        raise InvalidInputError(
            f"{levels[level]:.6g} and the cost {cost[h, s, a]:.6g} of state {s}, action {a} make "
            f"{total[h, level, s, a]:.6g}, which is none of the levels: add it, or pass round_up=True"
        )
    beyond = np.full((len(cost), 1, *cost.shape[1:]), L)
    return np.concatenate([after, beyond], axis=1)


def laws_with_levels(laws: SparseLaws, after: Integers) -> SparseLaws:
    """The laws of states (level, s), numbered level S + s, whose next level is `after` (n, L + 1, S, A)."""
    H, S, A = laws.shape
    n, n_levels = max(laws.n_steps, len(after)), after.shape[1]
    lengths, successors, chances = [], [], []
    for h in range(n):
        first = min(h, laws.n_steps - 1) * S * A
        own = slice(int(laws.pointers[first]), int(laws.pointers[first + S * A]))
        length = np.diff(laws.pointers[first : first + S * A + 1])
        for level in range(n_levels):
            shift = np.repeat(after[min(h, len(after) - 1), level].ravel() * S, length)
            lengths.append(length)
            successors.append((laws.successors[own] + shift).astype(np.int32))
            chances.append(laws.probabilities[own])
    pointers = np.r_[0, np.cumsum(np.concatenate(lengths))]
    return SparseLaws((H, n_levels * S, A), pointers, np.concatenate(successors), np.concatenate(chances))
