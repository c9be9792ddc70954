"""Means over runs with bootstrap intervals."""

from __future__ import annotations

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
