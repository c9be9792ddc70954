"""Several worlds write their tables with these tools: point laws, walks, checked probabilities, prices that peak."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer
from omdpd.problem.laws import SparseLaws, laws_of_entries


def one_hot(size: int, place: int) -> Floats:
    """A law with all its mass at one place.

    >>> one_hot(3, 1)
    array([0., 1., 0.])
    """
    law = np.zeros(size)
    law[place] = 1.0
    return law


def walk_laws(n_states: int, horizon: int, ups: Sequence[float], downs: Sequence[float]) -> SparseLaws:
    """The laws of a walk on a line: action a goes up by one with ups[a], down by one with downs[a], else stays.

    It is cut off at both ends.

    >>> walk_laws(3, 5, [0.5], [0.25]).law(0, 2, 0)
    (array([1, 2], dtype=int32), array([0.25, 0.75]))
    """
    S, A = n_states, len(ups)
    s, up, down = np.arange(S)[:, None, None], np.array(ups)[None, :, None], np.array(downs)[None, :, None]
    following = np.concatenate([np.minimum(s + 1, S - 1), np.maximum(s - 1, 0), s], axis=2)
    chances = np.concatenate([up, down, 1.0 - up - down], axis=2)
    rows = np.repeat(np.arange(S * A), 3)
    everywhere = (S, A, 3)
    return laws_of_entries(
        rows, np.broadcast_to(following, everywhere).ravel(), np.broadcast_to(chances, everywhere).ravel(),
        (horizon, S, A),
    )  # fmt: skip


def positive_integers(**named: object) -> list[int]:
    """Return some values, each by its name, as ints that are at least one."""
    return [positive_integer(name, value) for name, value in named.items()]


def probability(name: str, value: float) -> float:
    """`value` if it is a probability, else a sentence that names it."""
    if not 0.0 <= value <= 1.0:
        raise InvalidInputError(f"{name} is {value}, but must lie between 0 and 1")
    return float(value)


def dear_by_windows(cost: Floats, horizon: int, names: Sequence[str], dear: float, cheap: float) -> dict[str, Floats]:
    """A cost (S, A), or (H, S, A), that is `dear` times as high in a window of its own for every name, else `cheap`."""
    profiles = by_windows(horizon, names, dear, cheap)
    return {name: profile[:, None, None] * cost for name, profile in profiles.items()}


def by_windows(horizon: int, names: Sequence[str], inside: float, outside: float) -> dict[str, Floats]:
    """One profile (H,) per name: `inside` in its window of the episode, `outside` elsewhere.

    The windows cut the episode into equal parts.

    >>> by_windows(4, ["first", "second"], 1.0, 0.0)["second"]
    array([0., 0., 1., 1.])
    """
    steps = np.arange(horizon)
    part = steps * len(names) // horizon
    return {name: np.where(part == j, inside, outside) for j, name in enumerate(names)}
