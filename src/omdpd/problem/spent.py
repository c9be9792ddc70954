"""A state can hold what was spent so far: limits that hold in every episode, and chances to exceed them, exactly.

    state (s, level)      --a-->      (t, the level of: levels[level] + c_h(s,a))       with probability p_h(t|s,a)

Beyond the last level there is one more, from which nobody comes back; the step into it costs 1 by a constraint of its
own.  So its expected cost is the chance to spend more than the last level, and a budget of 0 is a hard limit.

The cost is the table's, which is exact if that is what is paid.  Random costs, of which a table holds the mean, come
with the next state: as outcomes (probability, next state, cost) of every state and action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, Integers, InvalidInputError, as_table, check_number, one_step, refuse_where
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.problem.labels import CHANCE
from omdpd.problem.laws import SparseLaws, laws_of_entries
from omdpd.problem.machine_memory import refuse_beyond_memory
from omdpd.problem.tables import wide

# Sums that differ from a level by less, relative to the last one, are equal to it.
ROUNDING = 1e-9
# Outcomes have the law and the mean cost of the tables up to this.
SAME = 1e-6
# Bytes that an outcome takes at each level while outcomes are sorted into laws.
SORTED = 80.0

# outcomes[s][a], or a function of both: (probability, next state, cost), ...; with the step before them if laws change
Outcomes = Any


class Drawn(NamedTuple):
    """Outcomes: their rows (h S + s) A + a, next states, probabilities and costs, (E,) each; of one step, or of all."""

    row: Integers
    following: Integers
    chance: Floats
    cost: Floats


def with_spent(
    cmdp: CMDP, given: int | str, levels: npt.ArrayLike, chance: float, round_up: bool, outcomes: Outcomes = None
) -> CMDP:
    """What `CMDP.with_spent` promises."""
    named = cmdp.labels.counted(cmdp.shape[1], n_constraints=cmdp.n_constraints)
    constraint = cmdp.labels.place(given, cmdp.n_constraints)
    if cmdp.discount is not None:
        raise InvalidInputError("what an episode spent needs episodes, but this problem has no end")
    check_number("chance", chance, "at least 0")
    if chance > 1.0:
        raise InvalidInputError(f"chance is {chance!r}, but must lie between 0 and 1")
    grid, (n_states, n_bytes) = as_levels(levels), size_with_spent(cmdp, levels)
    cost = one_step(cmdp.cost, 1) * wide(cmdp.cost_scale)
    drawn = None if outcomes is None else drawn_outcomes(cmdp, outcomes, cost[constraint])
    n_bytes += 0.0 if drawn is None else SORTED * n_states / cmdp.shape[1] * len(drawn.row)
    refuse_beyond_memory(f"a problem of {n_states} states", n_bytes, "give fewer levels, with round_up=True")
    if drawn is None:
        laws, over = by_tables(cmdp, grid, cost[constraint], round_up)
    else:
        laws, over = by_outcomes(cmdp, grid, drawn, round_up)
    n_levels, S, A = over.shape[1:]
    n, over = max(cost.shape[1], len(over)), over.reshape(1, -1, n_levels * S, A)
    parts = (np.tile(cost, (1, 1, n_levels, 1)), over)
    costs = np.concatenate([np.broadcast_to(each, (len(each), n, *over.shape[2:])) for each in parts])
    low, high = cmdp.reward_range
    reward = np.tile(low + (high - low) * one_step(cmdp.reward, 0), (1, n_levels, 1))
    steps = cmdp.shape[0] if max(n, len(reward), laws.n_steps) > 1 else 1
    start = np.zeros((n_levels, S))
    start[int(np.flatnonzero(grid == 0.0)[0])] = cmdp.initial
    found = CMDP.from_arrays(
        laws, reward[0] if steps == 1 else np.broadcast_to(reward, (steps, *reward.shape[1:])),
        costs[:, 0] if steps == 1 else np.broadcast_to(costs, (len(costs), steps, *costs.shape[2:])),
        [*(None if b == np.inf else float(b) for b in cmdp.limits), chance], start.ravel(),
        reward_range=cmdp.reward_range if cmdp.range_given else None,
        allowed=None if cmdp.mask is None else np.tile(cmdp.mask.allowed, (1, n_levels, 1)),
    )  # fmt: skip
    amounts = [*(f"{level:.6g} spent" for level in grid), "over the limit"]
    states = tuple(f"{state}, {amount}" for amount in amounts for state in named.states)
    limit = f"{CHANCE}{named.constraints[constraint]} above {grid[-1]:.6g}"
    return found.labelled(cmdp.name, Labels(states, cmdp.labels.actions, (*named.constraints, limit)))


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


def levels_after(levels: Floats, cost: Floats, round_up: bool, named: Callable[[int], str]) -> Integers:
    """The level after paying each of these costs, (L + 1, *cost.shape); L stands for more than the last one.

    A sum between two levels counts as the upper one if it may, and is refused otherwise; `named` says whose cost it is.
    """
    L, slack = len(levels), ROUNDING * max(1.0, float(np.abs(levels).max()))
    total = np.add.outer(levels, cost)
    after = np.searchsorted(levels, total - slack).astype(np.int64)
    off = (after < L) & (np.abs(levels[np.minimum(after, L - 1)] - total) > slack)
    if off.any() and not round_up:
        level, place = divmod(int(np.argmax(off)), cost.size)
        made = levels[level] + cost.flat[place]
        raise InvalidInputError(
            f"{levels[level]:.6g} and the cost {cost.flat[place]:.6g} of {named(place)} make {made:.6g}, which is none "
            "of the levels: add it, or pass round_up=True; if costs are random and this a mean, give outcomes instead"
        )
    return np.concatenate([after, np.full((1, *cost.shape), L)])


def by_tables(cmdp: CMDP, levels: Floats, cost: Floats, round_up: bool) -> tuple[SparseLaws, Floats]:
    """The laws of states (level, s), and which steps lead over the last, (n, L + 1, S, A), for costs (n, S, A)."""
    _, S, A = cmdp.shape
    after = levels_after(levels, cost, round_up, lambda place: f"state {place // A % S}, action {place % A}")
    after = np.moveaxis(after, 0, 1)
    L = len(levels)
    over = (after == L) & (np.arange(L + 1) < L)[:, None, None]
    return laws_with_levels(cmdp.laws.listed(), after), over.astype(np.float64)


def by_outcomes(cmdp: CMDP, levels: Floats, drawn: Drawn, round_up: bool) -> tuple[SparseLaws, Floats]:
    """The same for costs that come with the next state, with the chance that a step leads over the last level."""
    H, S, A = cmdp.shape
    L = len(levels)
    after = levels_after(
        levels, drawn.cost, round_up,
        lambda place: f"an outcome of state {drawn.row[place] // A % S}, action {drawn.row[place] % A}",
    )  # fmt: skip
    step, row = np.divmod(drawn.row, S * A)
    n = int(step[-1]) + 1
    rows, chances = np.add.outer(S * A * np.arange(L + 1), step * (L + 1) * S * A + row), np.tile(drawn.chance, L + 1)
    laws = laws_of_entries(rows.ravel(), (after * S + drawn.following).ravel(), chances, (H, (L + 1) * S, A), n)
    leads = (after == L) & (np.arange(L + 1) < L)[:, None]
    over = np.bincount(rows.ravel(), np.where(leads.ravel(), chances, 0.0))
    return laws, over.astype(np.float64).reshape(n, L + 1, S, A)


def drawn_outcomes(cmdp: CMDP, outcomes: Outcomes, cost: Floats) -> Drawn:
    """The outcomes of every state and action, checked against the laws and the mean costs (n, S, A).

    They have the step first where laws or costs change.
    """
    H, S, A = cmdp.shape
    n = 1 if cmdp.stationary and not np.ptp(cost, axis=0).any() else H
    found: list[tuple[int, int, float, float]] = []
    for h, s, a in np.ndindex(n, S, A):
        played = a if cmdp.mask is None else int(cmdp.mask.place[min(h, len(cmdp.mask.place) - 1), s, a])
        where = (s, played) if n == 1 else (h, s, played)
        try:
            given = outcomes(*where) if callable(outcomes) else outcomes
            for i in () if callable(outcomes) else where:
                given = given[i]
            found += [((h * S + s) * A + a, int(t), float(p), float(c)) for p, t, c in given]
        except (TypeError, ValueError, LookupError):
            what = f"outcomes of {'' if n == 1 else f'step {h}, '}state {s}, action {played}"
            by_step = "" if n == 1 else "; laws or costs change by step, so outcomes[step][state][action] are asked for"
            raise InvalidInputError(f"{what} are no list of (probability, next state, cost){by_step}") from None
    row, following, chance, paid = (np.array(column) for column in zip(*found, strict=True))
    try:
        laws = laws_of_entries(row, following, chance, (n, S, A), n)
    except InvalidInputError as error:
        raise InvalidInputError(f"outcomes as a transition: {error}") from None
    probe = np.random.default_rng(0).random(S)  # laws that differ give it different means
    away = np.array([laws.backward(probe, h) - cmdp.laws.backward(probe, h) for h in range(n)])
    mean = np.bincount(row, chance * paid).astype(np.float64).reshape(n, S, A)
    wrong = ~(np.abs(mean - cost) <= SAME * np.maximum(1.0, np.abs(mean)))
    axes, first = (["state", "action"], 0) if n == 1 else (["step", "state", "action"], slice(None))
    refuse_where((np.abs(away) > SAME)[first], "outcomes", away[first], "is how far they lead away from the law", axes)
    refuse_where(wrong[first], "outcomes", mean[first], "is their mean cost, which the cost table contradicts", axes)
    return Drawn(row, following, chance, paid)


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
