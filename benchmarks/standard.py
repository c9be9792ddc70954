"""The bars and the dials of `ProximalOMDPD.standard`: `python -m benchmarks.standard FIRST:COUNT [--dials]`.

Bars: ratios of means to `ProximalOMDPD.cautious` over paired runs, with a paired bootstrap 90 % interval; a bar fails
when the whole interval lies on the wrong side.  With --dials every dial is turned instead, one at a time, and the
regret/violation frontier is printed, for the natures that are named after it (all if none is).  Numbers are kept under
results/standard and reused, unless --fresh.  With --markdown the tables of docs/dials.md are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.ratios import paired_ratio_interval
from omdpd.experiments.executors import executor as executor_of
from omdpd.experiments.registry import Registry
from omdpd.learners import PlanLP, ProximalOMDPD
from omdpd.play.judging import scores
from omdpd.play.loop import batches, met_comparator, seed_of, start_of_run
from omdpd.play.scene import Scene
from omdpd.storage.atomic import write_atomically

FOLDER = Path("results/standard")
NATURE_NAMES = ("noisy", "pool", "adaptive", "scaled")
K = 3000
# Regret above this is a run that got stuck.
STUCK = 280.0
OURS, THEIRS = "standard", "cautious"
LEARNER_OF: dict[str, Callable[[], Any]] = {
    THEIRS: ProximalOMDPD.cautious,
    OURS: ProximalOMDPD.standard,
    "z = 0": lambda: ProximalOMDPD.standard(z=0.0),
    "z = 0.5": lambda: ProximalOMDPD.standard(z=0.5),
    "z = 1.5": lambda: ProximalOMDPD.standard(z=1.5),
    "z = 2": lambda: ProximalOMDPD.standard(z=2.0),
    "exploration = 0.5": lambda: ProximalOMDPD.standard(exploration=0.5),
    "exploration = 2": lambda: ProximalOMDPD.standard(exploration=2.0),
    "w0 = 1": lambda: ProximalOMDPD.standard(w0=1.0),
    "w0 = 100": lambda: ProximalOMDPD.standard(w0=100.0),
    "gamma_scale = 4": lambda: ProximalOMDPD.standard(gamma_scale=4.0),
    "gamma_scale = 64": lambda: ProximalOMDPD.standard(gamma_scale=64.0),
    "PlanLP": PlanLP,
}
# (nature or "together", violation ratio, regret ratio, share of stuck runs) at most.
LIMITS = (
    ("noisy", 0.5, 1.05, 0.15),
    ("pool", 0.7, 1.0, 0.05),
    ("adaptive", 0.7, 1.0, 0.06),
    ("scaled", 0.8, 1.0, 0.10),
    ("together", 0.6, 1.0, 0.08),
)


@dataclass(frozen=True)
class Job:
    """One run, by names."""

    learner: str
    nature: str
    seed: int
    episodes: int = K

    @property
    def file(self) -> Path:
        name = self.learner.replace(" ", "").replace("=", "-")
        return FOLDER / f"{name}-{self.nature}-{self.episodes}-{self.seed}.json"


def played(job: Job) -> dict[str, float]:
    """The numbers of a run, from its file if there is one."""
    if job.file.exists():
        return json.loads(job.file.read_text())
    spec = Registry.installed().run("random_dirichlet", job.nature, "Uniform", job.episodes, job.seed)
    cmdp = spec.world.build(np.random.default_rng(spec.stream(0)))
    nature = spec.nature.build(cmdp, seed_of(spec.stream(1)))
    scene = Scene(cmdp, nature, LEARNER_OF[job.learner](), job.episodes, {})
    end = start = start_of_run(scene)
    values, began = [], process_time()
    for told, _, now in batches(scene, start, np.random.default_rng(spec.stream(2)), lambda k: False):
        values.extend(told)
        end = now
    seconds = process_time() - began
    found = asdict(scores(np.array(values), end.totals, met_comparator(scene, end)))
    log = scene.learner.report(end.learner_state).log
    found |= {"milliseconds": 1e3 * seconds / job.episodes, "failures": log.failures, "solves": log.solves}
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_atomically(job.file, json.dumps(found).encode())
    return found


class Results:
    """Numbers of many runs, one array entry per seed (the mean over natures where several are asked for)."""

    def __init__(self, found: dict[Job, dict[str, float]], seeds: range) -> None:
        self.found = {(job.learner, job.nature, job.seed): numbers for job, numbers in found.items()}
        self.seeds = seeds

    def each(self, learner: str, natures: Sequence[str], key: str) -> np.ndarray:
        rows = [[self.found[learner, nature, seed][key] for nature in natures] for seed in self.seeds]
        return np.array(rows, dtype=float)

    def ratio(self, learner: str, natures: Sequence[str], key: str) -> tuple[float, float, float]:
        ours, theirs = (self.each(name, natures, key).mean(axis=1) for name in (learner, THEIRS))
        return paired_ratio_interval(ours, theirs, np.random.default_rng(0))


def bar_rows(results: Results) -> list[tuple[str, ...]]:
    """One line per bar."""
    lines = []
    for name, *limits in LIMITS:
        natures = NATURE_NAMES if name == "together" else (name,)
        for key, limit in zip(("violation", "regret"), limits, strict=False):
            number, low, high = results.ratio(OURS, natures, key)
            shown = f"{number:.2f} ({low:.2f} .. {high:.2f})"
            lines.append((name, f"{key} ratio", shown, f"<= {limit:g}", "yes" if low <= limit else "NO"))
        stuck = (results.each(OURS, natures, "regret") > STUCK).mean(axis=1)
        reference = (results.each(THEIRS, natures, "regret") > STUCK).mean()
        number, low, high = paired_ratio_interval(stuck, np.ones(len(stuck)), np.random.default_rng(0))
        shown = f"{number:.0%} ({low:.0%} .. {high:.0%}); {THEIRS} {reference:.0%}"
        lines.append((name, f"regret > {STUCK:g}", shown, f"<= {limits[2]:.0%}", "yes" if low <= limits[2] else "NO"))
    failures = sum(result["failures"] for result in results.found.values())
    lines.append(("all", "failed solves", str(failures), "<= 0", "yes" if failures == 0 else "NO"))
    return lines


def dial_rows(results: Results, learners: Sequence[str], names: Sequence[str]) -> list[tuple[str, ...]]:
    """One line per nature and setting: the frontier."""
    lines = []
    for nature in (*names, "together"):
        natures = names if nature == "together" else (nature,)
        for learner in learners:
            means = [results.each(learner, natures, key).mean() for key in ("regret", "violation", "lagrangian_regret")]
            ratios = [results.ratio(learner, natures, key) for key in ("regret", "violation", "lagrangian_regret")]
            stuck = (results.each(learner, natures, "regret") > STUCK).mean()
            cells = [
                f"{mean:.1f}; {r:.2f} ({low:.2f} .. {high:.2f})"
                for mean, (r, low, high) in zip(means, ratios, strict=True)
            ]
            lines.append((nature, learner, *cells, f"{stuck:.0%}"))
    return lines


def bar_table(results: Results) -> list[tuple[str, ...]]:
    """The bars as a table: one line per nature, after a head."""
    heads = ("violation ratio; bar", "regret ratio; bar", f"stuck; `{THEIRS}`'; bar")
    lines = [("nature", f"regret (violation) of `{THEIRS}`", f"of `{OURS}`", *heads)]
    for name, *limits in LIMITS:
        natures = NATURE_NAMES if name == "together" else (name,)
        means = [
            "{:.0f} ({:.1f})".format(*(results.each(who, natures, key).mean() for key in ("regret", "violation")))
            for who in (THEIRS, OURS)
        ]
        cells: list[str] = []
        for key, limit in zip(("violation", "regret"), limits, strict=False):
            cells.append("{:.2f} ({:.2f} .. {:.2f}); {:g}".format(*results.ratio(OURS, natures, key), limit))
        stuck = [(results.each(who, natures, "regret") > STUCK).mean() for who in (OURS, THEIRS)]
        lines.append((name, *means, *cells, "{:.0%}; {:.0%}; {:.0%}".format(*stuck, limits[2])))
    return lines


def dial_table(results: Results, learners: Sequence[str], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Regret / violation / Lagrangian regret: one line per setting, one column per nature, after a head."""
    keys = ("regret", "violation", "lagrangian_regret")
    lines: list[tuple[str, ...]] = [("", *(f"`{nature}`" for nature in names))]
    for learner in learners:
        each = ([results.each(learner, (nature,), key).mean() for key in keys] for nature in names)
        lines.append((learner, *("{:.0f} / {:.1f} / {:.0f}".format(*means) for means in each)))
    return lines


def print_markdown(lines: Sequence[Sequence[str]]) -> None:
    """A table with its head first."""
    head, *body = lines
    for cells in (head, ["---"] * len(head), *body):
        print(f"| {' | '.join(cells)} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", help="FIRST:COUNT, e.g. 100:30")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--dials", nargs="*", choices=NATURE_NAMES, help="turn every dial, under these natures")
    parser.add_argument("--episodes", type=int, default=K)
    parser.add_argument("--fresh", action="store_true", help="play again what was played")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/dials.md")
    options = parser.parse_args()
    start, count = (int(part) for part in options.seeds.split(":"))
    seeds = range(start, start + count)
    turned, natures = options.dials is not None, options.dials or NATURE_NAMES
    learners = list(LEARNER_OF) if turned else [THEIRS, OURS]
    grid = [(learner, nature, seed) for seed in seeds for nature in natures for learner in learners]
    jobs = [Job(*names, options.episodes) for names in grid]
    if options.fresh:
        for job in jobs:
            job.file.unlink(missing_ok=True)
    found = {}
    with executor_of("local", options.jobs) as executor:
        futures = {executor.submit(played, job): job for job in jobs}
        for future in track(as_completed(futures), "runs", len(jobs), console=Console(stderr=True)):
            found[futures[future]] = future.result()
    results = Results(found, seeds)
    if options.markdown:
        print_markdown(dial_table(results, learners, natures) if turned else bar_table(results))
        return 0
    if turned:
        heads = ("nature", "setting", "regret; ratio", "violation; ratio", "Lagrangian regret; ratio", "stuck")
        lines = dial_rows(results, learners, natures)
    else:
        heads, lines = ("nature", "what", "measured (90 %)", "limit", "holds"), bar_rows(results)
    shown = Table(title=f"{OURS} against {THEIRS} on instances {start} to {start + count - 1}, K = {options.episodes}")
    for head in heads:
        shown.add_column(head)
    for line in lines:
        shown.add_row(*line)
    Console(width=150).print(shown)
    name = "dials" if turned else "bars"
    write_atomically(FOLDER / f"{name}-{start}-{count}.json", json.dumps([heads, *lines], indent=1).encode())
    return 0 if turned or all(line[-1] == "yes" for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
