"""Learners against one another on the same seeds: paired differences with Holm's correction, and ranks.

difference   mean over seeds of theirs - the yardstick's; a bias-corrected and accelerated (BCa) bootstrap interval,
and the p value of the test that flips signs (exact while there are few seeds), corrected by Holm
rank         a learner's place by a number on every seed: the median, the quartiles, how often it is first
order        Spearman's correlation between the orders of the means of two halves of the seeds, over many halvings
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any, TypeVar

import numpy as np

from omdpd.experiments.comparing import play_in_memory
from omdpd.learners import NON_LEARNERS
from omdpd.learners.protocol import Learner
from omdpd.play.start import Start
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.report.results import grouped, mean_of
from omdpd.report.statistics import MIN_RUNS, N_DRAWS, holm, paired_test
from omdpd.report.thinning import rounded_for_json
from omdpd.storage.atomic import csv_text

T = TypeVar("T")
# Fewer pairs than this say little, and the page greys them.
FEW_SEEDS = 5
METRICS = ("regret", "violation")
# What tuning and ranks are about: positive regret and strong violation, added.
CRITERION = "positive regret + violation"
# All flips of signs of up to 14 pairs are counted, of more so many are drawn: with fewer, p would not get below 1e-3.
N_FLIPS = 2**14
# An order is claimed of learners of whom two halves of the seeds say the same to this degree, over so many halvings.
AGREED, N_HALVINGS = 0.8, 200
# Beside all learners of a place, so many of the best are looked at alone: those at the end are easily told apart.
LEADING = 10
# Learners that are followed further, for each nature.
LEADERS = 3


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        interval = "" if self.low is None else f", 95 % {self.low:+.4g} to {self.high:+.4g}"
        test = "" if self.p_holm is None else f", p = {self.p_holm:.2g} by Holm"
        what = f"{self.learner} - {self.against} on {self.world}, {self.nature}: {self.metric}"
        return f"{what} {self.mean:+.4g} ({self.n} seeds{interval}{test})"


@dataclass(frozen=True, repr=False)
class Rank:
    """A learner's place among the learners of one world and nature (1 is best): median and quartiles over seeds."""

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

    def __repr__(self) -> str:
        place = f"place {self.rank:g} ({self.low:g} to {self.high:g}, first in {100 * self.first:.0f} %)"
        return f"{self.learner} on {self.world}, {self.nature}: {self.metric} {self.value:.4g}, {place}, {self.n} seeds"


@dataclass(frozen=True, repr=False)
class Order:
    """How far two halves of the seeds agree about the order of some learners of a place, and whether it is claimed."""

    world: str
    nature: str
    among: str
    learners: int
    seeds: int
    spearman: float
    claimed: bool

    def __repr__(self) -> str:
        verdict = "an order is claimed" if self.claimed else "no order is claimed"
        what = f"{self.world}, {self.nature}: {self.among} {self.learners} learners"
        return f"{what}: Spearman {self.spearman:.2f} between halves of {self.seeds} seeds: {verdict}"


class Lines(list[T]):
    """A list that is printed with an entry per line."""

    def __str__(self) -> str:
        return "\n".join(map(repr, self))


@dataclass(frozen=True)
class AtLength:
    """Means over seeds at one number of episodes: a line of growth.csv."""

    world: str
    nature: str
    learner: str
    episodes: int
    runs: int
    regret: float | None
    violation: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was played: a record per problem, learner and seed, and a sentence for everything that did not fit."""

    records: tuple[Mapping[str, Any], ...]
    left_out: tuple[str, ...]

    def differences(self, against: str) -> Lines[Difference]:
        """Paired differences of every learner to the yardstick."""
        return Lines(differences(self.records, against))

    def ranks(self) -> Lines[Rank]:
        """Places by positive regret plus violation, as learners see them, with their uncertainty."""
        return Lines(ranks(self.records))

    def csv(self, against: str | None = None) -> str:
        """The ranks, or the differences to a yardstick, as CSV."""
        return tidy_csv(self.ranks() if against is None else self.differences(against))

    def __str__(self) -> str:
        lines = []
        for (world, nature, learner), group in grouped(self.records).items():
            means = ((name, mean_of(group, name)) for name in METRICS)
            told = ", ".join(f"{name} {'-' if mean is None else mean}" for name, mean in means)
            lines.append(f"{world}, {nature}: {learner} ({len(group)} seeds): {told}")
        return "\n".join([*lines, *self.left_out])


def compare(
    problems: Mapping[str, CMDP | str] | Sequence[CMDP | str] | CMDP | str,
    learners: Mapping[str, Learner[Any] | str] | Sequence[Learner[Any] | str] | Learner[Any] | str,
    seeds: int = 10,
    jobs: int = 1,
    nature: str = "noisy",
    episodes: int = 1000,
    logged: int = 0,
    start: Start = "safe",
) -> Comparison:
    """Play every learner on every problem with the same seeds, and judge all of them exactly.

    A problem is a `CMDP` or the name of a world (which is drawn anew for every seed, if it is drawn); a learner is one
    of your own or a name that ``omdpd list`` prints; one alone needs no list.  `jobs` processes play at a time.  What
    does not fit together is left out and said.  With `logged`, everybody is told so many episodes of a safe policy
    before; a learner that does not start safely from them is left out, unless `start` is "explore".  Nothing is
    written: for long studies see ``omdpd lab compare``.
    """
    return Comparison(*play_in_memory(problems, learners, seeds, jobs, nature, episodes, logged, start))


def differences(records: Sequence[Mapping[str, Any]], against: str) -> list[Difference]:
    """The paired differences of every learner to the yardstick, wherever both played.

    `against` is the learner's name, with or without its settings.  One family of Holm's correction are the learners
    that are compared with it in one world and nature by one metric.
    """
    groups = grouped(records)
    if not any(_is(learner, against) for _, _, learner in groups):
        there = ", ".join(dict.fromkeys(learner for _, _, learner in groups))
        raise InvalidInputError(f"no compared learner is called {against!r}; there are {there}")
    found = []
    for place, learners in _by_place(records).items():
        for yardstick in [name for name in learners if _is(name, against)][:1]:
            for metric in METRICS:
                found += _family(place, learners, yardstick, metric)
    return found


def ranks(records: Sequence[Mapping[str, Any]]) -> list[Rank]:
    """Places by positive regret plus violation among the learners that played the same seeds, the least mean first."""
    found = []
    for place, names, table in _losses(records):
        places = 1 + (table[:, None, :] > table[None, :, :]).sum(axis=1)  # (learners, seeds)
        low, middle, high = np.percentile(places, [25, 50, 75], axis=1)
        first = (places == 1).mean(axis=1)
        found += [
            Rank(*place, names[i], CRITERION, table.shape[1], float(table[i].mean()), float(middle[i]), float(low[i]),
                 float(high[i]), float(first[i]))
            for i in range(len(names))
        ]  # fmt: skip
    return found


def orders(records: Sequence[Mapping[str, Any]]) -> list[Order]:
    """How far halves of the seeds agree about all learners of a place, and about the best of them alone."""
    found = []
    for place, names, table in _losses(records):
        for among, part in (("all", table), ("the first", table[:LEADING])):
            if min(part.shape) >= MIN_RUNS and (among == "all" or len(part) < len(names)):
                agreed = _agreement(part)
                found.append(Order(*place, among, len(part), table.shape[1], agreed, agreed >= AGREED))
    return found


def _agreement(table: Floats) -> float:
    """The mean over halvings of Spearman's correlation between means (learners, seeds) over one half and the other."""
    from scipy.stats import rankdata

    rng, n, found = np.random.default_rng(0), table.shape[1], []
    for _ in range(N_HALVINGS):
        seeds = rng.permutation(n)
        halves = [rankdata(table[:, part].mean(axis=1)) for part in (seeds[: n // 2], seeds[n // 2 : 2 * (n // 2)])]
        if all(np.ptp(each) for each in halves):
            found.append(float(np.corrcoef(*halves)[0, 1]))
    return float(np.mean(found)) if found else 0.0


def leaders(records: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The best learners by nature, of records of one world; policies that learn nothing do not count."""
    found: dict[str, list[str]] = {}
    for rank in ranks(records):
        if rank.learner not in NON_LEARNERS:
            found.setdefault(rank.nature, []).append(rank.learner)
    return {nature: names[:LEADERS] for nature, names in found.items()}


def at_lengths(records: Sequence[Mapping[str, Any]]) -> list[AtLength]:
    """Means by the number of episodes: growth across runs, not within one."""
    lines = []
    for (world, nature, learner), group in grouped(records).items():
        for episodes in sorted({record["episodes"] for record in group}):
            here = [record for record in group if record["episodes"] == episodes]
            regrets = [record["regret"] for record in here]
            regret = None if None in regrets else sum(regrets) / len(regrets)
            violation = sum(record["violation"] for record in here) / len(here)
            lines.append(AtLength(world, nature, learner, episodes, len(here), regret, violation))
    return lines


def tidy_csv(rows: Sequence[Any]) -> str:
    """Write dataclasses of one kind as CSV: a header, then a line each; None is an empty cell."""
    names = [field.name for field in fields(rows[0])] if rows else []
    return csv_text([names, *map(astuple, rows)])


def bca_interval(values: Floats) -> tuple[float, float] | None:
    """A 95 % interval of the mean by the BCa bootstrap; None for too few values, the mean itself if all are equal."""
    from scipy.stats import bootstrap

    if len(values) < MIN_RUNS:
        return None
    if np.all(values == values[0]):
        return float(values[0]), float(values[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an undefined correction is no interval
        try:
            answer = bootstrap((values,), np.mean, vectorized=True, n_resamples=N_DRAWS, rng=np.random.default_rng(0))
        except Warning:
            return None
    return float(answer.confidence_interval.low), float(answer.confidence_interval.high)


def sign_flip_p(values: Floats) -> float | None:
    """The two-sided p value that the mean is zero, under flips of signs; None for too few values.

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0, 4.0]))
    0.125
    """
    from scipy.stats import permutation_test

    if len(values) < MIN_RUNS:
        return None
    answer = permutation_test(
        (values,), np.mean, permutation_type="samples", vectorized=True, n_resamples=N_FLIPS,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    return min(float(answer.pvalue), 1.0)


def _by_place(records: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, list[Mapping[str, Any]]]]:
    """Records by world and nature, and there by learner."""
    places: dict[tuple[str, str], dict[str, list[Mapping[str, Any]]]] = {}
    for (world, nature, learner), group in grouped(records).items():
        places.setdefault((world, nature), {})[learner] = group
    return places


def _apart(learners: Mapping[str, Sequence[Mapping[str, Any]]], yardstick: str, metric: str) -> dict[str, Floats]:
    """What every other learner has more of a number than the yardstick, seed by seed, where it can be said."""
    ours = {record["seed"]: record[metric] for record in learners[yardstick]}
    found = {}
    for name, group in learners.items():
        pairs = [(record[metric], ours[record["seed"]]) for record in group if record["seed"] in ours]
        if name != yardstick and pairs and not any(None in pair for pair in pairs):
            found[name] = np.array([a - b for a, b in pairs])
    return found


def _corrected(p_values: Mapping[str, float | None]) -> dict[str, float]:
    """Holm's p values of one family, of those that have one."""
    known = {name: p for name, p in p_values.items() if p is not None}
    return dict(zip(known, holm(list(known.values())), strict=True))


def _family(
    place: tuple[str, str], learners: Mapping[str, Sequence[Mapping[str, Any]]], yardstick: str, metric: str
) -> list[Difference]:
    """The differences of one family."""
    apart = _apart(learners, yardstick, metric)
    p = {name: sign_flip_p(values) for name, values in apart.items()}
    p_holm, found = _corrected(p), []
    for name, values in apart.items():
        low, high = bca_interval(values) or (None, None)
        words, mean = (*place, name, yardstick, metric), float(values.mean())
        found.append(Difference(*words, len(values), mean, low, high, p[name], p_holm.get(name)))
    return found


def _losses(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, str], list[str], Floats]]:
    """By place, the learners and what each lost on the seeds that all of them played: the least mean first."""
    for place, learners in _by_place(records).items():
        losses = [{record["seed"]: _loss(record) for record in group} for group in learners.values()]
        seeds = sorted(set.intersection(*map(set, losses)))
        if seeds:
            table = np.array([[loss[seed] for seed in seeds] for loss in losses])
            order = np.argsort(table.mean(axis=1), kind="stable")
            yield place, [list(learners)[i] for i in order], table[order]


def _loss(record: Mapping[str, Any]) -> float:
    """In the learner's units, where rewards and costs compare: a record in the user's has those numbers too."""
    seen = record.get("seen", record)
    return float(seen["regret_positive"] or 0.0) + float(seen["violation"])


def _is(learner: str, name: str) -> bool:
    return learner == name or learner.split("(")[0] == name


def compared(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A value per world, nature, metric and baseline: what every other learner has more than the baseline.

    One family of Holm's correction are the learners that are compared with one baseline in one place by one metric.
    """
    families = []
    for (world, nature), learners in _by_place(records).items():
        for metric in METRICS:
            for baseline in learners:
                if rows := _tested(_apart(learners, baseline, metric)):
                    names = {"world": world, "nature": nature, "metric": metric, "baseline": baseline}
                    families.append({**names, "rows": rows})
    return families


def _tested(apart: Mapping[str, Floats]) -> list[dict[str, Any]]:
    """The paired differences of all other learners to one of them, for a page."""
    tests = {name: paired_test(values) for name, values in apart.items()}
    corrected = _corrected({name: test.p for name, test in tests.items()})
    return [
        {
            "learner": name, "n": test.n, "few": test.n < FEW_SEEDS, "mean": rounded_for_json([test.mean])[0],
            "interval": None if test.low is None or test.high is None else rounded_for_json([test.low, test.high]),
            "p": None if name not in corrected else rounded_for_json([corrected[name]])[0],
        }
        for name, test in tests.items()
    ]  # fmt: skip
