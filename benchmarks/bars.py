"""The bars a correct build holds, on instances of anyone's choice: `python -m benchmarks.bars FIRST:COUNT`.

Each bar is a ratio of means over paired runs (or a plain mean) with a paired bootstrap 90 % interval; it fails when
the whole interval lies on the wrong side.  Runs are kept under results/bars and reused.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.ratios import paired_ratio_interval
from omdpd import OMDPD, ProximalOMDPD, run
from omdpd.beliefs.confidence import KnownModel
from omdpd.experiments.executors import executor as executor_of
from omdpd.experiments.one_run import run_safely
from omdpd.experiments.registry import Registry, from_wire, to_wire
from omdpd.experiments.spec import RunSpec
from omdpd.storage.atomic import write_atomically

FOLDER = Path("results/bars")
NATURE_NAMES = ("noisy", "pool", "scaled", "adaptive")
LEARNER_NAMES = (
    "ProximalOMDPD.cautious", "ProximalOMDPD.balanced", "ProximalOMDPD.optimistic", "OMDPD.theory", "OptCMDP",
    "SinhaVaze",
)  # fmt: skip
K = 3000


@dataclass(frozen=True)
class Verdict:
    """One bar: what was tested, the number with its interval, the limit, and whether it holds."""

    bar: str
    what: str
    number: float
    median: float
    low: float
    high: float
    limit: str
    holds: bool


@dataclass(frozen=True)
class KnownRun:
    """A run with a known model, which no spec can name because the learner is built from the world."""

    kind: str
    nature: str
    episodes: int
    seed: int


def known_learner(kind: str, spec: RunSpec):
    cmdp = spec.world.build(np.random.default_rng(spec.stream(0)))
    p, r = cmdp.transition, cmdp.reward
    if kind == "fixed":
        return cmdp, ProximalOMDPD.known_model(p, r, cmdp.excess)
    if kind == "memory 8":
        return cmdp, ProximalOMDPD.known_model(p, r)
    if kind == "memory 0":
        return cmdp, ProximalOMDPD(KnownModel(p, r), memory=0)
    if kind == "theory":
        return cmdp, OMDPD.known_model(p, r)
    assert kind == "subgradient"  # alpha beta = 16 / sqrt(HK)
    return cmdp, OMDPD(KnownModel(p, r), alpha=0.1, w0=1.0, beta_root=160.0)


def play_known(known: KnownRun) -> dict:
    spec = run_named(known.nature, "Uniform", known.episodes, known.seed)
    cmdp, learner = known_learner(known.kind, spec)
    history = run(cmdp, learner, known.nature, known.episodes, known.seed)
    return {**asdict(history.scores), **asdict(history.report.log)}


def run_named(nature: str, learner: str, episodes: int, seed: int) -> RunSpec:
    return Registry.installed().run("random_dirichlet", nature, learner, episodes, seed)


def play(job: KnownRun | dict) -> dict:
    if isinstance(job, KnownRun):
        return play_known(job)
    spec = from_wire(job)
    return run_safely(spec, FOLDER / "runs" / spec.id)


def known_jobs(seeds: range) -> list[KnownRun]:
    jobs = []
    for seed in seeds:
        for k in (1000, 10_000):
            jobs.append(KnownRun("fixed", "fixed", k, seed))
            jobs += [KnownRun("memory 8", nature, k, seed) for nature in ("pool", "adaptive")]
            jobs += [KnownRun("memory 0", nature, k, seed) for nature in ("adaptive", "scaled")]
        for k in (750, 3000):
            jobs += [KnownRun(kind, "anchored", k, seed) for kind in ("memory 8", "theory")]
        jobs += [KnownRun(kind, "scaled", K, seed) for kind in ("subgradient", "memory 0")]
    return jobs


class Results:
    """Numbers by (learner or kind, nature, episodes), one per seed."""

    def __init__(self, found: dict, seeds: range) -> None:
        self.found, self.seeds = found, seeds

    def learner(self, name: str, nature: str, key: str) -> np.ndarray:
        specs = [run_named(nature, name, K, s) for s in self.seeds]
        return np.array([self.found[spec][key] for spec in specs], dtype=float)

    def known(self, kind: str, nature: str, episodes: int, key: str) -> np.ndarray:
        return np.array([self.found[KnownRun(kind, nature, episodes, s)][key] for s in self.seeds], dtype=float)


def ratio(bar: str, what: str, above: np.ndarray, below: np.ndarray, limit: float, at_most: bool = True) -> Verdict:
    """A bar on mean(above) / mean(below)."""
    number, low, high = paired_ratio_interval(above, below, np.random.default_rng(0))
    with np.errstate(divide="ignore", invalid="ignore"):
        median = float(np.nanmedian(above / below))
    holds = low <= limit if at_most else high >= limit
    return Verdict(bar, what, number, median, low, high, f"{'<=' if at_most else '>='} {limit:g}", bool(holds))


def level(bar: str, what: str, values: np.ndarray, limit: float) -> Verdict:
    """A bar on a mean."""
    number, low, high = paired_ratio_interval(values, np.ones(len(values)), np.random.default_rng(0))
    return Verdict(bar, what, number, float(np.median(values)), low, high, f"<= {limit:g}", bool(low <= limit))


def known_verdicts(of: Callable[[str, str, int, str], np.ndarray]) -> list[Verdict]:
    """B1-B4 and B7: the optimiser alone, with the model known."""
    out = []
    for k in (1000, 10_000):
        out.append(level("B1", f"known, fixed cost, K={k}: regret", of("fixed", "fixed", k, "regret"), 0.1))
        out.append(level("B1", f"known, fixed cost, K={k}: violation", of("fixed", "fixed", k, "violation"), 0.1))
    for nature in ("pool", "adaptive"):
        short, long = (of("memory 8", nature, k, "violation") for k in (1000, 10_000))
        regret = of("memory 8", nature, 10_000, "regret")
        out.append(level("B2", f"known, {nature}, memory 8, K=10000: regret", regret, 1.0))
        out.append(level("B2", f"known, {nature}, memory 8, K=10000: violation", long, 3.0))
        out.append(ratio("B2", f"known, {nature}: violation at K=10000 over K=1000", long, short, 1.05))
    for nature in ("adaptive", "scaled"):
        short, long = (of("memory 0", nature, k, "violation") for k in (1000, 10_000))
        regret = of("memory 0", nature, 10_000, "regret")
        out.append(level("B3", f"known, {nature}, memory 0: regret", regret, 5.0))
        out.append(ratio("B3", f"known, {nature}: violation at K=10000 over K=1000", long, short, 4.0))
    short, long = (of("memory 8", "anchored", k, "violation") for k in (750, 3000))
    out.append(ratio("B4", "known, anchored: violation at 4K over K", long, short, 2.2))
    short, long = (of("theory", "anchored", k, "violation") for k in (750, 3000))
    out.append(ratio("B4", "the same with theory constants", long, short, 4.0, at_most=False))
    rough, exact = (of(kind, "scaled", K, "violation") for kind in ("subgradient", "memory 0"))
    out.append(ratio("B7", "known, scaled: subgradient over exact hinge, violation", rough, exact, 5.0, at_most=False))
    return out


def learner_verdicts(of: Callable[[str, str, str], np.ndarray]) -> list[Verdict]:
    """B5, B6, B8 and C1-C5: unknown model."""
    out = []
    optimistic, cautious, balanced = (f"ProximalOMDPD.{name}" for name in ("optimistic", "cautious", "balanced"))

    def compare(bar: str, ours: str, theirs: str, nature: str, key: str, limit: float) -> None:
        what = f"{nature}: {ours.split('.')[-1]} over {theirs}, {key}"
        out.append(ratio(bar, what, of(ours, nature, key), of(theirs, nature, key), limit))

    for nature in NATURE_NAMES:
        compare("B5", optimistic, "OMDPD.theory", nature, "regret", 0.25)
        compare("B5", optimistic, "OMDPD.theory", nature, "violation", 0.6)
    for nature in NATURE_NAMES:
        compare("B6", optimistic, "OptCMDP", nature, "regret", 1.2)
        compare("B6", optimistic, "OptCMDP", nature, "violation", 1.5)
    for nature, limit in (("noisy", 0.6), ("pool", 0.3), ("adaptive", 0.3)):
        compare("C1", cautious, "OptCMDP", nature, "violation", limit)
        compare("C2", cautious, "OptCMDP", nature, "regret", 1.4)
    for nature in NATURE_NAMES:
        compare("C3", cautious, "SinhaVaze", nature, "regret", 1.0)
        compare("C3", cautious, "SinhaVaze", nature, "violation", 1.0)
        compare("C4", balanced, optimistic, nature, "violation", 0.95)
        compare("C5", cautious, "OMDPD.theory", nature, "regret", 0.25)
        compare("C5", cautious, "OMDPD.theory", nature, "violation", 0.25)
    return out


def solve_verdicts(found: dict, seeds: range) -> list[Verdict]:
    """B8, and what every mirror step of every run is held to."""
    solves = np.array([found[KnownRun("fixed", "fixed", 1000, s)]["solves"] for s in seeds], dtype=float)
    worst = {key: max(result.get(key, 0.0) for result in found.values()) for key in ("max_gap", "max_residual")}
    failures = sum(result["failures"] for result in found.values())
    return [
        level("B8", "known, fixed cost: projections beyond one per episode and one", solves - 1001, 0.0),
        level("gap", "largest relative gap of any mirror step", np.array([worst["max_gap"]]), 1e-8),
        level("feasible", "largest flow residual of any mirror step", np.array([worst["max_residual"]]), 1e-9),
        level("failures", "failed solves", np.array([float(failures)]), 0.0),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", help="FIRST:COUNT, e.g. 100:16")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", choices=("known", "unknown"), help="one half of the bars")
    options = parser.parse_args()
    start, count = (int(part) for part in options.seeds.split(":"))
    seeds = range(start, start + count)
    jobs: list[RunSpec | KnownRun] = [] if options.only == "unknown" else list(known_jobs(seeds))
    if options.only != "known":
        jobs += [
            run_named(nature, name, K, seed) for nature in NATURE_NAMES for seed in seeds for name in LEARNER_NAMES
        ]
    found = {}
    with executor_of("local", options.jobs) as executor:
        futures = {executor.submit(play, to_wire(job) if isinstance(job, RunSpec) else job): job for job in jobs}
        for future in track(as_completed(futures), total=len(jobs), description="runs"):
            found[futures[future]] = future.result()
    results = Results(found, seeds)
    verdicts = [] if options.only == "unknown" else known_verdicts(results.known)
    verdicts += [] if options.only == "known" else learner_verdicts(results.learner)
    verdicts += [] if options.only == "unknown" else solve_verdicts(found, seeds)
    shown = Table(title=f"Bars on instances {start} to {start + count - 1}")
    for name in ("bar", "what", "mean", "median", "90 % interval", "limit", "holds"):
        shown.add_column(name)
    for v in verdicts:
        interval = f"{v.low:.3g} .. {v.high:.3g}"
        shown.add_row(
            v.bar, v.what, f"{v.number:.3g}", f"{v.median:.3g}", interval, v.limit, "yes" if v.holds else "NO"
        )
    Console(width=140).print(shown)
    FOLDER.mkdir(parents=True, exist_ok=True)
    report = json.dumps([asdict(v) for v in verdicts], indent=1).encode()
    write_atomically(FOLDER / f"bars-{start}-{count}.json", report)
    return 0 if all(v.holds for v in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
