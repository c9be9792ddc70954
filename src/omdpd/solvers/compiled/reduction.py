"""Chains whose steps are short, reduced state by state: nothing is ever subtracted, so every digit is kept.

Row i of `band` (n, 2 w + 1) has the chance of a step from i to j at w + j - i; `leak` (n,), which is positive, has that
of a step out of the chain.  States are taken out from the last to the first (Grassmann, Taksar, Heyman).  A state that
is taken out keeps the chances of steps to lower states; how often others come there before is left in their rows:

    x_k = (r_k + sum_{j<k} p_kj x_j) / s_k,    s_k = leak_k + sum_{j<k} p_kj,    r_i += (p_ik / s_k) r_k  for i < k
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import entry
from omdpd.problem.arrays import Floats


@entry
def reduced(band: Floats, leak: Floats) -> Floats:
    """Take all states out, in place; s (n,)."""
    n, width = band.shape[0], band.shape[1] // 2
    left = np.zeros(n)
    for k in range(n - 1, -1, -1):
        low = max(0, k - width)
        s = leak[k]
        for j in range(low, k):
            s += band[k, width + j - k]
        left[k] = s
        for i in range(low, k):
            share = band[i, width + k - i] / s
            band[i, width + k - i] = share
            if share > 0.0:
                leak[i] += share * leak[k]
                for j in range(low, k):
                    band[i, width + j - i] += share * band[k, width + j - k]
    return left


@entry
def gathered(band: Floats, right: Floats) -> None:
    """What lower states get of each that was taken out, in place (n,)."""
    n, width = band.shape[0], band.shape[1] // 2
    for k in range(n - 1, -1, -1):
        for i in range(max(0, k - width), k):
            right[i] += band[i, width + k - i] * right[k]


@entry
def put_back(band: Floats, left: Floats, right: Floats) -> None:
    """The solution from what was gathered, in place (n,)."""
    n, width = band.shape[0], band.shape[1] // 2
    for k in range(n):
        total = right[k]
        for j in range(max(0, k - width), k):
            total += band[k, width + j - k] * right[j]
        right[k] = total / left[k]


@entry
def flow(band: Floats, left: Floats, mass: Floats) -> None:
    """How often a chain that begins by `mass` (n,) is in each state before it leaves, in place."""
    n, width = band.shape[0], band.shape[1] // 2
    for k in range(n - 1, -1, -1):
        mass[k] /= left[k]
        for j in range(max(0, k - width), k):
            mass[j] += band[k, width + j - k] * mass[k]
    for k in range(n):
        for i in range(max(0, k - width), k):
            mass[k] += band[i, width + k - i] * mass[i]
