"""Numbers into bins: the states of an environment whose observations are vectors.

bins = Bins.even(low=[-2.4, -0.2], high=[2.4, 0.2], counts=[6, 8])     # 48 states
learn(env, learner, 500, horizon=100, budget=5.0, state_of=bins)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, InvalidInputError, numbers, positive_integer, shown


@dataclass(frozen=True, eq=False)
class Bins:
    """A grid of cells over vectors: `edges` are the inner borders of every coordinate, ascending.

    A coordinate with n inner borders has n + 1 bins; whatever lies beyond the outer ones is in the first or last bin,
    so every finite observation has a state.  A border belongs to the bin above it.

    >>> bins = Bins(edges=([0.0], [-1.0, 1.0]))
    >>> bins.n_states, bins([0.5, 7.0]), bins.cell(5)
    (6, 5, ((0.0, inf), (1.0, inf)))
    """

    edges: Sequence[npt.ArrayLike]

    def __post_init__(self) -> None:
        if not isinstance(self.edges, Sequence | np.ndarray):
            raise InvalidInputError(f"edges is {shown(self.edges)}, but must hold the borders of each coordinate")
        borders = tuple(np.asarray(numbers(f"edges[{i}]", e), dtype=np.float64) for i, e in enumerate(self.edges))
        if not borders:
            raise InvalidInputError("edges is empty, but needs the borders of at least one coordinate")
        for i, edge in enumerate(borders):
            if edge.ndim != 1 or not np.isfinite(edge).all() or (np.diff(edge) <= 0.0).any():
                raise InvalidInputError(f"edges[{i}] must be ascending finite numbers")
        object.__setattr__(self, "edges", borders)

    @staticmethod
    def even(low: npt.ArrayLike, high: npt.ArrayLike, counts: int | Sequence[int]) -> Bins:
        """Bins of equal width between `low` and `high` (one number per coordinate), `counts` of them in each.

        >>> Bins.even([0.0], [1.0], 4).edges[0].tolist()
        [0.25, 0.5, 0.75]
        """
        lows, highs = (np.atleast_1d(numbers(*end)).astype(np.float64) for end in (("low", low), ("high", high)))
        if lows.ndim != 1 or lows.shape != highs.shape:
            raise InvalidInputError(f"low has shape {lows.shape} and high {highs.shape}, but both must be one vector")
        each = [counts] * lows.size if np.ndim(counts) == 0 else list(counts)  # type: ignore[arg-type]
        if len(each) != lows.size:
            raise InvalidInputError(f"there are {len(each)} counts, but {lows.size} coordinates")
        for i, (a, b) in enumerate(zip(lows, highs, strict=True)):
            if not np.isfinite([a, b]).all() or a >= b:
                raise InvalidInputError(
                    f"coordinate {i} goes from {a:g} to {b:g}: give two finite ends, low below high"
                )
        return Bins(
            tuple(
                np.linspace(a, b, positive_integer(f"counts[{i}]", n) + 1)[1:-1]
                for i, (a, b, n) in enumerate(zip(lows, highs, each, strict=True))
            )
        )

    @staticmethod
    def of(space: Any, counts: int | Sequence[int]) -> Bins:
        """Even bins between the ends of a `Box` of one axis; a coordinate without ends is refused by its number."""
        low, high = getattr(space, "low", None), getattr(space, "high", None)
        if low is None or high is None or np.ndim(low) != 1:
            raise InvalidInputError(f"the space is {space}, but must be a Box of one axis")
        # Unbounded coordinates of Gymnasium's boxes have the largest number of their type as their end.
        open_ended = [i for i in range(np.size(low)) if max(abs(float(low[i])), abs(float(high[i]))) > 1e30]
        if open_ended:
            raise InvalidInputError(
                f"coordinate {open_ended[0]} of the space has no end: give both ends yourself, with "
                "Bins.even(low, high, counts)"
            )
        return Bins.even(low, high, counts)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many bins every coordinate has."""
        return tuple(np.size(edge) + 1 for edge in self.edges)

    @property
    def n_states(self) -> int:
        """How many cells there are."""
        return int(np.prod(self.shape))

    def __call__(self, observation: npt.ArrayLike) -> int:
        """The state of an observation: the number of its cell, the last coordinate fastest."""
        try:
            values = np.atleast_1d(numbers("the observation", observation)).astype(np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (len(self.edges),) or np.isnan(values).any():
            raise InvalidInputError(
                f"the observation {shown(observation)} is not a vector of {len(self.edges)} numbers, as these Bins need"
            )
        places = [int(np.searchsorted(edge, x, side="right")) for edge, x in zip(self.edges, values, strict=True)]
        return int(np.ravel_multi_index(places, self.shape))

    def cell(self, state: int) -> tuple[tuple[float, float], ...]:
        """The ends of a state's cell in every coordinate."""
        if not 0 <= state < self.n_states:
            raise InvalidInputError(f"state is {state}, but must be between 0 and {self.n_states - 1}")
        places = np.unravel_index(state, self.shape)
        full: list[Floats] = [np.r_[-np.inf, edge, np.inf] for edge in self.edges]
        return tuple((float(ends[i]), float(ends[i + 1])) for ends, i in zip(full, places, strict=True))
