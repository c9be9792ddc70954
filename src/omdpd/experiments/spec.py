"""Experiments as frozen values: what can be written in a file and run anywhere.

A world, a nature or a learner is a `Spec`: a struct whose fields are the parameters of the factory that its name stands
for (`omdpd.experiments.registry` derives it).  A key that is not a field is refused, and so is a value of another type.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import msgspec
import numpy as np
import tomli_w

from omdpd.learners.protocol import Learner
from omdpd.natures.protocol import Nature
from omdpd.play.start import Start
from omdpd.problem.arrays import InvalidInputError, shown
from omdpd.problem.cmdp import CMDP
from omdpd.problem.strangers import strangers_code

# Part of every run's name: raised when the meaning of a spec or of a record changes.
FORMAT = 1
# No size or count of a spec is sensibly larger.
MAX_INTEGER = 10**9
# A table of more entries (half a gigabyte) is refused before anything is allocated for it.
MAX_ENTRIES = 2**26
# Fields that count something, and so are at least one; a horizon of 0 stands for a map's own.
COUNTS = (
    "n_states", "n_actions", "n_constraints", "n_levels", "n_jobs", "n_places", "capacity", "branching", "size",
    "period",
)  # fmt: skip
# Fields that a number of states grows with.
STATES = ("n_states", "n_levels", "n_jobs", "n_places", "capacity")
# Actions of a world that does not count them: as many as the queue has.
FEW_ACTIONS = 6
# Learners whose program gains a row with every new table, and natures with (nearly) a new table in every episode.
GROWING = ("OptCMDP", "CautiousLP")
ALWAYS_NEW = ("anchored", "drifting", "independent")
Kind = Literal["worlds", "natures", "learners"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Record = Literal["thinned", "all"]
# What specs did not have at first, and what is done where it is unset.
LATER: dict[str, Any] = {"policies": "log", "episodes_known": True, "logged": 0, "start": "safe"}
# Whether a run keeps a thin sequence of its policies ("log": on a logarithmic grid of episodes); left unset it does.
Policies = Literal["log", "none"] | msgspec.UnsetType
# Whether learners are told how many episodes there will be; left unset they are.
EpisodesKnown = bool | msgspec.UnsetType
# Episodes that a safe policy played before a run, and what its learner does with them; left unset there are none.
Logged = int | msgspec.UnsetType
Starts = Start | msgspec.UnsetType


# What version 0.2 called the standard learner, and wrote without `persistence`, is the settling one today: its runs
# keep their names, and go on.
STANDARD, SETTLING = "ProximalOMDPD.standard", "ProximalOMDPD.settling"


def as_now(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored run, as plain data, with today's name of its learner.

    >>> as_now({"learner": {"name": "ProximalOMDPD.standard", "z": 1.0}, "seed": 0})["learner"]["name"]
    'ProximalOMDPD.settling'
    """
    learner = stored.get("learner")
    if isinstance(learner, dict) and learner.get("name") == STANDARD and "persistence" not in learner:
        return {**stored, "learner": {**learner, "name": SETTLING}}
    return dict(stored)


@dataclass(frozen=True)
class Plugin:
    """A file of a user's own code: where it is, and which content is meant."""

    path: str
    sha256: str


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="name"):
    """A named part of an experiment; equal specs are equal parts."""

    kind: ClassVar[Kind]
    factory: ClassVar[Callable[..., Any]]
    plugin: ClassVar[Plugin | None] = None

    def __post_init__(self) -> None:
        settings = self.settings
        for name, value in settings.items():
            for number in value if isinstance(value, tuple) else (value,):
                _refuse_number(name, number)
        _refuse_size(settings)

    def made(self, *first: Any) -> Any:
        """What its factory makes of the settings, or the sentence that says whose factory failed."""
        where = "" if self.plugin is None else f" in {self.plugin.path}"
        # Trouble with files is the machine's: it may pass, and the same run goes on.
        with strangers_code(f"the factory of {self.name}{where} raised", passing=(OSError,)):
            return type(self).factory(*first, **self.settings)

    @property
    def name(self) -> str:
        """The name under which it is written."""
        return str(type(self).__struct_config__.tag)

    @property
    def settings(self) -> dict[str, Any]:
        """The factory's parameters by name; those after its star only where they were set."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not msgspec.UNSET}

    @property
    def label(self) -> str:
        """The name with the settings that are not the defaults: what tables and figures show.

        >>> from omdpd.experiments.registry import Registry
        >>> Registry.installed().spec("learners", "ProximalOMDPD.cautious", {"kappa": 0.05}).label
        'ProximalOMDPD.cautious(kappa=0.05)'
        """
        if self.has_content:
            return f"{Path(getattr(self, 'path')).name}@{getattr(self, 'sha256')[:8]}"  # noqa: B009
        defaults = defaults_of(type(self))
        return label_of(self.name, {k: v for k, v in self.settings.items() if v != defaults[k]})

    @property
    def has_content(self) -> bool:
        """Whether it stands for a file's content; then a checksum names it, and not the file's place."""
        return {"path", "sha256"} <= set(self.__struct_fields__)

    @property
    def identity(self) -> Spec:
        """The spec without what does not matter to results: where a file lies."""
        return msgspec.structs.replace(self, path="") if self.has_content else self


@cache
def defaults_of(kind: type[Spec]) -> dict[str, Any]:
    """The defaults of a kind of spec, worked out once: a folder of results has thousands of specs of a few kinds."""
    return {field.name: field.default for field in msgspec.structs.fields(kind)}


class LearnerSpec(Spec, frozen=True):
    """A named learner."""

    kind: ClassVar[Kind] = "learners"

    def build(self) -> Learner[Any]:
        """The learner, not yet told what a run tells it."""
        return _with_methods(self, self.made(), ("init", "policy", "update", "report", "card"))


class WorldSpec(Spec, frozen=True):
    """A named world; one that is drawn has `rng` as the first parameter of its factory."""

    kind: ClassVar[Kind] = "worlds"
    drawn: ClassVar[bool] = False

    def build(self, rng: np.random.Generator) -> CMDP:
        """The world; only one that is drawn takes random numbers."""
        cmdp = self.made(*((rng,) if self.drawn else ()))
        if not isinstance(cmdp, CMDP):
            raise InvalidInputError(f"the world {self.name} is a {type(cmdp).__name__}, but must be a CMDP")
        return cmdp


class NatureSpec(Spec, frozen=True):
    """A named nature."""

    kind: ClassVar[Kind] = "natures"

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return _with_methods(self, self.made(cmdp, seed), ("draw", "table", "safety", "feedback", "repeats"))


class HowPlayed(msgspec.Struct, frozen=True, kw_only=True):
    """What a run, an experiment, and the file of either say besides what is played and how long.

    `record`: rows for every episode, or (beyond ten thousand episodes) on a grid that is logarithmic in the end.
    `policies`, `episodes_known`, `logged` and `start` came later: they are part of a run's name only where they are
    "none", false, more than 0, and "explore".
    """

    record: Record = "thinned"
    policies: Policies = msgspec.UNSET
    episodes_known: EpisodesKnown = msgspec.UNSET
    logged: Logged = msgspec.UNSET
    start: Starts = msgspec.UNSET

    @property
    def how(self) -> dict[str, Any]:
        """All of this by name."""
        return {name: getattr(self, name) for name in HowPlayed.__struct_fields__}


class RunSpec(HowPlayed, frozen=True):
    """One run: everything its result depends on."""

    world: WorldSpec
    nature: NatureSpec
    learner: LearnerSpec
    episodes: int
    seed: int

    def __post_init__(self) -> None:
        if not 1 <= self.episodes <= MAX_INTEGER:
            raise InvalidInputError(f"episodes is {shown(self.episodes)}, but must be between 1 and {MAX_INTEGER}")
        if not 0 <= self.seed <= 2 * MAX_INTEGER:
            raise InvalidInputError(f"seed is {shown(self.seed)}, but must be between 0 and {2 * MAX_INTEGER}")
        _forget_defaults(self)

    @property
    def id(self) -> str:
        """A name made of the spec's hash: the same spec has the same name everywhere."""
        plain = msgspec.to_builtins(msgspec.structs.replace(self, world=self.world.identity), order="deterministic")
        if self.learner.name == SETTLING:
            plain["learner"]["name"] = STANDARD
        return hashlib.sha256(msgspec.json.encode((FORMAT, plain))).hexdigest()[:20]

    @property
    def labels(self) -> dict[str, str]:
        """What its summary calls its parts."""
        return {"learner": self.learner.label, "nature": self.nature.label, "world": self.world.label}

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """The files of own code that its parts come from."""
        found = (part.plugin for part in (self.world, self.nature, self.learner))
        return tuple(dict.fromkeys(plugin for plugin in found if plugin is not None))

    @property
    def checksums(self) -> dict[str, str]:
        """The contents of those files, by their names."""
        return {Path(plugin.path).name: plugin.sha256 for plugin in self.plugins}

    def stream(self, number: int) -> np.random.SeedSequence:
        """Independent streams: 0 world, 1 nature, 2 rollouts, 3 learner, 4 what was logged."""
        return np.random.SeedSequence(self.seed, spawn_key=(number,))


class Experiment(HowPlayed, frozen=True):
    """A grid of runs: every world with every nature, learner and seed, less what is left out."""

    worlds: tuple[WorldSpec, ...]
    natures: tuple[NatureSpec, ...]
    learners: tuple[LearnerSpec, ...]
    episodes: int
    seeds: int = 5
    first_seed: int = 0

    def __post_init__(self) -> None:
        _forget_defaults(self)
        for name, least in (("episodes", 1), ("seeds", 1), ("first_seed", 0)):
            value = getattr(self, name)
            if not least <= value <= MAX_INTEGER:
                raise InvalidInputError(f"{name} is {shown(value)}, but must be between {least} and {MAX_INTEGER}")

    def runs(self) -> list[RunSpec]:
        """Every run of the grid, once."""
        runs = (
            RunSpec(world, nature, learner, self.episodes, seed, **self.how)
            for world in self.worlds
            for nature in self.natures
            for seed in range(self.first_seed, self.first_seed + self.seeds)
            for learner in self.learners
            if not left_out(nature, learner)
        )
        return list(dict.fromkeys(runs))


def _forget_defaults(spec: RunSpec | Experiment) -> None:
    """Leave what came later unset where it says what is done anyway, so that old runs keep their names."""
    for name, default in LATER.items():
        if getattr(spec, name) == default:
            msgspec.structs.force_setattr(spec, name, msgspec.UNSET)
    if spec.logged is not msgspec.UNSET and not 0 < spec.logged <= MAX_INTEGER:
        raise InvalidInputError(f"logged is {shown(spec.logged)}, but must be between 0 and {MAX_INTEGER}")


def shard_of(runs: Sequence[RunSpec], place: int, n_shards: int) -> list[RunSpec]:
    """One of `n_shards` shares of some runs, counted from 1: every run is in exactly one, and they differ by one run.

    Runs go by their ids, so that the shares are the same wherever and in whatever order somebody makes them, and long
    runs (neighbours in a grid) are spread over them.
    """
    if not 1 <= place <= n_shards:
        raise InvalidInputError(f"the shard is {place} of {n_shards}, but must be one of 1 to {n_shards}")
    mine = {run.id for run in sorted(runs, key=lambda run: run.id)[place - 1 :: n_shards]}
    return [run for run in runs if run.id in mine]


def left_out(nature: NatureSpec, learner: LearnerSpec) -> bool:
    """A program that grows by a row per table is left out where no table comes twice."""
    return learner.name in GROWING and nature.name in ALWAYS_NEW


def toml_of(spec: RunSpec | Experiment) -> str:
    """A spec as a TOML file; a setting of None is left out, TOML has no word for it."""
    return tomli_w.dumps(_without_none(msgspec.to_builtins(spec)))


def label_of(name: str, settings: Mapping[str, Any]) -> str:
    """A name with some of its settings, as tables and figures show it.

    >>> label_of("pool", {"size": 3})
    'pool(size=3)'
    """
    return name + (f"({', '.join(f'{key}={value}' for key, value in settings.items())})" if settings else "")


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value


def _with_methods(spec: Spec, built: Any, methods: tuple[str, ...]) -> Any:
    """What a factory made, refused unless it has what the protocol asks for."""
    missing = [name for name in methods if isinstance(built, type) or not hasattr(built, name)]
    if missing:
        what = f"the class {built.__name__} itself" if isinstance(built, type) else f"a {type(built).__name__}"
        raise InvalidInputError(
            f"the factory of {spec.name} made {what}, which is none of the {spec.kind}: it has no {missing[0]!r}"
        )
    return built


def _refuse_number(name: str, value: object) -> None:
    """Refuse a number that no setting of this name can be."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"{name} is {value}, but must be a finite number")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise InvalidInputError(f"{name} is {shown(value)}, but must be between -{MAX_INTEGER} and {MAX_INTEGER}")
    if isinstance(value, int) and ((value < 1 and name in COUNTS) or (value < 0 and name == "horizon")):
        raise InvalidInputError(f"{name} is {value}, but must be at least 1")


def _refuse_size(settings: Mapping[str, Any]) -> None:
    """Refuse sizes that would make too large a table, before anything is allocated for it."""
    entries = entries_of(settings)
    if entries > MAX_ENTRIES:
        raise InvalidInputError(
            f"its horizon, states, actions and constraints make about {entries:.1e} transition probabilities or costs, "
            f"more than {MAX_ENTRIES}"
        )


def entries_of(settings: Mapping[str, Any]) -> int:
    """About how many entries the largest table of a world has: its kernel, or the costs of all its constraints.

    A world that counts its states and not its branches has a full kernel; the others keep their laws as lists.

    >>> entries_of({"horizon": 10, "n_states": 4, "n_actions": 2})
    500
    >>> entries_of({"horizon": 10, "n_states": 4, "n_actions": 2, "branching": 2})
    100
    """
    counted = {name: value for name, value in settings.items() if isinstance(value, int)}
    n_states = max([2, *(counted[name] + 1 for name in STATES if name in counted)])
    rows = settings.get("rows", ())
    n_cells = sum(len(row) for row in rows if isinstance(row, str)) if isinstance(rows, tuple) else 0
    n_cells = counted["size"] ** 2 if "size" in counted and ("rows" in settings or "map" in settings) else n_cells
    width = max(n_states, n_cells)
    orders = counted.get("max_order", n_states - 1) + 1 if "demand" in settings else FEW_ACTIONS
    n_actions = counted.get("n_actions", orders)
    following = width if "n_states" in counted and "branching" not in counted else 1
    return max(counted.get("horizon", 1), 1) * width * n_actions * max(following, counted.get("n_constraints", 1))
