"""Experiments in TOML files: read with the file, the key and the reason in every refusal; lists are grids.

Settings may be said beside a file, ``key=value`` instead of another file:

    episodes=500                 a key of the experiment itself
    learners.z=[0.0, 1.0]        a setting of its only learner (a list is a grid, as in the file)
    worlds[1].n_states=10        a setting of its second world

A value is what TOML would take after the equals sign; a word that is none (``record=all``) is a string.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_origin

import msgspec
import numpy as np

from omdpd.experiments.registry import Registry, UnknownNameError
from omdpd.experiments.spec import KINDS, MAX_ENTRIES, Experiment, Kind, RunSpec, WorldSpec, entries_of
from omdpd.problem.arrays import InvalidInputError, shortened, shown
from omdpd.problem.strangers import said
from omdpd.storage.atomic import read_bounded
from omdpd.storage.sealed import read_toml
from omdpd.worlds.files import file_digest

# A file of specs is small; a larger one is refused unread.
MAX_BYTES = 2**20
# Problem files by how they end: the world that reads each.
PROBLEM_FILES = {".npz": "file", ".umb": "umb"}
# What a problem file is played with where no experiment says it: noise that stays in the problem's own range.
PLAYED_WITH: dict[str, Any] = {
    "episodes": 1000,
    "natures": [{"name": "noisy", "noise": "own-range"}],
    "learners": [{"name": "ProximalOMDPD.standard"}],
}
# More runs than this in one experiment are taken for a mistake.
MAX_RUNS = 100_000
# Worlds with natures that are built before anything runs; a larger grid is tried in part.
MAX_TRIALS = 200
# And the entries of their kernels in all, about: larger worlds are first built when they are run.
MAX_TRIED_ENTRIES = 2**23

STARTER = """\
# An experiment: every world with every nature, learner and seed.  Run it with:  omdpd run {file}
# Lists of values are grids: z = [0.0, 1.0] below makes two learners.

episodes = 3000          # K, episodes per run
seeds = 5                # how many seeds; a drawn world is another one for each
first_seed = 0
record = "thinned"       # rows for all of up to 10000 episodes, then on a logarithmic grid; "all": every episode
policies = "log"         # keep some 40 policies of every run for the report, at most 4 MB; "none": keep none
episodes_known = true    # false: learners are not told K
logged = 0               # episodes that a safe policy played before, of which learners are told
start = "safe"           # with them: play what they certify; "explore": try first what they never tried

[[worlds]]               # `omdpd worlds` lists them with their facts
name = "random_dirichlet"
n_states = 5
n_actions = 3
horizon = 5

[[natures]]              # what picks the costs; `omdpd list` names them
name = "noisy"

[[natures]]
name = "adaptive"

[[learners]]
name = "ProximalOMDPD.standard"
z = [0.0, 1.0]           # the safety dial: standard errors of safety

[[learners]]
name = "OMDPD.tuned"

[[learners]]
name = "SinhaVaze"
"""
KEY = re.compile(r"(?:(?P<kind>\w+)(?:\[(?P<place>\d+)\])?\.)?(?P<key>\w+)", re.ASCII)
# The place of an entry has fewer digits than this.
MAX_DIGITS = 10


def load_experiment(file: str | Path, plugins: Sequence[str | Path] = (), overrides: Sequence[str] = ()) -> Experiment:
    """The experiment that a TOML file spells; `plugins` are files of your own code that it takes names from.

    `overrides` replace settings of the file: ``"episodes=100"`` or ``"learners[0].z=1.0"`` (`experiments.overrides`).
    A problem file (.npz, .umb) is played as it is, by `PLAYED_WITH`; its settings need no ``worlds.`` before them.
    """
    file, registry = Path(file), Registry.installed().with_plugins(plugins)
    if file.suffix in PROBLEM_FILES:
        content = _around(file, overrides, registry)
    else:
        content = overridden(_decoded(file), overrides)
    everybody = content.get("learners") == "all"
    if everybody:
        content["learners"] = [{"name": name} for name in registry.complete("learners")]
    experiment = parse_experiment(content, str(file), registry, file.parent)
    if everybody:
        from omdpd.experiments.experiment import suiting

        experiment = suiting(experiment, str(file))
    _try(experiment, str(file))
    return experiment


def _around(file: Path, overrides: Sequence[str], registry: Registry) -> dict[str, Any]:
    """An experiment of one problem file: what is said of the file itself is a setting of its world."""
    world = PROBLEM_FILES[file.suffix]
    own = {field.name for field in msgspec.structs.fields(registry.spec_type("worlds", world))}
    said = [f"worlds.{each}" if each.partition("=")[0].strip() in own else each for each in overrides]
    return overridden(PLAYED_WITH | {"worlds": [{"name": world, "path": file.name}]}, said)


def stored_experiment(file: Path) -> Experiment | None:
    """The experiment whose results a folder holds; None where it takes names from code that is not here."""
    try:
        return parse_experiment(read_toml(file)[0], str(file), Registry.installed(), file.parent)
    except UnknownNameError:
        return None


def parse_experiment(content: dict[str, Any], source: str, registry: Registry, folder: Path) -> Experiment:
    """Turn decoded TOML into an experiment; `source` names it in errors, paths in it begin at `folder`."""
    parts: dict[str, Any] = {}
    for kind in KINDS:
        entries = content.get(kind)
        if not isinstance(entries, list) or not entries:
            raise InvalidInputError(f"{source}: {kind} is missing; write at least one [[{kind}]] table with a name")
        places = [f"{source}: {kind}[{i}]" for i in range(len(entries))]
        parts[kind] = tuple(
            pinned(_part(kind, choice, where, registry), folder)
            for entry, where in zip(entries, places, strict=True)
            for choice in _grid(kind, entry, where, registry)
        )
    rest = {key: value for key, value in content.items() if key not in KINDS}
    try:
        experiment = Experiment(**parts, **msgspec.structs.asdict(msgspec.convert(rest, Rest)))
    except (msgspec.ValidationError, InvalidInputError) as error:
        raise InvalidInputError(f"{source}: {shortened(_plain(str(error)))}") from None
    n = len(experiment.worlds) * len(experiment.natures) * len(experiment.learners) * experiment.seeds
    if n > MAX_RUNS:
        raise InvalidInputError(f"{source}: the grid has {n} runs, more than {MAX_RUNS}")
    if not experiment.runs():
        raise InvalidInputError(f"{source}: nothing is left to run: none of its learners suits its natures")
    return experiment


def pinned(spec: Any, folder: Path) -> Any:
    """Tie a spec that stands for a file to the content that the file has now; other specs stay the same."""
    if not spec.has_content:
        return spec
    path = (folder / spec.path).absolute()
    if not _is_text(str(path)):
        raise InvalidInputError(f"the problem file {shown(str(path))} has a name that is not UTF-8: give it another")
    return msgspec.structs.replace(spec, path=str(path), sha256=spec.sha256 or file_digest(path))


def _is_text(name: str) -> bool:
    """Whether a name can be written in a file; bytes that are no text come from the system as half characters."""
    return name.encode(errors="replace").decode() == name


# What an experiment says besides its worlds, natures and learners.
Rest = msgspec.defstruct(
    "Rest",
    [
        (each.name, each.type) if each.required else (each.name, each.type, each.default)
        for each in msgspec.structs.fields(Experiment)
        if each.name not in KINDS
    ],
    namespace={"__doc__": "What an experiment says besides its worlds, natures and learners."},
    frozen=True,
    forbid_unknown_fields=True,
)


def _decoded(file: Path) -> dict[str, Any]:
    """Read a small TOML file, or refuse it with the reason."""
    content = read_bounded(file, MAX_BYTES, follow=True)
    try:
        return tomllib.loads(content.decode())
    except RecursionError:
        raise InvalidInputError(f"{file} is not a TOML file of an experiment: it is nested too deeply") from None
    except ValueError as error:
        raise InvalidInputError(f"{file} is not a TOML file: {error}") from None


def _part(kind: Kind, table: dict[str, Any], where: str, registry: Registry) -> Any:
    """One part of an experiment, with its place in every refusal."""
    try:
        return registry.parse(kind, table)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise InvalidInputError(f"{where}{path.rstrip('`')}: {shortened(what)}") from None
    except InvalidInputError as error:
        raise type(error)(f"{where}: {error}") from None


def _try(experiment: Experiment, source: str) -> None:
    """Build every world, nature and learner once, so that what is impossible is refused before anything runs.

    Worlds are tried one after the other, and only as many and as large ones as take little time and memory.
    """
    first = {(run.world, run.nature): run for run in reversed(experiment.runs())}
    trials = sorted(itertools.islice(first.values(), MAX_TRIALS), key=lambda run: run.world.label)
    part, left = "", MAX_TRIED_ENTRIES
    try:
        for learner in experiment.learners:
            part = f"the learner {learner.label}"
            learner.build()
        for world, runs in itertools.groupby(trials, key=lambda run: run.world):
            left -= entries_of(world.settings)
            if left >= 0:
                part = f"the world {world.label}"
                _try_natures(world, list(runs))
    except InvalidInputError as error:
        raise InvalidInputError(f"{source}: {part} is impossible: {error}") from None


def _try_natures(world: WorldSpec, runs: Sequence[RunSpec]) -> None:
    """Build a world and, in it, every nature that it meets."""
    cmdp = world.build(np.random.default_rng(runs[0].stream(0)))
    for run in runs:
        size = getattr(run.nature, "size", 1)
        try:
            if size * cmdp.excess.size > MAX_ENTRIES:
                raise InvalidInputError(f"size is {size}, too many tables to keep")
            run.nature.build(cmdp, 0)
        except InvalidInputError as error:
            raise InvalidInputError(f"the nature {run.nature.label} in it is impossible: {error}") from None


def _grid(kind: Kind, entry: Any, where: str, registry: Registry) -> list[dict[str, Any]]:
    """Every combination of the values that are written as lists (of lists, where a value is a list itself)."""
    if not isinstance(entry, dict):
        raise InvalidInputError(f"{where} is not a table")
    whole = _list_fields(kind, entry, where, registry)
    lists = {
        key: value
        for key, value in entry.items()
        if isinstance(value, list) and (key not in whole or any(isinstance(item, list) for item in value))
    }
    for key, value in lists.items():
        if not value:
            raise InvalidInputError(f"{where}.{key} is an empty list")
    n = math.prod(len(value) for value in lists.values())
    if n > MAX_RUNS:
        raise InvalidInputError(f"{where} expands to {n} settings, more than {MAX_RUNS}")
    return [entry | dict(zip(lists, choice, strict=True)) for choice in itertools.product(*lists.values())]


def _list_fields(kind: Kind, entry: dict[str, Any], where: str, registry: Registry) -> set[str]:
    """The settings of a named part whose values are lists; refuses a name that nothing has."""
    try:
        made = registry.spec_type(kind, entry.get("name"))
    except InvalidInputError as error:
        raise type(error)(f"{where}.name: {error}") from None
    return {field.encode_name for field in msgspec.structs.fields(made) if get_origin(field.type) is tuple}


def _plain(message: str) -> str:
    """msgspec's message with the key first and without its path symbol."""
    if " - at `$" in message:
        what, path = message.rsplit(" - at `$", 1)
        return f"{path.rstrip('`').lstrip('.')}: {what}"
    return message


def overridden(content: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Decoded TOML of an experiment with some settings replaced; what they mean is checked where the file's are.

    >>> overridden({"episodes": 10, "worlds": [{"name": "grid"}]}, ["episodes=20", "worlds.horizon=9"])
    {'episodes': 20, 'worlds': [{'name': 'grid', 'horizon': 9}]}
    """
    changed = dict(content)
    for text in overrides:
        key, equals, value = text.partition("=")
        match = KEY.fullmatch(key.strip())
        if not equals or match is None or not text.isprintable():
            raise InvalidInputError(
                f"--set {shown(text)}: write one key=value in one line, as in episodes=100 or learners[0].z=1.0"
            )
        kind, place, name = match["kind"], match["place"], match["key"]
        if kind is None:
            changed[_not_a_kind(name)] = _value(value)
        else:
            changed[kind] = _in_entry(changed, shortened(key.strip()), kind, place, {name: _value(value)})
    return changed


def _in_entry(content: Mapping[str, Any], key: str, kind: str, place: str | None, setting: dict[str, Any]) -> list[Any]:
    """The entries of a kind, one of them with a setting more."""
    if kind not in KINDS:
        raise InvalidInputError(f"--set {key}: there is no {kind!r} in an experiment; there are {', '.join(KINDS)}")
    entries = content.get(kind)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError(f"--set {key}: the experiment has no [[{kind}]] tables to set it in")
    if place is None and len(entries) > 1:
        last = f"{kind}[{len(entries) - 1}]"
        raise InvalidInputError(
            f"--set {key}: the experiment has {len(entries)} {kind}; say which, from {kind}[0] to {last}"
        )
    i = int(place or 0) if len(place or "") < MAX_DIGITS else len(entries)
    if i >= len(entries):
        raise InvalidInputError(f"--set {key}: the experiment has {len(entries)} {kind}, counted from 0")
    return [entry | setting if j == i else entry for j, entry in enumerate(entries)]


def _not_a_kind(name: str) -> str:
    if name in KINDS:
        raise InvalidInputError(
            f"--set {name}: whole tables are not set here; set their keys, as in {name}[0].name=..."
        )
    return name


def _value(text: str) -> Any:
    """A TOML value, or the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
    except (ValueError, RecursionError) as error:  # a number of too many digits, too many brackets
        raise InvalidInputError(f"--set: the value {shown(text)} cannot be read: {said(error)}") from None
