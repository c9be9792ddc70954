"""A good policy that never draws and meets the budgets: the best that is found, not proved to be the best.

Such policies are searched from several starts: those that the optimum mixes, those that differ from it where it draws,
and those that are best at higher prices.  Then one place at a time is changed, and in the end two at once.  Every
policy is evaluated exactly; unsafe ones count by how much they exceed the budgets, and among safe ones value counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, product

import numpy as np

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.columns import NEVER, ROUNDING, Mixture, PlayedProblem, Vertex
from omdpd.solvers.compiled.listed import Codes

# Policies that are evaluated: at most so many, and fewer where a sweep has many entries, but always some.
MOST, LEAST, MAX_ENTRIES = 20_000, 100, 10**9
# Starts that are searched from; one alone where policies have more places than that.
N_STARTS, MAX_PLACES = 6, 2**24
# Policies that play one action where the optimum draws.
MAX_ROUNDED = 64
# By how much prices are raised, and what a price of zero counts as, relative to the largest.
RAISED, LOW = (1.02, 1.1, 1.3, 2.0, 5.0), 0.05
# Changes of which two are made at once, and pairs of them that are evaluated.
N_PAIRED, N_PAIRS = 300, 400


@dataclass
class Found:
    """A policy that never draws: what it plays, what it earns and costs (1 + m,), and how it ranks (less is better)."""

    codes: Codes
    totals: Floats
    rank: tuple[float, float]

    @property
    def safe(self) -> bool:
        """Whether it meets every budget."""
        return self.rank[0] == 0.0


@dataclass
class _Search:
    """What is left to be evaluated, in a problem with these prices."""

    problem: PlayedProblem
    prices: Floats
    left: int
    exact: Floats = field(init=False)

    def __post_init__(self) -> None:
        never, H = self.problem.never, self.problem.laws.shape[0]
        self.exact = np.where(never if never.size else np.zeros(len(self.prices), bool), 0.0, ROUNDING * H)

    def judged(self, codes: Codes) -> Found:
        self.left -= 1
        totals = self.problem.totals(codes)
        over = np.maximum(totals[1:] - self.exact, 0.0)
        return Found(codes, totals, (float(over.sum()), -float(totals[0])))

    def changes(self, codes: Codes) -> Iterator[tuple[int, int, int]]:
        """Other actions (step, state, code), at the places that are reached, the most visited first."""
        often, place = self.problem.often(codes), self.problem.place
        for cell in np.argsort(-often, axis=None, kind="stable")[: np.count_nonzero(often)].tolist():
            h, s = divmod(cell, codes.shape[1])
            for a in range(self.problem.laws.shape[2]):
                is_own = place is None or place[min(h, len(place) - 1), s, a] == a
                if is_own and a != codes[h, s] >> 1:
                    yield h, s, 2 * a

    def climbed(self, start: Found) -> Found:
        """A policy that no change of one place improves, or as far as it came."""
        best, moved = Found(start.codes.copy(), start.totals, start.rank), True
        while moved:
            moved = False
            for h, s, code in self.changes(best.codes):
                if self.left <= 0:
                    return best
                before, best.codes[h, s] = best.codes[h, s], code
                tried = self.judged(best.codes)
                if tried.rank < best.rank:
                    best, moved = tried, True
                else:
                    best.codes[h, s] = before
        return best

    def paired(self, best: Found) -> Found:
        """A better policy that differs at two places, or the same; pairs are chosen as if changes added up."""
        codes, made, moved = best.codes.copy(), [], []
        for h, s, code in self.changes(best.codes):
            if self.left <= 0:
                break
            before, codes[h, s] = codes[h, s], code
            made.append((h, s, code))
            moved.append(self.judged(codes).totals - best.totals)
            codes[h, s] = before
        if not made:
            return best
        by = np.array(moved)
        near = np.argsort(by[:, 1:] @ self.prices - by[:, 0], kind="stable")[:N_PAIRED]
        both = best.totals + by[near][:, None] + by[near][None]
        i, j = np.nonzero(np.triu((both[..., 1:] <= 0.0).all(axis=-1) & (both[..., 0] > best.totals[0]), 1))
        for k in np.argsort(-both[i, j, 0], kind="stable")[: min(N_PAIRS, max(self.left, 0))].tolist():
            codes = best.codes.copy()
            for h, s, code in (made[near[i[k]]], made[near[j[k]]]):
                codes[h, s] = code
            tried = self.judged(codes)
            if tried.rank < best.rank:
                return tried
        return best


def undrawn(problem: PlayedProblem, mixture: Mixture, least: tuple[Vertex, ...]) -> Found:
    """The best policy found that never draws; where none is found that is safe, the one that exceeds budgets least."""
    H, S, _ = problem.laws.shape
    entries = problem.laws.n_entries * (1 if problem.laws.n_steps == H else H)
    search = _Search(problem, mixture.prices, int(np.clip(MAX_ENTRIES // max(entries, 1), LEAST, MOST)))
    kept: list[Found] = []
    for codes in _starts(problem, mixture, least):
        tried = search.judged(codes)
        if search.left <= 0:
            break
        if all(tried.rank != other.rank for other in kept):
            kept = sorted([*kept, tried], key=lambda each: each.rank)[: N_STARTS if H * S <= MAX_PLACES else 1]
    best = min((search.climbed(start) for start in kept), key=lambda each: each.rank)
    while search.left > 0:
        before, best = best.rank, search.paired(best)
        if best.rank == before:
            break
        best = search.climbed(best)
    return best


def _starts(problem: PlayedProblem, mixture: Mixture, least: tuple[Vertex, ...]) -> Iterator[Codes]:
    """Policies to search from: those of the mixture, between them, at higher prices, and the safest by each table."""
    yield from (problem.codes(vertex) for _, vertex in mixture.held)
    yield from _rounded(problem, mixture)
    prices = mixture.prices
    raised = np.maximum(prices, LOW * max(float(prices[prices < NEVER].max(initial=0.0)), LOW))
    for factor in RAISED if len(prices) else ():
        for which in [*np.eye(len(prices), dtype=bool), np.ones(len(prices), bool)]:
            yield problem.codes(problem.best(np.r_[1.0, -np.where(which, factor, 1.0) * raised])[0])
    yield from (problem.codes(vertex) for vertex in least)


def _rounded(problem: PlayedProblem, mixture: Mixture) -> Iterator[Codes]:
    """Policies that play one of its actions wherever the optimum draws, in all combinations of the first places."""
    drawn = problem.packed(mixture)
    codes, S = drawn.greedy().codes & ~np.array(1, drawn.codes.dtype), drawn.codes.shape[1]
    first = np.argsort(-drawn.mass, kind="stable")[: MAX_ROUNDED.bit_length() - 1]
    actions: list[Integers] = [np.flatnonzero(row > 0.0) for row in drawn.rows[first]]
    for chosen in islice(product(*actions), MAX_ROUNDED if len(first) else 0):
        played = codes.copy()
        played[drawn.places[first] // S, drawn.places[first] % S] = 2 * np.array(chosen)
        yield played
