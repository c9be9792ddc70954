"""How far a direction may go, and how far the iterate is from complementary.

A running maximum or sum is kept per row: the compiler does not vectorise one over everything.
"""

from __future__ import annotations

from omdpd.jit.decorators import inline, inner
from omdpd.jit.pointers import assume_distinct
from omdpd.solvers.compiled.box_step import slots as slot
from omdpd.solvers.compiled.entries import sum_of_vector


@inline
def affine_moves(E, rows, b, extent, by_q, most, products):
    """Relative moves dq/q of the predictor; how far these and dw/w, dz/z let the step go; sum dw dw* + dz dz* + dq dnu.

    A multiplier moves by -1 minus its slack's ratio, so the limit is the largest max(-x, 1 + x) = 1/2 + |x + 1/2| over
    the ratios x.  A row without a multiplier of its own only limits the step where q falls.
    """
    assume_distinct()
    S, N = extent
    for n in range(N):
        ratio = rows[slot.OCCUPANCY_MOVE, b, n] / rows[slot.OCCUPANCY, b, n] if rows[slot.LIVE, b, n] > 0.0 else 0.0
        ratio = ratio if rows[slot.NU, b, n] > 0.0 else min(ratio, 0.0)
        by_q[n] = ratio
        most[n] = abs(ratio + 0.5)
        products[n] = -rows[slot.NU, b, n] * rows[slot.OCCUPANCY, b, n] * (ratio * (1.0 + ratio))
    for t in range(S):
        for n in range(N):
            low = E[slot.LOW_SLACK_MOVE, b, t, n] * E[slot.LOW_INVERSE, b, t, n]
            high_move = E[slot.WIDTH, b, t, n] * rows[slot.OCCUPANCY_MOVE, b, n] - E[slot.LOW_SLACK_MOVE, b, t, n]
            high = high_move * E[slot.HIGH_INVERSE, b, t, n]
            low_product = E[slot.LOW_SLACK, b, t, n] * E[slot.LOW_MULTIPLIER, b, t, n]
            high_product = E[slot.HIGH_SLACK, b, t, n] * E[slot.HIGH_MULTIPLIER, b, t, n]
            products[n] -= low_product * (low * (1.0 + low)) + high_product * (high * (1.0 + high))
            low, high = abs(low + 0.5), abs(high + 0.5)
            low = low if low > high else high
            most[n] = low if low > most[n] else most[n]
    return 0.5 + largest(most, N), sum_of_vector(products[:N])


@inner
def largest(values, N):
    """Largest of the first N, or zero."""
    most = 0.0
    for n in range(N):
        if values[n] > most:
            most = values[n]
    return most


@inline
def multiplier_moves(E, rows, b, extent, low_move, high_move, nu_move, most):
    """Moves of the multipliers (which come as the corrections); returns the greatest relative decrease of anything."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        ratio = rows[slot.OCCUPANCY_MOVE, b, n] / rows[slot.OCCUPANCY, b, n] if rows[slot.LIVE, b, n] > 0.0 else 0.0
        nu = rows[slot.NU, b, n]
        move = rows[slot.NU_CORRECTION, b, n] - nu * (1.0 + ratio) if nu > 0.0 else 0.0
        nu_move[n] = move
        fall = -move / nu if nu > 0.0 else 0.0
        most[n] = fall if fall > -ratio else -ratio
    for t in range(S):
        for n in range(N):
            low = -E[slot.LOW_SLACK_MOVE, b, t, n] * E[slot.LOW_INVERSE, b, t, n]
            falling = E[slot.LOW_SLACK_MOVE, b, t, n] - E[slot.WIDTH, b, t, n] * rows[slot.OCCUPANCY_MOVE, b, n]
            high = falling * E[slot.HIGH_INVERSE, b, t, n]
            up = low_move[t, n] - E[slot.LOW_MULTIPLIER, b, t, n] * (1.0 - low)
            down = high_move[t, n] - E[slot.HIGH_MULTIPLIER, b, t, n] * (1.0 - high)
            low_move[t, n] = up
            high_move[t, n] = down
            # One division serves both multipliers.
            first = E[slot.LOW_MULTIPLIER, b, t, n] if E[slot.LOW_MULTIPLIER, b, t, n] > 0.0 else 1.0
            second = E[slot.HIGH_MULTIPLIER, b, t, n] if E[slot.HIGH_MULTIPLIER, b, t, n] > 0.0 else 1.0
            up, down = -up * second, -down * first
            fall = (up if up > down else down) / (first * second)
            low = low if low > high else high
            low = low if low > fall else fall
            most[n] = low if low > most[n] else most[n]
    return largest(most, N)
