"""A label says what a run was asked to do, by the names in its spec, known here or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from omdpd.experiments.registry import PlainRun, Registry, UnknownNameError
from omdpd.experiments.spec import KINDS, Kind, NatureSpec, RunSpec, WorldSpec, label_of
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.atomic import RecordError
from omdpd.storage.sealed import read_toml

# The names that a run's seeds share, as summaries and rows have them.
KEYS = ("world", "nature", "learner")
# A longer label of somebody's own is cut.
MAX_LABEL = 200


@dataclass(frozen=True)
class RunLabel:
    """What a run was asked to do, by the names in its spec; a part with an unknown name has no spec.

    `plain` is the learner's label before `told_apart`.
    """

    world: str
    nature: str
    learner: str
    seed: int
    episodes: int
    world_spec: WorldSpec | None
    nature_spec: NatureSpec | None
    spec: RunSpec | None = field(default=None, compare=False)
    parts: tuple[Any, ...] = field(default=(), compare=False)
    plain: str = field(default="", compare=False)

    @property
    def group(self) -> tuple[str, str, str]:
        """The names that its seeds share."""
        return self.world, self.nature, self.learner

    @staticmethod
    def of(spec: RunSpec) -> RunLabel:
        """What a run that is only planned will be asked."""
        world, nature, learner = (part.label for part in (spec.world, spec.nature, spec.learner))
        return RunLabel(world, nature, learner, spec.seed, spec.episodes, spec.world, spec.nature, spec)

    def called(self, names: Sequence[str]) -> RunLabel:
        """The same with these labels of world, nature and learner, where they are of the same names; cut if long."""
        if len(names) != len(self.group):
            return self
        pairs = zip(names, self.group, strict=True)
        world, nature, learner = (_cut(x) if x.partition("(")[0] == own.partition("(")[0] else own for x, own in pairs)
        return replace(self, world=world, nature=nature, learner=learner)

    def stream(self, number: int) -> np.random.SeedSequence:
        """The run's independent streams, as `RunSpec.stream` has them."""
        return np.random.SeedSequence(self.seed, spawn_key=(number,))


def read_label(file: Path, content: Mapping[str, Any]) -> RunLabel:
    """What the spec of a stored run says; the file is named where it says no run."""
    try:
        plain = PlainRun.of(content)
        (world, one), (nature, two), (learner, three) = (_known_part(kind, table) for kind, table in plain.parts)
        known = None not in (world, nature, learner)
        spec = plain.run(world, nature, learner) if known else None
        parts = tuple(table for _, table in plain.parts)
        return RunLabel(one, two, three, plain.seed, plain.episodes, world, nature, spec, parts)
    except (msgspec.ValidationError, InvalidInputError) as error:
        raise RecordError(f"{file} does not hold a run of this version: {error}") from None


def told_apart(asked: Sequence[RunLabel]) -> list[RunLabel]:
    """The labels of a folder's runs, none of which is of two things.

    Learners of a world and nature in which runs have different numbers of episodes say theirs; so do settings by which
    the specs of one label differ, as when a default was changed.
    """
    lengths: dict[Any, set[int]] = {}
    spelled: dict[Any, dict[str, set[str]]] = {}
    for each in asked:
        lengths.setdefault((each.world, each.nature), set()).add(each.episodes)
        values = spelled.setdefault((each.world, each.nature, each.plain or each.learner), {})
        for name, value in _settings_of(each).items():
            values.setdefault(name, set()).add(str(value))

    def said(each: RunLabel) -> str:
        label, place = each.plain or each.learner, (each.world, each.nature)
        values = spelled[(*place, label)]
        more = [f"{name}={value}" for name, value in _settings_of(each).items() if len(values[name]) > 1]
        if len(lengths[place]) > 1:
            more.append(f"episodes={each.episodes}")
        name, _, inside = label.removesuffix(")").partition("(")
        return label if not more else f"{name}({', '.join(([inside] if inside else []) + more)})"

    return [replace(each, learner=said(each), plain=each.plain or each.learner) for each in asked]


def _settings_of(asked: RunLabel) -> Mapping[str, Any]:
    """The settings of a stored run's learner; none of one that is only planned."""
    return asked.parts[-1] if asked.parts else {}


def spelled_order(folder: Path) -> Callable[[RunLabel | None], tuple[int, ...]]:
    """Where the file of an experiment has a run's world, nature and learner; all are alike where there is no file.

    Names that nothing here knows have their places too.
    """
    content: Mapping[str, Any] = {}
    with suppress(RecordError, OSError):
        content = read_toml(folder / "experiment.toml")[0]
    lists = [each if isinstance(each := content.get(kind), list) else [] for kind in KINDS]

    def place(asked: RunLabel | None) -> tuple[int, ...]:
        pairs = zip(asked.parts, lists, strict=True) if asked is not None and asked.parts else ()
        return tuple(each.index(part) if part in each else len(each) for part, each in pairs)

    return place


def _known_part(kind: Kind, table: Mapping[str, Any]) -> tuple[Any, str]:
    """A part's spec (None where nothing here knows its name) and its label."""
    if not isinstance(name := table.get("name"), str):
        raise InvalidInputError(f"its {kind[:-1]} has no name")
    try:
        spec = Registry.installed().parse(kind, table)
    except UnknownNameError:
        return None, _cut(label_of(name, {key: value for key, value in table.items() if key != "name"}))
    return spec, spec.label


def _cut(label: str) -> str:
    return label if len(label) <= MAX_LABEL else f"{label[:MAX_LABEL]}..."
