"""The forms in which a kernel may be given, each read into checked `Laws`: tables, sparse matrices, lists, functions.

| form | rows |
|---|---|
| array (S, A, S) or (H, S, A, S) | as they are; with ``axes`` "ASS" or "HASS" the action comes before the state |
| one sparse matrix (S A, S) | row s A + a is the law of state s and action a (a S + s with ``axes="ASS"``) |
| A sparse matrices (S, S) | one for each action |
| H of either of these | one for each step |
| ``laws[s][a] = [(probability, next state), ...]`` | tuples; lists or mappings around them |
| ``law(state, action)`` | gives such a list, or a whole row of S probabilities |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, InvalidInputError, as_law, numbers, positive_integer, row_sum_tolerance
from omdpd.problem.laws import AXES, DenseLaws, Laws, SparseLaws, laws_of_entries, laws_of_table

Axes = Literal["SAS", "ASS", "HSAS", "HASS"]
# law(state, action): pairs (probability, next state), or a row of probabilities.
LawFunction = Callable[[int, int], Any]


# Which rows are read, (n, S, A), n = 1 or H; None where all are.  Whatever stands in the others, they get `LEFT_OUT`.
Seen = npt.NDArray[np.bool_] | None
LEFT_OUT = [(1.0, 0)]


def read_laws(
    transition: Any, sizes: tuple[int, int], horizon: int | None, axes: Axes | None, seen: Seen = None
) -> tuple[Laws, bool]:
    """The laws that were given, and whether for one step; `sizes` are (S, A), as the reward has them."""
    if axes is not None and axes not in get_args(Axes):
        raise InvalidInputError(f"axes is {axes!r}, but must be one of {', '.join(get_args(Axes))}")
    if isinstance(transition, SparseLaws | DenseLaws):
        return _of_laws(transition, sizes, horizon), transition.stationary
    if _is_sparse(transition):
        return _of_matrices([transition], sizes, _needed(horizon), axes, 1, seen), True
    if callable(transition):
        return _of_function(transition, sizes, _needed(horizon), seen), True
    if _holds_sparse(transition):
        return _of_sparse_list(list(transition), sizes, horizon, axes, seen)
    if _holds_pairs(transition, sizes):
        return _of_pairs(transition, sizes, _needed(horizon), seen), True
    return _of_array(numbers("transition", transition), horizon, axes, seen)


def _left_out(seen: Seen, n_steps: int) -> npt.NDArray[np.bool_]:
    """The rows (n, S, A) of laws of so many steps that are not read; of one step, those that no step needs."""
    if seen is None:
        return np.zeros((1, 1, 1), bool)
    return np.asarray(~(seen if len(seen) == n_steps else seen.any(axis=0, keepdims=True)))


def _of_laws(laws: Laws, sizes: tuple[int, int], horizon: int | None) -> Laws:
    if laws.shape[1:] != sizes:
        raise InvalidInputError(f"reward has {sizes} states and actions, but the laws have {laws.shape[1:]}")
    if horizon is not None and horizon != laws.shape[0]:
        raise InvalidInputError(f"horizon is {horizon}, but the laws have {laws.shape[0]} steps")
    return laws


def _needed(horizon: int | None) -> int:
    if horizon is None:
        raise InvalidInputError("transition has axes (state, action, next state), so a horizon is needed")
    return positive_integer("horizon", horizon)


def _of_array(array: npt.NDArray[np.generic], horizon: int | None, axes: Axes | None, seen: Seen) -> tuple[Laws, bool]:
    """A table, its axes put in order, its rows checked and scaled to sum to one exactly."""
    if array.ndim not in (3, 4):
        raise InvalidInputError(f"transition has {array.ndim} axes, but needs 4 (step, state, action, next state) or 3")
    if axes is not None and len(axes) != array.ndim:
        raise InvalidInputError(f"transition has {array.ndim} axes, but axes={axes!r} names {len(axes)}")
    array = np.moveaxis(array, -3, -2) if axes in ("ASS", "HASS") else array
    once = array.ndim == 3
    H = _needed(horizon) if once else array.shape[0]
    _steps(H, horizon)
    if 0 in array.shape:
        label = AXES[4 - array.ndim :][array.shape.index(0)]
        raise InvalidInputError(f"transition has length 0 along its {label} axis (axis {array.shape.index(0)})")
    S, A, n = array.shape[-3:]
    if n != S and n == A and axes is None:
        raise InvalidInputError(
            f"transition has shape {array.shape}, whose last axes read (action, state, next state): if they are, say "
            f"so with axes={'ASS' if once else 'HASS'!r}"
        )
    table = array[None] if once else array
    if seen is not None and n == S and seen.shape[1:] == (S, A):
        table = np.where(_left_out(seen, len(table))[..., None], np.eye(1, S, dtype=array.dtype), table)
    return laws_of_table(as_law("transition", table, AXES, [len(table), S, A, S]), H), once


def _of_sparse_list(
    given: list[Any], sizes: tuple[int, int], horizon: int | None, axes: Axes | None, seen: Seen
) -> tuple[Laws, bool]:
    """Matrices by action, by step, or lists by step of matrices by action."""
    S, A = sizes
    if not _is_sparse(given[0]):
        steps = [list(step) for step in given]
        H = _steps(len(steps), horizon)
        for h, step in enumerate(steps):
            _check_count(len(step), A, f"step {h} of transition")
        return _of_matrices([m for step in steps for m in step], sizes, H, axes, H, seen), False
    by_step = given[0].shape == (S * A, S) and (A > 1 or len(given) > 1)
    if by_step:
        H = _steps(len(given), horizon)
        return _of_matrices(given, sizes, H, axes, H, seen), False
    _check_count(len(given), A, "transition")
    return _of_matrices(given, sizes, _needed(horizon), axes, 1, seen), True


def _check_count(given: int, wanted: int, what: str) -> None:
    if given != wanted:
        raise InvalidInputError(f"{what} has {given} sparse matrices, but reward has {wanted} actions")


def _steps(given: int, horizon: int | None) -> int:
    if horizon is not None and horizon != given:
        asked = f"horizon is {horizon}" + (", as it is without an end" if horizon == 1 else "")
        raise InvalidInputError(f"{asked}, but transition has {given} steps")
    return given


def _of_matrices(
    matrices: Sequence[Any], sizes: tuple[int, int], horizon: int, axes: Axes | None, n_steps: int, seen: Seen
) -> Laws:
    """Laws of `n_steps` steps from one matrix (S A, S) each, or from A matrices (S, S) each."""
    S, A = sizes
    each = len(matrices) // n_steps
    wanted = (S * A, S) if each == 1 else (S, S)
    rows, successors, chances = [], [], []
    for number, matrix in enumerate(matrices):
        if tuple(matrix.shape) != wanted:
            raise InvalidInputError(
                f"a sparse matrix of transition has shape {tuple(matrix.shape)}, but reward asks for {wanted}"
            )
        entries = matrix.tocoo()
        row = np.asarray(entries.row, dtype=np.int64)
        h, a = divmod(number, each)
        if each > 1:
            row = row * A + a
        elif axes in ("ASS", "HASS"):
            row = row % S * A + row // S
        rows.append(row + h * S * A)
        successors.append(np.asarray(entries.col, dtype=np.int64))
        chances.append(numbers("transition", entries.data).astype(np.float64))
    row, successor, chance = np.concatenate(rows), np.concatenate(successors), np.concatenate(chances)
    if seen is not None:
        out = np.broadcast_to(_left_out(seen, n_steps), (n_steps, S, A)).ravel()
        kept, missing = ~out[row], np.flatnonzero(out)
        row, chance = np.r_[row[kept], missing], np.r_[chance[kept], np.ones(len(missing))]
        successor = np.r_[successor[kept], np.zeros(len(missing), np.int64)]
    return laws_of_entries(row, successor, chance, (horizon, S, A), n_steps, row_sum_tolerance(matrices[0]))


def _of_pairs(given: Any, sizes: tuple[int, int], horizon: int, seen: Seen) -> Laws:
    """Laws from nested lists (or mappings) of pairs (probability, next state)."""
    S, A = sizes
    if len(given) != S:
        raise InvalidInputError(f"transition lists {len(given)} states, but reward has {S}")
    for s in range(S):
        if len(given[s]) != A and seen is None:
            raise InvalidInputError(f"transition[{s}] lists {len(given[s])} actions, but reward has {A}")

    def listed(s: int, a: int) -> Any:
        try:
            return given[s][a]
        except (IndexError, KeyError):
            raise InvalidInputError(f"transition[{s}] lists no action {a}, which is allowed") from None

    return _of_function(listed, sizes, horizon, seen)


def _of_function(law: LawFunction, sizes: tuple[int, int], horizon: int, seen: Seen) -> Laws:
    """Laws from a function of state and action, which is asked about rows that are read."""
    S, A = sizes
    out = np.broadcast_to(_left_out(seen, 1)[0], sizes)
    rows, successors, chances = [], [], []
    for s in range(S):
        for a in range(A):
            for chance, t in _pairs(
                LEFT_OUT if out[s, a] else law(s, a), S, f"transition[{s}, {a}] (state {s}, action {a})"
            ):
                rows.append(s * A + a)
                successors.append(t)
                chances.append(chance)
    return laws_of_entries(rows, np.array(successors, dtype=np.int64), chances, (horizon, S, A))


def _pairs(law: Any, n_states: int, place: str) -> Iterable[tuple[float, int]]:
    """One law as pairs, from any of its spellings."""
    if isinstance(law, np.ndarray):
        row = numbers("transition", law)
        if row.shape != (n_states,):
            raise InvalidInputError(f"{place} has shape {row.shape}, but needs {n_states} probabilities or pairs")
        reached = np.flatnonzero(row)
        return zip(row[reached].astype(np.float64).tolist(), reached.tolist(), strict=True)
    try:
        return [_pair(entry) for entry in law]
    except (TypeError, ValueError):
        raise InvalidInputError(f"{place} is no list of pairs (probability, next state)") from None


def _pair(entry: Any) -> tuple[float, int]:
    chance, t = entry
    if isinstance(t, bool) or not isinstance(t, int | np.integer):
        raise TypeError
    return float(chance), int(t)


def _is_sparse(value: Any) -> bool:
    """Whether this is a sparse matrix of SciPy's, or has the same attributes."""
    return hasattr(value, "tocoo") and len(getattr(value, "shape", ())) == 2


def _holds_sparse(value: Any) -> bool:
    if not isinstance(value, list | tuple) or not value:
        return False
    first = value[0]
    return _is_sparse(first) or (isinstance(first, list | tuple) and bool(first) and _is_sparse(first[0]))


def _holds_pairs(value: Any, sizes: tuple[int, int]) -> bool:
    """Whether lists (or mappings) end in pairs; tuples that could as well be rows of two numbers are refused."""
    if isinstance(value, Mapping) or (isinstance(value, list | tuple) and value and isinstance(value[0], Mapping)):
        return True
    try:
        entry = next(row[0] for row in value[0] if len(row))
    except (TypeError, KeyError, IndexError, StopIteration):
        return False
    if isinstance(value, np.ndarray) or not isinstance(entry, tuple) or len(entry) != 2:
        return False
    S, A = sizes
    as_rows = S == 2 and len(value[0]) == 2 and len(value[0][0]) == A and sum(entry) == 1
    as_pairs = len(value) == S and len(value[0]) == A
    if as_rows and as_pairs:
        raise InvalidInputError(
            "transition could be lists of pairs (probability, next state) or a table (step, state, action, next state) "
            "of two states: give a NumPy array for the table, or a function of state and action for the pairs"
        )
    return not as_rows


def filled_tables(table: Any, sizes: tuple[int, int], name: str) -> Floats:
    """Make a table (S, A) of a function of state and action, (I, S, A) if it gives several numbers; keep an array."""
    if not callable(table):
        return np.asarray(numbers(name, table))
    S, A = sizes
    values = numbers(name, [[table(s, a) for a in range(A)] for s in range(S)])
    return np.asarray(values if values.ndim == 2 else np.moveaxis(values, -1, 0))
