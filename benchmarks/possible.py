"""How far from what is possible: the default beside who is given kernel, costs and the prior of the rewards.

`python -m benchmarks.possible FIRST:COUNT [NATURE ...]` plays `Informed` on instances of the growth study, K = 100 000,
and sets its regret with the margin's, by the formula of docs/theory.md, beside that of the default and of `settling`
there.  With --constraints K = 3000, and the same worlds have one, two and four constraints.  It prints the tables of
docs/dials.md; intervals are of paired runs, 90 %.  Numbers are kept under results/standard.  With --worlds the default
and `settling` play named worlds under noise with these seeds, K = 1000.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.ratios import paired_ratio_interval
from benchmarks.standard import BEFORE, LEARNER_OF, NATURE_NAMES, OURS, Job, played, print_markdown, spec_of
from omdpd import run
from omdpd.experiments.spec import RunSpec
from omdpd.learners.informed import Informed
from omdpd.play.scene import Scene, with_known_facts
from omdpd.problem.arrays import Floats
from omdpd.theory.limits import boundary_in
from omdpd.worlds import WORLDS

STUDY = Path(__file__).parents[1] / "docs/studies/data/growth.json"
# `adaptive` has the tables of `pool`: who knows the mean has soon met them all, and then plays alike.
MET = {"adaptive": "pool"}
GIVEN, UNGUARDED = "Informed", "z = 0"
LEARNER_OF[GIVEN] = Informed
# `scaled` has hardly a common safe policy with several constraints, and tables that a pool of eight does not hold.
NATURES = NATURE_NAMES[:3]


class Given(Job):
    """A run of `Informed`, which is told kernel and costs."""

    def scene(self, spec: RunSpec) -> Scene:
        scene = super().scene(spec)
        return replace(scene, learner=with_known_facts(scene.learner, scene.cmdp, scene.nature.feedback))


def studied(who: str, nature: str, seeds: range, episodes: int) -> Floats:
    """The regrets of a learner in the growth study, by instance."""
    for line in json.loads(STUDY.read_text())["lines"]:
        if (line["learner"], line["nature"], line["episodes"]) == (f"ProximalOMDPD.{who}", nature, episodes):
            found = dict(zip(line["seeds"], line["numbers"]["regret"], strict=True))
            return np.array([found[seed] for seed in seeds])
    raise LookupError(f"the growth study has no {who} under {nature} with K = {episodes}")


def each(key: str, jobs: Sequence[Job]) -> Floats:
    """A number of every run."""
    return np.array([played(job)[key] for job in jobs])


def margins(jobs: Sequence[Job], z: float = 1.0) -> Floats:
    """The regret of the margin alone on every instance, by the formula."""
    found = []
    for job in jobs:
        scene = job.scene(spec_of(job))
        least = boundary_in(scene.cmdp, scene.nature, job.episodes, z)
        found.append(0.0 if least is None else least.regret)
    return np.array(found)


def ratio(above: Floats, below: Floats) -> str:
    """A ratio of means with its interval."""
    return "{:.2f} ({:.2f} .. {:.2f})".format(*paired_ratio_interval(above, below, np.random.default_rng(0)))


def long_table(seeds: range, natures: list[str], episodes: int) -> list[tuple[str, ...]]:
    """One line per nature, and one of all together, after a head."""
    head = (f"`{OURS}`", f"`{BEFORE}`", f"`{GIVEN}`", "margin, by formula", "reference: sum of the two")
    lines = [("costs", *head, f"`{OURS}` to the reference", f"reference to `{BEFORE}`")]
    rows = []
    for nature in natures:
        given = [Given(GIVEN, MET.get(nature, nature), seed, episodes) for seed in seeds]
        others = (studied(who, nature, seeds, episodes) for who in (OURS, BEFORE))
        numbers = (*others, each("regret", given), margins(given))
        rows.append(np.array([*numbers, numbers[2] + numbers[3]]))
        lines.append((f"`{nature}`", *long_cells(rows[-1])))
        print(lines[-1], flush=True)
    return [*lines, ("together", *long_cells(np.mean(rows, axis=0)))]


def long_cells(row: Floats) -> tuple[str, ...]:
    """Means and ratios of five numbers per instance."""
    return (*(f"{mean:.0f}" for mean in row.mean(axis=1)), ratio(row[0], row[4]), ratio(row[4], row[1]))


def constraints_table(seeds: range, natures: list[str], episodes: int) -> list[tuple[str, ...]]:
    """Ratios to the same worlds with one constraint: what is paid in all, for learning, and by who knows the costs."""
    asked = [*product((OURS, UNGUARDED), ("regret", "lagrangian_regret")), (GIVEN, "regret")]
    heads = ("regret", "Lagrangian regret", *(f"{each}, {UNGUARDED}" for each in ("regret", "Lagrangian regret")))
    heads += (f"regret of `{GIVEN}`", "margin, by formula")
    lines = [("costs", "constraints", *heads)]
    for nature in natures:
        for kept in (2, 4):
            cells = []
            for who, key in asked:
                kind = Given if who == GIVEN else Job
                base = [kind(who, nature, seed, episodes, drawn=4) for seed in seeds]
                cells.append(ratio(each(key, [replace(job, kept=kept) for job in base]), each(key, base)))
            base = [Job(OURS, nature, seed, episodes, drawn=4) for seed in seeds]
            sides = (margins(jobs) for jobs in ([replace(job, kept=kept) for job in base], base))
            cells.append("{:.0f} : {:.0f}".format(*(side.mean() for side in sides)))
            lines.append((f"`{nature}`", str(kept), *cells))
            print(lines[-1], flush=True)
    return lines


def worlds_table(seeds: range, names: list[str], episodes: int) -> list[tuple[str, ...]]:
    """One line per named world under noise: the default against `settling`, paired by seed, after a head."""
    lines = [("world, nature", f"regret of `{OURS}`; `{BEFORE}`", "ratio", "strong violation", "ratio")]
    for name in names:
        cells = [f"`{name}`, noisy"]
        both = [
            [run(WORLDS[name](), LEARNER_OF[who](), "noisy", episodes, seed=seed).scores for seed in seeds]
            for who in (OURS, BEFORE)
        ]
        for key in ("regret", "violation"):
            ours, theirs = (np.array([getattr(each, key) for each in side]) for side in both)
            cells += [f"{ours.mean():.0f}; {theirs.mean():.0f}", ratio(ours, theirs)]
        lines.append(tuple(cells))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", help="FIRST:COUNT, e.g. 13260:8")
    parser.add_argument("natures", nargs="*", choices=[*NATURES, []])
    parser.add_argument("--constraints", action="store_true", help="two and four constraints against one")
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), help="named worlds under noise")
    parser.add_argument("--episodes", type=int, default=None)
    options = parser.parse_args()
    first, count = (int(part) for part in options.seeds.split(":"))
    table, episodes = (constraints_table, 3000) if options.constraints else (long_table, 100_000)
    names = options.natures or list(NATURES)
    if options.worlds:
        table, names, episodes = worlds_table, options.worlds, 1000
    print_markdown(table(range(first, first + count), names, options.episodes or episodes))


if __name__ == "__main__":
    main()
