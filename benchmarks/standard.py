"""The bars and the dials of `ProximalOMDPD.standard`: `python -m benchmarks.standard FIRST:COUNT [--dials]`.

Bars: ratios of means to `ProximalOMDPD.cautious` (or who is named after --against) over paired runs, with a paired
bootstrap 90 % interval; a bar fails when the whole interval lies on the wrong side.  With --dials every dial is turned
instead, one at a time, and the regret/violation frontier is printed, for the natures that are named after it (all if
none is).  With --matched the same instances are played with more constraints, and without being told K; with --margins
under noise with every margin, beside what the margin costs by formula.  Numbers are kept under results/standard and
reused, unless --fresh.  With --markdown the tables of docs/dials.md are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, replace
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
from omdpd.experiments.spec import RunSpec
from omdpd.learners import PlanLP, ProximalOMDPD
from omdpd.natures.pool import Pool
from omdpd.play.judging import scores
from omdpd.play.loop import batches, met_comparator, seed_of, start_of_run
from omdpd.play.scene import Scene
from omdpd.problem.cmdp import CMDP
from omdpd.storage.atomic import write_atomically
from omdpd.theory.limits import limits_of
from omdpd.worlds import random_dirichlet

FOLDER = Path("results/standard")
NATURE_NAMES = ("noisy", "pool", "adaptive", "scaled")
K = 3000
# Regret above this is a run that got stuck.
STUCK = 280.0
OURS, THEIRS, BEFORE = "standard", "cautious", "settling"
LEARNER_OF: dict[str, Callable[[], Any]] = {
    THEIRS: ProximalOMDPD.cautious,
    BEFORE: ProximalOMDPD.settling,
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
    "z_growth = 0.5": lambda: ProximalOMDPD.standard(z_growth=0.5),
    "z_spending = 0.5": lambda: ProximalOMDPD.standard(z_spending=0.5),
    "PlanLP": PlanLP,
}
# Margins: z, and how it grows.
MARGINS: dict[str, tuple[float, float]] = {
    "z = 0": (0.0, 0.0),
    "z = 0.5": (0.5, 0.0),
    OURS: (1.0, 0.0),
    "z = 1.5": (1.5, 0.0),
    "z_growth = 0.5": (1.0, 0.5),
    "z_spending = 0.5": (1.0, -0.5),
}
# Against whom: (nature or "together", violation ratio, regret ratio, share of stuck runs) at most.  Without a share it
# is that of the other; without a ratio there is no bar.
LIMITS: dict[str, tuple[tuple[str, float | None, float | None, float | None], ...]] = {
    THEIRS: (
        ("noisy", 0.5, 1.05, 0.15),
        ("pool", 0.7, 1.0, 0.05),
        ("adaptive", 0.7, 1.0, 0.06),
        ("scaled", 0.8, 1.0, 0.10),
        ("together", 0.6, 1.0, 0.08),
    ),
    BEFORE: (*((nature, None, None, None) for nature in NATURE_NAMES), ("together", 1.02, 1.02, None)),
}


@dataclass(frozen=True)
class Job:
    """One run, by names.

    Of `drawn` constraints the world keeps the first ones, each so many times; `told` is whether K is told.
    """

    learner: str
    nature: str
    seed: int
    episodes: int = K
    drawn: int = 1
    kept: int = 1
    copies: int = 1
    told: bool = True

    @property
    def file(self) -> Path:
        name = self.learner.replace(" ", "").replace("=", "-")
        more = "" if self.drawn * self.copies == 1 else f"-{self.kept}of{self.drawn}x{self.copies}"
        return FOLDER / f"{name}-{self.nature}-{self.episodes}-{self.seed}{more}{'' if self.told else '-untold'}.json"

    def scene(self, spec: RunSpec) -> Scene:
        """What is played: world and nature have all constraints that were drawn, and then those that are kept."""
        cmdp = random_dirichlet.make(np.random.default_rng(spec.stream(0)), n_constraints=self.drawn)
        nature: Any = spec.nature.build(cmdp, seed_of(spec.stream(1)))
        if self.drawn * self.copies > 1:
            cost = np.repeat(cmdp.cost[: self.kept], self.copies, axis=0)
            cmdp = CMDP.from_arrays(cmdp.transition, cmdp.reward, cost, np.zeros(len(cost)))
            more = {}
            if isinstance(nature, Pool):
                more = {"tables": np.repeat(nature.tables[:, : self.kept], self.copies, axis=1)}
            nature = replace(nature, cmdp=cmdp, **more)
        return Scene(cmdp, nature, LEARNER_OF[self.learner](), self.episodes, {}, episodes_known=self.told)


# The same instances with more in them, each beside what it is held against.
ONE, ONE_OF_FOUR = Job(OURS, "", 0), Job(OURS, "", 0, drawn=4)
MATCHED: dict[str, tuple[Job, Job]] = {
    "K not told": (replace(ONE, told=False), ONE),
    "the constraint written twice": (replace(ONE, copies=2), ONE),
    "the constraint written four times": (replace(ONE, copies=4), ONE),
    "a second constraint": (replace(ONE_OF_FOUR, kept=2), ONE_OF_FOUR),
    "a second to a fourth constraint": (replace(ONE_OF_FOUR, kept=4), ONE_OF_FOUR),
    "the same, and K not told": (replace(ONE_OF_FOUR, kept=4, told=False), ONE_OF_FOUR),
    "the same, against `settling`": (
        replace(ONE_OF_FOUR, kept=4, told=False),
        replace(ONE_OF_FOUR, learner=BEFORE, kept=4, told=False),
    ),
}


def spec_of(job: Job) -> RunSpec:
    """The run of its instance."""
    return Registry.installed().run("random_dirichlet", job.nature, "Uniform", job.episodes, job.seed)


def played(job: Job) -> dict[str, float]:
    """The numbers of a run, from its file if there is one."""
    if job.file.exists():
        return json.loads(job.file.read_text())
    scene = job.scene(spec := spec_of(job))
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


def played_all(jobs: Sequence[Job], workers: int) -> dict[Job, dict[str, float]]:
    """The numbers of many runs."""
    found = {}
    with executor_of("local", workers) as executor:
        futures = {executor.submit(played, job): job for job in jobs}
        for future in track(as_completed(futures), "runs", len(jobs), console=Console(stderr=True)):
            found[futures[future]] = future.result()
    return found


class Results:
    """Numbers of many runs, one array entry per seed (the mean over natures where several are asked for)."""

    def __init__(self, found: dict[Job, dict[str, float]], seeds: range, theirs: str = THEIRS) -> None:
        self.found = {(job.learner, job.nature, job.seed): numbers for job, numbers in found.items()}
        self.seeds, self.theirs = seeds, theirs

    def each(self, learner: str, natures: Sequence[str], key: str) -> np.ndarray:
        rows = [[self.found[learner, nature, seed][key] for nature in natures] for seed in self.seeds]
        return np.array(rows, dtype=float)

    def ratio(self, learner: str, natures: Sequence[str], key: str) -> tuple[float, float, float]:
        ours, theirs = (self.each(name, natures, key).mean(axis=1) for name in (learner, self.theirs))
        return paired_ratio_interval(ours, theirs, np.random.default_rng(0))

    def stuck(self, learner: str, natures: Sequence[str]) -> np.ndarray:
        return (self.each(learner, natures, "regret") > STUCK).mean(axis=1)


def bar_rows(results: Results) -> list[tuple[str, ...]]:
    """One line per bar."""
    lines, theirs = [], results.theirs
    for name, *limits, share in LIMITS[theirs]:
        natures = NATURE_NAMES if name == "together" else (name,)
        for key, limit in zip(("violation", "regret"), limits, strict=True):
            number, low, high = results.ratio(OURS, natures, key)
            shown = f"{number:.2f} ({low:.2f} .. {high:.2f})"
            holds = "yes" if limit is None or low <= limit else "NO"
            lines.append((name, f"{key} ratio", shown, "none" if limit is None else f"<= {limit:g}", holds))
        stuck, reference = results.stuck(OURS, natures), float(results.stuck(theirs, natures).mean())
        limit = reference if share is None else share
        number, low, high = paired_ratio_interval(stuck, np.ones(len(stuck)), np.random.default_rng(0))
        shown = f"{number:.0%} ({low:.0%} .. {high:.0%}); {theirs} {reference:.0%}"
        lines.append((name, f"regret > {STUCK:g}", shown, f"<= {limit:.0%}", "yes" if low <= limit else "NO"))
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
    theirs = results.theirs
    heads = (f"stuck; `{theirs}`'; bar", f"largest; `{theirs}`'", "time ratio")
    means_of = (f"regret (violation) of `{theirs}`", f"of `{OURS}`")
    lines = [("nature", *means_of, "violation ratio; bar", "regret ratio; bar", *heads)]
    for name, *limits, share in LIMITS[theirs]:
        natures = NATURE_NAMES if name == "together" else (name,)
        means = [
            "{:.0f} ({:.1f})".format(*(results.each(who, natures, key).mean() for key in ("regret", "violation")))
            for who in (theirs, OURS)
        ]
        cells: list[str] = []
        for key, limit in zip(("violation", "regret"), limits, strict=True):
            bar = "" if limit is None else f"; {limit:g}"
            cells.append("{:.2f} ({:.2f} .. {:.2f})".format(*results.ratio(OURS, natures, key)) + bar)
        stuck = [float(results.stuck(who, natures).mean()) for who in (OURS, theirs)]
        cells.append("; ".join(f"{part:.1%}" for part in (*stuck, *(() if share is None else (share,)))))
        largest = (results.each(who, natures, "regret").max() for who in (OURS, theirs))
        ours, other = (np.median(results.each(who, natures, "milliseconds")) for who in (OURS, theirs))
        lines.append((name, *means, *cells, "{:.0f}; {:.0f}".format(*largest), f"{ours / other:.2f}"))
    return lines


def matched_jobs(natures: Sequence[str], seeds: range, episodes: int) -> dict[tuple[str, str], list[list[Job]]]:
    """By change and nature: the runs with more in them, and those that they are held against."""
    return {
        (name, nature): [[replace(job, nature=nature, seed=seed, episodes=episodes) for seed in seeds] for job in pair]
        for name, pair in MATCHED.items()
        for nature in natures
    }


def matched_table(natures: Sequence[str], seeds: range, episodes: int) -> list[tuple[str, ...]]:
    """Ratios to the same instances with less in them: one line per change, two columns per nature, after a head."""
    jobs = matched_jobs(natures, seeds, episodes)
    lines = [("change", *(f"{key} ratio, `{nature}`" for nature in natures for key in ("regret", "violation")))]
    for name in MATCHED:
        cells = [name]
        for nature in natures:
            for key in ("regret", "violation"):
                ours, base = (np.array([played(job)[key] for job in side]) for side in jobs[name, nature])
                low_high = paired_ratio_interval(ours, base, np.random.default_rng(0))
                cells.append("{:.2f} ({:.2f} .. {:.2f})".format(*low_high))
        lines.append(tuple(cells))
    return lines


def margin_jobs(natures: Sequence[str], seeds: range, episodes: int) -> dict[tuple[str, str], list[Job]]:
    """The runs by nature and margin."""
    return {
        (nature, name): [Job(name, nature, seed, episodes) for seed in seeds] for nature in natures for name in MARGINS
    }


def margin_table(natures: Sequence[str], seeds: range, episodes: int) -> list[tuple[str, ...]]:
    """Regret / violation by the formula and as played, after a head.

    Regret less Lagrangian regret is what was paid for budget that was not spent: the margin's regret, as played.
    """
    heads = ("margin alone, by formula", "margin's regret / violation", "regret", "Lagrangian regret")
    lines: list[tuple[str, ...]] = [("costs", "setting", *heads)]
    for (nature, name), jobs in margin_jobs(natures, seeds, episodes).items():
        (least,) = limits_of([spec_of(job) for job in jobs], *MARGINS[name])
        runs = [played(job) for job in jobs]
        regret, violation, priced = (
            np.array([run[key] for run in runs]) for key in ("regret", "violation", "lagrangian_regret")
        )
        sides = [(least.regret, least.violation), ((regret - priced).mean(), violation.mean())]
        cells = ("{:.0f} / {:.0f}".format(*side) for side in sides)
        lines.append((f"`{nature}`", name, *cells, f"{regret.mean():.0f}", f"{priced.mean():.0f}"))
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
    parser.add_argument("--against", choices=list(LIMITS), default=THEIRS, help="whom the bars are about")
    parser.add_argument("--matched", action="store_true", help="more constraints, K not told; a Markdown table")
    parser.add_argument("--margins", nargs="*", choices=NATURE_NAMES, help="every margin, under these natures; a table")
    parser.add_argument("--episodes", type=int, default=K)
    parser.add_argument("--fresh", action="store_true", help="play again what was played")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/dials.md")
    options = parser.parse_args()
    start, count = (int(part) for part in options.seeds.split(":"))
    seeds = range(start, start + count)
    turned, natures = options.dials is not None, options.dials or NATURE_NAMES
    learners = list(LEARNER_OF) if turned else [options.against, OURS]
    grid = [(learner, nature, seed) for seed in seeds for nature in natures for learner in learners]
    jobs = [Job(*names, options.episodes) for names in grid]
    if options.matched:  # not `scaled`: tables that are met with both signs hardly have a common safe policy
        asked = (NATURE_NAMES[:3], seeds, options.episodes)
        jobs = list(dict.fromkeys(job for pair in matched_jobs(*asked).values() for side in pair for job in side))
    elif options.margins is not None:
        asked = (options.margins or NATURE_NAMES[:1], seeds, options.episodes)
        jobs = [job for each in margin_jobs(*asked).values() for job in each]
    if options.fresh:
        for job in jobs:
            job.file.unlink(missing_ok=True)
    found = played_all(jobs, options.jobs)
    if options.matched or options.margins is not None:
        print_markdown((matched_table if options.matched else margin_table)(*asked))
        return 0
    results = Results(found, seeds, options.against)
    if options.markdown:
        print_markdown(dial_table(results, learners, natures) if turned else bar_table(results))
        return 0
    if turned:
        heads = ("nature", "setting", "regret; ratio", "violation; ratio", "Lagrangian regret; ratio", "stuck")
        lines = dial_rows(results, learners, natures)
    else:
        heads, lines = ("nature", "what", "measured (90 %)", "limit", "holds"), bar_rows(results)
    shown = Table(title=f"{OURS} against {options.against} on instances {start} to {seeds[-1]}, K = {options.episodes}")
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
