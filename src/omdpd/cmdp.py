"""The truth: a constrained Markov decision process, and what one episode of it holds.  Closed to learners.

A policy is safe in an episode when V(d_i) <= 0 for every constraint i, where d_i = c_i - b_i / H is the cost
table with its budget spread over the steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from omdpd.arrays import Floats, InvalidInputError, as_law, as_table, positive_integer, within
from omdpd.problem import FeedbackKind, Setting

Noise = Literal["exact", "two-point", "beta"]


@dataclass(frozen=True, eq=False)
class CMDP:
    """A finite-horizon constrained MDP with mean tables; build one with `from_arrays`, which checks them.

    Attributes
    ----------
    transition : (H, S, A, S)
        p_h(s'|s,a); the last step's rows lead nowhere and are kept for a uniform shape.
    initial : (S,)
    reward : (H, S, A)
        Mean rewards in [0, 1].
    cost : (I, H, S, A)
        Mean costs in the user's units (after `cost_scale`).
    budget : (I,)
        What an episode may cost in expectation, in the same units.
    cost_scale : (I,)
        The number by which the user's costs and budgets were divided to fit; 1 if they fitted.
    """

    transition: Floats
    initial: Floats
    reward: Floats
    cost: Floats
    budget: Floats
    cost_scale: Floats
    name: str = "own"

    @staticmethod
    def from_arrays(
        transition: npt.ArrayLike,
        reward: npt.ArrayLike,
        cost: npt.ArrayLike,
        budget: npt.ArrayLike = 0.0,
        initial: npt.ArrayLike | None = None,
        horizon: int | None = None,
        rescale: bool = False,
    ) -> CMDP:
        """Build a CMDP from tables, and say which entry is wrong if one is.

        Step-dependent: transition (H, S, A, S), reward (H, S, A), cost (H, S, A) or (I, H, S, A).
        Stationary: transition (S, A, S) with `horizon`, reward (S, A), cost (S, A) or (I, S, A).
        `budget` is one number or one per constraint; `initial` is uniform if not given.  With ``rescale=True`` the
        costs and budget of a constraint that does not fit into [-1, 1] per step are divided by what makes them fit.

        >>> p = np.full((2, 2, 2), 0.5)
        >>> cmdp = CMDP.from_arrays(p, [[0, 1], [0, 1]], [[0, 1], [0, 1]], budget=1.5, horizon=3)
        >>> cmdp.shape, float(cmdp.excess.max())
        ((3, 2, 2), 0.5)
        """
        transition, reward, cost = _by_step(transition, reward, cost, horizon)
        H, S, A = reward.shape
        p = as_law("transition", transition, ["step", "state", "action", "next state"], [H, S, A, S])
        r = as_table("reward", reward, ["step", "state", "action"], [H, S, A])
        within("reward", r, 0.0, 1.0, ["step", "state", "action"])
        c = as_table("cost", cost, ["constraint", "step", "state", "action"], [None, H, S, A])
        start = np.full(S, 1.0 / S) if initial is None else initial
        mu = as_law("initial", start, ["state"], [S])
        limits = np.atleast_1d(np.asarray(budget, dtype=np.float64))
        limits = np.repeat(limits, c.shape[0]) if limits.shape == (1,) else limits
        b = as_table("budget", limits, ["constraint"], [c.shape[0]])
        scale = _cost_scale(c, b, rescale)
        return CMDP(p, mu, r, c / scale[:, None, None, None], b / scale, scale)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        H, S, A = self.reward.shape
        return (H, S, A)

    @property
    def n_constraints(self) -> int:
        """I."""
        return int(self.cost.shape[0])

    @property
    def excess(self) -> Floats:
        """d_i = c_i - b_i / H, ``(I, H, S, A)``: an episode is safe when its expected sum is at most zero."""
        return self.cost - (self.budget / self.shape[0])[:, None, None, None]

    def setting(self, n_episodes: int | None, feedback: FeedbackKind) -> Setting:
        """What a learner is told about this problem."""
        H, S, A = self.shape
        return Setting(H, S, A, self.n_constraints, self.initial, n_episodes, feedback)


@dataclass(frozen=True, eq=False)
class Round:
    """One episode's mean tables: `reward` (H, S, A), `cost` (I, H, S, A, budget taken off), and how they are observed.

    `key` names the cost table among nature's distinct ones (equal keys: the same table up to a positive factor).
    """

    reward: Floats
    cost: Floats
    key: int = 0
    reward_noise: Noise = "exact"
    cost_noise: Noise = "exact"


def _by_step(
    transition: npt.ArrayLike, reward: npt.ArrayLike, cost: npt.ArrayLike, horizon: int | None
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    """Repeat stationary tables over the steps; give the cost its constraint axis."""
    p, r, c = np.asarray(transition), np.asarray(reward), np.asarray(cost)
    if p.ndim == 3:
        if horizon is None:
            raise InvalidInputError("transition has axes (state, action, next state), so a horizon is needed")
        H = positive_integer("horizon", horizon)
        c = c[None] if c.ndim == 2 else c
        p = np.repeat(p[None], H, axis=0)
        r = np.repeat(r[None], H, axis=0) if r.ndim == 2 else r
        c = np.repeat(c[:, None], H, axis=1) if c.ndim == 3 else c
    elif p.ndim == 4:
        if horizon is not None and horizon != p.shape[0]:
            raise InvalidInputError(f"horizon is {horizon}, but transition has {p.shape[0]} steps")
        c = c[None] if c.ndim == 3 else c
    else:
        raise InvalidInputError(f"transition has {p.ndim} axes, but needs 4 (step, state, action, next state) or 3")
    if 0 in p.shape:
        label = ("step", "state", "action", "next state")[p.shape.index(0)]
        raise InvalidInputError(f"transition has length 0 along its {label} axis (axis {p.shape.index(0)})")
    if r.ndim != 3 or r.shape != p.shape[:3]:
        raise InvalidInputError(f"reward has shape {r.shape}, but transition asks for {p.shape[:3]}")
    return p, r, c


def _cost_scale(cost: Floats, budget: Floats, rescale: bool) -> Floats:
    """By how much each constraint has to be divided so that cost - budget/H lies in [-1, 1]."""
    excess = cost - (budget / cost.shape[1])[:, None, None, None]
    largest = np.abs(excess).reshape(cost.shape[0], -1).max(axis=1)
    scale = np.where(largest > 1.0 + 1e-12, largest, 1.0)
    if rescale or np.all(scale == 1.0):
        return scale
    i = int(np.argmax(scale))
    h, s, a = np.unravel_index(int(np.argmax(np.abs(excess[i]))), cost.shape[1:])
    raise InvalidInputError(
        f"cost[{i}, {h}, {s}, {a}] (constraint {i}, step {h}, state {s}, action {a}) less its budget per step is "
        f"{excess[i, h, s, a]:.6g}, outside [-1, 1]; divide cost and budget of constraint {i} by {scale[i]:.6g}, "
        "or pass rescale=True"
    )
