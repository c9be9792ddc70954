"""Which actions are allowed where: an action that is not is read as the first one that is.

So whoever plans over the tables finds the best allowed policy, once the choice of a forbidden action is taken for that
of the action in its place.  A learner is given numbers of its own for the allowed actions (`Choices`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, Integers, InvalidInputError, numbers
from omdpd.problem.laws import DenseLaws, Laws, SparseLaws

Allowed = npt.ArrayLike | Callable[[int, int], bool] | None


@dataclass(frozen=True, eq=False)
class Mask:
    """`allowed` (n, S, A), n = 1 or H, and the action that is played in the place of each, (n, S, A)."""

    allowed: npt.NDArray[np.bool_]
    place: Integers

    @property
    def ever(self) -> npt.NDArray[np.bool_]:
        """Which actions are allowed at some step, (S, A)."""
        return np.asarray(self.allowed.any(axis=0))

    def everywhere(self, tables: Any) -> Any:
        """Tables (..., n, S, A) with the entries of forbidden actions replaced, by step where the mask is by step."""
        n, S, A = self.allowed.shape
        wide = np.broadcast_to(tables, (*tables.shape[:-3], max(n, tables.shape[-3]), S, A))
        return np.take_along_axis(wide, np.broadcast_to(self.place, wide.shape), axis=-1)

    def laws(self, laws: Laws) -> Laws:
        """A kernel with the rows of forbidden actions replaced, by step where the mask is by step."""
        return _chosen(laws, self.place)

    def played(self, policy: Floats) -> Floats:
        """Probabilities or an occupancy (H, S, A), with what forbidden actions have given to the allowed."""
        kept = np.where(self.allowed, policy, 0.0)
        moved = np.where(self.allowed, 0.0, policy).sum(axis=2)
        first = np.broadcast_to(self.allowed.argmax(axis=2), moved.shape)
        h, s = np.indices(moved.shape)
        np.add.at(kept, (h, s, first), moved)
        return kept

    def refuse(self, policy: Floats, step: int = 0) -> None:
        """Refuse a policy (H, S, A), from `step` on, that plays a forbidden action, and name it."""
        allowed = self.allowed if len(self.allowed) == 1 else self.allowed[step : step + len(policy)]
        wrong = ~allowed & (policy > 0.0)
        if wrong.any():
            h, s, a = (int(i) for i in np.argwhere(wrong)[0])
            raise InvalidInputError(
                f"policy[{step + h}, {s}, {a}] = {policy[h, s, a]:.6g}, but action {a} is not allowed in state {s}"
            )


@dataclass(frozen=True, eq=False)
class Choices:
    """The numbers that a learner has for the actions of a state, and the action that each of them stands for.

    A learner has A' actions, the most that a state ever allows.  Its numbers in state s are the actions that s allows
    at some step, in their order.  A number for which a state has no action (at this step) is one more name of an action
    that it has: names are given in turn, so that a uniform policy stays nearly uniform.

    >>> choices = Choices.of(as_mask([[True, False, True], [False, True, False]], (2, 3)), (4, 2, 3))
    >>> choices.action.tolist()
    [[[0, 2], [1, 1]]]
    """

    action: Integers  # (n, S, A'), n = 1 or H
    n_actions: int

    @staticmethod
    def of(mask: Mask | None, shape: tuple[int, int, int]) -> Choices:
        """The choices under a mask; those of a learner that may do everything are the actions themselves."""
        _, S, A = shape
        allowed = np.ones((1, S, A), bool) if mask is None else mask.allowed
        allowed = allowed[:1] if (allowed == allowed[:1]).all() else allowed
        ever = allowed.any(axis=0)
        most = int(ever.sum(axis=1).max())
        # The actions in their order, first those that are allowed: at some step, or at this one.
        some = np.argsort(~ever, axis=1, kind="stable")[None, :, :most]
        here = np.argsort(~allowed, axis=2, kind="stable")
        turn = np.arange(most) % allowed.sum(axis=2)[..., None]
        some = np.broadcast_to(some, turn.shape)
        return Choices(
            np.where(np.take_along_axis(allowed, some, axis=2), some, np.take_along_axis(here, turn, axis=2)), A
        )

    def inward(self, tables: Floats) -> Floats:
        """Tables (..., H, S, A) by a learner's numbers, (..., H, S, A')."""
        steps = np.broadcast_to(self.action, (*tables.shape[:-1], self.action.shape[2]))
        return np.take_along_axis(tables, steps, axis=-1)

    def policy_inward(self, policy: Floats) -> Floats:
        """A policy of allowed actions by a learner's numbers: names of one action share its probability."""
        names = self.outward(np.ones((len(policy), *self.action.shape[1:])))
        return self.inward(policy) / self.inward(names)

    def outward(self, policy: Floats) -> Floats:
        """Probabilities, occupancies or counts (H, S, A') by actions, (H, S, A): the sums over the names of each."""
        H, S, most = policy.shape
        sums = np.zeros((H * S, self.n_actions))
        actions = np.broadcast_to(self.action, policy.shape).reshape(-1, most)
        for j in range(most):  # in their order, so that an action with one name keeps its number to the last bit
            sums[np.arange(H * S), actions[:, j]] += policy.reshape(-1, most)[:, j]
        return sums.reshape(H, S, self.n_actions)

    def names(self, states: Integers, actions: Integers, policy: Floats, uniforms: Floats) -> Integers:
        """The names (H,) under which a learner of this policy (H, S, A') did the actions of an episode.

        One of the names of an action is drawn as the learner would have: as likely as its policy has it.
        """
        h = np.arange(len(states))
        same = self.action[np.minimum(h, len(self.action) - 1), states] == actions[:, None]
        for k in np.flatnonzero(~same.any(axis=1))[:1]:
            raise InvalidInputError(
                f"actions[{k}] = {actions[k]} is not allowed in state {states[k]} at step {k} (logs: plan_from_logs)"
            )
        weight = np.where(same, policy[h, states], 0.0)
        weight = np.where(weight.sum(axis=1, keepdims=True) > 0.0, weight, same)
        below = np.cumsum(weight, axis=1)
        drawn = (below <= uniforms[:, None] * below[:, -1:]).sum(axis=1)
        last = weight.shape[1] - 1 - (weight[:, ::-1] > 0.0).argmax(axis=1)  # where rounding left a gap
        return np.minimum(drawn, last)

    def laws(self, laws: Laws) -> Laws:
        """A kernel by a learner's numbers."""
        return _chosen(laws, self.action)


def as_mask(allowed: Allowed, sizes: tuple[int, int]) -> Mask | None:
    """The mask that was given for S states and A actions; None where every action is allowed."""
    if allowed is None:
        return None
    S, A = sizes
    if callable(allowed):
        given = np.array([[bool(allowed(s, a)) for a in range(A)] for s in range(S)])
    else:
        given = numbers("allowed", allowed)
        if not np.isin(given, (0, 1)).all():
            raise InvalidInputError("allowed must hold true and false alone")
        given = given.astype(bool)
    if given.ndim not in (2, 3) or given.shape[-2:] != (S, A):
        raise InvalidInputError(f"allowed has shape {given.shape}, but needs {(S, A)}, with a step axis before or not")
    mask = given if given.ndim == 3 else given[None]
    none = ~mask.any(axis=2)
    if none.any():
        h, s = (int(i) for i in np.argwhere(none)[0])
        raise InvalidInputError(f"state {s} has no allowed action" + (f" at step {h}" if len(mask) > 1 else ""))
    if mask.all():
        return None
    place = np.where(mask, np.arange(A), mask.argmax(axis=2)[:, :, None])
    return Mask(mask, place)


def fitted(mask: Mask | None, horizon: int) -> Mask | None:
    """Fit a mask to a horizon, kept once where all steps are equal; refuse one of another length."""
    if mask is None:
        return None
    if len(mask.allowed) not in (1, horizon):
        raise InvalidInputError(f"allowed has {len(mask.allowed)} steps, but the problem has {horizon}")
    same = bool((mask.allowed == mask.allowed[:1]).all())
    return Mask(mask.allowed[:1], mask.place[:1]) if same else mask


def _chosen(laws: Laws, actions: Integers) -> Laws:
    """The laws of the actions (n, S, A') that are played, n = 1 or H."""
    n, (H, S, A) = max(laws.n_steps, len(actions)), laws.shape
    first = (np.minimum(np.arange(n), laws.n_steps - 1)[:, None] * S + np.arange(S))[..., None] * A
    listed = _with_rows(laws.listed(), first + actions)
    return listed if isinstance(laws, SparseLaws) else DenseLaws(H, listed.expand()[:n])


def _with_rows(laws: SparseLaws, rows: Integers) -> SparseLaws:
    """Laws of which each row (n, S, A) is one of these laws."""
    shape, rows = (laws.shape[0], *rows.shape[1:]), rows.ravel()
    length = np.diff(laws.pointers)[rows]
    pointers = np.r_[0, np.cumsum(length)]
    entries = np.repeat(laws.pointers[rows] - pointers[:-1], length) + np.arange(pointers[-1])
    return SparseLaws(shape, pointers, laws.successors[entries], laws.probabilities[entries])
