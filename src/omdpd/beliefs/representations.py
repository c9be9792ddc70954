"""The same questions of beliefs held in tables (`learning`) and on the graph of what was visited (`layouts`).

Which of the two is meant is seen from the counts: `Counts` are tables, `Visits` are lists.
"""

from __future__ import annotations

from omdpd.beliefs import learning
from omdpd.beliefs.confidence import EmpiricalEstimator, Estimate, Estimator
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.empirical_rows import empirical_rows
from omdpd.beliefs.layouts import Layout
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.shared_rows import Scores, SharedRows, shared_row_estimate, shared_rows
from omdpd.beliefs.sharing import Evidence, SharedKernel
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.beliefs.visits import Visits
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.regions import Region


def counts_after(counts: Counts | Visits, feedback: Feedback) -> Counts | Visits:
    """The counts with one more episode."""
    return counts.add(feedback) if isinstance(counts, Visits) else learning.counts_after(counts, feedback)


def evidence_after(evidence: Evidence | Scores, counts: Counts | Visits, feedback: Feedback) -> Evidence | Scores:
    """The evidence with one more episode; `counts` are those before it."""
    if isinstance(evidence, Scores):
        assert isinstance(counts, Visits)
        return evidence.after(counts, feedback)
    assert isinstance(counts, Counts)
    return learning.evidence_after(evidence, counts, feedback)


def layout_of(setting: Setting, counts: Counts | Visits) -> Layout | None:
    """The graph of what was visited, before its laws; None where counts are tables."""
    return Layout.of(setting, counts) if isinstance(counts, Visits) else None


def estimate(
    estimator: Estimator, setting: Setting, counts: Counts | Visits, layout: Layout | None, k: int
) -> Estimate[Region]:
    """What an estimator without sharing believes before zero-based episode k."""
    if isinstance(counts, Counts):
        return learning.estimate(estimator, setting, counts, k)
    assert isinstance(estimator, EmpiricalEstimator)
    assert layout is not None
    return empirical_rows(estimator, setting, counts, layout, k)


def shared_estimate(
    estimator: SharingEstimator,
    setting: Setting,
    counts: Counts | Visits,
    layout: Layout | None,
    evidence: Evidence | Scores,
    prices: Prices,
    caution: Caution,
) -> tuple[Estimate[Region], SharedKernel | SharedRows]:
    """What an estimator believes that shares between steps, and the kernel's error."""
    if isinstance(counts, Counts):
        assert isinstance(evidence, Evidence)
        return learning.shared_estimate(estimator, setting, counts, evidence, prices, caution)
    assert isinstance(evidence, Scores)
    assert layout is not None
    return shared_row_estimate(estimator, setting, counts, evidence, layout, prices, caution)


def kernel_with_error(
    estimator: SharingEstimator, setting: Setting, counts: Counts | Visits, evidence: Evidence | Scores
) -> SharedKernel | SharedRows:
    """The kernel of the shared estimates alone."""
    if isinstance(counts, Counts):
        assert isinstance(evidence, Evidence)
        return learning.kernel_with_error(estimator, counts, evidence)
    assert isinstance(evidence, Scores)
    return shared_rows(estimator, counts, evidence, Layout.of(setting, counts))
