"""What several worlds write their tables with: point laws, checked probabilities, prices that peak in a window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError


def one_hot(size: int, place: int) -> Floats:
    """A law with all its mass at one place.

    >>> one_hot(3, 1)
    array([0., 1., 0.])
    """
    law = np.zeros(size)
    law[place] = 1.0
    return law


def probability(name: str, value: float) -> float:
    """`value` if it is a probability, else a sentence that names it."""
    if not 0.0 <= value <= 1.0:
        raise InvalidInputError(f"{name} is {value}, but must lie between 0 and 1")
    return float(value)


def by_windows(horizon: int, names: Sequence[str], inside: float, outside: float) -> dict[str, Floats]:
    """One profile (H,) per name: `inside` in its window of the episode, `outside` elsewhere.

    The windows cut the episode into equal parts.

    >>> by_windows(4, ["first", "second"], 1.0, 0.0)["second"]
    array([0., 0., 1., 1.])
    """
    steps = np.arange(horizon)
    part = steps * len(names) // horizon
    return {name: np.where(part == j, inside, outside) for j, name in enumerate(names)}
