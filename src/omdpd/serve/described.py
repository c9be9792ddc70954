"""Sessions as files describe them: `session.toml` in a session's folder says its learner and its setting.

Names are those of `omdpd list`, and nothing in the file is run as code.  Several sessions are folders side by side.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import omdpd.learners
from omdpd.experiments.registry import Registry
from omdpd.learners.needs import SafePolicy
from omdpd.learners.safe_start import SafeStart
from omdpd.play.carry import Carry
from omdpd.play.logs import READERS, Log, Short, columns_of
from omdpd.play.policy import Policy
from omdpd.play.session import Session
from omdpd.play.start import given_again
from omdpd.problem.arrays import InvalidInputError, named
from omdpd.problem.setting import Setting
from omdpd.storage.atomic import read_bounded, save_file
from omdpd.storage.journal import DESCRIBED, has_entries
from omdpd.storage.owners import packed_owner
from omdpd.storage.packing import unpack
from omdpd.storage.sealed import toml_of_text

# Files of which a session's folder has one.
CLAIM = "session.json"
SESSION = (DESCRIBED, CLAIM)
# A description is small; a larger one is refused unread.
MAX_BYTES = 2**20
# Names that stand in an address as they are.
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

STARTER = """\
# A session: what is decided, and who learns.  Serve it with:  omdpd serve {folder}
# Files that are named here are looked for beside this one.

{options}[setting]
horizon = {horizon:<14} # steps of an episode
n_states = {n_states:<13} # states are numbered from 0; one that is not declared is refused
n_actions = {n_actions}
n_constraints = {n_constraints}
budget = {budget:<15} # what an episode may cost on average, in your units, for each constraint
cost_scale = {cost_scale:<11} # how far a step's cost may be from budget / horizon, for each constraint; more is refused
reward_range = {reward_range:<9} # the least and the largest reward that a step can have; others are refused
# initial = [0.5, 0.5, 0.0]           # chances of the first state; without it as in [logs], or all states alike
# allowed = [[true, true, false]]     # which actions there are, a row for each state; all without it

{learner}
# [baseline]                          # played where nothing is certified, and in states never seen
# file = "safe.npz"                   # a policy file; without it the baseline is what the logs show
# cost = [1.0]                        # what an episode of it costs on average, for each constraint
# [shadow]                            # a second learner, which learns from the same episodes and plays nothing
# name = "SafeStart"
# [carry]                             # what was not spent may be spent later in the period
# period = 30
# most = 1.0
{logs}"""
OPTIONS = """\
# fallback = "safe.npz"               # a policy file, played while an update failed
# drop_after = 86400.0                # seconds after which an episode that never ends is dropped
# snapshot_every = 5000               # episodes between snapshots

"""
LEARNER = """\
[learner]                # `omdpd list` names them; with [logs] it may be left out: SafeStart
name = "ProximalOMDPD.standard"
z = 1.0                  # the safety dial
"""
LOGS = """\
# [logs]                              # episodes from before: the first policy is planned with them
# file = "logs.csv"
# costs = ["cost"]                    # columns of the costs
# columns = {{ episode = "week", state = "waiting", reward = "accepted", step = "slot" }}
"""


class SettingTable(msgspec.Struct, forbid_unknown_fields=True):
    """The sizes, units and budgets of a session; see `Setting`."""

    horizon: int
    n_states: int
    n_actions: int
    n_constraints: int = 1
    initial: list[float] | None = None
    n_episodes: int | None = None
    budget: float | list[float] | None = None
    cost_scale: float | list[float] | None = None
    reward_range: tuple[float, float] | None = None
    seed: int | None = None
    allowed: list[Any] | None = None
    names: tuple[str, ...] | None = None


class CarryTable(msgspec.Struct, forbid_unknown_fields=True):
    """How budgets carry over; see `Carry`."""

    period: int
    most: float | list[float]


class BaselineTable(msgspec.Struct, forbid_unknown_fields=True):
    """A policy file, and what an episode of it costs; see `SafePolicy`."""

    file: str
    cost: float | list[float]


class LogsTable(msgspec.Struct, forbid_unknown_fields=True):
    """A file of episodes from before; `columns` names those whose names are others, also as text: `episode=week`."""

    file: str
    costs: tuple[str, ...] = ("cost",)
    columns: dict[str, str] | str = {}
    short: Short | None = None


class Description(msgspec.Struct, forbid_unknown_fields=True):
    """What `session.toml` says."""

    setting: SettingTable
    learner: dict[str, Any] | None = None
    logs: LogsTable | None = None
    baseline: BaselineTable | None = None
    carry: CarryTable | None = None
    shadow: dict[str, Any] | None = None
    fallback: str | None = None
    drop_after: float = 86400.0
    snapshot_every: int = 5000

    def __post_init__(self) -> None:
        if not self.drop_after > 0.0:
            raise ValueError("drop_after must be positive")


def described(folder: Path) -> Description:
    """What the file in a session's folder says, or the sentence that says what is wrong with it."""
    file = folder / DESCRIBED
    try:
        return msgspec.convert(toml_of_text(file, read_bounded(file, MAX_BYTES)), Description)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"{file}: {error}") from None


def open_described(folder: Path, registry: Registry, beside: Path | None = None) -> Session:
    """Open the session of a folder with the learner and the setting that its file says, or that it was begun with.

    Other files that it names are beside it, or in the folder `beside`.
    """
    if not (folder / DESCRIBED).exists():
        return Session.open(folder, *_begun_with(folder))
    said, file, place = described(folder), folder / DESCRIBED, beside or folder
    try:
        learner = None if said.learner is None else registry.parse("learners", said.learner).build()
        if said.baseline is not None:
            learner = _around(learner, said.baseline, place)
        fallback = None if said.fallback is None else Policy.load(place / said.fallback)
        carry = None if said.carry is None else Carry(said.carry.period, said.carry.most)
        # A session in which an episode has begun keeps the logs it began with; so does one whose file is gone.
        logs = None if has_entries(folder) else said.logs
        if logs is not None and (folder / CLAIM).exists() and not (place / logs.file).exists():
            logs = None
        return Session.open(
            folder, learner, _setting(said), said.snapshot_every,
            logged=() if logs is None else _logged(place, logs), fallback=fallback, carry=carry,
        )  # fmt: skip
    except (msgspec.ValidationError, InvalidInputError) as error:
        raise InvalidInputError(f"{file}: {error}") from None


def open_shadow(folder: Path, registry: Registry, session: Session) -> Session | None:
    """The second learner that the file of a session names, with what it was told so far; None if it names none."""
    said = described(folder) if (folder / DESCRIBED).exists() else None
    if said is None or said.shadow is None:
        return None
    try:
        learner = registry.parse("learners", said.shadow).build()
        return Session.open(folder / "shadow", learner, session.setting, said.snapshot_every, logged=session.before)
    except (msgspec.ValidationError, InvalidInputError) as error:
        raise InvalidInputError(f"{folder / DESCRIBED}, shadow: {error}") from None


def folders_of(folder: Path) -> Mapping[str, Path]:
    """The sessions of a folder by their names: itself, or those side by side in it."""
    if any((folder / name).exists() for name in SESSION):
        found = {folder.resolve().name: folder}
    else:
        found = {path.parent.name: path.parent for name in SESSION for path in sorted(folder.glob(f"*/{name}"))}
    if not found:
        raise InvalidInputError(
            f"{folder} holds no {DESCRIBED} that says learner and setting: omdpd session {folder} --new writes one"
        )
    for name in found:
        if not NAME.fullmatch(name):
            raise InvalidInputError(f"the folder of a session is called {name!r}, but needs letters, digits, . _ or -")
    return found


def served(folder: Path) -> Mapping[str, Path]:
    """The sessions of a folder that can be served; what their files say is read, so that it is refused early."""
    found = folders_of(folder)
    for path in found.values():
        if not (path / DESCRIBED).exists():
            raise InvalidInputError(
                f"{path} holds a session that a program of yours began: omdpd session {path} shows it, and with --live "
                f"as a page; to serve it, write a {DESCRIBED} with its learner and setting"
            )
        described(path)
    return found


def starter(folder: Path) -> str:
    """A description to begin with, of a small problem."""
    sizes = {"horizon": 3, "n_states": 12, "n_actions": 3, "n_constraints": 1}
    units = {"budget": [2.0], "cost_scale": [2.0], "reward_range": [0.0, 1.0]}
    return _filled(folder, sizes | units, LEARNER, LOGS)


def starter_from_logs(folder: Path, file: Path, log: Log, setting: Setting, columns: str) -> str:
    """A description of a session that starts from logs, with ranges twice as wide as they show."""
    share = np.asarray(setting.budget) / setting.horizon
    low, high = float(log.rewards.min()), float(log.rewards.max())
    sizes = {name: getattr(setting, name) for name in ("horizon", "n_states", "n_actions", "n_constraints")}
    units = {
        "budget": np.asarray(setting.budget).tolist(),
        "cost_scale": np.maximum(2.0 * np.abs(log.costs).max(axis=1), share + 1e-9).round(9).tolist(),
        "reward_range": [min(2.0 * low, 0.0), max(2.0 * high, min(2.0 * low, 0.0) + 1.0)],
    }  # fmt: skip
    named_ = ", ".join(f"{kind} = {_quoted(name)}" for kind, name in columns_of(columns).items())
    short = f"short = {_quoted(log.short)}\n" if log.short else ""
    where = _quoted(Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix())
    costs = ", ".join(_quoted(name) for name in log.names)
    logs = f"\n[logs]\nfile = {where}\ncosts = [{costs}]\ncolumns = {{ {named_} }}\n{short}"
    return _filled(folder, sizes | units, "# No [learner]: SafeStart plays what the logs certify.", logs)


def _filled(folder: Path, facts: Mapping[str, Any], learner: str, logs: str) -> str:
    return STARTER.format(
        folder=folder, options=OPTIONS, learner=learner, logs=logs.replace("{{", "{").replace("}}", "}"),
        **{name: str(value) for name, value in facts.items()},
    )  # fmt: skip


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def write_starter(folder: Path, text: str | None = None) -> Path:
    """Write a description to begin with; one that is there is left alone."""
    file = folder / DESCRIBED
    if file.exists():
        raise InvalidInputError(f"{file} is there already")
    if (folder / CLAIM).exists():
        raise InvalidInputError(f"{folder} holds a session: omdpd session {folder} shows it; begin another elsewhere")
    return save_file(file, (starter(folder) if text is None else text).encode())


def _around(learner: Any, said: BaselineTable, place: Path) -> Any:
    """The learner with the baseline that a file says."""
    chosen = SafeStart() if learner is None else learner
    if not hasattr(chosen, "safe"):
        raise InvalidInputError(f"[baseline] is a safe policy, and {type(chosen).__name__} takes none: SafeStart does")
    cost = np.atleast_1d(np.asarray(said.cost, dtype=np.float64))
    return replace(chosen, safe=SafePolicy(Policy.load(place / said.file).table, cost))


def _begun_with(folder: Path) -> tuple[Any, Setting]:
    """The learner and the setting that a session was begun with, as its folder keeps them."""
    tree, arrays = packed_owner(folder)
    if tree is None:
        raise InvalidInputError(f"{folder} does not keep learner and setting: say them in a {DESCRIBED}")
    getattr(omdpd.learners, tree[0]["class"], None)  # its module, if it is one of these
    known = {name: vars(module) for name, module in list(sys.modules.items()) if name.startswith("omdpd.")}
    classes = {each.__name__: each for names in known.values() for each in names.values() if is_record(each)}
    try:
        learner, setting = unpack(tree, arrays, classes)
        return given_again(learner, setting, setting), replace(setting)
    except InvalidInputError as error:
        raise InvalidInputError(f"{folder}: {error}; say learner and setting in a {DESCRIBED}") from None


def is_record(value: Any) -> bool:
    """Whether it is a dataclass itself."""
    return isinstance(value, type) and is_dataclass(value)


def _setting(said: Description) -> Setting:
    """The setting, whose costs are called as in the logs unless it says otherwise."""
    given = msgspec.structs.asdict(said.setting)
    if said.logs is not None and given["names"] is None and len(said.logs.costs) == said.setting.n_constraints:
        given["names"] = said.logs.costs
    return Setting(**given)


def _logged(folder: Path, said: LogsTable) -> Log:
    file = folder / said.file
    columns = columns_of(said.columns) if isinstance(said.columns, str) else said.columns
    log = named(READERS, file.suffix.lower(), "kind of log")(file, said.costs, **columns)
    return log if said.short is None else log.with_short(said.short)
