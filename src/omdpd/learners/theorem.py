"""The paper's lemmas as numbers, and its good event as a check.

    regret, optimisation      2 (1 + sqrt L) (SAH + 4 sqrt C sqrt(6SAHK))
    regret, reward estimate   SAH sqrt((K - 1)/2 ln(2/delta)) + SAH
    violation, optimisation   16 (1 + sqrt L) sqrt C sqrt(6SAHK) ln(K + 8 sqrt C sqrt(6SAHK)/SAH + 2)

The estimation errors come on top; the paper gives them up to constants.  No policy can violate by more than H per
episode, so a bound says something only once it is below HK.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.confidence import (
    DELTA,
    log_term,
)
from omdpd.problem.setting import Setting


@dataclass(frozen=True)
class TheoremNumbers:
    """The theorem's constants and bounds for one setting.

    `penalty` is Phi'(lam_K) if every episode violated by H, the most that can happen: where it is far below the
    multiplier of the constraint nothing is enforced.
    """

    episodes: int
    alpha: float
    beta: float
    penalty: float
    regret: float
    violation: float
    trivial: float


def theorem_numbers(setting: Setting, delta: float = DELTA, diameter: float | None = None) -> TheoremNumbers:
    """The numbers of the theorem; the setting must say how many episodes there are."""
    H, S, A = setting.shape
    K = setting.n_episodes or 1
    C = float(H) if diameter is None else diameter
    SAH, L = S * A * H, log_term(setting, 0, delta)
    root = np.sqrt(C) * np.sqrt(6.0 * SAH * K)
    alpha, beta = 1.0 / (2.0 * (1.0 + np.sqrt(L)) * SAH), SAH / (8.0 * root)
    optimisation = 2.0 * (1.0 + np.sqrt(L)) * (SAH + 4.0 * root)
    reward = SAH * np.sqrt((K - 1) / 2.0 * np.log(2.0 / delta)) + SAH
    violation = 16.0 * (1.0 + np.sqrt(L)) * root * np.log(K + 8.0 * root / SAH + 2.0)
    penalty = beta * np.exp(min(beta * alpha * H * K, 700.0))
    return TheoremNumbers(
        K, float(alpha), float(beta), float(penalty), float(optimisation + reward), float(violation), float(H * K)
    )


def first_meaningful_episodes(setting: Setting, delta: float = DELTA) -> int:
    """The least power-of-two K at which the violation bound is below the trivial HK."""
    H, S, A = setting.shape
    K = 1
    while True:
        numbers = theorem_numbers(Setting(H, S, A, setting.n_constraints, n_episodes=K), delta)
        if numbers.violation <= numbers.trivial:
            return K
        K *= 2
