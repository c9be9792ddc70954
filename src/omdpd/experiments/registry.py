"""The registry says what names stand for: our own learners, worlds and natures, and those of packages and plugins.

A name stands for a factory, and the factory's parameters are the settings that a file may say:

    learners   factory(settings) -> Learner
    worlds     factory(settings) -> CMDP, or factory(rng, settings) where the world is drawn
    natures    factory(cmdp, seed, settings) -> Nature

Parameters after a star came later: they are part of a run's name only where they are set to something else than their
default, so that a new setting renames no old run.

Installed packages offer names as entry points of the groups ``omdpd.learners``, ``omdpd.worlds`` and ``omdpd.natures``.
A plugin is a Python file with dictionaries LEARNERS, WORLDS or NATURES; it is code, so it is loaded only where somebody
named the file (``--plugin FILE.py``), never because an experiment or a folder of results says so.
"""

from __future__ import annotations

import inspect
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any

import msgspec

from omdpd.experiments.plugins import PluginModule, checked_factory, read_plugin
from omdpd.experiments.spec import (
    KINDS,
    MAX_INTEGER,
    HowPlayed,
    Kind,
    LearnerSpec,
    NatureSpec,
    Plugin,
    RunSpec,
    Spec,
    WorldSpec,
    as_now,
)
from omdpd.jit.cache import fingerprint
from omdpd.learners import AVERAGE_LEARNERS, LEARNERS
from omdpd.learners.needs import OF_AVERAGES
from omdpd.learners.settings import settings_of, types_of
from omdpd.natures import NATURES
from omdpd.problem.arrays import InvalidInputError, shown, suggestion
from omdpd.problem.strangers import strangers_code
from omdpd.storage.provenance import running_version
from omdpd.storage.run_folder import RunFolder
from omdpd.storage.sealed import FORMAT
from omdpd.worlds import WORLDS
from omdpd.worlds.files import problem_file
from omdpd.worlds.umb import umb_file

BUILT_IN: dict[Kind, Mapping[str, Callable[..., Any]]] = {
    "learners": LEARNERS,
    "worlds": {**WORLDS, "file": problem_file, "umb": umb_file},
    "natures": NATURES,
}
BASES: dict[Kind, type[Spec]] = {"learners": LearnerSpec, "worlds": WorldSpec, "natures": NatureSpec}

# How a list of names that lacks one ends: code of one's own is known only where it is named.
PLUGIN_HINT = "a plugin's names need --plugin FILE.py"


class UnknownNameError(InvalidInputError):
    """A name that nothing here has; the message says which names there are."""


@dataclass(frozen=True, eq=False)
class Source:
    """Where a name's factory comes from: our own table, a plugin file, or an installed package that offers it.

    (An entry point is told by its field, not by its class: a backport of `importlib.metadata` brings one of its own.)
    """

    factory: Callable[..., Any] | None = None
    table: Mapping[str, Callable[..., Any]] | None = None
    plugin: Plugin | None = None
    entry: EntryPoint | None = None

    def load(self, kind: Kind, name: str) -> Callable[..., Any]:
        """The factory; a package that cannot be imported is refused by name."""
        if self.table is not None:
            return self.table[name]
        if self.entry is None:
            assert self.factory is not None
            return self.factory
        with strangers_code(f"{name!r} of {kind} is offered by {self.entry.value}, which cannot be loaded:"):
            loaded = self.entry.load()
        return checked_factory(loaded, kind, name, self.entry.value)


@dataclass(frozen=True, eq=False)
class Registry:
    """Names and what they stand for, by kind."""

    sources: Mapping[Kind, Mapping[str, Source]]

    @staticmethod
    @cache
    def installed() -> Registry:
        """Our own names and those of installed packages."""
        sources: dict[Kind, dict[str, Source]] = {
            kind: {name: Source(table=table) for name in table} for kind, table in BUILT_IN.items()
        }
        for kind in KINDS:
            for entry in entry_points(group=f"omdpd.{kind}"):
                sources[kind].setdefault(entry.name, Source(entry=entry))
        return Registry(sources)

    def with_plugins(self, files: Sequence[str | Path]) -> Registry:
        """These names and those of some plugin files."""
        registry = self
        for file in files:
            registry = registry._with(read_plugin(Path(file)))
        return registry

    def with_plugin(self, plugin: Plugin) -> Registry:
        """These names and those of the plugin file that is meant, refused if it is not here with the same content."""
        module = read_plugin(Path(plugin.path))
        if module.plugin.sha256 != plugin.sha256:
            raise InvalidInputError(f"the plugin {plugin.path} has another content here than where the run was begun")
        return self._with(module)

    def _with(self, module: PluginModule) -> Registry:
        sources = {kind: dict(table) for kind, table in self.sources.items()}
        for kind in KINDS:
            for name, factory in module.table(kind).items():
                known = sources[kind].get(name)
                if known is not None and known.plugin != module.plugin:
                    raise InvalidInputError(f"{module.plugin.path} names {name!r} in {kind}, a name there is already")
                sources[kind][name] = Source(factory, plugin=module.plugin)
        return replace(self, sources=sources)

    def types(self, kind: Kind) -> Iterator[tuple[str, type[Spec]]]:
        """The names of a kind with their specs."""
        return ((name, self.spec_type(kind, name)) for name in self.sources[kind])

    def complete(self, kind: Kind) -> list[str]:
        """The names that need no setting."""
        return [name for name, made in self.types(kind) if not _required(made)]

    def spec_type(self, kind: Kind, name: object) -> type[Spec]:
        """The type of spec that a name stands for, or a sentence with the names there are."""
        if kind == "learners" and name in AVERAGE_LEARNERS and name not in self.sources[kind]:
            raise UnknownNameError(f"{name} {OF_AVERAGES}")
        if not isinstance(name, str) or name not in self.sources[kind]:
            there = ", ".join(self.sources[kind])
            meant = suggestion(name, self.sources[kind]) if isinstance(name, str) else ""
            raise UnknownNameError(f"there is no {kind[:-1]} {shown(name)}{meant}; there are {there} ({PLUGIN_HINT})")
        source = self.sources[kind][name]
        return _spec_type(kind, name, source.load(kind, name), source.plugin)

    def spec(self, kind: Kind, name: str, settings: Mapping[str, Any] | None = None) -> Any:
        """Make the spec of a name and its settings; refuse a setting that is unknown or has another type."""
        return self.parse(kind, {**(settings or {}), "name": name})

    def run(self, world: str, nature: str, learner: str, episodes: int, seed: int) -> RunSpec:
        """A run of names at their default settings."""
        parts = self.spec("worlds", world), self.spec("natures", nature), self.spec("learners", learner)
        return RunSpec(*parts, episodes, seed)

    def parse(self, kind: Kind, table: Mapping[str, Any]) -> Any:
        """The spec that a table of a file spells (errors of its settings are msgspec's, with their place)."""
        made = self.spec_type(kind, table.get("name"))
        missing = [name for name in _required(made) if name not in table]
        if missing:
            raise InvalidInputError(f"the {kind[:-1]} {table['name']!r} needs {missing[0]}")
        spec = msgspec.convert(dict(table), made)
        try:
            hash(spec), msgspec.json.encode(spec)  # a run is known by its settings
        except (TypeError, UnicodeEncodeError) as error:
            raise InvalidInputError(
                f"a setting of the {kind[:-1]} {table['name']!r} cannot be compared and written ({error}): let its "
                "factory take numbers, text, true or false, and tuples of them"
            ) from None
        return spec


class WorkerMismatchError(InvalidInputError):
    """A worker has other sources, another format or another Python than the process that sends it runs."""


def to_wire(spec: RunSpec) -> dict[str, Any]:
    """A run as plain data for a worker: what `received` makes the same run of."""
    plain: dict[str, Any] = msgspec.to_builtins(spec)
    plugins = [(plugin.path, plugin.sha256) for plugin in spec.plugins]
    return plain | {"plugins": plugins, "versions": _versions()}


def from_wire(plain: Mapping[str, Any]) -> RunSpec:
    """The run that was sent, or the sentence that says what this worker does not have."""
    content = dict(plain)
    _check_versions(content.pop("versions", {}))
    registry = Registry.installed()
    for path, sha256 in content.pop("plugins"):
        registry = registry.with_plugin(Plugin(path, sha256))
    return run_of(content, registry)


def sources() -> str:
    """Hash the sources of this library that run here, from their contents alone."""
    return fingerprint(places=("",))


def _versions() -> dict[str, str]:
    """Name what a worker must share with the process that sends it runs: then results do not depend on the worker."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    here = f"{running_version('omdpd')} with the sources {sources()}"
    return {"omdpd": here, "the format of run folders": str(FORMAT), "Python": python}


def check_sources(records: Iterable[RunFolder]) -> None:
    """Refuse to go on with a study that others, say another shard of it, play with other sources."""
    here = (running_version("omdpd"), sources())
    for record in records:
        origin = record.provenance()
        if origin is None:
            continue
        there = (origin.get("packages", {}).get("omdpd"), origin.get("sources"))
        if there != here:
            raise WorkerMismatchError(
                f"{record.path} was begun by omdpd {there[0]} with the sources {there[1] or 'of an earlier version'}, "
                f"but here are {here[0]} and {here[1]}: give all shards the same sources, or go on without --shard"
            )


def _check_versions(wanted: Mapping[str, str]) -> None:
    here = _versions()
    for name in here:
        if wanted.get(name) != here[name]:
            raise WorkerMismatchError(
                f"a worker on {platform.node()} has {name} {here[name]}, but the runs were sent with "
                f"{wanted.get(name, 'another version')}: let all workers have the same"
            )


def run_of(content: Mapping[str, Any], registry: Registry) -> RunSpec:
    """A run from decoded TOML or JSON; errors of its settings are msgspec's."""
    plain = PlainRun.of(content)
    world, nature, learner = (registry.parse(kind, table) for kind, table in plain.parts)
    return plain.run(world, nature, learner)


class PlainRun(HowPlayed, frozen=True, forbid_unknown_fields=True):
    """A run's spec as a file holds it: its parts by name, also where the registry has no such names."""

    world: dict[str, Any]
    nature: dict[str, Any]
    learner: dict[str, Any]
    episodes: Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)]
    seed: Annotated[int, msgspec.Meta(ge=0, le=2 * MAX_INTEGER)]

    @staticmethod
    def of(content: Mapping[str, Any]) -> PlainRun:
        """A run of decoded TOML or JSON, with the names of today."""
        return msgspec.convert(as_now(content), PlainRun)

    @property
    def parts(self) -> tuple[tuple[Kind, dict[str, Any]], ...]:
        """World, nature and learner with their kinds."""
        return ("worlds", self.world), ("natures", self.nature), ("learners", self.learner)

    def run(self, world: WorldSpec, nature: NatureSpec, learner: LearnerSpec) -> RunSpec:
        """Make the run of parts that are known."""
        return RunSpec(world, nature, learner, self.episodes, self.seed, **self.how)


@cache
def _spec_type(kind: Kind, name: str, factory: Callable[..., Any], plugin: Plugin | None) -> type[Spec]:
    """The struct whose fields are the factory's settings."""
    parameters, drawn = _settings(kind, name, factory)
    hints = _hints(kind, name, factory)
    fields: list[Any] = []
    for parameter in parameters:
        hint = hints.get(parameter.name, type(parameter.default))
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty:
            fields.append((parameter.name, hint | msgspec.UnsetType, msgspec.UNSET))
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    namespace: dict[str, Any] = {
        "factory": staticmethod(factory),
        "plugin": plugin,
        "__doc__": inspect.getdoc(factory) or name,
    }
    if kind == "worlds":
        namespace["drawn"] = drawn
    later = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    namespace["__post_init__"] = _checked(BASES[kind], later)
    try:
        made: Any = msgspec.defstruct(
            _identifier(name), fields, bases=(BASES[kind],), namespace=namespace, frozen=True, tag=name,
            tag_field="name", forbid_unknown_fields=True,
        )  # fmt: skip
        msgspec.structs.fields(made)  # which reads the types
    except (TypeError, NameError) as error:
        raise InvalidInputError(f"the settings of {name!r} in {kind} cannot be written in a file: {error}") from None
    typed: type[Spec] = made
    return typed


def _checked(base: type[Spec], later: Mapping[str, Any]) -> Callable[[Spec], None]:
    """What a new spec does first: forget later settings at their default, and refuse impossible numbers."""

    def post_init(self: Spec) -> None:
        for name, default in later.items():
            if getattr(self, name) == default:
                msgspec.structs.force_setattr(self, name, msgspec.UNSET)
        base.__post_init__(self)

    return post_init


def _settings(kind: Kind, name: str, factory: Callable[..., Any]) -> tuple[list[inspect.Parameter], bool]:
    """The parameters that are settings, and whether a world is drawn."""
    parameters = list(settings_of(factory).values())
    drawn = kind == "worlds" and bool(parameters) and parameters[0].name == "rng"
    given = 2 if kind == "natures" else int(drawn)
    if kind == "natures" and len(parameters) < 2:
        raise InvalidInputError(f"the factory of the nature {name!r} must take the world and a seed first")
    for parameter in parameters[given:]:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) or parameter.name == "name":
            raise InvalidInputError(f"the factory of {name!r} in {kind} has a parameter {parameter}, no setting")
    return parameters[given:], drawn


def _hints(kind: Kind, name: str, factory: Callable[..., Any]) -> dict[str, Any]:
    """The types of the factory's parameters."""
    try:
        return types_of(factory)
    except (NameError, TypeError) as error:
        raise InvalidInputError(f"the types of the settings of {name!r} in {kind} cannot be read: {error}") from None


@cache
def _required(made: type[Spec]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(made) if field.required)


def _identifier(name: str) -> str:
    return "".join(symbol if symbol.isalnum() else "_" for symbol in name) + "Spec"
