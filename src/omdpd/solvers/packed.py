"""Policies of long horizons in a byte or two per step and state: what is played, and the few places where it draws.

An optimum under I constraints mixes at most I + 1 deterministic policies.  Where they agree there is one action; the
others are places, with the probabilities there.  Nothing of size H S A is made unless somebody asks for it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, Integers, InvalidInputError, as_policy
from omdpd.problem.machine_memory import TooLargeError, refuse_beyond_memory
from omdpd.solvers.compiled.listed import Codes

# Codes of more bytes than this are kept in a file without a name, which is gone with them.
MAX_HELD = 2**30


@dataclass(frozen=True, eq=False)
class Packed:
    """A policy: codes (H, S), the places h S + s where it draws (n,), the rows there (n, A), and how likely they are.

    With `every_step` there is one step, which is played for ever.
    """

    codes: Codes
    places: Integers
    rows: Floats
    mass: Floats
    every_step: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        H, S = self.codes.shape
        return (H, S, self.rows.shape[1])

    @staticmethod
    def read(arrays: Mapping[str, npt.NDArray[Any]]) -> Packed:
        """Make a policy of stored arrays; refuse arrays that are none."""
        codes, places, rows, mass = (arrays[name] for name in ("codes", "places", "rows", "mass"))
        if codes.ndim != 2 or codes.dtype.kind != "u" or rows.ndim != 2 or not codes.size or not rows.shape[1]:
            raise InvalidInputError(f"its codes have shape {codes.shape} and its rows {rows.shape}")
        if codes.max() >= 2 * rows.shape[1]:
            raise InvalidInputError(f"a code is {codes.max()}, but there are {rows.shape[1]} actions")
        n, within = len(rows), places.dtype.kind in "iu" and (not len(places) or 0 <= places[0] < places[-1] + 1)
        if not within or places.shape != (n,) or mass.shape != (n,) or (n and places[-1] >= codes.size):
            raise InvalidInputError("its places are no places of its codes")
        if np.any(places[1:] <= places[:-1]):
            raise InvalidInputError("its places do not ascend")
        rows = as_policy("rows", rows[None])[0] if n else rows.astype(np.float64)
        return Packed(codes, places.astype(np.int64), rows, mass.astype(np.float64))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What `read` reads."""
        return {"codes": self.codes, "places": self.places, "rows": self.rows, "mass": self.mass}

    @property
    def stationary(self) -> bool:
        """Whether every step has the same probabilities."""
        same = not len(self.places) and all((row >> 1 == self.codes[0] >> 1).all() for row in self.codes)
        return len(self.codes) == 1 or same

    def greedy(self) -> Packed:
        """The policy that always plays the likeliest action, the first of several."""
        codes, S = self.codes.copy(), self.codes.shape[1]
        codes[self.places // S, self.places % S] = 2 * self.rows.argmax(axis=1)
        return Packed(codes, self.places[:0], self.rows[:0], self.mass[:0], self.every_step)

    def step(self, h: int) -> Floats:
        """The probabilities of a step, (S, A)."""
        _, S, A = self.shape
        table = np.zeros((S, A))
        table[np.arange(S), self.codes[h] >> 1] = 1.0
        drawn = slice(*np.searchsorted(self.places, (h * S, (h + 1) * S)))
        table[self.places[drawn] - h * S] = self.rows[drawn]
        return table

    def row(self, h: int, s: int) -> Floats:
        """The probabilities at a step and state, (A,)."""
        _, S, A = self.shape
        place = int(np.searchsorted(self.places, h * S + s))
        if place < len(self.places) and self.places[place] == h * S + s:
            return np.asarray(self.rows[place])
        return np.eye(1, A, int(self.codes[h, s] >> 1))[0]

    def table(self) -> Floats:
        """All probabilities, (H, S, A); refused where they do not fit into this machine."""
        H, S, A = self.shape
        advice = "ask for one step and state at a time, with `at` and `act`"
        refuse_beyond_memory(f"a policy's table of {H} steps, {S} states and {A} actions", 8.0 * H * S * A, advice)
        table = np.zeros((H, S, A))
        for h in range(H):
            table[h] = self.step(h)
        return table


def code_type(n_actions: int) -> np.dtype[Any]:
    """Give the type of the codes of `n_actions` actions."""
    return np.min_scalar_type(2 * n_actions - 1)


def room_for(shape: tuple[int, ...], n_actions: int) -> Codes:
    """Room for codes: in memory, or on disk (where TMPDIR says) if they are more than a gigabyte."""
    kind = code_type(n_actions)
    n_bytes = kind.itemsize * float(np.prod(shape, dtype=float))
    if n_bytes <= MAX_HELD:
        return np.empty(shape, kind)
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if n_bytes > free:
        raise TooLargeError(
            f"a plan of {n_bytes / 1e9:.3g} GB is kept on disk, but {tempfile.gettempdir()} has {free / 1e9:.3g} GB: "
            "say in TMPDIR where there is room, or shorten the horizon"
        )
    with tempfile.TemporaryFile() as file:
        return np.asarray(np.memmap(file, kind, "w+", shape=shape))
