"""Means over runs with their intervals, and paired comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omdpd.problem.arrays import Floats


def bootstrap_band(
    curves: Floats, rng: np.random.Generator, level: float = 0.95, n_draws: int = 1000
) -> tuple[Floats, Floats]:
    """A percentile-bootstrap band of the mean of `curves` (runs, points), by redrawing the runs.

    With a single run the band is the run itself.
    """
    n = len(curves)
    picks = rng.multinomial(n, np.full(n, 1.0 / n), size=n_draws) / n
    means = picks @ curves
    tail = 100.0 * (1.0 - level) / 2.0
    low, high = np.percentile(means, [tail, 100.0 - tail], axis=0)
    return low, high


def paired_ratio_interval(
    numerators: Floats, denominators: Floats, rng: np.random.Generator, level: float = 0.9, n_draws: int = 10_000
) -> tuple[float, float, float]:
    """Ratio of means over paired runs, with a percentile-bootstrap interval: (ratio, low, high)."""
    n = len(numerators)
    picks = rng.integers(n, size=(n_draws, n))
    ratios = numerators[picks].mean(axis=1) / denominators[picks].mean(axis=1)
    tail = 100.0 * (1.0 - level) / 2.0
    low, high = np.percentile(ratios, [tail, 100.0 - tail])
    return float(numerators.mean() / denominators.mean()), float(low), float(high)


def paired_difference_interval(
    differences: Floats, rng: np.random.Generator, level: float = 0.95, n_draws: int = 10_000
) -> tuple[float, float, float]:
    """Mean of paired differences with a percentile-bootstrap interval: (mean, low, high)."""
    means = differences[rng.integers(len(differences), size=(n_draws, len(differences)))].mean(axis=1)
    tail = 100.0 * (1.0 - level) / 2.0
    low, high = np.percentile(means, [tail, 100.0 - tail])
    return float(differences.mean()), float(low), float(high)


@dataclass(frozen=True)
class PairedTest:
    """The mean of paired differences, its 95 % interval, and the two-sided p value of Student's test (None: n < 2)."""

    mean: float
    low: float | None
    high: float | None
    p: float | None
    n: int


def paired_test(differences: Floats) -> PairedTest:
    """Student's test that the mean of paired differences is zero.

    >>> round(paired_test(np.array([1.0, 2.0, 3.0])).p, 4)
    0.0742
    """
    from scipy.special import stdtr, stdtrit

    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return PairedTest(mean, None, None, None, n)
    error = float(differences.std(ddof=1) / np.sqrt(n))
    half = float(stdtrit(n - 1, 0.975)) * error
    if error == 0.0:
        return PairedTest(mean, mean, mean, 1.0 if mean == 0.0 else 0.0, n)
    return PairedTest(mean, mean - half, mean + half, float(2.0 * stdtr(n - 1, -abs(mean) / error)), n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's corrected p values: the i-th smallest of m is multiplied by m - i + 1, and they stay in order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    m, largest = len(p_values), 0.0
    corrected = [0.0] * m
    for rank, place in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def exponent_interval(
    early: Floats, late: Floats, k_early: int, k_late: int, rng: np.random.Generator, n_draws: int = 1000
) -> tuple[float, float] | None:
    """A 95 % bootstrap interval of the growth exponent of a mean over runs, from its value at two episodes.

    `early` and `late` (runs,) are the runs' values there.  None for a single run, or where a redrawn mean is not
    positive, because then it has no exponent.
    """
    n = len(early)
    if n < 2:
        return None
    picks = rng.integers(n, size=(n_draws, n))
    a, b = early[picks].mean(axis=1), late[picks].mean(axis=1)
    if min(a.min(), b.min()) <= 0.0:
        return None
    low, high = np.percentile(np.log(b / a) / np.log(k_late / k_early), [2.5, 97.5])
    return float(low), float(high)
