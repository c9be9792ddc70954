"""An inequality of a proof, followed over the episodes of a run: both sides, where it failed, why it may not apply."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omdpd.play.judging import Comparator
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Region, bounds_of

# The comparator is the answer of a linear program whose rows hold to 1e-9, and mirror steps have gaps of 1e-10; both
# are summed over the episodes, so that an inequality counts as failed beyond this share of its sides.
TOLERANCE = 1e-7
# Why an inequality about q* may say nothing.
NO_COMPARATOR = "no policy is safe in every episode, so there is no q*"


@dataclass(frozen=True, eq=False, repr=False)
class Inequality:
    """left <= right after every episode, (n,) each; `where` says in which lemma or equation it stands.

    `single` is whether its sides are those of single episodes, or else sums over all episodes so far.  `reason` says
    why it does not apply to the run (both sides are empty then), `note` what has to be known to read it: a premise that
    this learner does not fulfil, or that the right side is trivially large.
    """

    name: str
    where: str
    statement: str
    left: Floats
    right: Floats
    note: str = ""
    reason: str | None = None
    single: bool = False

    @property
    def applies(self) -> bool:
        """Whether there is anything to hold."""
        return self.reason is None

    @property
    def holds(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether it held after each episode, (n,)."""
        size = np.maximum(1.0, np.maximum(np.abs(self.left), np.abs(self.right)))
        return np.asarray(self.left <= self.right + TOLERANCE * size)

    @property
    def held(self) -> bool | None:
        """Whether it held after every episode; None where it does not apply."""
        return bool(self.holds.all()) if self.applies else None

    @property
    def first_failure(self) -> int | None:
        """The one-based episode after which it first failed."""
        failed = np.flatnonzero(~self.holds)
        return int(failed[0]) + 1 if failed.size else None

    @property
    def share(self) -> float | None:
        """The share of episodes after which it held; None where it does not apply."""
        return float(self.holds.mean()) if self.applies else None

    @property
    def sides(self) -> tuple[float, float]:
        """Left and right as a table shows them: sums at the end, and of single episodes the worst one."""
        at = int(np.argmax(self.left - self.right)) if self.single else -1
        return float(self.left[at]), float(self.right[at])

    @property
    def verdict(self) -> str:
        """In a few words."""
        if self.reason is not None:
            return "does not apply"
        return "held" if self.first_failure is None else f"failed, first in episode {self.first_failure}"

    def __repr__(self) -> str:
        if not self.applies:
            return f"Inequality({self.name}, {self.where}, {self.verdict}: {self.reason})"
        left, right = self.sides
        return f"Inequality({self.name}, {self.where}, {self.verdict}: {left:.4g} beside {right:.4g})"


def _numbers() -> array[float]:
    """Eight bytes a number: two dozen inequalities of a million episodes would be gigabytes in lists."""
    return array("d")


@dataclass
class Track:
    """Both sides as they come in, episode by episode; `ended` says why the inequality ceased to apply, if it did."""

    name: str
    where: str
    statement: str
    note: str = ""
    single: bool = False
    left: array[float] = field(default_factory=_numbers)
    right: array[float] = field(default_factory=_numbers)
    ended: str | None = None

    def add(self, left: float, right: float) -> None:
        """Both sides after one more episode."""
        if self.ended is None:
            self.left.append(left)
            self.right.append(right)

    def remark(self, what: str) -> None:
        """One more thing that has to be known to read it."""
        self.note = "; ".join(filter(None, (self.note, what)))

    def end(self, why: str) -> None:
        """From now on it says nothing; the first reason counts."""
        self.ended = self.ended or why

    def done(self, otherwise: str = "nothing was played") -> Inequality:
        """The inequality as it was followed; without an episode it does not apply, for the reason `otherwise`."""
        left, right, note = np.array(self.left), np.array(self.right), self.note
        if not self.left:
            return Inequality(
                self.name, self.where, self.statement, left, right, "", self.ended or otherwise, self.single
            )
        if self.ended is not None:
            note = "; ".join(filter(None, (note, f"followed for {len(left)} episodes: {self.ended}")))
        return Inequality(self.name, self.where, self.statement, left, right, note, None, self.single)


@dataclass(frozen=True, eq=False)
class HeldAgainst:
    """What a run is held against: the problem, and the best policy that is safe in every episode if there is one."""

    cmdp: CMDP
    setting: Setting
    best: Comparator
    occupancy: Floats | None

    @property
    def most(self) -> float:
        """HK: no policy can lose, or violate by, more."""
        return float(self.setting.horizon * (self.setting.n_episodes or 1))


@dataclass(frozen=True, eq=False)
class SeenEpisode:
    """One-based episode k: the learner's state before and after, the policy's true occupancy, and the cost tables.

    `revealed` is whether the learner was shown the tables (I, H, S, A); otherwise they are the means.
    """

    k: int
    before: Any
    after: Any
    occupancy: Floats
    cost: Floats
    revealed: bool


def outside(region: Region, transition: Floats, rows: Floats | None = None) -> float:
    """How far a kernel is outside a region, at most, over the steps that lead on (and those `rows` (H, S, A) > 0)."""
    lower, upper = bounds_of(region)
    far = np.maximum(lower - transition, transition - upper)[:-1]
    if rows is not None:
        far = far[rows[:-1] > 0.0]
    return float(far.max(initial=0.0))
