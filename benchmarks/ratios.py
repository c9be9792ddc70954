"""Ratios of means over paired runs, with their intervals: what the bars of a build are about."""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats


def paired_ratio_interval(
    numerators: Floats, denominators: Floats, rng: np.random.Generator, level: float = 0.9, n_draws: int = 10_000
) -> tuple[float, float, float]:
    """Ratio of means over paired runs, with a percentile-bootstrap interval: (ratio, low, high)."""
    from scipy.stats import bootstrap

    def ratio(above: Floats, below: Floats, axis: int) -> Floats:
        return np.asarray(above.mean(axis=axis) / below.mean(axis=axis))

    low, high = bootstrap(
        (numerators, denominators), ratio, paired=True, vectorized=True, n_resamples=n_draws, confidence_level=level,
        method="percentile", rng=rng,
    ).confidence_interval  # fmt: skip
    return float(numerators.mean() / denominators.mean()), float(low), float(high)
