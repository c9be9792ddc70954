"""Every nature is a pure function from its seed, the episode and the occupancy in play to a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from omdpd.jit.decorators import COMPILED
from omdpd.natures.streams import first_below
from omdpd.problem.arrays import Floats, Integers, InvalidInputError
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.setting import FeedbackKind

# In place of a round: the one whose largest excess cost is largest for the policy in play, the first of equals.
COSTLIEST = -1


@dataclass(frozen=True)
class Safety:
    """Whether some policy is safe in every episode, and why."""

    exists: bool
    why: str


class Nature(Protocol):
    """Picks the tables of an episode; may look at the true occupancy of the policy in play.

    A nature that changes more than costs that it reveals says so in an attribute `changes`: names out of "reward",
    "cost" (which are not revealed) and "kernel".  One whose kernel changes also has `world(k)`, the truth of episode k,
    and `dynamic_optimum(n)`, the mean over n episodes of the best value of a policy that is safe in its episode.
    One whose rounds do not depend on what is played says ``oblivious = True`` in its class; one that picks among few
    rounds, whatever is played or the costliest, may have `ahead` instead (see `rounds_ahead`): their runs are faster.
    """

    @property
    def feedback(self) -> FeedbackKind:
        """What a learner is shown: "bandit" where costs are stochastic, "full" where they are revealed."""
        ...

    @property
    def repeats(self) -> bool:
        """Whether tables come again (keys name them); otherwise episode k has a table of its own, with key k."""
        ...

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The round of zero-based episode k; the same arguments give the same round."""
        ...

    def table(self, key: int) -> Floats:
        """The cost table (I, H, S, A) that a round's key names: a row of the comparator.

        A round whose cost is a positive multiple of it says so in its `factor`.
        """
        ...

    def safety(self) -> Safety:
        """Whether a policy safe in every episode exists."""
        ...


def changes_of(nature: Nature) -> tuple[str, ...]:
    """What a nature changes beside costs that it reveals."""
    found: tuple[str, ...] = getattr(nature, "changes", ())
    return found


def world_of(nature: Nature, cmdp: CMDP, k: int) -> CMDP:
    """The truth of episode k: the world itself, unless it moves."""
    moved: Callable[[int], CMDP] | None = getattr(nature, "world", None)
    return cmdp if moved is None else moved(k)


def rounds_ahead(nature: Nature, k: int, n: int) -> tuple[Sequence[Round], Integers] | None:
    """Some rounds of a nature, and which of them each of n episodes from k on has, or `COSTLIEST`.

    A nature says so in a method ``ahead(k, n)`` beside its `draw`, or that it is oblivious beside it.  None of a nature
    that says neither, or has another `draw`.
    """
    for each in type(nature).__mro__:
        if "draw" in vars(each):
            if "ahead" in vars(each):
                return _checked(nature, k, n)
            return _drawn(nature, k, n) if vars(each).get("oblivious", False) else None
    return None


def _drawn(nature: Nature, k: int, n: int) -> tuple[Sequence[Round], Integers]:
    """A round for every episode (one at least), of a nature that does not look at what is played."""
    unseen = np.zeros(0)
    return tuple(nature.draw(each, unseen) for each in range(k, k + max(n, 1))), np.arange(n)


def _checked(nature: Any, k: int, n: int) -> tuple[Sequence[Round], Integers]:
    """What a nature says ahead, which compiled code takes at its word."""
    rounds, choices = nature.ahead(k, n)
    picked = np.array(choices)
    right = picked.shape == (n,) and (n == 0 or picked.dtype.kind in "iu")
    if not right or not rounds or (n > 0 and not COSTLIEST <= picked.min() <= picked.max() < len(rounds)):
        raise InvalidInputError(
            f"{type(nature).__name__}.ahead({k}, {n}) must give its rounds and {n} places among them (or {COSTLIEST}), "
            f"but gave {len(rounds)} rounds and {choices!r}"
        )
    return rounds, picked.astype(np.int64)


def episode_rng(seed: int, k: int) -> np.random.Generator:
    """The random numbers of one episode: tables are regenerated, never stored."""
    return np.random.default_rng((seed, k))


def episode_choice(seed: int, k: int, n: int) -> int:
    """`episode_rng(seed, k).integers(n)`, a whole number below n, in a fortieth of the time."""
    if COMPILED and 0 <= seed < 2**63 and 0 <= k < 2**63 and 0 < n < 2**32:
        return first_below(seed, k, n)
    return int(episode_rng(seed, k).integers(n))
