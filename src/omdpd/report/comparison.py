"""Learners against one another on the same seeds: paired differences with Holm's correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from omdpd.report.results import grouped
from omdpd.report.statistics import holm, paired_test
from omdpd.report.thinning import written

# Fewer pairs than this say little, and the page greys them.
FEW_SEEDS = 5
METRICS = ("regret", "violation")


def compared(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A value per world, nature, metric and baseline: what every other learner has more than the baseline.

    One family of Holm's correction are the learners that are compared with one baseline in one place by one metric.
    """
    groups = grouped(records)
    places = dict.fromkeys(key[:2] for key in groups)
    families = []
    for place in places:
        learners = {key[2]: group for key, group in groups.items() if key[:2] == place}
        for metric in METRICS:
            for baseline in learners:
                rows = _family(learners, baseline, metric)
                if rows:
                    names = dict(zip(("world", "nature"), place, strict=True))
                    families.append({**names, "metric": metric, "baseline": baseline, "rows": rows})
    return families


def _family(learners: Mapping[str, Sequence[Mapping[str, Any]]], baseline: str, metric: str) -> list[dict[str, Any]]:
    """The paired differences of all other learners to one of them."""
    ours = {record["seed"]: record[metric] for record in learners[baseline]}
    tests = {}
    for name, group in learners.items():
        pairs = [(record[metric], ours[record["seed"]]) for record in group if record["seed"] in ours]
        if name != baseline and pairs and not any(None in pair for pair in pairs):
            tests[name] = paired_test(np.array([a - b for a, b in pairs]))
    testable = [name for name, test in tests.items() if test.p is not None]
    corrected = dict(zip(testable, holm([p for n in testable if (p := tests[n].p) is not None]), strict=True))
    return [
        {
            "learner": name, "n": test.n, "few": test.n < FEW_SEEDS, "mean": written([test.mean])[0],
            "interval": None if test.low is None or test.high is None else written([test.low, test.high]),
            "p": None if name not in corrected else written([corrected[name]])[0],
        }
        for name, test in tests.items()
    ]  # fmt: skip
