"""The estimates of `EmpiricalEstimator` by rows of the graph of what was visited."""

from __future__ import annotations

import numpy as np

from omdpd.beliefs.confidence import EmpiricalEstimator, Estimate, log_term
from omdpd.beliefs.layouts import Layout
from omdpd.beliefs.visits import Visits
from omdpd.problem.setting import Setting
from omdpd.solvers.graph import Graph


def empirical_rows(
    estimator: EmpiricalEstimator, setting: Setting, visits: Visits, layout: Layout, k: int
) -> Estimate[Graph]:
    """r~, d~, d_hat, the margin and p_hat before episode k: what the estimator says of every row, once per class."""
    n, ends = visits.visits, layout.seen.ends
    L = log_term(setting, k, estimator.delta)
    width = np.sqrt(L / n)
    reward = visits.reward_sum / n + estimator.reward_scale * width + estimator.one_over_n / n
    hoped = 1.0 + estimator.reward_scale * float(np.sqrt(L)) + estimator.one_over_n
    shrunk = visits.cost_sum / np.maximum(n + estimator.pseudo_observations, 1.0)
    cost = np.clip(shrunk + estimator.kappa * width, -1.0, 1.0)
    leaves = np.repeat(np.arange(n.size), np.diff(ends))
    departures = np.bincount(leaves, visits.move_counts, n.size)
    probabilities = (visits.move_counts / departures[leaves])[layout.source]
    spread = np.where(np.diff(layout.entries) == 0, 1.0, 0.0)
    return Estimate(
        layout.values(reward, hoped), layout.values(cost, 0.0), layout.values(visits.cost_sum / n, 0.0),
        layout.values(estimator.kappa * width, estimator.kappa * float(np.sqrt(L))),
        layout.graph(probabilities, spread, setting.n_states),
    )  # fmt: skip
