"""What a study is: runs that answer a question, and the numbers, tables and figure that come of them.

A study is plain data around three functions.  Its runs are ordinary durable runs; what is kept of them is a `Summary`
of a few kilobytes, and tables and figures are made of the summary alone, so that a page is renewed without a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from omdpd import __version__
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import LearnerSpec, NatureSpec, RunSpec
from omdpd.play.rows import regret_curve
from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer
from omdpd.report.thinning import rounded_for_json
from omdpd.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORLD = "random_dirichlet"
# Instances that no constant of a learner was chosen on.
FIRST_SEED = 6000
# Points of a curve in a summary: enough for a figure with a logarithmic axis.
POINTS = 40
# What is said after a learner's name where it was not told how many episodes there are.
K_UNKNOWN = ", K unknown"
# What is kept of every run, seed by seed.
KEPT = ("regret", "violation", "lagrangian_regret", "late_violation")


@dataclass(frozen=True)
class Size:
    """How large a study is: numbers of episodes, seeds, how many of them from so many episodes on, and the first."""

    episodes: tuple[int, ...]
    seeds: int
    fewer: tuple[int, int] | None = None
    first: int = FIRST_SEED

    def is_long(self, episodes: int) -> bool:
        """Whether runs of so many episodes are among those that are fewer."""
        return self.fewer is not None and episodes >= self.fewer[0]

    def seeds_at(self, episodes: int) -> range:
        """The seeds of runs that long."""
        most = self.fewer[1] if self.fewer is not None and self.is_long(episodes) else self.seeds
        return range(self.first, self.first + min(most, self.seeds))


class Curve(msgspec.Struct, frozen=True):
    """Means over seeds at some episodes; `weight` is the learner's largest penalty, where it reports one."""

    episodes: list[int]
    regret: list[float | None]
    violation: list[float | None]
    weight: list[float | None]


class Line(msgspec.Struct, frozen=True):
    """The runs of one learner under one nature with one number of episodes, seed by seed."""

    nature: str
    learner: str
    episodes: int
    seeds: list[int]
    numbers: dict[str, list[float | None]]
    curve: Curve | None = None

    def values(self, key: str) -> Floats | None:
        """A number of every seed; None where some run has none."""
        found = self.numbers[key]
        return None if None in found else np.array(found, dtype=np.float64)

    def mean(self, key: str) -> float | None:
        """Its mean over seeds."""
        found = self.values(key)
        return None if found is None else float(found.mean())


class Summary(msgspec.Struct, frozen=True):
    """What is kept of a study: where it was made, and a line for every learner, nature and number of episodes."""

    study: str
    command: str
    version: str
    world: str
    runs: int
    minutes: float
    lines: list[Line]

    def line(self, nature: str, learner: str, episodes: int) -> Line:
        """The line of these runs."""
        for line in self.lines:
            if (line.nature, line.learner, line.episodes) == (nature, learner, episodes):
                return line
        raise InvalidInputError(f"the summary of {self.study} has no {learner}, {nature}, K = {episodes}")

    def along(self, nature: str, learner: str) -> list[Line]:
        """The lines of a learner under a nature, by the number of episodes."""
        found = (line for line in self.lines if (line.nature, line.learner) == (nature, learner))
        return sorted(found, key=lambda line: line.episodes)

    @property
    def natures(self) -> list[str]:
        """The natures, in the order of the runs."""
        return list(dict.fromkeys(line.nature for line in self.lines))

    def learners(self, nature: str) -> list[str]:
        """The learners that met a nature, in the order of the runs."""
        return list(dict.fromkeys(line.learner for line in self.lines if line.nature == nature))


@dataclass(frozen=True)
class Study:
    """A question, the runs that answer it, and what is shown of them: tables by the names of their places, a figure."""

    name: str
    question: str
    columns: str
    full: Size
    quick: Size
    runs: Callable[[Size], list[RunSpec]]
    tables: Mapping[str, Callable[[Summary], str]]
    draw: Callable[[Summary], Figure]
    curves: bool = False

    def size(self, quick: bool, seeds: int | None) -> Size:
        """How large it is to be."""
        size = self.quick if quick else self.full
        return size if seeds is None else replace(size, seeds=positive_integer("--seeds", seeds))

    def command(self, quick: bool = False, seeds: int | None = None) -> str:
        """The command that makes it."""
        more = (" --quick" if quick else "") + ("" if seeds is None else f" --seeds {seeds}")
        return f"python -m benchmarks.studies {self.name}{more}"


def learner(name: str, **settings: Any) -> LearnerSpec:
    """A learner by its name and settings."""
    found: LearnerSpec = Registry.installed().spec("learners", name, settings)
    return found


def nature(name: str, **settings: Any) -> NatureSpec:
    """A nature by its name and settings."""
    found: NatureSpec = Registry.installed().spec("natures", name, settings)
    return found


def runs_of(
    natures: Sequence[NatureSpec], learners: Sequence[LearnerSpec], size: Size, episodes: Sequence[int] | None = None
) -> list[RunSpec]:
    """Every nature with every learner, number of episodes (all of the size if None) and seed, in the paper's world."""
    world = Registry.installed().spec("worlds", WORLD)
    return [
        RunSpec(world, nature_spec, played, K, seed, policies="none")
        for nature_spec in natures
        for K in (size.episodes if episodes is None else episodes)
        for played in learners
        for seed in size.seeds_at(K)
    ]


def summarised(
    study: Study, command: str, specs: Sequence[RunSpec], records: Sequence[Mapping[str, Any]], folder: Path
) -> Summary:
    """The summary of a study's finished runs (`records` in the order of `specs`), whose folders are in `folder`."""
    groups: dict[tuple[str, str, int], list[tuple[RunSpec, Mapping[str, Any]]]] = {}
    for spec, record in zip(specs, records, strict=True):
        name = spec.learner.label + (K_UNKNOWN if spec.episodes_known is False else "")
        groups.setdefault((spec.nature.label, name, spec.episodes), []).append((spec, record))
    lines = [_line(key, group, folder if study.curves else None) for key, group in groups.items()]
    minutes = round(sum(record["seconds"] for record in records) / 60.0, 1)
    return Summary(study.name, command, __version__, WORLD, len(records), minutes, lines)


def _line(key: tuple[str, str, int], group: Sequence[tuple[RunSpec, Mapping[str, Any]]], folder: Path | None) -> Line:
    """The line of some runs that differ in their seeds."""
    numbers = {name: _rounded([record[name] for _, record in group]) for name in KEPT}
    curve = None if folder is None else _curve([record for _, record in group], folder)
    return Line(*key, [spec.seed for spec, _ in group], numbers, curve)


def _curve(records: Sequence[Mapping[str, Any]], folder: Path) -> Curve:
    """The mean curves of some runs of one length at about `POINTS` of their recorded episodes."""
    columns: dict[str, list[Floats]] = {"regret": [], "violation": [], "weight": []}
    wanted = np.zeros(0, dtype=np.int64)
    for record in records:
        rows = RunFolder(folder / record["run"], record["run"]).rows()
        assert rows is not None, "a finished run has rows"
        episodes = rows["episode"]
        places = np.unique(np.searchsorted(episodes, np.geomspace(1.0, episodes[-1], POINTS)))
        wanted = episodes[places]
        best = record["comparator_value"]
        values = rows["value_sum"][places]
        columns["regret"].append(regret_curve(np.nan if best is None else best, wanted, values))
        columns["violation"].append(rows["violation_sum"][places])
        columns["weight"].append(rows["weight"][places])
    means = {name: rounded_for_json(np.mean(curves, axis=0)) for name, curves in columns.items()}
    return Curve(wanted.tolist(), **means)


def _rounded(numbers: Sequence[float | None]) -> list[float | None]:
    """Numbers as a summary keeps them."""
    found: list[float | None] = rounded_for_json([np.nan if number is None else number for number in numbers])
    return found


def generated(study: Study, summary: Summary) -> Callable[[str], str]:
    """What stands at each place of a study's page: `command`, or one of its tables."""

    def content(place: str) -> str:
        if place == "command":
            return made_by(summary)
        if place not in study.tables:
            there = ", ".join(["command", *study.tables])
            raise InvalidInputError(f"the page of {study.name} has a place {place!r}; there are {there}")
        return study.tables[place](summary)

    return content


def made_by(summary: Summary) -> str:
    """The command, and what it played."""
    lengths = sorted({line.episodes for line in summary.lines})
    spans = [f"K = {', '.join(map(str, at))} on {_instances(seeds)}" for seeds, at in _by_seeds(summary, lengths)]
    return (
        f"```sh\n{summary.command}\n```\n\n"
        f"{summary.runs} runs in `{summary.world}` at the paper's size, {'; '.join(spans)}; "
        f"{summary.minutes:g} minutes by the clock of a shared core (omdpd {summary.version})."
    )


def _by_seeds(summary: Summary, lengths: Sequence[int]) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """The numbers of episodes that were played on the same seeds."""
    found: dict[tuple[int, ...], list[int]] = {}
    for K in lengths:
        seeds = max((tuple(line.seeds) for line in summary.lines if line.episodes == K), key=len)
        found.setdefault(seeds, []).append(K)
    yield from found.items()


def _instances(seeds: tuple[int, ...]) -> str:
    return f"instance {seeds[0]}" if len(seeds) == 1 else f"instances {seeds[0]} to {seeds[-1]}"
