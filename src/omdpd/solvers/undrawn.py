"""The best policy that never draws and meets the budgets, with what no such policy exceeds: branch and bound.

    max r.q   subject to   d_j.q <= 0,   q of a policy that plays one action in each place

With draws this is solved (`columns.py`), which bounds it.  Where the optimum draws, the problem is split in two: one
action alone is allowed there, or every other.  What is split next is what has the largest bound, and a part is done
with that earns no more than a policy found.  So the search ends with a proof, or with a bound after so many parts.
Among unsafe policies the largest excess in given units counts.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.solvers.columns import ROUNDING, Bools, Mixture, PlayedProblem, Vertex, best_mixture, restricted
from omdpd.solvers.compiled.listed import Codes

# Parts that are solved: at most so many, and fewer where they have many entries, of which each is swept so often.
MOST_PARTS, SWEEPS, MAX_SWEPT = 500, 50, 10**9
# Halves are followed down to a policy that never draws, and then so many times as many parts by their bounds.
DIVES = 2
# What is proved up to this, relative to the value, is proved.
PROVED = 1e-10


class _Part(NamedTuple):
    """Where these actions (H, S, A) alone are allowed: minus the bound, and the mixture that has it; none are equal."""

    minus: float
    place: int
    allowed: Bools
    mixture: Mixture


@dataclass
class _Best:
    """The best policy so far: how it ranks (its largest excess in `units` (m,), and minus its value), what it plays."""

    problem: PlayedProblem
    units: Floats
    rank: tuple[float, float] = (np.inf, np.inf)
    codes: Codes = field(init=False)

    def keep(self, codes: Codes) -> None:
        """Keep a policy that is better."""
        totals, never = self.problem.totals(codes), self.problem.never
        exact = np.where(never if never.size else np.False_, 0.0, ROUNDING * len(codes))
        over = np.where(totals[1:] > exact, totals[1:], 0.0) * self.units
        rank = float(over.max(initial=0.0)), -float(totals[0])
        if rank < self.rank:
            self.rank, self.codes = rank, codes

    @property
    def beaten(self) -> float:
        """What a policy has to earn to be better."""
        excess, minus = self.rank
        return -np.inf if excess else PROVED * max(1.0, abs(minus)) - minus


def undrawn(problem: PlayedProblem, mixture: Mixture, least: tuple[Vertex, ...], units: Floats) -> tuple[Codes, float]:
    """The best policy found that never draws, and what no safe one exceeds: minus infinity where there is none.

    Where none is found that is safe, it is the one whose excess is least.
    """
    H = problem.laws.shape[0]
    entries = max(problem.laws.n_entries * (1 if problem.laws.n_steps == H else H), 1)
    best = _Best(problem, units)
    for vertex in (*(vertex for _, vertex in mixture.held), *least):
        best.keep(problem.codes(vertex))
    most = min(MAX_SWEPT // (SWEEPS * entries), MOST_PARTS)
    at_most = _split(best, mixture, most) if mixture.feasible else -np.inf
    excess, minus = best.rank
    return best.codes, at_most if excess else max(at_most, -minus)


def _split(best: _Best, mixture: Mixture, most: int) -> float:
    """Solve parts, and keep the best policy; return what no safe policy exceeds."""
    problem, actions = best.problem, np.arange(best.problem.laws.shape[2])
    own = np.broadcast_to(np.True_ if problem.place is None else problem.place == actions, problem.laws.shape)
    left, done = [_Part(-mixture.bound, 0, own, mixture)], -np.inf
    n = begun = again = 0
    part: _Part | None = None
    while n < most:
        if part is None:  # not under way to a policy that never draws
            if not left or -left[0].minus <= best.beaten:
                break
            part, begun = heapq.heappop(left), n
        place = _apart(restricted(problem, part.allowed), part.mixture)
        if place is None:  # nothing is drawn, and rounding decides whether it is safe
            done, part = max(done, -part.minus), None
            continue
        halves = []
        for kept in (actions == place[2], actions != place[2]):
            allowed = part.allowed.copy()
            allowed[place[:2]] &= kept
            within = restricted(problem, allowed)
            found, n = best_mixture(within), n + 1
            for _, vertex in found.held:
                best.keep(within.codes(vertex))
            halves += [_Part(-found.bound, n, allowed, found)] * found.feasible
        halves = sorted(half for half in halves if -half.minus > best.beaten)
        part = halves.pop(0) if begun >= again and halves else None
        again = n + DIVES * (n - begun) if begun >= again and part is None else again
        for half in halves:
            heapq.heappush(left, half)
    return max(done, *(-half.minus for half in left), -np.inf if part is None else -part.minus)


def _apart(problem: PlayedProblem, mixture: Mixture) -> tuple[int, int, int] | None:
    """Where the policies of a mixture differ, of the places that all of them reach the most visited; and an action."""
    played = np.array([problem.codes(vertex) for _, vertex in mixture.held])
    often = np.min([problem.often(codes) for codes in played], axis=0)
    often = np.where((played >> 1 != played[0] >> 1).any(axis=0), often, 0.0)
    h, s = divmod(int(often.argmax()), often.shape[1])
    return (h, s, int(played[0, h, s] >> 1)) if often[h, s] > 0.0 else None
