"""The empirical model of logged rows, and the standard error of what a policy earns and costs in it.

Row x = (s, a), or (h, s, a), was seen n times.  Under the empirical kernel a policy has the occupancy q and, for a
table c, the values-to-go C.  To first order in the errors of the rows, which are independent,

    U_x(s') = sum_h q_h(x) C_{h+1}(s')
    se^2 = sum_x [ Var_x(U_x) + (sum_h q_h(x))^2 v_x ] / n_x          v_x: variance of one observation of c

A row's variance is shrunk towards w, that of all rows, since a row that was seen once shows none:
(n Var + kappa w) / (n - 1 + kappa).  A plan may use *supported* rows: those seen `least` times; where a state has none,
those seen at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from omdpd.learners.safe.tally import Sample, Tally
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.laws import SparseLaws
from omdpd.solvers.compiled.listed import listed_occupancy, listed_values
from omdpd.solvers.sweeps import lists_of

# Weight of all rows' variance in that of one, in observations.
KAPPA = 2.0
# What is known for certain (that an episode which is over stays so) counts as often as this.
CERTAIN = 1e12
# A standard error is at least this share of the horizon times the largest entry: what rounding and luck leave.
FLOOR = 1e-5
# Rows that never showed anything but one next state may still lead elsewhere: all rows' variance is at least this share
# of the one between the states that a policy visits.
LEAST_UNIT = 0.5

Flags = npt.NDArray[np.bool_]
Tries = int | Floats
T = TypeVar("T", np.float64, np.bool_)


@dataclass(frozen=True, eq=False)
class Supported:
    """An empirical model over S + 1 states, the last of which is "over"; tables are (n, S + 1, A), n = 1 or H.

    Attributes
    ----------
    tables, noise : (1 + I, n, S + 1, A)
        Means of reward and costs, and the variance of one observation.
    visits, left : (n, S + 1, A)
        How often a row was seen, and how often what followed.
    allowed : (n, S + 1, A)
        Rows that a plan may use.
    laws
        The empirical kernel; a row of which no next state was seen stays where it is.
    initial : (S + 1,)
    """

    tables: Floats
    noise: Floats
    visits: Floats
    left: Floats
    allowed: Flags
    laws: SparseLaws
    initial: Floats

    @property
    def unseen(self) -> Flags:
        """States of which no row was seen, (n, S)."""
        return self.visits[:, :-1].max(axis=2) == 0.0

    @cached_property
    def source(self) -> Integers:
        """Which action every action is planned as: itself where it is allowed, else the first of its state that is."""
        A = self.visits.shape[2]
        first = np.where(self.allowed.any(axis=2), self.allowed.argmax(axis=2), 0)
        return np.where(self.allowed, np.arange(A), first[..., None])

    @cached_property
    def plan_laws(self) -> SparseLaws:
        """The kernel to plan in: an action that is not allowed leads where the one does that is taken instead."""
        n, S, A = self.visits.shape
        row = (np.arange(n * S)[:, None] * A + self.source.reshape(n * S, A)).ravel()
        return _gathered(self.laws, row)

    def in_plan(self, table: Floats) -> Floats:
        """A table (n or H, S + 1, A) for planning: an action that is not allowed is the one that is taken instead."""
        source = np.broadcast_to(self.source, table.shape) if len(table) != len(self.source) else self.source
        return np.ascontiguousarray(np.take_along_axis(table, source, axis=2))

    def out_of_plan(self, policy: Floats) -> Floats:
        """A policy (H, S + 1, A) of the plan with the actions that it stands for, (H, S, A)."""
        H, S, A = policy.shape
        source = np.broadcast_to(self.source, (H, S, A)).reshape(-1, A)
        cells = np.repeat(np.arange(H * S), A) * A + source.ravel()
        moved = np.bincount(cells, policy.ravel(), H * S * A).reshape(H, S, A)[:, :-1]
        return np.asarray(moved / moved.sum(axis=2, keepdims=True), dtype=np.float64)

    def occupancy(self, policy: Floats) -> Floats:
        """Of a policy (H, S, A), under the empirical kernel: (H, S + 1, A)."""
        return listed_occupancy(*lists_of(self.laws), padded(policy), self.initial)

    def flow(self, occupancy: Floats) -> Floats:
        """How often an episode is on every row, (n, S + 1, A)."""
        return occupancy.sum(axis=0, keepdims=True) if len(self.visits) == 1 else occupancy

    def totals(self, occupancy: Floats) -> Floats:
        """What it earns and costs in expectation, (1 + I,)."""
        return self.tables.reshape(len(self.tables), -1) @ self.flow(occupancy).ravel()

    def share(self, occupancy: Floats, rows: Flags) -> float:
        """The share of the steps that is on some rows (n, S + 1, A)."""
        flow = self.flow(occupancy)
        return float(flow[rows].sum() / flow.sum())

    def shown(self, occupancy: Floats) -> float:
        """The share of the variance that shows when episodes are drawn anew: of a row seen n times (n - 1) / n."""
        seen = np.maximum(self.visits, 1.0)
        each = self.flow(occupancy) ** 2 / seen
        return max(1.0 - float((each / seen).sum() / each.sum()), 0.5)

    def with_tried_only(self, policy: Floats) -> Floats:
        """A policy with its chances of actions never tried in a state given to those that were, (H, S, A)."""
        tried = policy * (self.visits[:, :-1] > 0.0)
        total = tried.sum(axis=2, keepdims=True)
        return np.where(total > 0.0, tried / np.maximum(total, 1e-300), policy)

    def errors(self, policy: Floats, occupancy: Floats, slopes: bool) -> tuple[Floats, Floats]:
        """Standard errors (1 + I,), and their slopes in q with C held (1 + I, H, S + 1, A) (empty unless asked)."""
        found = [self._error(j, padded(policy), occupancy, slopes) for j in range(len(self.tables))]
        return np.array([error for error, _ in found]), np.array([slope for _, slope in found])

    def _error(self, j: int, policy: Floats, q: Floats, slopes: bool) -> tuple[float, Floats]:
        H, n, R = len(q), self.visits.shape[0], self.visits.size
        togo = listed_values(*lists_of(self.laws), policy, np.ascontiguousarray(self.tables[j]))[1:]
        times = self.left.ravel()
        U = self._summed(q.reshape(H, -1), togo)
        mean = self._mean(U)
        spread = np.maximum(self._mean(U * U) - mean**2, 0.0) * times
        mass = (q.sum(axis=0) if n == 1 else q).ravel()
        freedom = np.maximum(times - 1.0, 0.0)
        used = mass > 1e-4 * mass.max()
        unit = (spread[used] / mass[used] ** 2).sum() / max(float(freedom[used].sum()), 1.0)
        unit = max(unit, LEAST_UNIT * _spread_to_go(q, togo))
        shrunk = (spread + KAPPA * unit * mass**2) / (freedom + KAPPA)
        seen = np.maximum(self.visits.ravel(), 1.0)
        noise = self.noise[j].ravel() / seen
        floor = FLOOR * H * float(np.abs(self.tables[j]).max())
        error = float(np.sqrt((shrunk / times).sum() + (mass**2 * noise).sum() + floor**2 + 1e-300))
        if not slopes:
            return error, np.zeros(0)
        flat = mass * (KAPPA * unit / (freedom + KAPPA) / times + noise)
        slope = np.empty((H, R // n if n > 1 else R))
        for h in range(H):
            rows = slice(None) if n == 1 else slice(h * R // n, (h + 1) * R // n)
            both = self._mean(U * togo[h][self.laws.successors], rows)
            apart = mean[rows] * self._mean(togo[h][self.laws.successors], rows)
            slope[h] = (both - apart) / (freedom[rows] + KAPPA) + flat[rows]
        return error, slope.reshape(q.shape) / error

    @cached_property
    def _row(self) -> Integers:
        """The row of every entry of the kernel."""
        return np.repeat(np.arange(self.visits.size), np.diff(self.laws.pointers))

    def _summed(self, q: Floats, togo: Floats) -> Floats:
        """U of every entry of the kernel."""
        if self.visits.shape[0] > 1:
            h = self._row // q.shape[1]
            return q.ravel()[self._row] * togo[h, self.laws.successors]
        total = np.zeros(self.laws.n_entries)
        for h in range(len(q) - 1):
            total += q[h][self._row] * togo[h][self.laws.successors]
        return total

    def _mean(self, entries: Floats, rows: slice = slice(None)) -> Floats:
        """The mean of what the entries hold, by row."""
        return np.add.reduceat(self.laws.probabilities * entries, self.laws.pointers[:-1])[rows]


def _spread_to_go(q: Floats, togo: Floats) -> float:
    """The variance of what is to come between the states that a policy visits at one step, on average over steps."""
    visited, following = q[1:].sum(axis=2), togo[:-1]
    mean = (visited * following).sum(axis=1, keepdims=True)
    return float((visited * (following - mean) ** 2).sum() / max(len(visited), 1))


def supported(tally: Tally, sample: Sample, start: Floats, least: Tries, allowed: Flags | None = None) -> Supported:
    """The empirical model of some counts; `least`, the tries from which on a row is known, may differ by row."""
    H, S, A, n = tally.horizon, tally.n_states, tally.n_actions, tally.n_steps
    visits = sample.visits.reshape(n, S, A)
    left = np.bincount(sample.rows, sample.times, n * S * A).reshape(n, S, A)
    if n == H:  # nothing follows the last step, so that nothing has to be known of it
        left[-1] = visits[-1]
    seen = (visits > 0.0) & (left > 0.0)
    may = np.ones_like(seen) if allowed is None else np.broadcast_to(allowed, seen.shape)
    known = seen & may & (visits >= least)
    known = np.where(known.any(axis=2, keepdims=True), known, seen & may)
    known = np.where(known.any(axis=2, keepdims=True), known, may)
    means = sample.sums[::2] / np.maximum(sample.visits, 1.0)
    worst = np.where(np.arange(len(means)) == 0, means.min(axis=1), means.max(axis=1))
    means = np.where(sample.visits > 0.0, means, worst[:, None])
    noise = np.array([_noise(sample.visits, *pair) for pair in sample.sums.reshape(-1, 2, n * S * A)])
    return Supported(
        _with_over(means.reshape(-1, n, S, A), 0.0), _with_over(noise.reshape(-1, n, S, A), 0.0),
        _with_over(visits, CERTAIN), _with_over(np.maximum(left, 1.0), CERTAIN),
        _with_over(known, True), _laws(tally, sample), np.r_[start, 0.0],
    )  # fmt: skip


def _noise(visits: Floats, total: Floats, squares: Floats) -> Floats:
    """The variance of one observation of every row, shrunk towards that of all."""
    spread = np.maximum(squares - total**2 / np.maximum(visits, 1.0), 0.0)
    freedom = np.maximum(visits - 1.0, 0.0)
    return (spread + KAPPA * spread.sum() / max(float(freedom.sum()), 1.0)) / (freedom + KAPPA)


def _with_over(table: npt.NDArray[T], value: float) -> npt.NDArray[T]:
    """A table (..., S, A) with the state "over"."""
    return np.concatenate([table, np.full_like(table[..., :1, :], value)], axis=-2)


def padded(policy: Floats) -> Floats:
    """A policy with an action for the state "over"."""
    return np.ascontiguousarray(_with_over(policy, 1.0 / policy.shape[2]), dtype=np.float64)


def _laws(tally: Tally, sample: Sample) -> SparseLaws:
    """The empirical kernel; a row of which no next state was seen stays where it is."""
    S, A, n = tally.n_states, tally.n_actions, tally.n_steps
    step, rest = np.divmod(sample.rows, S * A)
    rows = step * (S + 1) * A + rest
    R = n * (S + 1) * A
    left = np.bincount(rows, sample.times, R)
    lonely = np.flatnonzero(left == 0.0)
    every = np.r_[rows, lonely]
    order = np.argsort(every, kind="stable")
    chance = np.r_[sample.times / left[rows], np.ones(len(lonely))][order]
    following = np.r_[sample.following, lonely // A % (S + 1)][order]
    pointers = np.r_[0, np.cumsum(np.bincount(every, minlength=R))]
    return SparseLaws((tally.horizon, S + 1, A), pointers, following.astype(np.int32), chance)


def _gathered(laws: SparseLaws, rows: Integers) -> SparseLaws:
    """Laws whose row x is row `rows[x]` of other ones."""
    lengths = np.diff(laws.pointers)[rows]
    pointers = np.r_[0, np.cumsum(lengths)]
    entries = np.arange(pointers[-1]) + np.repeat(laws.pointers[rows] - pointers[:-1], lengths)
    return SparseLaws(laws.shape, pointers, laws.successors[entries], laws.probabilities[entries])
