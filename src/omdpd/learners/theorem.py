"""The theorem's constants and what they can enforce; its bounds, term by term, are in `learners.bounds`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import DELTA, log_term
from omdpd.learners.bounds import theorem_terms
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
    terms = {term.name: term.value for term in theorem_terms(replace(setting, n_episodes=K), delta, C)}
    regret = terms["regret, optimisation"] + terms["regret, optimism of rewards"]
    penalty = beta * np.exp(min(beta * alpha * H * K, 700.0))
    return TheoremNumbers(
        K, float(alpha), float(beta), float(penalty), regret, terms["violation, optimisation"], float(H * K)
    )
