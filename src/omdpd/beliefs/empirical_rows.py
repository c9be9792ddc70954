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
    leaves = np.repeat(np.arange(n.size), np.diff(ends))
    departures = np.bincount(leaves, visits.move_counts, n.size)
    probabilities = (visits.move_counts / departures[leaves])[layout.source]
    spread = np.where(np.diff(layout.entries) == 0, 1.0, 0.0)
    # One row more, which nobody visited, stands for all such rows.
    sums = [np.append(each, np.zeros((*each.shape[:-1], 1)), -1) for each in (n, visits.reward_sum, visits.cost_sum)]
    means = estimator.means(sums[0], sums[1], sums[2], log_term(setting, k, estimator.delta))
    reward, cost, mean, margin = (each[..., layout.visited] for each in means)
    return Estimate(reward, cost, mean, margin, layout.graph(probabilities, spread, setting.n_states))
