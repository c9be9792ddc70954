"""Fewer numbers for the same picture: which episodes of a curve are kept, and how numbers are written.

Thinning keeps what an eye would miss: the ends, an even and a logarithmic grid, in every stretch of episodes the
highest and the lowest point of the mean, and the highest and the lowest point of every single curve.
"""

from __future__ import annotations

import base64
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, Integers

# Significant digits of a number on a page: a thousandth of a pixel on any screen.
DIGITS = 5
# A probability is sent as a sixteen-bit share of this.
WHOLE = 65535


def kept_places(episodes: Floats, curves: Floats, points: int) -> Integers:
    """The places of `episodes` (n,) that are kept of `curves` (runs, n): about `points`, with their extremes.

    >>> kept_places(np.arange(1.0, 1001.0), np.arange(1000.0)[None], 20)[[0, -1]]
    array([  0, 999])
    """
    n = len(episodes)
    if n <= points:
        return np.arange(n)
    share = max(points // 4, 2)
    even = np.linspace(0, n - 1, share).round().astype(np.int64)
    spread = np.searchsorted(episodes, np.geomspace(episodes[0], episodes[-1], share))
    edges = np.linspace(0, n, share + 1).astype(np.int64)
    mean = curves.mean(axis=0)
    high = [a + int(np.argmax(mean[a:b])) for a, b in pairwise(edges)]
    low = [a + int(np.argmin(mean[a:b])) for a, b in pairwise(edges)]
    ends = np.concatenate([curves.argmax(axis=1), curves.argmin(axis=1)])
    return np.unique(np.concatenate([even, np.minimum(spread, n - 1), high, low, ends, [0, n - 1]]))


def bucket_maxima(episodes: Floats, values: Floats, n_buckets: int, n_episodes: int) -> list[float | None]:
    """The largest of `values` within each of `n_buckets` equal stretches of 1..n_episodes; None without any.

    >>> bucket_maxima(np.array([1.0, 2.0, 3.0]), np.array([0.0, 5.0, 1.0]), 2, 4)
    [5.0, 1.0]
    """
    where = np.minimum(((episodes - 1.0) * n_buckets / n_episodes).astype(np.int64), n_buckets - 1)
    largest = np.full(n_buckets, -np.inf)
    np.maximum.at(largest, where, values)
    return [None if x == -np.inf else float(f"{x:.3g}") for x in largest]


def rounded_for_json(values: npt.ArrayLike) -> Any:
    """Numbers with `DIGITS` significant digits as nested lists, with None in place of nan and infinities.

    >>> rounded_for_json([1.23456789, float("nan"), 123456.7])
    [1.2346, None, 123460.0]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        return [rounded_for_json(row) for row in array]
    return [float(f"{x:.{DIGITS}g}") if np.isfinite(x) else None for x in array.tolist()]


def shares(values: npt.ArrayLike) -> str:
    """Probabilities as sixteen-bit numbers in base64, the last axis fastest: what the page unpacks."""
    whole = np.rint(np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0) * WHOLE).astype("<u2")
    return base64.b64encode(whole.tobytes()).decode()
