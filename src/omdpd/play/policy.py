"""A policy for people and programs: drawn from, evaluated, kept, printed.

    pi_h(a|s) = table[h, s, a]

Everything that takes one also takes its table, and NumPy takes it for its table.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, InvalidInputError, as_policy, expected, inner, policy_table
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.problem.markup import facts_html, table_html
from omdpd.solvers.chains import occupancy_in_the_long_run
from omdpd.solvers.columns import ACCURACY, evaluated
from omdpd.solvers.packed import Packed
from omdpd.solvers.sweeps import occupancy_under, once
from omdpd.storage.atomic import RecordError, csv_text, opened_plain, save_file
from omdpd.storage.npz import Limits, Npz, npz_of_arrays, opened_npz
from omdpd.worlds.card import natural_value

# Rows that are printed, and shown in a notebook; the rest is counted.
MAX_LINES = 40
# A policy file of four gigabytes (a quarter of one, if it is compressed); a larger one is refused unread.
LIMITS = Limits(n_bytes=2**32, compressed_bytes=2**28, members=5)
MAX_LABEL_BYTES = 2**24


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a policy earns and costs in expectation, exactly, in the user's units; `costs` and `budget` are (I,).

    A budget is infinite where there is no limit.
    """

    value: float
    costs: Floats
    budget: Floats

    @property
    def excess(self) -> Floats:
        """By how much every budget is exceeded (negative: room), (I,)."""
        return self.costs - self.budget

    @property
    def safe(self) -> bool:
        """Whether every budget is met, up to rounding."""
        return bool(np.all(self.excess <= ACCURACY * np.maximum(1.0, np.abs(self.budget))))

    def __str__(self) -> str:
        spent = zip(self.costs, self.budget, strict=True)
        costs = ", ".join(f"{c:.6g}{'' if b == np.inf else f' of {b:.6g}'}" for c, b in spent)
        return f"earns {self.value:.6g}, costs {costs} ({'safe' if self.safe else 'over budget'})"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Policy:
    """Probabilities of actions by step and state, with names for people; NumPy takes it for its table.

    >>> policy = Policy([[[0.25, 0.75]], [[1.0, 0.0]]])
    >>> policy
    Policy(2 steps, 1 state, 2 actions)
    >>> policy.act(1, 0, np.random.default_rng(0))
    0
    >>> np.asarray(policy).shape
    (2, 1, 2)

    Parameters
    ----------
    table : (H, S, A) or (S, A)
        Rows of probabilities; kept as they are, read-only.  One table (S, A) is played at every step, however many
        there are; it is kept as (1, S, A).  A plan of a known problem comes packed, in a byte or two per step and
        state, and its table is written out when it is asked for.
    labels
        Names of states and actions.
    """

    labels: Labels
    packed: Packed | None
    every_step: bool

    def __init__(self, table: npt.ArrayLike | Packed, labels: Labels | None = None) -> None:
        labels = Labels() if labels is None else labels
        if isinstance(table, Packed):
            vars(self).update(labels=labels, packed=table, every_step=table.every_step)
        else:
            one = np.ndim(table) == 2
            kept = as_policy("policy", np.asarray(table)[None] if one else table).view()
            kept.setflags(write=False)
            vars(self).update(labels=labels, packed=None, every_step=one, table=kept)
        labels.check(*self.shape[1:], len(labels.constraints))

    @cached_property
    def table(self) -> Floats:
        """The probabilities (H, S, A), read-only; refused where a packed policy does not fit into this machine."""
        assert self.packed is not None
        table = self.packed.table()
        table.setflags(write=False)
        return table

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A); (1, S, A) where one table is played at every step."""
        if self.packed is not None:
            return self.packed.shape
        H, S, A = self.table.shape
        return (H, S, A)

    @property
    def reached(self) -> npt.NDArray[np.bool_] | None:
        """Which states are ever reached, (H, S), where that is known; what is shown and exported is only they."""
        return None if self.packed is None else np.asarray((self.packed.codes & 1) == 0)

    @property
    def _shown(self) -> npt.NDArray[np.bool_]:
        """Which states are shown, (H, S): all, where it is not known which are reached."""
        return np.ones(self.shape[:2], bool) if self.reached is None else self.reached

    @property
    def ndim(self) -> int:
        """As of its table: 3, or 2 where one is played at every step."""
        return 2 if self.every_step else 3

    @property
    def stationary(self) -> bool:
        """Whether every step has the same probabilities."""
        if self.packed is not None:
            return self.packed.stationary
        return self.table.strides[0] == 0 or bool((self.table[1:] == self.table[:1]).all())

    def at(self, step: int, state: int) -> Floats:
        """The probabilities of the actions at a zero-based step in a state, (A,)."""
        H, S, _ = self.shape
        for name, value, bound in (("step", step, None if self.every_step else H), ("state", state, S)):
            if not isinstance(value, int | np.integer) or not 0 <= value < (value + 1 if bound is None else bound):
                upper = "of at least 0" if bound is None else f"between 0 and {bound - 1}"
                raise InvalidInputError(f"{name} is {value!r}, but must be a whole number {upper}")
        step = 0 if self.every_step else step
        return self.table[step, state] if self.packed is None else self.packed.row(step, state)

    def step(self, step: int) -> Floats:
        """The probabilities of a step, (S, A)."""
        return self.table[step] if self.packed is None else self.packed.step(step)

    def greedy(self) -> Policy:
        """The policy that always plays the likeliest action (the first of several): it never draws.

        It may earn less and cost more than this one; `evaluate` says what.
        """
        if self.packed is not None:
            return Policy(self.packed.greedy(), self.labels)
        table = np.eye(self.shape[2])[self.table.argmax(axis=2)]
        return Policy(table[0] if self.every_step else table, self.labels)

    def act(self, step: int, state: int, rng: np.random.Generator | None = None, *, deterministic: bool = False) -> int:
        """An action drawn (or the likeliest) at a zero-based step in a state; without `rng` it cannot be repeated.

        A seed in place of a generator is refused, since it would draw the same number in every step.
        """
        if deterministic:
            return int(self.at(step, state).argmax())
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise InvalidInputError(
                f"rng is {rng!r}, but must be a generator: make one with numpy.random.default_rng and keep it"
            )
        rng = np.random.default_rng() if rng is None else rng
        law = self.at(step, state)
        place = int(np.searchsorted(np.cumsum(law), rng.random(), side="right"))
        return place if place < len(law) else int(np.flatnonzero(law)[-1])  # the last, where rounding left a gap

    def evaluate(self, cmdp: CMDP) -> Evaluation:
        """What it earns and costs in a known problem, exactly and in the user's units."""
        if self.packed is not None and cmdp.discount is None and self.shape == cmdp.shape:
            return self._by_sweeps(cmdp, self.packed)
        q = self.occupancy(cmdp)
        value = natural_value(cmdp, expected(cmdp.reward, q))
        return Evaluation(value, inner(cmdp.cost, q) * cmdp.cost_scale, cmdp.limits)

    def occupancy(self, cmdp: CMDP) -> Floats:
        """How likely every step, state and action of a known problem is under it, (H, S, A)."""
        table = table_of(self, cmdp.shape)
        if cmdp.mask is not None:
            cmdp.mask.refuse(table)
        if cmdp.discount is None:
            return occupancy_under(cmdp.laws, table, cmdp.initial)
        return occupancy_in_the_long_run(cmdp.laws.listed(), table[0], cmdp.initial, cmdp.discount)[None]

    def _by_sweeps(self, cmdp: CMDP, packed: Packed) -> Evaluation:
        """What a packed policy earns and costs, in one sweep."""
        if cmdp.mask is not None:
            for h in range(len(packed.codes)):
                cmdp.mask.refuse(packed.step(h)[None], h)
        tables = (once(cmdp.reward), once(cmdp.cost, 1))
        totals = evaluated(cmdp.laws.listed(), cmdp.initial, packed, *tables)
        return Evaluation(natural_value(cmdp, float(totals[0])), totals[1:] * cmdp.cost_scale, cmdp.limits)

    def save(self, file: str | Path) -> Path:
        """Keep it in a file, whole or not at all: ``.npz`` or ``.csv`` for `load`, ``.json`` for others."""
        file = Path(file)
        written = {".npz": self._npz, ".json": self._json, ".csv": self._csv}
        if file.suffix not in written:
            raise InvalidInputError(f"{file} should end in one of {', '.join(written)}")
        return save_file(file, written[file.suffix]())

    @staticmethod
    def load(file: str | Path) -> Policy:
        """Read what `save` wrote into an ``.npz`` file, or a ``.csv`` file without its names, to the last bit."""
        file = Path(file)
        if file.suffix.lower() == ".csv":
            return _stored_csv(file)
        with opened_plain(file, follow=True) as stream, opened_npz(stream, str(file), LIMITS) as npz:
            if "codes" in npz.headers:
                return Policy(_stored_packed(file, npz), _stored_labels(file, npz))
            if "policy" not in npz.headers:
                held = ", ".join(npz.headers)[:200] or "nothing"
                raise RecordError(f"{file} holds no policy: it has no array 'policy', but {held}")
            if npz.headers["policy"].dtype.kind not in "fiub":
                raise RecordError(f"{file} holds no policy: its array is of {npz.headers['policy'].dtype}")
            table, labels = npz.array("policy"), _stored_labels(file, npz)
        try:
            return Policy(table, labels)
        except InvalidInputError as error:
            raise RecordError(f"{file} holds no policy: {error}") from None

    def lines(self, most: int | None = MAX_LINES) -> list[str]:
        """The table for a person: one line per step and state, a column per action; `most` lines of it."""
        head, rows = self._cells()
        shown = rows if most is None else rows[:most]
        widths = [max(len(cell) for cell in column) for column in zip(head, *shown, strict=True)]
        sides = [str.ljust if name == "state" else str.rjust for name in head]
        text = ["  ".join(to(c, w) for to, c, w in zip(sides, line, widths, strict=True)) for line in (head, *shown)]
        more = len(rows) - len(shown)
        never = int((~self._shown).sum())
        what = "states" if self.every_step else "pairs of step and state"
        return [
            *(line.rstrip() for line in text), *([f"... and {more} more lines"] if more else []),
            *([f"never reached and left out: {never} {what}"] if never else []),
        ]  # fmt: skip

    def matrix(self) -> str:
        """What is played, on a line per state with a column per step: * where it draws, . where it never comes.

        Actions are named if the problem names them, and numbered otherwise.
        """
        (H, _, A), states = self.shape, self.names()[0]
        actions = np.array([*(self.labels.actions or map(str, range(A))), "."])
        cells = [list(map(str, range(H)))]
        for s, met in enumerate(self._shown.T):
            laws = np.array([self.at(h, s) for h in range(H)])
            names = actions[np.where(met, laws.argmax(axis=1), A)]
            drawn = met & (laws.max(axis=1) < 1.0 - 1e-9)
            cells.append([f"{name}{'*' * star}" for name, star in zip(names, drawn.tolist(), strict=True)])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        left = max(map(len, ("step", *states)))
        lines = zip(("step", *states), cells, strict=True)
        return "\n".join(
            f"{name:<{left}}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
            for name, row in lines
        )

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        H, S, A = self.shape
        return f"Policy({_some(H, 'step')}, {_some(S, 'state')}, {_some(A, 'action')})"

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        head, rows = self._cells()
        more = len(rows) - MAX_LINES
        H, S, A = self.shape
        facts = {"steps": H, "states": S, "actions": A} | ({"lines left out": more} if more > 0 else {})
        return facts_html("policy", facts, table_html(head, rows[:MAX_LINES]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.table[0] if self.every_step else self.table, dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        return self.table[key]

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Floats]:
        return iter(self.table)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Head and lines of the table, as texts; the step is left out where nothing depends on it."""
        states, actions = self.names()
        same = self.stationary
        steps = range(1 if same else self.shape[0])
        head = [*([] if same else ["step"]), "state", *actions]
        shown = np.asarray(self._shown.any(axis=0, keepdims=True)) if same else self._shown
        rows = [
            [*([] if same else [str(h)]), states[s], *(f"{p:.3f}" for p in self.at(h, s))]
            for h, s in ((h, s) for h in steps for s in np.flatnonzero(shown[h]).tolist())
        ]
        return head, rows

    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of states and actions, given or counted."""
        named = self.labels.counted(*self.shape[1:])
        return named.states, named.actions

    def _npz(self) -> bytes:
        labels = json.dumps(asdict(self.labels)).encode()
        names = {"labels": np.frombuffer(labels, dtype=np.uint8)}
        if self.packed is None or self.packed.every_step:
            return npz_of_arrays({"policy": np.array(self)} | names)
        return npz_of_arrays(self.packed.arrays() | names)

    def _json(self) -> bytes:
        states, actions = self.names()
        table = [
            [row if met else None for row, met in zip(self.step(h).tolist(), there, strict=True)]
            for h, there in enumerate(self._shown.tolist())
        ]
        shown = {"states": states, "actions": actions, "policy": table[0] if self.every_step else table}
        return json.dumps(shown, allow_nan=False).encode()

    def _csv(self) -> bytes:
        states, actions = self.names()
        rows = [
            ("" if self.every_step else h, s, states[s], a, actions[a], repr(p))
            for h, s in np.argwhere(self._shown).tolist()
            for a, p in enumerate(self.at(h, s).tolist())
        ]
        return csv_text([("step", "state", "state_name", "action", "action_name", "probability"), *rows]).encode()


def table_of(policy: Policy | npt.ArrayLike, shape: tuple[int, int, int]) -> Floats:
    """The table of a policy, given as one or as an array, for a problem of this shape."""
    return policy_table(np.asarray(policy), *shape)


def _stored_csv(file: Path) -> Policy:
    """The policy of a table with a row per step, state and action; a step that is empty stands for all."""
    try:
        with opened_plain(file, follow=True) as stream, io.TextIOWrapper(stream, "utf-8", newline="") as text:
            rows = [
                (r["step"], int(r["state"]), int(r["action"]), float(r["probability"])) for r in csv.DictReader(text)
            ]
        every_step = all(step == "" for step, *_ in rows)
        chances = {(0 if every_step else int(step), s, a): p for step, s, a, p in rows}
        shape = [1 + max(numbers) for numbers in zip(*chances, strict=True)]
        if not rows or min(map(min, chances)) < 0 or not len(rows) == len(chances) == math.prod(shape):
            raise ValueError(f"{len(rows)} rows are not one for every step, state and action")
        table = np.array([chances[key] for key in sorted(chances)]).reshape(shape)
        return Policy(table[0] if every_step else table)
    except (csv.Error, KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{file} holds no policy: {'no column ' * isinstance(error, KeyError)}{error}") from None


def _stored_labels(file: Path, npz: Npz) -> Labels:
    """Read the names in a file; a file that another program wrote has none."""
    if "labels" not in npz.headers:
        return Labels()
    if npz.headers["labels"].size > MAX_LABEL_BYTES:
        raise RecordError(f"{file} holds labels of more than {MAX_LABEL_BYTES} bytes")
    try:
        stored = json.loads(npz.array("labels").astype(np.uint8).tobytes())
        labels = Labels(**{key: tuple(str(name) for name in names) for key, names in stored.items()})
        if not all(name.isprintable() for names in asdict(labels).values() for name in names):
            raise ValueError("they hold characters that are not printable")
        return labels
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{file} is damaged: its labels cannot be read ({error})") from None


def _stored_packed(file: Path, npz: Npz) -> Packed:
    """The packed policy that a file keeps."""
    try:
        return Packed.read({name: npz.array(name) for name in ("codes", "places", "rows", "mass")})
    except (KeyError, InvalidInputError) as error:
        raise RecordError(f"{file} holds no policy: {error}") from None


def _some(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
