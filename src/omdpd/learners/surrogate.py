"""The surrogate that a proximal step minimises, and how its weights and the step size move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from omdpd.beliefs.confidence import effective_episodes
from omdpd.beliefs.drift import table_drift
from omdpd.beliefs.layouts import row_move
from omdpd.beliefs.memory import TableMemory
from omdpd.learners.potential import Potential
from omdpd.learners.standard import weights
from omdpd.problem.arrays import Floats, Integers, check_settings
from omdpd.problem.records import fast_init
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.products import dot, half_square
from omdpd.solvers.graph import Graph
from omdpd.solvers.mirror import Hinges
from omdpd.solvers.regions import Kernel, Region


@dataclass(frozen=True)
class Weighting:
    """w(V) = min(w0 exp(gamma V), w_max) with gamma = gamma_scale / sqrt(I H K).

    With `lagged` weights f_k has the weights of the prediction m_k, from the violation before episode k: without a new
    table f_k = m_k, and no step is ever surprised by its own weight.
    """

    w0: float = 1.0
    gamma_scale: float = 16.0
    w_max: float = 1e6
    lagged: bool = False

    def __post_init__(self) -> None:
        check_settings(self, positive=("w0", "gamma_scale", "w_max"))

    def potential(self, setting: Setting, k: int) -> Potential:
        """Phi before one-based episode k (K itself where it is known)."""
        K = float(effective_episodes(setting, k))
        return _potential(self.w0, self.gamma_scale, self.w_max, setting.n_constraints, setting.horizon, K)

    def slack(self, potential: Potential, horizon: int) -> float:
        """A factor with Phi(V_K) <= factor sum_k w_k x_k for violations x_k <= H: 1, or exp(gamma H) if lagged."""
        return weights.slack(potential.phi, horizon, self.lagged)


@lru_cache(maxsize=64)
def _potential(w0: float, gamma_scale: float, w_max: float, n_constraints: int, horizon: int, K: float) -> Potential:
    """The potential of `Weighting`: a run asks for the same one in every episode."""
    return Potential(w0, weights.growth_rate(float(gamma_scale), n_constraints, horizon, K), w_max)


@dataclass(frozen=True)
class Stepping:
    """eta_1 = H eta_init (eta_bandit where costs are observed on the way), C' = H c_prime in the self-tuned step.

    With `patient` a surprise slows the steps only after more tables were revealed than are remembered: a finite pool
    surprises a finite number of times.
    """

    eta_init: float = 1.0
    c_prime: float = 1.0 / 16.0
    eta_bandit: float | None = None
    patient: bool = False

    def __post_init__(self) -> None:
        check_settings(self, positive=("eta_init", "c_prime", "eta_bandit"))

    def first(self, setting: Setting) -> float:
        """eta_1."""
        bandit = setting.feedback == "bandit" and self.eta_bandit is not None
        eta = self.eta_bandit if bandit and self.eta_bandit is not None else self.eta_init
        return setting.horizon * float(eta)


@fast_init
@dataclass(frozen=True, eq=False)
class Surrogate:
    """-r~.q + sum_j w_j [d_j.q]^+; on a graph it is asked about the flow of q."""

    reward: Floats
    hinges: Hinges

    def value(self, q: Floats) -> float:
        """The surrogate at q."""
        return self.hinges.value(q) - dot(self.reward, q)


def remembered_tables(weights: Floats, memory: Sequence[TableMemory]) -> tuple[Floats, Floats] | None:
    """The remembered tables of all constraints (n, H, S, A), and the weight of each (n,); None if there is none.

    By constraint and label, not by age: the order then stays, and an earlier step's multipliers are a good start.
    """
    kept = [(w, held.stack) for w, held in zip(weights.tolist(), memory, strict=True) if held.tables]
    if not kept:
        return None
    if len(kept) == 1:
        w, stack = kept[0]
        return stack, np.array([w] * len(stack))
    return np.concatenate([stack for _, stack in kept]), np.concatenate([np.full(len(stack), w) for w, stack in kept])


def flow(region: Region, q: Floats) -> Floats:
    """The flow whose inner products with tables are costs: q; on a graph, times the pairs that a row stands for."""
    return region.copies * q if isinstance(region, Graph) else q


def distance(region: Region, q: Floats, q_other: Floats) -> float:
    """D = 1/2 |q - q'|^2, on a graph over the pairs that its rows stand for."""
    if isinstance(region, Graph):
        return 0.5 * float(region.copies @ (q - q_other) ** 2)
    return half_square(q, q_other)


def kernel_move(before: Region, after: Region, parent: Integers | None) -> float:
    """A bound on how far, in L1, any policy's occupancy moves from one believed kernel to the next; 0 for a box.

    `parent` are the rows of a graph before that those after were parts of.
    """
    if isinstance(before, Graph) and isinstance(after, Graph) and parent is not None:
        return row_move(before, after, parent)
    if isinstance(before, Kernel) and isinstance(after, Kernel) and before is not after:
        S = after.transition.shape[-1]
        return table_drift(after.transition.reshape(-1, S), before.transition.reshape(-1, S), len(after.transition))
    return 0.0
