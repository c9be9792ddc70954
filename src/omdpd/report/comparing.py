"""`omdpd.compare`: learners side by side on problems of one's own, in memory, with the statistics of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from omdpd.experiments.executors import executor
from omdpd.experiments.registry import Registry
from omdpd.experiments.seeds import run
from omdpd.learners.protocol import Learner
from omdpd.natures import NATURES
from omdpd.play.loop import seed_of
from omdpd.play.scene import informed
from omdpd.problem.arrays import InvalidInputError, named, positive_integer
from omdpd.problem.cmdp import CMDP
from omdpd.report.comparison import Difference, Rank, differences, ranks, tidy_csv
from omdpd.report.results import grouped, mean_of


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was played: a record per problem, learner and seed, and a sentence for everything that did not fit."""

    records: tuple[Mapping[str, Any], ...]
    left_out: tuple[str, ...]

    def differences(self, against: str) -> list[Difference]:
        """Paired differences of every learner to the yardstick."""
        return differences(self.records, against)

    def ranks(self) -> list[Rank]:
        """Places by positive regret plus violation, with their uncertainty."""
        return ranks(self.records)

    def csv(self, against: str | None = None) -> str:
        """The ranks, or the differences to a yardstick, as CSV."""
        return tidy_csv(self.ranks() if against is None else self.differences(against))

    def __str__(self) -> str:
        lines = []
        for (world, nature, learner), group in grouped(self.records).items():
            regret, violation = mean_of(group, "regret"), mean_of(group, "violation")
            means = (f"{name} {'-' if mean is None else f'{mean.mean:.4g}'}" for name, mean in (
                ("regret", regret), ("violation", violation)
            ))  # fmt: skip
            lines.append(f"{world}, {nature}: {learner} ({len(group)} seeds): " + ", ".join(means))
        return "\n".join([*lines, *self.left_out])


def compare(
    problems: Mapping[str, CMDP | str] | Sequence[CMDP | str] | CMDP | str,
    learners: Mapping[str, Learner[Any] | str] | Sequence[Learner[Any] | str] | Learner[Any] | str,
    seeds: int = 10,
    jobs: int = 1,
    nature: str = "noisy",
    episodes: int = 1000,
) -> Comparison:
    """Play every learner on every problem with the same seeds, and judge all of them exactly.

    A problem is a `CMDP` or the name of a world (which is drawn anew for every seed, if it is drawn); a learner is one
    of your own or a name that ``omdpd list`` prints; one alone needs no list.  `jobs` processes play at a time.  What
    does not fit together is left out and said.  Nothing is written: for long studies see ``omdpd compare``.
    """
    positive_integer("seeds", seeds)
    positive_integer("episodes", episodes)
    named(NATURES, nature, "nature")
    worlds, players = _labelled(problems, "problem"), _labelled(learners, "learner")
    _know_names(worlds.values(), players.values())
    tasks = [
        (label, problem, name, learner, nature, episodes, seed)
        for label, problem in worlds.items()
        for seed in range(seeds)
        for name, learner in players.items()
    ]
    with executor("local", min(jobs, len(tasks)) or 1) as workers:
        answers = [future.result() for future in [workers.submit(_play, *task) for task in tasks]]
    records = tuple(answer for answer in answers if isinstance(answer, dict))
    left_out = tuple(dict.fromkeys(answer for answer in answers if isinstance(answer, str)))
    if not records:
        raise InvalidInputError("no learner suits these problems: " + "; ".join(left_out))
    return Comparison(records, left_out)


def _know_names(problems: Iterable[Any], learners: Iterable[Any]) -> None:
    """Refuse a name that is none before anything is played: a typing error is no learner that does not fit."""
    registry = Registry.installed()
    for world in problems:
        if isinstance(world, str):
            registry.spec("worlds", world)
    for learner in learners:
        if isinstance(learner, str):
            registry.spec("learners", learner)


def _labelled(given: Any, what: str) -> dict[str, Any]:
    """What was given by name; without names, the name of a world, a problem's own, or the class of a learner."""
    if isinstance(given, Mapping):
        found = dict(given)
    else:
        found = {}
        for each in given if isinstance(given, Iterable) and not isinstance(given, str) else [given]:
            label = each if isinstance(each, str) else getattr(each, "name", None) or type(each).__name__
            found[label if label not in found else f"{label} {len(found)}"] = each
    if not found:
        raise InvalidInputError(f"a comparison needs at least one {what}")
    return found


def _play(
    label: str, problem: CMDP | str, name: str, learner: Learner[Any] | str, nature: str, episodes: int, seed: int
) -> dict[str, Any] | str:
    """One run as a record, or the sentence that says why it cannot be played."""
    registry = Registry.installed()
    try:
        cmdp: CMDP = _drawn(registry, problem, seed) if isinstance(problem, str) else problem
        if isinstance(learner, str):
            learner = registry.spec("learners", learner).build()
        picked = NATURES[nature](cmdp, seed_of(np.random.SeedSequence(seed, spawn_key=(1,))))
        history = run(cmdp, informed(learner, cmdp, picked.feedback), nature, episodes, seed, name, progress=False)
    except InvalidInputError as error:
        return f"left out: {name} on {label}, {nature}: {error}"
    parts = {"world": label, "nature": nature, "learner": name, "seed": seed, "episodes": episodes}
    return parts | asdict(history.scores)


def _drawn(registry: Registry, world: str, seed: int) -> Any:
    """A world by its name, drawn from the seed's stream for worlds."""
    return registry.spec("worlds", world).build(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,))))
