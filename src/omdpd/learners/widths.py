"""Widths say how far means of counts may be off, in the forms that rivals' papers give them."""

from __future__ import annotations

from typing import Any

import numpy as np

from omdpd.beliefs.confidence import effective_episodes, log_term
from omdpd.beliefs.counts import Counts
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting


def mean_width(setting: Setting, counts: Counts, k: int, delta: float) -> Floats:
    """sqrt(L / (n v 1)) before zero-based episode k, by which a mean may be off; (H, S, A)."""
    width: Floats = np.sqrt(log_term(setting, k, delta) / np.maximum(counts.visits, 1.0))
    return width


def uniform_width(setting: Setting, counts: Counts, k: int, delta: float) -> Floats:
    """beta = sqrt(ln(16 S^2 A H K / delta) / (n v 1)), the width of OptPess-LP and OptPess-PrimalDual; (H, S, A)."""
    H, S, A = setting.shape
    Z = np.log(16.0 * S**2 * A * H * effective_episodes(setting, k) / delta)
    width: Floats = np.sqrt(Z / np.maximum(counts.visits, 1.0))
    return width


def bounded_cost(learner: Any, state: Any, counts: Counts, mean: Floats, sign: float) -> Floats:
    """mean + sign cost_scale `mean_width` in [-1, 1], `sign` where nothing was seen: a cost at best or at worst."""
    width = learner.cost_scale * mean_width(state.setting, counts, state.k, learner.delta)
    # What np.clip says, in a fifth of its time for tables of this size.
    return np.where(counts.visits > 0.0, np.minimum(np.maximum(mean + sign * width, -1.0), 1.0), sign)
