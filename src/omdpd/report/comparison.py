"""Learners against one another on the same seeds: paired differences with Holm's correction, and ranks.

difference   mean over seeds of theirs - the yardstick's; a bias-corrected and accelerated (BCa) bootstrap interval,
and the p value of the test that flips signs (exact while there are few seeds), corrected by Holm
rank         a learner's place by a number, redrawn over seeds: its mean, a 95 % interval, how often it is first
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.report.results import grouped
from omdpd.report.statistics import holm, paired_test
from omdpd.report.thinning import written

# Fewer pairs than this say little, and the page greys them.
FEW_SEEDS = 5
METRICS = ("regret", "violation")
# What tuning and ranks are about: positive regret and strong violation, added.
CRITERION = "regret + violation"
# Redrawn samples of seeds behind an interval.
N_DRAWS = 2000
# All flips of signs of up to 14 pairs are counted, of more so many are drawn: with fewer, p would not get below 1e-3.
N_FLIPS = 2**14
# Fewer pairs have neither an interval nor a test.
MIN_PAIRS = 3


@dataclass(frozen=True)
class Difference:
    """What a learner has more of a number than the yardstick on the same seeds; None where it cannot be said."""

    world: str
    nature: str
    learner: str
    against: str
    metric: str
    n: int
    mean: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None = None


@dataclass(frozen=True)
class Rank:
    """A learner's place among the learners of one world and nature (1 is best), over redrawn seeds."""

    world: str
    nature: str
    learner: str
    metric: str
    n: int
    value: float
    rank: float
    low: float
    high: float
    first: float


def differences(records: Sequence[Mapping[str, Any]], against: str) -> list[Difference]:
    """The paired differences of every learner to the yardstick, wherever both played.

    `against` is the learner's name, with or without its settings.  One family of Holm's correction are the learners
    that are compared with it in one world and nature by one metric.
    """
    groups = grouped(records)
    if not any(_is(learner, against) for _, _, learner in groups):
        there = ", ".join(dict.fromkeys(learner for _, _, learner in groups))
        raise InvalidInputError(f"nobody was compared under the name {against!r}; there are {there}")
    found = []
    for place in dict.fromkeys((key[0], key[1]) for key in groups):
        learners = {key[2]: group for key, group in groups.items() if key[:2] == place}
        yardsticks = [name for name in learners if _is(name, against)]
        if yardsticks:
            for metric in METRICS:
                found += _corrected(_pairs(learners, yardsticks[0], metric, place))
    return found


def ranks(records: Sequence[Mapping[str, Any]]) -> list[Rank]:
    """Places by positive regret plus violation among the learners that played the same seeds, best first."""
    groups = grouped(records)
    found = []
    for place in dict.fromkeys((key[0], key[1]) for key in groups):
        learners = {key[2]: {r["seed"]: _loss(r) for r in group} for key, group in groups.items() if key[:2] == place}
        seeds = sorted(set.intersection(*(set(losses) for losses in learners.values())))
        if seeds:
            table = np.array([[losses[seed] for seed in seeds] for losses in learners.values()])
            found += _ranked(place, list(learners), table)
    return found


def tidy_csv(rows: Sequence[Any]) -> str:
    """Dataclasses of one kind as CSV: a header, numbers as numbers, nothing where there is none."""
    text = io.StringIO()
    names = [field.name for field in fields(rows[0])] if rows else []
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def bca_interval(values: Floats) -> tuple[float, float] | None:
    """A 95 % interval of the mean by the BCa bootstrap; None for too few values, the mean itself if all are equal."""
    from scipy.stats import bootstrap

    if len(values) < MIN_PAIRS:
        return None
    if np.all(values == values[0]):
        return float(values[0]), float(values[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an undefined correction is no interval
        try:
            answer = bootstrap(
                (values,), np.mean, vectorized=True, n_resamples=N_DRAWS, rng=np.random.default_rng(0)
            )  # fmt: skip
        except Warning:
            return None
    return float(answer.confidence_interval.low), float(answer.confidence_interval.high)


def sign_flip_p(values: Floats) -> float | None:
    """The two-sided p value that the mean is zero, under flips of signs; None for too few values.

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0, 4.0]))
    0.125
    """
    from scipy.stats import permutation_test

    if len(values) < MIN_PAIRS:
        return None
    answer = permutation_test(
        (values,), np.mean, permutation_type="samples", vectorized=True, n_resamples=N_FLIPS,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    return min(float(answer.pvalue), 1.0)


def _pairs(
    learners: Mapping[str, Sequence[Mapping[str, Any]]], yardstick: str, metric: str, place: tuple[str, str]
) -> list[Difference]:
    """The differences of one family, not corrected yet."""
    ours = {record["seed"]: record[metric] for record in learners[yardstick]}
    found = []
    for name, group in learners.items():
        pairs = [(record[metric], ours[record["seed"]]) for record in group if record["seed"] in ours]
        if name == yardstick or not pairs or any(None in pair for pair in pairs):
            continue
        values = np.array([a - b for a, b in pairs])
        low, high = bca_interval(values) or (None, None)
        found.append(
            Difference(*place, name, yardstick, metric, len(values), float(values.mean()), low, high,
                       sign_flip_p(values))
        )  # fmt: skip
    return found


def _corrected(family: Sequence[Difference]) -> list[Difference]:
    testable = [each for each in family if each.p is not None]
    corrected = dict(zip((each.learner for each in testable), holm([each.p or 0.0 for each in testable]), strict=True))
    return [Difference(**(asdict(each) | {"p_holm": corrected.get(each.learner)})) for each in family]


def _ranked(place: tuple[str, str], names: Sequence[str], table: Floats) -> list[Rank]:
    """Ranks of the mean losses (learners, seeds), over redrawn seeds."""
    n = table.shape[1]
    picks = np.random.default_rng(0).integers(n, size=(N_DRAWS, n))
    means = table[:, picks].mean(axis=-1)  # (learners, draws)
    places = 1 + (means[:, None, :] > means[None, :, :]).sum(axis=1)
    low, high = np.percentile(places, [2.5, 97.5], axis=1)
    own = table.mean(axis=1)
    return [
        Rank(*place, names[i], CRITERION, n, float(own[i]), float(places[i].mean()), float(low[i]), float(high[i]),
             float((places[i] == 1).mean()))
        for i in np.argsort(own, kind="stable")
    ]  # fmt: skip


def _loss(record: Mapping[str, Any]) -> float:
    return float(record["regret_positive"] or 0.0) + float(record["violation"])


def _is(learner: str, name: str) -> bool:
    return learner == name or learner.split("(")[0] == name


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
