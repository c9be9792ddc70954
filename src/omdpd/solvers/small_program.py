"""A convex quadratic program with a handful of unknowns and some hundreds of rows, dense.

    minimise  1/2 x.diag(p).x + c.x     subject to  G x <= h

Mehrotra's predictor and corrector from a strictly feasible x: a step solves one system as small as x.  Its multipliers
are those of the rows that bind, solved for once more; what is wanted of the answer is certified by the caller.
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats

# Each iteration gains a digit or two; a program that is not solved by then does not become so.
MAX_ITERATIONS = 60
# Where the complementarity, relative to the size of the objective, is rounding.
PROGRAM_TOLERANCE = 1e-13
# How far a step goes towards the boundary.
SHARE = 0.995


def small_program(p: Floats, c: Floats, G: Floats, h: Floats, start: Floats) -> tuple[Floats, Floats]:
    """The minimiser (n,) and the rows' multipliers (m,), from a `start` with G x < h; G has full column rank."""
    x, slack = start.copy(), h - G @ start
    z = np.full(len(h), max(1.0, float(np.abs(c).max())))
    best, least = (x, z), np.inf
    for _ in range(MAX_ITERATIONS):
        slope, gap = p * x + c + G.T @ z, float(slack @ z) / len(h)
        # Of the point itself, whatever became of the slack on the way: a late step without digits may leave the region.
        error = _error(p, c, G, h, x, z)
        if error < least:
            best, least = (x, z), error
        if not error > PROGRAM_TOLERANCE:  # or not a number any more
            break
        try:
            factor: Floats = np.linalg.inv(np.diag(p) + G.T @ ((z / slack)[:, None] * G)).astype(np.float64)
        except np.linalg.LinAlgError:  # no digits are left: the answer is as good as it gets
            break
        dx, ds, dz = _direction(factor, G, slope, slack, z, slack * z)
        reach = min(_reach(slack, ds), _reach(z, dz))
        after = float((slack + reach * ds) @ (z + reach * dz)) / len(h)
        centre = gap * (after / gap) ** 3
        dx, ds, dz = _direction(factor, G, slope, slack, z, slack * z + ds * dz - centre)
        primal, dual = (min(1.0, SHARE * _reach(*pair)) for pair in ((slack, ds), (z, dz)))
        x, z = x + primal * dx, z + dual * dz
        slack = slack + primal * ds
    return _polished(p, c, G, h, *best)


def _polished(p: Floats, c: Floats, G: Floats, h: Floats, x: Floats, z: Floats) -> tuple[Floats, Floats]:
    """The point where the rows that bind hold exactly, if it is optimal too; else the one that was found.

    Near the solution the small system has few digits left; the one of the rows that bind has nearly all.
    """
    binding = z > h - G @ x
    rows, n = G[binding], len(x)
    system = np.block([[np.diag(p), rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    exact = np.linalg.lstsq(system, np.r_[-c, h[binding]])[0]
    multipliers = np.zeros(len(h))
    multipliers[binding] = np.maximum(exact[n:], 0.0)
    before, after = (_error(p, c, G, h, *point) for point in ((x, z), (exact[:n], multipliers)))
    return (exact[:n], multipliers) if after < before else (x, z)


def _error(p: Floats, c: Floats, G: Floats, h: Floats, x: Floats, z: Floats) -> float:
    """How far a point with z >= 0 is from optimal: slope, rows that are broken, and complementarity."""
    slack = h - G @ x
    slope = float(np.abs(p * x + c + G.T @ z).max())
    return max(slope, float(-slack.min()), float(np.abs(slack * z).max()))


def _direction(
    factor: Floats, G: Floats, slope: Floats, slack: Floats, z: Floats, products: Floats
) -> tuple[Floats, Floats, Floats]:
    """Newton's step towards slope 0 and slack_i z_i less by `products`; G dx + ds = 0 keeps x feasible."""
    dx = factor @ (-slope + G.T @ (products / slack))
    ds = -(G @ dx)
    return dx, ds, -(products + z * ds) / slack


def _reach(values: Floats, change: Floats) -> float:
    """The largest step up to one that keeps values positive."""
    falling = change < 0.0
    return min(1.0, float((values[falling] / -change[falling]).min())) if falling.any() else 1.0
