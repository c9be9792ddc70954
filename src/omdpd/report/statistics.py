"""Means over runs with their intervals, growth exponents, and paired comparisons: one definition of each.

    mean      +- Student's 95 % half-width over runs: what tables print after a mean, and what figures draw as its band
    exponent  log(late / early) / log(k_late / k_early) of the *mean* curve, with a bootstrap interval over runs;
              none where it would not tell how the curve grows (`telling_exponent`)

Fewer runs than `MIN_RUNS` have no interval: two numbers say next to nothing about how far apart numbers lie.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omdpd.play.judging import growth_exponent, telling_exponent
from omdpd.problem.arrays import Floats

# Fewer runs than this have no interval.
MIN_RUNS = 3
# Redrawn samples of runs behind the interval of an exponent.
N_DRAWS = 2000
# The level of an interval.
LEVEL = 0.95


def half_width(values: Floats) -> Floats | None:
    """Half of Student's 95 % interval of the mean over the first axis of `values`; None for too few runs.

    >>> float(half_width(np.array([1.0, 2.0, 3.0])).round(3))
    2.484
    """
    n = len(values)
    if n < MIN_RUNS:
        return None
    from scipy.special import stdtrit  # slow to import, and most commands need none of it

    return np.asarray(stdtrit(n - 1, (1.0 + LEVEL) / 2.0) * np.std(values, axis=0, ddof=1) / np.sqrt(n))


@dataclass(frozen=True, eq=False)
class Growth:
    """How the mean of some runs grows, from their values (runs,) at two episodes."""

    k_early: int
    k_late: int
    early: Floats
    late: Floats

    @property
    def slope(self) -> float | None:
        """The slope of the logarithm of the mean curve; None unless the mean is positive at both ends."""
        return growth_exponent(self.k_early, float(self.early.mean()), self.k_late, float(self.late.mean()))

    @property
    def exponent(self) -> float | None:
        """The slope, where there are episodes enough for it to tell how the curve grows."""
        return telling_exponent(self.slope, self.k_late)

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The exponent's 95 % interval over runs; None for too few, or where a redrawn mean has no exponent.

        Bias-corrected and accelerated (BCa); where that is undefined, because all runs grow alike, percentiles.
        """
        if self.exponent is None or len(self.early) < MIN_RUNS:
            return None
        return self._bootstrap("BCa") or self._bootstrap("percentile")

    def _bootstrap(self, method: str) -> tuple[float, float] | None:
        from scipy.stats import bootstrap

        span = np.log(self.k_late / self.k_early)

        def slope(early: Floats, late: Floats, axis: int) -> Floats:
            a, b = early.mean(axis=axis), late.mean(axis=axis)
            positive = (a > 0.0) & (b > 0.0)
            return np.where(positive, np.log(np.where(positive, b, 1.0) / np.where(positive, a, 1.0)) / span, np.nan)

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of runs that grow alike, for which BCa is undefined
            low, high = bootstrap(
                (self.early, self.late), slope, paired=True, vectorized=True, n_resamples=N_DRAWS, method=method,
                rng=np.random.default_rng(0),
            ).confidence_interval  # fmt: skip
        return (float(low), float(high)) if np.isfinite([low, high]).all() else None


def power_of(growth: Growth | None) -> str:
    """How a mean curve grows, for a sentence or a table; a dash where it has no exponent."""
    exponent = None if growth is None else growth.exponent
    return "-" if exponent is None else f"K^{exponent:.2f}"


@dataclass(frozen=True)
class PairedTest:
    """The mean of paired differences, its 95 % interval, and the two-sided p value of Student's test.

    Of fewer than `MIN_RUNS` pairs the mean is all there is.
    """

    mean: float
    low: float | None
    high: float | None
    p: float | None
    n: int


def paired_test(differences: Floats) -> PairedTest:
    """Student's test that the mean of paired differences is zero.

    (A permutation test of n pairs has no p value below 2^(1 - n), which is 0.06 for five seeds.)

    >>> round(paired_test(np.array([1.0, 2.0, 3.0])).p, 4)
    0.0742
    """
    from scipy.special import stdtr

    n, mean = len(differences), float(differences.mean())
    half = half_width(differences)
    if half is None:
        return PairedTest(mean, None, None, None, n)
    error = float(differences.std(ddof=1) / np.sqrt(n))
    if error == 0.0:
        return PairedTest(mean, mean, mean, 1.0 if mean == 0.0 else 0.0, n)
    p = float(2.0 * stdtr(n - 1, -abs(mean) / error))
    return PairedTest(mean, mean - float(half), mean + float(half), p, n)


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
