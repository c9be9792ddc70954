"""Experiments in TOML files: read with the file, the key and the reason in every refusal; lists are grids."""

from __future__ import annotations

import itertools
import math
import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from omdpd.experiments.specs import Experiment
from omdpd.experiments.specs.base import MOST_ENTRIES
from omdpd.problem.arrays import InvalidInputError

# A file of specs is small; a larger one is refused unread.
MOST_BYTES = 2**20
# More runs than this in one experiment are taken for a mistake.
MOST_RUNS = 100_000
# Worlds with natures that are built before anything runs; a larger grid is tried in part.
MOST_TRIALS = 200

STARTER = """\
# An experiment: every world with every nature, learner and seed.  Run it with:  omdpd run {file}
# Lists of values are grids: kappa = [0.0, 0.02, 0.05] below makes three learners.

episodes = 3000          # K, episodes per run
seeds = 5                # how many seeds; each seed is a world of its own
first_seed = 0
record = "thinned"       # rows for all of up to 10000 episodes, then on a logarithmic grid; "all": every episode

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
name = "ProximalOMDPD.cautious"
kappa = [0.0, 0.02]      # the safety dial

[[learners]]
name = "OMDPD.tuned"

[[learners]]
name = "SinhaVaze"
"""


def load_experiment(file: Path) -> Experiment:
    """The experiment that a TOML file spells."""
    try:
        known = file.stat()
        if not stat.S_ISREG(known.st_mode):
            raise InvalidInputError(f"{file} is not a file")
        if known.st_size > MOST_BYTES:
            raise InvalidInputError(f"{file} is larger than {MOST_BYTES} bytes, too large for an experiment")
        content = tomllib.loads(file.read_bytes().decode())
    except InvalidInputError:
        raise
    except RecursionError:
        raise InvalidInputError(f"{file} is not a TOML file of an experiment: it is nested too deeply") from None
    except ValueError as error:
        raise InvalidInputError(f"{file} is not a TOML file: {error}") from None
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be read: {error.strerror}") from None
    experiment = parse_experiment(content, str(file))
    _try(experiment, str(file))
    return experiment


def parse_experiment(content: dict[str, Any], source: str) -> Experiment:
    """Turn decoded TOML into an experiment; `source` names it in errors."""
    expanded = dict(content)
    for kind in ("worlds", "natures", "learners"):
        entries = content.get(kind)
        if not isinstance(entries, list) or not entries:
            raise InvalidInputError(f"{source}: {kind} is missing; write at least one [[{kind}]] table with a name")
        expanded[kind] = [
            choice for i, entry in enumerate(entries) for choice in _grid(kind, entry, f"{source}: {kind}[{i}]")
        ]
    try:
        experiment = msgspec.convert(expanded, Experiment)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"{source}: {_plain(str(error))}") from None
    n = len(experiment.worlds) * len(experiment.natures) * len(experiment.learners) * experiment.seeds
    if n > MOST_RUNS:
        raise InvalidInputError(f"{source}: the grid has {n} runs, more than {MOST_RUNS}")
    if not experiment.runs():
        raise InvalidInputError(f"{source}: nothing is left to run: none of its learners suits its natures")
    return experiment


def _try(experiment: Experiment, source: str) -> None:
    """Build every world, nature and learner once, so that what is impossible is refused before anything runs."""
    first = {(run.world, run.nature): run for run in reversed(experiment.runs())}
    worlds: dict[Any, Any] = {}
    part = ""
    try:
        for learner in experiment.learners:
            part = f"the learner {learner.label}"
            learner.build()
        for run in itertools.islice(first.values(), MOST_TRIALS):
            part = f"the world {run.world.label}"
            if run.world not in worlds:
                worlds[run.world] = run.world.build(np.random.default_rng(run.stream(0)))
            part = f"the nature {run.nature.label} in the world {run.world.label}"
            size = getattr(run.nature, "size", 1)
            if size * worlds[run.world].excess.size > MOST_ENTRIES:
                raise InvalidInputError(f"size is {size}, too many tables to keep")
            run.nature.build(worlds[run.world], 0)
    except InvalidInputError as error:
        raise InvalidInputError(f"{source}: {part} is impossible: {error}") from None


def _grid(kind: str, entry: Any, where: str) -> list[dict[str, Any]]:
    """Every combination of the values that are written as lists (of lists, where a value is a list itself)."""
    if not isinstance(entry, dict):
        raise InvalidInputError(f"{where} is not a table")
    whole = _list_fields(kind, entry, where)
    lists = {
        key: value
        for key, value in entry.items()
        if isinstance(value, list) and (key not in whole or any(isinstance(item, list) for item in value))
    }
    for key, value in lists.items():
        if not value:
            raise InvalidInputError(f"{where}.{key} is an empty list")
    n = math.prod(len(value) for value in lists.values())
    if n > MOST_RUNS:
        raise InvalidInputError(f"{where} expands to {n} settings, more than {MOST_RUNS}")
    return [entry | dict(zip(lists, choice, strict=True)) for choice in itertools.product(*lists.values())]


def _list_fields(kind: str, entry: dict[str, Any], where: str) -> set[str]:
    """The fields of a named part whose values are lists; refuses a name that is not in the table of names."""
    from omdpd.experiments.specs import LEARNERS, NATURES, WORLDS

    table = {"worlds": WORLDS, "natures": NATURES, "learners": LEARNERS}[kind]
    name = entry.get("name")
    if not isinstance(name, str) or name not in table:
        raise InvalidInputError(f"{where}.name is {_shown(name)}; there are {', '.join(table)}")
    return {field.encode_name for field in msgspec.structs.fields(table[name]) if isinstance(field.default, tuple)}


def _shown(value: Any) -> str:
    """A value as part of a sentence, not longer than a line."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _plain(message: str) -> str:
    """msgspec's message with the key first and without its path symbol."""
    if " - at `$" in message:
        what, path = message.rsplit(" - at `$", 1)
        return f"{path.rstrip('`').lstrip('.')}: {what}"
    return message
