"""Play one run, episode by episode, judged by the truth.

A run's result depends on its parts and its seeds alone: not on the machine's other work, nor on where it was stopped.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from omdpd.natures.protocol import changes_of, world_of
from omdpd.play.guards import check_footprint, measured, played_policy
from omdpd.play.judging import Comparator, Totals, comparator, dynamic_comparator, optimism_holds
from omdpd.play.ledger import Ledger, promised
from omdpd.play.many import Batches
from omdpd.play.rows import Row
from omdpd.play.scene import Scene
from omdpd.play.simulate import play_judged
from omdpd.play.start import started
from omdpd.problem.arrays import Floats
from omdpd.problem.records import fast_init
from omdpd.solvers.sweeps import occupancy_under

# Whole numbers as ranges (first, last + 1).
KeyRanges = tuple[tuple[int, int], ...]

# Runs up to this long record every episode; longer ones a grid that is even at first and then logarithmic.
FULL_RECORD = 10_000
EVEN_POINTS = 1_000
POINTS_PER_DECADE = 500
# The most episodes of a stretch, which is as long as takes so many seconds: then a run listens to its user.  And the
# most that are played one by one before batches are tried again.
MAX_BATCH, BATCH_SECONDS, MAX_SINGLE = 4096, 0.02, 64


@fast_init
@dataclass(frozen=True, eq=False)
class Progress:
    """A run between two episodes: everything that is needed to go on.

    `keys` are the tables met, for a nature that repeats them (otherwise every episode has its own), as ranges
    (first, last + 1): tables are met in order or are few, so that this stays small however long the run is.  `ledger`
    is kept for learners that report their plans.  `weights` (n,) are the sums of the factors with which each of those
    tables was met, in the order of their keys; None in a run that began when they were not kept.
    """

    learner_state: Any
    totals: Totals
    keys: KeyRanges
    seconds: float
    ledger: Ledger | None = None
    weights: Floats | None = None

    @property
    def k(self) -> int:
        """Episodes played."""
        return self.totals.episodes


def start_of_run(scene: Scene) -> Progress:
    """Before the first episode."""
    setting = scene.setting
    check_footprint(scene.learner, setting)
    if getattr(scene.learner, "draws", False):
        setting = replace(setting, seed=scene.learner_seed)
    state = started(scene.learner, setting, scene.logged)
    # Where the truth changes, no estimate of a mean can be held against it; nor one of episodes that were not played.
    followed = not changes_of(scene.nature) and not scene.logged and scene.learner.report(state).plan is not None
    ledger = Ledger.empty(setting) if followed else None
    return Progress(state, Totals.none(scene.cmdp), (), 0.0, ledger, np.zeros(0))


def play(
    scene: Scene, start: Progress, rng: np.random.Generator, recorded: Callable[[int], bool]
) -> Iterator[tuple[float, Row | None, Progress]]:
    """The episodes from `start` on: the true value of each, its row where one is wanted, and the progress."""
    cmdp, nature, learner, K = scene.cmdp, scene.nature, scene.learner, scene.episodes
    setting, changes = cmdp.setting(K, nature.feedback), changes_of(nature)
    # What is estimated is held against the truth; revealed costs are not.
    estimated = cmdp.excess if nature.feedback == "bandit" else None
    now, report = start, None
    for k in range(start.k, K):
        began = time.perf_counter()
        policy = played_policy(learner, now.learner_state, cmdp.shape)
        plan = None
        if now.ledger is not None:
            plan = (learner.report(now.learner_state) if report is None else report).plan
        here = world_of(nature, cmdp, k)
        occupancy = occupancy_under(here.laws, policy, here.initial)
        round_ = nature.draw(k, occupancy)
        feedback, judged = play_judged(here, round_, policy, occupancy, nature.feedback, rng)
        state = learner.update(now.learner_state, feedback)
        totals = now.totals.after(judged, occupancy, K, round_.reward if "reward" in changes else None)
        keys, weights = now.keys, now.weights
        if nature.repeats:
            keys, weights = with_table(keys, weights, round_.key, round_.factor)
        ledger = now.ledger
        if ledger is not None and plan is not None:
            ledger = ledger.after(cmdp, setting, plan, round_, occupancy, feedback)
        now = Progress(state, totals, keys, now.seconds + time.perf_counter() - began, ledger, weights)
        row, report = None, None
        if recorded(k + 1):
            report = learner.report(state)
            bound, believed, plans = report.certificate, report.believed, promised(ledger, report, bool(changes))
            row = Row(
                k + 1, judged.value, tuple(judged.excess.tolist()), totals.value, totals.violation,
                report.step_size, report.weight,
                None if bound is None else bound.regret, None if bound is None else bound.violation,
                None if ledger is None else ledger.good(setting, k + 1),
                measured(scene.metrics, cmdp, round_, policy),
                None if believed is None or changes else optimism_holds(believed, cmdp, estimated),
                None if plans is None else plans.value,
                None if plans is None else plans.violation,
                report.loss,
            )  # fmt: skip
        yield judged.value, row, now


class PlayedBatch(NamedTuple):
    """Episodes played together: the true value of each, the rows that were wanted, and the progress after them."""

    values: Sequence[float]
    rows: Sequence[Row]
    now: Progress


def batches(
    scene: Scene,
    start: Progress,
    rng: np.random.Generator,
    recorded: Callable[[int], bool],
    stops: Collection[int] = (),
) -> Iterator[PlayedBatch]:
    """The episodes of `play`, as many at a time as can be played together in a blink; a stretch ends at every stop.

    What comes out is the same whatever the lengths of batches are.
    """
    stage, ends = Batches.of(scene), sorted({*stops, scene.episodes})
    now, most, alone = start, 1, 0 if stage is not None else scene.episodes
    while now.k < scene.episodes:
        for value, row, after in islice(play(scene, now, rng, recorded), alone):
            now = after
            yield PlayedBatch([value], [] if row is None else [row], now)
        if stage is None or now.k == scene.episodes:
            continue
        began = time.perf_counter()
        wanted = min(most, ends[bisect_right(ends, now.k)] - now.k)
        found = None if now.ledger is not None else stage.play(now.learner_state, now.totals, rng, recorded, wanted)
        if found is None:  # the verbs go on for a while, ever longer if nothing else is of use
            alone = min(2 * alone + 1, MAX_SINGLE)
            continue
        keys, weights = now.keys, now.weights
        for key, times in found.met if scene.nature.repeats else ():
            keys, weights = with_table(keys, weights, key, times)
        spent = time.perf_counter() - began
        now = Progress(found.state, found.totals, keys, now.seconds + spent, None, weights)
        alone = 0 if len(found.values) >= alone else alone
        most = max(1, min(MAX_BATCH, int(len(found.values) * BATCH_SECONDS / spent)))
        yield PlayedBatch(found.values, found.rows, now)


def met_comparator(scene: Scene, end: Progress) -> Comparator:
    """The comparator over the tables that the run met; of a world that moves, the best safe value of every episode."""
    optimum = getattr(scene.nature, "dynamic_optimum", None)
    if optimum is not None:
        return dynamic_comparator(scene.cmdp, optimum(end.k))
    met = end.totals.rewards
    mean = None if met is None else met / end.k
    if not scene.nature.repeats:
        return comparator(scene.cmdp, scene.nature, range(end.k), mean, np.ones(end.k))
    keys = (
        range(*end.keys[0]) if len(end.keys) == 1 else [key for first, stop in end.keys for key in range(first, stop)]
    )
    return comparator(scene.cmdp, scene.nature, keys, mean, end.weights)


def with_table(ranges: KeyRanges, weights: Floats | None, key: int, weight: float) -> tuple[KeyRanges, Floats | None]:
    """The ranges with one more key, and the weights of all their keys with so much more of that one.

    >>> with_table(((0, 2), (3, 4)), np.array([5.0, 6.0, 7.0]), 2, 1.0)
    (((0, 4),), array([5., 6., 1., 7.]))
    """
    wider = with_key(ranges, key)
    if weights is None:
        return wider, None
    place = sum(min(stop, key) - first for first, stop in wider if first < key)
    if wider is not ranges:
        return wider, np.insert(weights, place, weight)
    more = weights.copy()
    more[place] += weight
    return wider, more


def with_key(ranges: KeyRanges, key: int) -> KeyRanges:
    """The ranges with one more key: sorted, apart from one another.

    >>> with_key(((0, 2), (3, 4)), 2)
    ((0, 4),)
    """
    if len(ranges) == 1 and ranges[0][0] <= key < ranges[0][1]:
        return ranges
    place = bisect_right(ranges, (key, math.inf))
    if place and key < ranges[place - 1][1]:
        return ranges
    joins_left = place > 0 and ranges[place - 1][1] == key
    joins_right = place < len(ranges) and ranges[place][0] == key + 1
    first = ranges[place - 1][0] if joins_left else key
    stop = ranges[place][1] if joins_right else key + 1
    return (*ranges[: place - joins_left], (first, stop), *ranges[place + joins_right :])


def seed_of(stream: np.random.SeedSequence) -> int:
    """A stream as one whole number, for parts that draw every episode from (number, k)."""
    return int(stream.generate_state(1, np.uint64)[0] >> 1)


def record_grid(n_episodes: int, full: bool) -> Callable[[int], bool]:
    """Which episodes get a row: all of a short run; of a long one the first thousand, then a logarithmic grid."""
    if full or n_episodes <= FULL_RECORD:
        return lambda k: True
    decades = np.log10(n_episodes / EVEN_POINTS)
    tail = np.geomspace(EVEN_POINTS, n_episodes, int(POINTS_PER_DECADE * decades) + 2)
    wanted = {*range(1, EVEN_POINTS + 1), *np.rint(tail).astype(int).tolist(), n_episodes // 4, n_episodes}
    return lambda k: k in wanted
