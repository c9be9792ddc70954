"""Logged episodes in the user's units: read from a table, checked, summed up.

A row is one step: which episode, which state, which action, what it earned and what it cost.  Episodes may have
different lengths; what a short one means (`short`) has to be said before anything is concluded from it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import (
    Floats,
    Integers,
    InvalidInputError,
    as_budget,
    named,
    not_installed,
    positive_integer,
    shown,
    suggestion,
)
from omdpd.problem.setting import BanditFeedback, Feedback, FullFeedback, Setting, Trajectory
from omdpd.storage.atomic import opened_plain

# What an episode with fewer steps than the horizon is: it ended, and nothing is earned or paid afterwards; or its end
# was not logged.
Short = Literal["over", "cut"]
# Tries from which on a pair counts as known in summaries and plans.
KNOWN = 5
# Columns that every log has, besides those of its costs.
ALWAYS = ("episode", "state", "action", "reward")
# States and actions are numbered below this.
MOST = 1_000_000
# Costs that differ from their share of the budget by less than this part of either do so by rounding.
ROUNDING = 1e-12


class ColumnNames(TypedDict, total=False):
    """What the columns of a log are called, where not by these names; `step` and `propensity` are read if named."""

    episode: str
    state: str
    action: str
    reward: str
    step: str | None
    propensity: str | None


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """Logged episodes, in the user's units.

    Attributes
    ----------
    starts : (K + 1,)
        Rows of episode k are ``starts[k]:starts[k + 1]``.
    states, actions : (N,)
    rewards, costs : (N,), (I, N)
    names
        What the constraints are called.
    propensities : (N,)
        How likely the logged action was under the policy that played, where that is known.
    short
        What an episode is that has fewer steps than the horizon: "over", or "cut" (its end was not logged).
    """

    starts: Integers
    states: Integers
    actions: Integers
    rewards: Floats
    costs: Floats
    names: tuple[str, ...]
    propensities: Floats | None = None
    short: Short | None = None

    @staticmethod
    def from_csv(file: str | Path, costs: str | Sequence[str] = "cost", **names: Unpack[ColumnNames]) -> Log:
        """Read a CSV file with a header and one row per step, by the names of its columns (`ColumnNames`).

        Rows of an episode come in the order of their steps and next to each other, or `step` names the column that
        says which step a row is.
        """
        named, (head, rows, numbers) = _named(costs, names), _read_csv(Path(file))
        found = _columns(named, head, str(file), lambda place: [row[place].strip() for row in rows])
        return _log(found, named, lambda i: f"{file} line {numbers[i]}", str(file))

    @staticmethod
    def from_frame(frame: Any, costs: str | Sequence[str] = "cost", **names: Unpack[ColumnNames]) -> Log:
        """Read a data frame (pandas, polars), or a mapping of columns: what `from_csv` reads from a file.

        >>> week = {"episode": [1, 1], "state": [0, 1], "action": [0, 0], "reward": [2.0, 3.0], "cost": [1.0, 0.0]}
        >>> Log.from_frame(week)
        Log(1 episode, 2 steps)
        """
        named, own = _named(costs, names), list(frame.keys() if isinstance(frame, Mapping) else frame.columns)
        found = _columns(named, list(map(str, own)), "the frame", lambda place: list(frame[own[place]]))
        return _log(found, named, lambda i: f"row {i} of the frame", "the frame")

    @staticmethod
    def from_parquet(file: str | Path, costs: str | Sequence[str] = "cost", **names: Unpack[ColumnNames]) -> Log:
        """Read a Parquet file: what `from_csv` reads from text."""
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise not_installed("a Parquet file", "pyarrow") from None
        named = _named(costs, names)
        with opened_plain(Path(file), follow=True) as stream:
            try:
                table = parquet.ParquetFile(stream).read()
            except (ArrowException, OSError) as error:
                raise InvalidInputError(f"{file} is no Parquet file that can be read: {shown(str(error))}") from None
        found = _columns(named, table.column_names, str(file), lambda place: table.column(place).to_pylist())
        return _log(found, named, lambda i: f"{file} row {i}", str(file))

    @staticmethod
    def from_episodes(episodes: Iterable[BanditFeedback], names: Sequence[str] = ()) -> Log:
        """What was told to a session, in the units in which it was told."""
        given = list(episodes)
        if any(isinstance(each, FullFeedback) for each in given):
            raise InvalidInputError("episodes with whole cost tables are no log: give the costs of each step")
        if not given:
            raise InvalidInputError("there are no episodes to make a log of")
        starts = np.cumsum([0, *(len(each.trajectory.states) for each in given)])
        costs = np.concatenate([np.atleast_2d(each.costs) for each in given], axis=1).astype(np.float64)
        return Log(
            starts, np.concatenate([np.asarray(each.trajectory.states) for each in given]).astype(np.int64),
            np.concatenate([np.asarray(each.trajectory.actions) for each in given]).astype(np.int64),
            np.concatenate([np.asarray(each.rewards) for each in given]).astype(np.float64), costs,
            tuple(names) or tuple(f"cost {i}" for i in range(len(costs))),
        )  # fmt: skip

    @property
    def lengths(self) -> Integers:
        """How many steps every episode has, (K,)."""
        return np.diff(self.starts)

    def with_short(self, short: Short) -> Log:
        """The same, where an episode with fewer steps than the horizon is "over", or "cut" (its end was not logged)."""
        if short not in ("over", "cut"):
            raise InvalidInputError(f"short is {shown(short)}, but must be 'over' or 'cut'")
        return replace(self, short=short)

    def totals(self) -> Floats:
        """What every episode earned and cost, (1 + I, K)."""
        return np.add.reduceat(np.vstack([self.rewards[None], self.costs]), self.starts[:-1], axis=1)

    def setting(
        self,
        budget: npt.ArrayLike,
        *,
        n_states: int | None = None,
        n_actions: int | None = None,
        allowed: npt.ArrayLike | None = None,
        cost_scale: npt.ArrayLike | None = None,
        reward_range: tuple[float, float] | None = None,
    ) -> Setting:
        """The setting that these episodes show: sizes, the law of first states, and ranges as wide as the data.

        A session refuses states, costs and rewards beyond them.  Say what can happen, not only what was logged.
        """
        S = int(self.states.max()) + 1 if n_states is None else positive_integer("n_states", n_states)
        A = int(self.actions.max()) + 1 if n_actions is None else positive_integer("n_actions", n_actions)
        self._check_sizes(S, A)
        H, n = int(self.lengths.max()), len(self.costs)
        given = as_budget(budget, self.names)
        share = given / H
        spread = np.abs(self.costs - share[:, None]).max(axis=1)
        rounding = ROUNDING * np.maximum(np.abs(share), np.abs(self.costs).max(axis=1))
        low, high = float(self.rewards.min()), float(self.rewards.max())
        return Setting(
            H, S, A, n, law_of_starts(self, S), budget=given,
            cost_scale=np.where(spread > rounding, spread, 1.0) if cost_scale is None else cost_scale,
            reward_range=reward_range or ((low, high) if low < high else (low, low + 1.0)),
            allowed=allowed, names=self.names,
        )  # fmt: skip

    def checked(self, setting: Setting) -> Log:
        """The log itself, if it fits a setting; else the sentence that says what does not."""
        H, S, A = setting.shape
        if len(self.costs) != setting.n_constraints:
            raise InvalidInputError(
                f"the log has {len(self.costs)} costs ({', '.join(self.names)}), but the setting has "
                f"{setting.n_constraints} constraints"
            )
        self._check_sizes(S, A)
        for k in np.flatnonzero(self.lengths > H):
            raise InvalidInputError(f"episode {k} has {self.lengths[k]} steps, but the horizon is {H}")
        for k in np.flatnonzero(self.lengths < H) if self.short is None else ():
            raise InvalidInputError(
                f"episode {k} has {self.lengths[k]} of {H} steps: say what that means, log.with_short('over') (nothing "
                "is earned or paid afterwards) or log.with_short('cut') (its end was not logged)"
            )
        return self

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[BanditFeedback]:
        """The episodes as feedback, in the units they are in: for `Session(..., logged=log)`, if all are whole."""
        for first, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            at = slice(first, end)
            met = Trajectory(self.states[at], self.actions[at])
            yield BanditFeedback(met, self.rewards[at], self.costs[:, at])

    def lines(self) -> list[str]:
        """The log for a person."""
        S, A = int(self.states.max()) + 1, int(self.actions.max()) + 1
        tries = np.unique(self.states * A + self.actions, return_counts=True)[1]
        short, long = int(self.lengths.min()), int(self.lengths.max())
        steps = f"{short}" if short == long else f"{short} to {long}"
        text = [f"{'episodes':<24} {len(self)}, of {steps} steps"]
        text.append(f"{'states, actions':<24} {len(np.unique(self.states))} of {S} seen, {A}")
        known = np.count_nonzero(tries >= KNOWN)
        share = tries[tries >= KNOWN].sum() / len(self.states)
        text.append(f"{'pairs tried':<24} {len(tries)} of {S * A}; {KNOWN} times or more: {known}")
        text.append(f"{'steps on those':<24} {100.0 * share:.1f} %")
        for name, met in zip(("reward", *self.names), self.totals(), strict=True):
            spread = float(met.std(ddof=1)) if len(met) > 1 else float("nan")
            error = spread / np.sqrt(len(met))
            text.append(f"{name:<24} {met.mean():.6g} an episode (standard error {error:.3g}, sd {spread:.3g})")
        text.append(f"{'propensities':<24} {'unknown' if self.propensities is None else 'logged'}")
        return text

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        few = "episode" if len(self) == 1 else "episodes"
        return f"Log({len(self)} {few}, {len(self.states)} steps)"

    def _check_sizes(self, n_states: int, n_actions: int) -> None:
        """Refuse the first state or action that is out of range, and say how far the log goes."""
        for what, values, bound in (("state", self.states, n_states), ("action", self.actions, n_actions)):
            for row in np.flatnonzero((values < 0) | (values >= bound)):
                raise InvalidInputError(
                    f"{self._said(int(row))}: {what} {values[row]} is not between 0 and {bound - 1}; the log has "
                    f"{what}s up to {values.max()}"
                )

    def _said(self, row: int) -> str:
        k = int(np.searchsorted(self.starts, row, side="right")) - 1
        return f"episode {k}, step {row - self.starts[k]}"


def columns_of(text: str) -> dict[str, str]:
    """What the columns of a log are called, from text.

    >>> columns_of("episode=week, reward=euros")
    {'episode': 'week', 'reward': 'euros'}
    """
    kinds = {kind: kind for kind in ColumnNames.__annotations__}
    pairs = [part.partition("=")[::2] for part in text.split(",") if part.strip()]
    return {named(kinds, key.strip(), "kind of column"): name.strip() for key, name in pairs}


def law_of_starts(logged: Log | Sequence[Feedback], n_states: int) -> Floats:
    """How often every state was the first of an episode, as shares (S,)."""
    first = [int(each.trajectory.states[0]) for each in logged]
    return np.bincount(first, minlength=n_states) / len(first)


def as_logged(setting: Setting, logged: Log | Sequence[Feedback], names: tuple[str, ...]) -> Setting:
    """The setting whose episodes begin as logged ones did, with the names of their costs, unless it says otherwise."""
    if setting.names is None and len(names) == setting.n_constraints:
        setting = replace(setting, names=names)
    if setting.says_starts or not len(logged):
        return setting
    return replace(setting, initial=law_of_starts(logged, setting.n_states))


def _named(costs: str | Sequence[str], names: ColumnNames) -> dict[str, str]:
    """The columns that are read, by what they are."""
    each = (costs,) if isinstance(costs, str) else tuple(costs)
    if not each:
        raise InvalidInputError("costs names no column: give one per constraint")
    for name in names:
        named({key: key for key in ColumnNames.__annotations__}, name, "kind of column")
    usual = {name: name for name in ALWAYS} | {f"cost {i}": name for i, name in enumerate(each)}
    wanted: dict[str, Any] = usual | dict(names)
    return {key: name for key, name in wanted.items() if name is not None}


def _columns(
    named: Mapping[str, str], head: Sequence[str], where: str, read: Callable[[int], list[Any]]
) -> dict[str, list[Any]]:
    """The columns that are read, by what they are; `read` gives the one at a place of the head."""
    return {key: read(_place(name, head, where)) for key, name in named.items()}


def _place(name: str, head: Sequence[str], where: str) -> int:
    if name not in head:
        sign = next((each for each in (";", "\t", "|") if len(head) == 1 and each in head[0]), "")
        has = f"its separator is {sign!r}, but must be a comma" if sign else f"it has {', '.join(head) or 'none'}"
        raise InvalidInputError(f"{where} has no column {name!r}{suggestion(name, head)}; {has}")
    if list(head).count(name) > 1:
        raise InvalidInputError(f"{where} has several columns {name!r}: name them apart")
    return head.index(name)


def _read_csv(file: Path) -> tuple[list[str], list[list[str]], list[int]]:
    """The header, the rows, and the line on which every row ends."""
    rows, numbers = [], []
    with opened_plain(file, follow=True) as stream:
        lines = csv.reader(line.decode("utf-8-sig" if i == 0 else "utf-8") for i, line in enumerate(stream))
        try:
            head = [name.strip() for name in next(lines, [])]
            for row in filter(None, lines):
                if len(row) != len(head):
                    raise InvalidInputError(
                        f"{file} line {lines.line_num} has {len(row)} entries, but the header has {len(head)}"
                    )
                rows.append(row)
                numbers.append(lines.line_num)
        except (UnicodeDecodeError, csv.Error) as error:
            raise InvalidInputError(f"{file} line {lines.line_num + 1} is no text in UTF-8: {error}") from None
    return head, rows, numbers


def _log(found: Mapping[str, list[Any]], named: Mapping[str, str], where: Callable[[Any], str], source: str) -> Log:
    """The log of columns that were read; what cannot be used is refused by its row."""
    if not found["episode"]:
        raise InvalidInputError(f"{source} has no rows")
    values = {key: _numbers(found[key], name, where) for key, name in named.items() if key != "episode"}
    for key in ("state", "action", "step"):
        for i in np.flatnonzero(values[key] != np.round(values[key])) if key in values else ():
            raise InvalidInputError(f"{where(i)}: {named[key]} is {values[key][i]:g}, but must be a whole number")
    for key in ("state", "action"):
        for i in np.flatnonzero(values[key] < 0):
            raise InvalidInputError(f"{where(i)}: {named[key]} is {values[key][i]:g}, but must not be negative")
        for i in np.flatnonzero(values[key] >= MOST):
            raise InvalidInputError(
                f"{where(i)}: {named[key]} is {values[key][i]:g}, but must be below {MOST}: number them from 0"
            )
    chances = values.get("propensity")
    if chances is not None:
        for i in np.flatnonzero((chances <= 0.0) | (chances > 1.0)):
            raise InvalidInputError(f"{where(i)}: {named['propensity']} is {chances[i]:g}, but must lie in (0, 1]")
    order, starts = _in_order(found["episode"], values.get("step"), named, where)
    costs = [key for key in named if key.startswith("cost ")]
    return Log(
        starts, values["state"][order].astype(np.int64), values["action"][order].astype(np.int64),
        values["reward"][order], np.array([values[key][order] for key in costs]),
        tuple(named[key] for key in costs), None if chances is None else chances[order],
    )  # fmt: skip


def _numbers(column: Sequence[Any], name: str, where: Callable[[Any], str]) -> Floats:
    """A column as finite numbers."""
    found = np.empty(len(column))
    for i, entry in enumerate(column):
        if entry is None or (isinstance(entry, str) and not entry.strip()):
            raise InvalidInputError(f"{where(i)}: {name} is missing")
        try:
            found[i] = float(entry)
        except (TypeError, ValueError, OverflowError):
            raise InvalidInputError(f"{where(i)}: {name} is {shown(entry)}, which is no number") from None
        if not np.isfinite(found[i]):
            raise InvalidInputError(f"{where(i)}: {name} is missing or not finite ({found[i]})")
    return found


def _in_order(
    episodes: Sequence[Any], steps: Floats | None, named: Mapping[str, str], where: Callable[[Any], str]
) -> tuple[Integers, Integers]:
    """Rows by episode (in order of their first row) and step, and where every episode starts."""
    number: dict[Any, int] = {}
    which = np.empty(len(episodes), dtype=np.int64)
    for i, episode in enumerate(episodes):
        if episode is None or episode != episode or (isinstance(episode, str) and not episode.strip()):
            raise InvalidInputError(f"{where(i)}: {named['episode']} is missing")
        which[i] = number.setdefault(episode, len(number))
        if steps is None and i and which[i] < which[i - 1]:
            raise InvalidInputError(
                f"{where(i)}: episode {shown(episode)} goes on after another one began: sort the rows, or name the "
                "column that says which step a row is (step=...)"
            )
    order = np.arange(len(which)) if steps is None else np.lexsort((steps, which))
    starts = np.r_[0, np.cumsum(np.bincount(which))]
    if steps is not None:
        place = np.arange(len(which)) - np.repeat(starts[:-1], np.diff(starts))
        first = float(steps.min())
        for at in np.flatnonzero(steps[order] != place + first):
            row = int(order[at])
            raise InvalidInputError(
                f"{where(row)}: {named['step']} is {steps[row]:g}, but step {place[at] + first:g} of "
                f"episode {shown(episodes[row])} comes there: steps must follow one another without gaps"
            )
    return order, starts


# Files of logs by their endings.
READERS = {".csv": Log.from_csv, ".parquet": Log.from_parquet}
