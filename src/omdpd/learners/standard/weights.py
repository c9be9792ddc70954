"""Potential, weights, prices and what solves add to the certificate: rules of numbers.

    Phi(x) = (w0 / beta) (exp(beta x) - 1),      Phi'(x) = w0 exp(beta x)            the paper has w0 = beta

The slope is capped at `w_max`; beyond the cap Phi goes on linearly, so it stays convex and cannot overflow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from omdpd.jit.decorators import entry, short_rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.products import dot, largest

# A violation below this share of max(1, H max|d|) is the solver's noise, not the policy's: ignored, summed, reported.
NOISE = 1e-7
# The hinge weight eta w that a mirror step is given at most; beyond it a constraint is as good as hard.
MAX_WEIGHT = 1e4
# By how much a step that cannot be solved is shortened, in turn, and at most.
SHORTER, SHORTEST = 10.0, 100.0


class Slope(NamedTuple):
    """Phi' = min(w0 exp(beta x), w_max), linear beyond `kink`."""

    w0: float
    beta: float
    w_max: float
    kink: float


@short_rule
def slope_of(w0: float, beta: float, w_max: float) -> Slope:
    """The potential with weight w0 at zero and growth rate beta."""
    return Slope(w0, beta, w_max, max(math.log(w_max / w0), 0.0) / beta)


@short_rule
def growth_rate(gamma_scale: float, n_constraints: int, horizon: int, episodes: float) -> float:
    """gamma = gamma_scale / sqrt(I H K)."""
    return gamma_scale / math.sqrt(n_constraints * horizon * episodes)


@short_rule
def weight_at(phi: Slope, x: float) -> float:
    """Phi'(x)."""
    return min(phi.w0 * math.exp(phi.beta * min(x, phi.kink)), phi.w_max)


@entry
def potential_at(phi: Slope, x: float) -> float:
    """Phi(x)."""
    inside = min(x, phi.kink)
    return (phi.w0 / phi.beta) * math.expm1(phi.beta * inside) + phi.w_max * (x - inside)


@entry
def inverse_potential(phi: Slope, y: float) -> float:
    """The x >= 0 with Phi(x) = y."""
    at_kink = potential_at(phi, phi.kink)
    if y > at_kink:
        return phi.kink + (y - at_kink) / phi.w_max
    return math.log1p(max(y, 0.0) * phi.beta / phi.w0) / phi.beta


@short_rule
def slack(phi: Slope, horizon: int, lagged: bool) -> float:
    """A factor with Phi(V_K) <= factor sum_k w_k x_k for violations x_k <= H: 1, or exp(beta H) if weights lag."""
    return math.exp(phi.beta * horizon) if lagged else 1.0


@short_rule
def heaviest(eta: float) -> float:
    """The weight that a mirror step of this size takes at most."""
    return MAX_WEIGHT / eta


@entry
def add_violation(V: Floats, tables: Floats, q: Floats, horizon: int) -> tuple[float, float]:
    """V_i += [d_i.q]^+ unless it is the solver's noise; the largest that was added, and all that was left out."""
    worst, ignored = 0.0, 0.0
    for i in range(len(V)):
        excess = dot(tables[i], q)
        if excess > NOISE * max(1.0, horizon * largest(tables[i])):
            V[i] += excess
            worst = max(worst, excess)
        elif excess > 0.0:
            ignored += excess
    return worst, ignored


@short_rule
def fair_price(total: float, w0: float, meets_tables: bool) -> float:
    """By what prices are multiplied before a bonus sees them: 1, or less where they are more than w0 in all.

    A plan that meets every revealed table as it is has found a safe way, and pays for its margin at most what a
    violation is worth to begin with, w0 in all: a bonus in units of a price of hundreds makes the next price as high.
    """
    return w0 / total if meets_tables and total > w0 else 1.0


@short_rule
def inexactness(gap: float, horizon: int, eta: float) -> float:
    """What a solve of gap g can add to a certificate: (g + 2 sqrt(H g)) / eta."""
    return (gap + 2.0 * math.sqrt(horizon * gap)) / eta


@short_rule
def surprise_of(at_plan: float, at_best: float, moved: float, eta: float) -> float:
    """delta = [(f - m)(q) - (f - m)(q_hat) - moved / eta]^+, moved = D(q_hat, q) + D(q, q_hat before)."""
    return max(at_plan - at_best - moved / eta, 0.0)


@short_rule
def slower_step(eta: float, surprise: float, horizon: int, c_prime: float) -> float:
    """The next step size: 1 / eta' = 1 / eta + surprise / C', C' = H c'."""
    return 1.0 / (1.0 / eta + surprise / (horizon * c_prime))


@short_rule
def margin_deficit(share: float, charge: float, paid: float) -> float:
    """By how much the penalty `paid` at a plan is less than sum_i w_i x_i, where V grew by x.

    The certificate takes it for at least that, which it is unless the margins in its hinges are below zero.
    """
    return max(charge - paid, 0.0) if share < 0.0 else 0.0


@short_rule
def surrogate_bound(horizon: int, c_prime: float, eta: float, inexact: float, drift: float) -> float:
    """(C + C') / eta_{k+1} >= sum_k f_k(q_k) - f_k(q*), with what inexact solves and moving beliefs add."""
    return horizon * (1.0 + c_prime) / eta + inexact + drift


@entry
def certified(phi: Slope, loose: float, bound: float, potential: float, reward_sum: float) -> tuple[float, float]:
    """What the bound says of regret and of the violation of each constraint: Phi / loose <= sum_k w_k x_k in it."""
    return bound - potential / loose, inverse_potential(phi, loose * (bound + reward_sum))
