"""Array aliases and validators whose messages name the entry at fault.

One axis order everywhere: ``(h, s, a, s')``, zero-based; constraints come first, ``(i, h, s, a)``.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
T = TypeVar("T")
# What a number that somebody sets may be; a share lies strictly between 0 and 1.
NumberKind = Literal["positive", "at least 0", "a share"]

# How far a row of probabilities may be from one: loose enough for tables typed with eight digits.
ROW_SUM_TOLERANCE = 1e-8
# Single precision keeps seven digits, so its rows are held to fewer.
SINGLE_ROW_SUM_TOLERANCE = 1e-6
# A table that is the same at every step is repeated over the steps up to this many numbers (1 MB); a larger one is a
# view of its one step, with a step axis of stride zero.
MAX_REPEATED = 2**17
# A value takes no more of a sentence than this many characters, and what others say or the name of a file this many.
MAX_SHOWN, MAX_SAID = 80, 400
# Sums, differences and products of a few numbers up to here stay finite.
MAX_MAGNITUDE = 1e100
# The ends of a range that are nearer to each other than this, relative to the larger, leave too few digits between.
MIN_SPREAD = 1e-9


class SinglePrecisionWarning(UserWarning):
    """Tables of probabilities came in single precision; Python shows it once."""


class InvalidInputError(ValueError):
    """Input that cannot be used; the message is one sentence that names the entry at fault."""


def not_installed(what: str, *packages: str) -> InvalidInputError:
    """The error that says which packages of an index `what` needs; this one is on none, so none of its extras is named.

    >>> print(not_installed("the live page", "starlette", "uvicorn"))
    the live page needs starlette and uvicorn, which are not installed here: pip install starlette uvicorn
    """
    names, are = " and ".join(packages), "are" if len(packages) > 1 else "is"
    return InvalidInputError(f"{what} needs {names}, which {are} not installed here: pip install {' '.join(packages)}")


def as_table(name: str, value: npt.ArrayLike, axes: Sequence[str], sizes: Sequence[int | None]) -> Floats:
    """Return a copy of `value` as a C-ordered float64 array of finite numbers with the named axes and sizes.

    A size of ``None`` accepts any positive length.

    >>> as_table("reward", [[0.5, 1.0]], ["state", "action"], [1, None]).shape
    (1, 2)
    """
    given = numbers(name, value)
    try:
        array = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{name} is not an array of numbers: {error}") from None
    if array.ndim != len(axes):
        wanted = ", ".join(axes)
        raise InvalidInputError(f"{name} has {array.ndim} axes, but needs {len(axes)}: ({wanted})")
    for axis, (label, size) in enumerate(zip(axes, sizes, strict=True)):
        length = array.shape[axis]
        if length == 0:
            raise InvalidInputError(f"{name} has length 0 along its {label} axis (axis {axis})")
        if size is not None and length != size:
            raise InvalidInputError(
                f"{name} has length {length} along its {label} axis (axis {axis}), but needs {size}"
            )
    fine = np.abs(array) <= MAX_MAGNITUDE
    if not fine.all():
        refuse_where(~np.isfinite(array), name, array, "is not a finite number", axes)
        refuse_where(~fine, name, array, f"is beyond {MAX_MAGNITUDE:g}: choose larger units", axes)
    return array


def as_budget(budget: npt.ArrayLike | None, names: Sequence[str] = ()) -> Floats:
    """Return a budget, one number or one per constraint, as an array (1,) or (I,); none at all is refused.

    Where the costs have names, each is to have a number of its own.

    >>> as_budget(1.5)
    array([1.5])
    """
    if budget is None:
        raise InvalidInputError(
            "budget is missing: give what an episode may cost in expectation, one number or one per constraint"
        )
    given = as_table("budget", np.atleast_1d(numbers("budget", budget)), ["constraint"], [None])
    if names and len(given) != len(names):
        said, costs = (f"{n} {what}{'s' * (n != 1)}" for n, what in ((len(given), "number"), (len(names), "cost")))
        are = "is" if len(names) == 1 else "are"
        raise InvalidInputError(f"budget is {said}, but there {are} {costs}: {', '.join(names)}")
    return given


def numbers(name: str, value: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Return `value` as an array of real numbers; what NumPy would quietly turn into numbers is refused.

    >>> numbers("reward", [[0, 1]]).shape
    (1, 2)
    """
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInputError(f"{name} is a masked array; fill in what is masked")
    try:
        array = np.asarray(value)
    except Exception as error:  # what is no array may raise anything when asked for one
        raise InvalidInputError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "fiubO":
        held = "text" if array.dtype.kind in "US" else array.dtype
        raise InvalidInputError(f"{name} is not an array of numbers: it holds {held}")
    if array.dtype.kind == "O":
        if any(isinstance(item, str | bytes | complex) for item in array.flat):
            raise InvalidInputError(f"{name} is not an array of numbers: it holds text")
        if any(item is None for item in array.flat):
            raise InvalidInputError(f"{name} is not an array of numbers: it holds None")
    return array


def as_law(name: str, value: npt.ArrayLike, axes: Sequence[str], sizes: Sequence[int | None]) -> Floats:
    """Return `value` as a table of probability rows along its last axis, each row scaled to sum to one exactly.

    >>> as_law("initial", [0.25, 0.75], ["state"], [2])
    array([0.25, 0.75])
    """
    array = as_table(name, value, axes, sizes)
    refuse_where(array < 0.0, name, array, "is negative, but is a probability", axes)
    total = array.sum(axis=-1)
    wrong = np.abs(total - 1.0) > row_sum_tolerance(value)
    refuse_where(wrong, name, total, "is the sum of a row of probabilities and should be 1", axes[:-1])
    return array / total[..., None]


def row_sum_tolerance(value: object) -> float:
    """How far the rows of `value` may be from one: single precision keeps fewer digits."""
    if getattr(value, "dtype", None) != np.float32:
        return ROW_SUM_TOLERANCE
    warnings.warn(
        f"probabilities in single precision: rows within {SINGLE_ROW_SUM_TOLERANCE:g} of one are scaled to sum to one",
        SinglePrecisionWarning, stacklevel=2,
    )  # fmt: skip
    return SINGLE_ROW_SUM_TOLERANCE


def over_steps(table: Floats, horizon: int, axis: int) -> Floats:
    """A table of one step repeated along its step axis; as a view where that would be large."""
    if table.shape[axis] == horizon:
        return table
    if table.size * horizon <= MAX_REPEATED:
        return np.repeat(table, horizon, axis=axis)
    return np.broadcast_to(table, (*table.shape[:axis], horizon, *table.shape[axis + 1 :]))


def one_step(table: Floats, axis: int) -> Floats:
    """A view that `over_steps` made, cut back to its one step; any other table as it is.

    >>> one_step(np.broadcast_to(np.ones((1, 2, 3)), (7, 2, 3)), 0).shape
    (1, 2, 3)
    """
    if table.strides[axis] != 0 or table.shape[axis] == 1:
        return table
    return table[(slice(None),) * axis + (slice(1),)]


def within(name: str, array: Floats, low: float, high: float, axes: Sequence[str], hint: str = "") -> None:
    """Refuse a table with an entry outside ``[low, high]`` (rounding of 1e-12 is forgiven); `hint` says what to do."""
    rounding = 1e-12 * max(1.0, abs(low), abs(high))
    outside = (array < low - rounding) | (array > high + rounding)
    refuse_where(outside, name, array, f"is outside [{low:g}, {high:g}]{hint and f': {hint}'}", axes)


def as_range(name: str, value: npt.ArrayLike) -> tuple[float, float]:
    """Return `value` as two finite numbers, the smaller one first, far enough apart for what lies between.

    >>> as_range("reward_range", (0, 500))
    (0.0, 500.0)
    """
    low, high = as_table(name, value, ["end"], [2])
    if not low < high:
        raise InvalidInputError(f"{name} is ({low:g}, {high:g}), but must be two numbers, the smaller one first")
    if high - low < max(MIN_SPREAD * max(abs(low), abs(high)), 1.0 / MAX_MAGNITUDE):
        raise InvalidInputError(f"{name} is ({low:.17g}, {high:.17g}), but its ends must be farther apart")
    return float(low), float(high)


def refuse_where(wrong: Booleans, name: str, values: Floats, why: str, axes: Sequence[str]) -> None:
    """Raise an error that names the first entry where `wrong` holds."""
    if not wrong.any():
        return
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = ", ".join(f"{label} {i}" for label, i in zip(axes, where, strict=True))
    index = ", ".join(str(i) for i in where)
    entry = f"{name}[{index}] ({place})" if where else name
    count = int(np.count_nonzero(wrong))
    more = f" ({count - 1} more like it)" if count > 1 else ""
    raise InvalidInputError(f"{entry} = {float(values[where]):.6g} {why}{more}")


def positive_integer(name: str, value: object) -> int:
    """Return `value` as an int that is at least one.

    >>> positive_integer("horizon", 5)
    5
    """
    return whole_number(name, value, 1)


def whole_number(name: str, value: object, least: int) -> int:
    """Return `value` as an int that is at least `least`.

    >>> whole_number("seed", 0, 0)
    0
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or int(value) < least:
        raise InvalidInputError(f"{name} is {shown(value)}, but must be a whole number of at least {least}")
    return int(value)


def check_settings(
    owner: object, *, positive: Sequence[str] = (), nonnegative: Sequence[str] = (), shares: Sequence[str] = ()
) -> None:
    """Refuse an owner whose named attributes are not numbers of their kind; called where the owner is made.

    What is None is left to the owner.
    """
    kinds: dict[NumberKind, Sequence[str]] = {"positive": positive, "at least 0": nonnegative, "a share": shares}
    for kind, names in kinds.items():
        for name in names:
            if getattr(owner, name) is not None:
                check_number(f"{type(owner).__name__}'s {name}", getattr(owner, name), kind)


def check_number(name: str, value: object, kind: NumberKind) -> None:
    """Refuse what is no finite number of a kind.

    >>> check_number("z", 1.5, "at least 0")
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidInputError(f"{name} is {value!r}, but must be a number")
    if kind == "a share" and not 0.0 < value < 1.0:
        raise InvalidInputError(f"{name} is {value}, but must lie strictly between 0 and 1")
    if not (value >= 0.0 if kind == "at least 0" else value > 0.0):
        raise InvalidInputError(f"{name} is {value}, but must be {kind}")
    if not value < np.inf:
        raise InvalidInputError(f"{name} is {value}, but must be finite")


def shown(value: object) -> str:
    """A value as part of a sentence, not longer than a line.

    >>> shown([1, 2]), len(shown("x" * 1000))
    ('[1, 2]', 80)
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # somebody's own way to show it, or a number of too many digits
        text = f"something of type {type(value).__name__}"
    return shortened(text, MAX_SHOWN)


def shortened(text: str, most: int = MAX_SAID) -> str:
    """Cut a text for a sentence that quotes it."""
    return text if len(text) <= most else text[: most - 3] + "..."


def inner(tables: Floats, occupancy: Floats) -> Floats:
    """d_i.q for every table of (I, H, S, A).

    >>> inner(np.ones((2, 1, 1, 3)), np.array([[[0.2, 0.3, 0.5]]]))
    array([1., 1.])
    """
    once = one_step(tables, 1)
    if once.shape[1] < tables.shape[1]:
        tables, occupancy = once, occupancy.sum(axis=0)
    return tables.reshape(len(tables), occupancy.size) @ occupancy.ravel()


def expected(table: Floats, occupancy: Floats) -> float:
    """r.q of one table (H, S, A)."""
    once = one_step(table, 0)
    if len(once) < len(table):
        return float(np.vdot(once, occupancy.sum(axis=0)))
    return float(np.vdot(table, occupancy))


def weighted_sum(weights: Floats, tables: Floats) -> Floats:
    """sum_i w_i d_i over tables of (I, H, S, A)."""
    return (weights @ tables.reshape(len(tables), -1)).reshape(tables.shape[1:])


def policy_table(policy: npt.ArrayLike, horizon: int, n_states: int, n_actions: int) -> Floats:
    """Return `policy` as a valid ``(H, S, A)`` table of action probabilities; one (S, A) is played at every step."""
    if np.ndim(policy) == 2:
        policy = np.broadcast_to(np.asarray(policy), (horizon, *np.shape(policy)))
    return as_law("policy", policy, ["step", "state", "action"], [horizon, n_states, n_actions])


def as_policy(name: str, value: npt.ArrayLike, shape: tuple[int, int, int] | None = None) -> Floats:
    """Return `value` as a table (H, S, A) whose rows are laws: as it is where it is one, else say which entry is not.

    >>> as_policy("policy", [[[0.5, 0.5]]]).shape
    (1, 1, 2)
    """
    array = value if isinstance(value, np.ndarray) and value.dtype == np.float64 else numbers(name, value)
    if array.dtype == np.float64 and array.ndim == 3 and array.size and shape in (None, array.shape):
        with np.errstate(all="ignore"):
            if array.min() >= 0.0 and np.abs(array.sum(axis=-1) - 1.0).max() <= ROW_SUM_TOLERANCE:
                return np.asarray(array, dtype=np.float64)
    return as_law(name, array, ["step", "state", "action"], [None, None, None] if shape is None else list(shape))


def named(table: Mapping[str, T], name: str, kind: str) -> T:
    """Look a name up, or say which names there are."""
    if name not in table:
        raise InvalidInputError(f"there is no {kind} {name!r}{suggestion(name, table)}; there are {', '.join(table)}")
    return table[name]


def suggestion(name: str, names: Iterable[str]) -> str:
    """Suggest the known name that an unknown one may have meant, as part of a sentence; empty if there is no near one.

    >>> suggestion("Unifrm", ["Uniform", "OptCMDP"])
    " (did you mean 'Uniform'?)"
    >>> suggestion("OMDPD", ["OMDPD.theory", "OMDPD.tuned", "Uniform"])
    " (did you mean 'OMDPD.theory' or 'OMDPD.tuned'?)"
    """
    names = list(names)
    parts = [each for each in names if name.lower() in each.lower().split(".")]
    if parts:
        return f" (did you mean {' or '.join(map(repr, parts))}?)"
    by_lower = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return f" (did you mean {by_lower[near[0]]!r}?)" if near else ""
