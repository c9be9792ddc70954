"""Experiments in TOML files: read with the file, the key and the reason in every refusal; lists are grids."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from omdpd.arrays import InvalidInputError
from omdpd.specs import Experiment

# A file of specs is small; a larger one is refused unread.
MOST_BYTES = 2**20
# More runs than this in one experiment are taken for a mistake.
MOST_RUNS = 100_000

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
        if file.stat().st_size > MOST_BYTES:
            raise InvalidInputError(f"{file} is larger than {MOST_BYTES} bytes, too large for an experiment")
        content = tomllib.loads(file.read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file} is not a TOML file: {error}") from None
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be read: {error.strerror}") from None
    return parse_experiment(content, str(file))


def parse_experiment(content: dict[str, Any], source: str) -> Experiment:
    """Turn decoded TOML into an experiment; `source` names it in errors."""
    expanded = dict(content)
    for kind in ("worlds", "natures", "learners"):
        entries = content.get(kind)
        if not isinstance(entries, list) or not entries:
            raise InvalidInputError(f"{source}: {kind} is missing; write at least one [[{kind}]] table with a name")
        expanded[kind] = [
            choice for i, entry in enumerate(entries) for choice in _grid(entry, f"{source}: {kind}[{i}]")
        ]
        for i, entry in enumerate(expanded[kind]):
            _known(kind, entry, f"{source}: {kind}[{i}]")
    try:
        experiment = msgspec.convert(expanded, Experiment)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"{source}: {_plain(str(error))}") from None
    n = len(experiment.worlds) * len(experiment.natures) * len(experiment.learners) * experiment.seeds
    if n > MOST_RUNS:
        raise InvalidInputError(f"{source}: the grid has {n} runs, more than {MOST_RUNS}")
    return experiment


def _grid(entry: Any, where: str) -> list[dict[str, Any]]:
    """Every combination of the values that are written as lists."""
    if not isinstance(entry, dict):
        raise InvalidInputError(f"{where} is not a table")
    lists = {key: value for key, value in entry.items() if isinstance(value, list)}
    for key, value in lists.items():
        if not value:
            raise InvalidInputError(f"{where}.{key} is an empty list")
    n = 1
    for value in lists.values():
        n *= len(value)
    if n > MOST_RUNS:
        raise InvalidInputError(f"{where} expands to {n} settings, more than {MOST_RUNS}")
    return [entry | dict(zip(lists, choice, strict=True)) for choice in itertools.product(*lists.values())]


def _known(kind: str, entry: dict[str, Any], where: str) -> None:
    """Refuse a name that is not in the table of names, and list those that are."""
    from omdpd.specs import LEARNERS, NATURES, WORLDS

    table = {"worlds": WORLDS, "natures": NATURES, "learners": LEARNERS}[kind]
    name = entry.get("name")
    if not isinstance(name, str) or name not in table:
        raise InvalidInputError(f"{where}.name is {name!r}; there are {', '.join(table)}")


def _plain(message: str) -> str:
    """msgspec's message with the key first and without its path symbol."""
    if " - at `$" in message:
        what, path = message.rsplit(" - at `$", 1)
        return f"{path.rstrip('`').lstrip('.')}: {what}"
    return message
