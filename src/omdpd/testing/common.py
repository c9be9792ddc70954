"""The suites share an error, a small world, and copies of states to compare."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from omdpd.problem.cmdp import CMDP

# Sizes that all differ, so that a swapped axis is noticed.
H, S, A = 4, 3, 2


class ConformanceError(AssertionError):
    """A rule was broken; the message is one sentence."""


def small_world(n_constraints: int) -> CMDP:
    """A random world of small sizes that all differ, with room below its budgets."""
    rng = np.random.default_rng((n_constraints, 1))
    transition, reward = rng.dirichlet(np.full(S, 0.7), (H, S, A)), rng.random((H, S, A))
    cost = rng.uniform(-0.8, 0.8, (n_constraints, H, S, A))
    return CMDP.from_arrays(transition, reward, cost, [0.4] * n_constraints, initial=rng.dirichlet(np.ones(S)))


def frozen_copy(value: Any) -> Any:
    """Everything that a value holds, as plain data that cannot change afterwards."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes())
    if isinstance(value, tuple | list):
        return tuple(frozen_copy(item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return tuple((field.name, frozen_copy(getattr(value, field.name))) for field in fields(value))
    return value


def require(holds: bool, otherwise: str) -> None:
    """Raise the sentence unless the rule holds."""
    if not holds:
        raise ConformanceError(otherwise)


def require_law(law: Any, shape: tuple[int, ...], what: str) -> None:
    """Refuse what is no table of probabilities along its last axis."""
    require(isinstance(law, np.ndarray), f"{what} is a {type(law).__name__}, but must be an array")
    require(law.shape == shape, f"{what} has shape {law.shape}, but must have {shape}")
    require(law.dtype == np.float64, f"{what} holds {law.dtype}, but must hold float64")
    require(bool(np.all(np.isfinite(law))) and float(law.min()) >= 0.0, f"{what} has a negative or missing probability")
    require(bool(np.allclose(law.sum(axis=-1), 1.0, rtol=0.0, atol=1e-12)), f"a row of {what} does not sum to one")
