"""One run that lasts: played into its folder, committed as it goes, resumed where it stopped."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.experiments.interrupts import noting_interrupts
from omdpd.experiments.registry import sources
from omdpd.experiments.spec import RunSpec, as_now, toml_of
from omdpd.experiments.writer import Snapshots, Writer, check_metrics, commit_seconds, resumed
from omdpd.learners.protocol import Promise, check_storable
from omdpd.natures.protocol import changes_of
from omdpd.play.judging import Comparator, early_sums, scores
from omdpd.play.ledger import promised
from omdpd.play.loop import Progress, batches, met_comparator, record_grid, seed_of, start_of_run
from omdpd.play.rows import Row, regret_curve
from omdpd.play.scene import Metric, Scene, with_known_facts
from omdpd.play.start import Before, logged_by_a_safe_policy, starting
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.problem.strangers import strangers_code
from omdpd.storage.atomic import RecordError
from omdpd.storage.run_folder import RunFolder

# Called with a run and each of its rows, as it is recorded, in the process that plays the run.
RunCallback = Callable[[RunSpec, Row], None]


# The last comparators of runs whose tables never repeat, by world, nature, seed and number of episodes.
MAX_COMPARATORS = 16
_COMPARATORS: dict[tuple[str, str, int, int], Comparator] = {}


class RunFailedError(InvalidInputError):
    """Some runs failed; the message names the first one and where its error is kept."""


def scene_of(spec: RunSpec, metrics: Mapping[str, Metric] | None = None) -> Scene:
    """What a spec stands for, each part from its own stream of random numbers."""
    cmdp = spec.world.build(np.random.default_rng(spec.stream(0)))
    nature = spec.nature.build(cmdp, seed_of(spec.stream(1)))
    known, own = spec.episodes_known is not False, seed_of(spec.stream(3))
    before = Before((), "explore" if spec.start == "explore" else "safe")
    if spec.logged:
        # The same nature, at other times.
        earlier, rng = spec.nature.build(cmdp, seed_of(spec.stream(4))), np.random.default_rng(spec.stream(4))
        before = replace(before, logged=logged_by_a_safe_policy(cmdp, earlier, spec.logged, rng))
    learner = starting(spec.learner.build(), cmdp.setting(spec.episodes if known else None, nature.feedback), before)
    told = with_known_facts(learner, cmdp, nature.feedback)
    return Scene(cmdp, nature, told, spec.episodes, metrics or {}, own, known, before.logged)


def run(
    spec: RunSpec, folder: Path, metrics: Mapping[str, Metric] | None = None, callback: RunCallback | None = None
) -> dict[str, Any]:
    """Play a run to its end in its folder (going on where it stopped) and return its summary.

    Ctrl-C commits what was played and stops.  While another process plays the same run this one waits for it.
    """
    record = RunFolder(folder, spec.id)
    done = record.check().summary if record.finished else None
    if done is not None:
        record.refuse_other_plugins(spec.checksums)
        check_metrics(record, metrics, finished=True)
        return done
    with record.owned():
        summary = advance(spec, record, metrics, commit_seconds(), callback=callback)
    assert summary is not None, "without a limit of time a run is played to its end"
    return summary


def run_safely(
    spec: RunSpec, folder: Path, metrics: Mapping[str, Metric] | None = None, callback: RunCallback | None = None
) -> dict[str, Any]:
    """`run`, with a failure written into the run's folder instead of lost.

    Trouble with files or memory is not the run's failure: it is raised, and the same command may go on once it is
    mended.
    """
    refuse_failed(RunFolder(folder, spec.id))
    try:
        return run(spec, folder, metrics, callback)
    except (RecordError, OSError, MemoryError):
        raise
    except Exception as error:
        RunFolder(folder, spec.id).fail(failure(error))
        raise


def refuse_failed(record: RunFolder) -> None:
    """Refuse a run that failed before: its error is removed first."""
    if record.failed:
        raise RunFailedError(failed_before(record))


def failed_before(record: RunFolder) -> str:
    """Say how a run failed before, and how it is tried again."""
    return f"it failed before ({(record.error or {}).get('error')}); --retry-failed tries it again"


@strangers_code("the run raised", passing=(Exception,))  # it fails like any other, also where its learner says sys.exit
def advance(
    spec: RunSpec,
    record: RunFolder,
    metrics: Mapping[str, Metric] | None,
    every: float,
    seconds: float | None = None,
    callback: RunCallback | None = None,
) -> dict[str, Any] | None:
    """Play a run in a folder that is ours: to its end, or for about `seconds`, and then None is returned."""
    record = RunFolder(record.path, spec.id)
    done = record.summary
    check_metrics(record, metrics, finished=done is not None)
    if done is not None:
        return done
    record.create(
        toml_of(spec), spec.checksums, sources(), [part.label for part in (spec.world, spec.nature, spec.learner)],
        as_now,
    )  # fmt: skip
    record.verify()
    scene = scene_of(spec, metrics)
    rng = np.random.default_rng(spec.stream(2))
    begin = start_of_run(scene)
    check_storable(scene.learner, begin.learner_state)
    now = start = resumed(record, scene.learner, begin, rng)
    kept = None if spec.policies == "none" else Snapshots.resumed(record, scene, start.k)
    writer = Writer(record, scene, rng, every, kept)
    began = time.perf_counter()
    with noting_interrupts() as stop:
        recorded, stops = record_grid(spec.episodes, spec.record == "all"), () if kept is None else kept.wanted
        for values, rows, now in batches(scene, start, rng, recorded, stops):
            if callback is not None:  # before they are written: what is not written comes again
                for row in rows:
                    callback(spec, row)
            writer.add(values, rows, now)
            if stop.asked or (seconds is not None and time.perf_counter() - began > seconds):
                writer.commit(now)
                break
    if stop.asked:
        raise KeyboardInterrupt
    if now.k < spec.episodes:
        return None
    record.compact()
    summary = summarise(scene, spec, now, record)
    record.finish(summary)
    return summary


def summarise(scene: Scene, spec: RunSpec, end: Progress, record: RunFolder) -> dict[str, Any]:
    """One record per run: the scores, the comparator, and how the solves went."""
    best = _comparator(scene, spec, end)
    result = scores(record.values(), end.totals, best)
    report = scene.learner.report(end.learner_state)
    return {
        **spec.labels,
        "seed": spec.seed,
        "episodes": spec.episodes,
        "horizon": scene.cmdp.shape[0],
        **measures_of(scene.cmdp),
        **asdict(result),
        **early_sums(end.totals, best),
        "comparator_value": best.value,
        "comparator_exists": best.exists,
        "hindsight_violation": best.hindsight_violation,
        "solves": report.log.solves,
        "iterations": report.log.iterations,
        "failures": report.log.failures,
        "max_gap": report.log.max_gap,
        "max_residual": report.log.max_residual,
        "infeasible": report.infeasible,
        "saturations": report.saturations,
        "ignored_violation": report.ignored,
        "certified_regret": None if report.certificate is None else report.certificate.regret,
        "certified_violation": None if report.certificate is None else report.certificate.violation,
        **_losses(end, best, promised(end.ledger, report, bool(changes_of(scene.nature)))),
        "seconds": end.seconds,
        "run": spec.id,
    }


def _comparator(scene: Scene, spec: RunSpec, end: Progress) -> Comparator:
    """`met_comparator`, once for learners that one after another meet tables of which none comes twice.

    Such tables belong to their episodes, whoever plays; there are as many as episodes, and going through them takes as
    long as playing.
    """
    if scene.nature.repeats or changes_of(scene.nature) or spec.plugins:
        return met_comparator(scene, end)
    tables = (repr(spec.world), repr(spec.nature), spec.seed, end.k)
    if tables not in _COMPARATORS:
        while len(_COMPARATORS) >= MAX_COMPARATORS:
            _COMPARATORS.pop(next(iter(_COMPARATORS)))
        _COMPARATORS[tables] = met_comparator(scene, end)
    return _COMPARATORS[tables]


def measures_of(cmdp: CMDP) -> dict[str, Any]:
    """What a summary says of the user's units: the budgets in them, what costs are divided by, and rewards' range."""
    return {
        "budget": [None if b == inf else b for b in cmdp.limits.tolist()],
        "cost_scale": cmdp.cost_scale.tolist(),
        "reward_range": list(cmdp.reward_range),
    }


def _losses(end: Progress, best: Comparator, plans: Promise | None) -> dict[str, float | bool | None]:
    """Regret and violation split into optimisation and estimation error, for learners that say what they planned."""
    totals = end.totals
    if plans is None:
        return dict.fromkeys(
            ("optimisation_regret", "estimation_regret", "optimisation_violation", "estimation_violation")
        )
    return {
        "optimisation_regret": regret_curve(best.value, totals.episodes, plans.value),
        "estimation_regret": plans.value - totals.value,
        "optimisation_violation": plans.violation,
        "estimation_violation": totals.violation - plans.violation,
    }


def failure(error: BaseException) -> dict[str, Any]:
    """What error.json holds: the error in a line, and where it came from."""
    message = str(error) or type(error).__name__
    text = message if isinstance(error, InvalidInputError) else f"{type(error).__name__}: {message}"
    return {"error": text, "traceback": "".join(traceback.format_exception(error))}
