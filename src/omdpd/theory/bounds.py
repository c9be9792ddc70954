"""Theorem 1 of the paper, lemma by lemma, as numbers of a setting.

With L = ln(6 (I+1) SAHK / delta), G = sqrt(6SAHK) and C = sup D over the occupancies (the paper says SAH/2; D is half
the square of the difference of two laws per step, so H is enough):

    gradient variation        G (1 + Phi'(lam_K)) / SAH
    surrogate regret          3.5 sqrt C (variation + 1);             what is proved: `learners.omdpd.surrogate_bound`
    regret, optimisation      2 (1 + sqrt L) (SAH + 4 sqrt C G);      2 (1 + sqrt L) SAH if the model is known
    regret, optimism          SAH sqrt((K-1)/2 ln(2/delta)) + SAH;    at most 0 on the good event, where r~ >= r
    estimation of a table     2 sqrt L (6HSA + 2H sqrt(SAK) + 2HSA ln K + 5 ln(2HK/delta))
    estimation of the kernel  sqrt(N SAH^3 K) + S^2 A H^3, up to constants and logarithms that the paper does not give
    violation, optimisation   16 (1 + sqrt L) sqrt C G ln(K + 8 sqrt C G / SAH + 2)

No policy can lose or violate by more than H per episode, so a bound says something only once it is below HK.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from omdpd.beliefs.confidence import DELTA, log_term
from omdpd.problem.arrays import InvalidInputError, check_number
from omdpd.problem.setting import Setting

Side = Literal["regret", "violation", "both"]
# A K beyond this is no number of episodes: whatever is still trivial there is called so.
MAX_EPISODES = 2**80


@dataclass(frozen=True)
class Term:
    """One term of the theorem: which sum it bounds, its value at K, and from which K on it is below the trivial HK.

    `given` is false where the paper gives the order alone; the value is then what the order says with constants of one
    and without logarithms.  `first` is None where no K is enough.
    """

    name: str
    side: Side
    value: float
    first: int | None
    given: bool = True


def theorem_terms(setting: Setting, delta: float = DELTA, diameter: float | None = None) -> tuple[Term, ...]:
    """Every term for this setting, which must say how many episodes there are; `diameter` is C (H if None)."""
    check_number("delta", delta, "a share")
    if setting.n_episodes is None:
        raise InvalidInputError("bounds need a number of episodes: the setting has none")
    return tuple(
        Term(name, side, formula(_at(setting, delta, diameter)), _first(formula, setting, delta, diameter), given)
        for name, side, formula, given in _TERMS
    )


def total(terms: tuple[Term, ...], side: Side) -> float:
    """What the terms of the general case add up to, the ones of unknown constants included with constants of one."""
    return sum(t.value for t in terms if t.side in (side, "both") and t.name in _SUMMED[side])


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


@dataclass(frozen=True)
class _Numbers:
    """What the formulas are made of."""

    K: float
    H: int
    S: int
    A: int
    I: int  # noqa: E741
    L: float
    C: float
    delta: float

    @property
    def SAH(self) -> float:
        return float(self.S * self.A * self.H)

    @property
    def G(self) -> float:
        return float(np.sqrt(6.0 * self.SAH * self.K))

    @property
    def width(self) -> float:
        return float(1.0 + np.sqrt(self.L))


def _at(setting: Setting, delta: float, diameter: float | None) -> _Numbers:
    H, S, A = setting.shape
    C = float(H) if diameter is None else diameter
    K = float(setting.n_episodes or 1)
    return _Numbers(K, H, S, A, setting.n_constraints, log_term(setting, 0, delta), C, delta)


def _optimisation(x: _Numbers) -> float:
    return 2.0 * x.width * (x.SAH + 4.0 * np.sqrt(x.C) * x.G)


def _known(x: _Numbers) -> float:
    return 2.0 * x.width * x.SAH


def _optimism(x: _Numbers) -> float:
    return x.SAH * float(np.sqrt((x.K - 1.0) / 2.0 * np.log(2.0 / x.delta))) + x.SAH


def _table(x: _Numbers) -> float:
    SA = x.S * x.A
    visits = 6 * x.SAH + 2 * x.H * np.sqrt(SA * x.K) + 2 * x.SAH * np.log(x.K) + 5 * np.log(2 * x.H * x.K / x.delta)
    return 2.0 * float(np.sqrt(x.L)) * float(visits)


def _kernel(x: _Numbers) -> float:
    # N is the largest number of successors of a pair; S where nobody knows better.
    return float(np.sqrt(x.S * x.SAH * x.H**2 * x.K)) + x.S * x.SAH * x.H**2


def _violation(x: _Numbers) -> float:
    root = np.sqrt(x.C) * x.G
    return 16.0 * x.width * root * float(np.log(x.K + 8.0 * root / x.SAH + 2.0))


_TERMS: tuple[tuple[str, Side, Callable[[_Numbers], float], bool], ...] = (
    ("regret, optimisation", "regret", _optimisation, True),
    ("regret, optimisation, known model", "regret", _known, True),
    ("regret, optimism of rewards", "regret", _optimism, True),
    ("estimation of a table", "both", _table, True),
    ("estimation of the kernel", "both", _kernel, False),
    ("violation, optimisation", "violation", _violation, True),
)
_SUMMED: dict[Side, tuple[str, ...]] = {
    "regret": (
        "regret, optimisation", "regret, optimism of rewards", "estimation of a table", "estimation of the kernel",
    ),
    "violation": ("violation, optimisation", "estimation of a table", "estimation of the kernel"),
    "both": (),
}  # fmt: skip


def _first(formula: Callable[[_Numbers], float], setting: Setting, delta: float, diameter: float | None) -> int | None:
    """The least K from which on the term stays below HK; terms over K fall once they are below it."""

    def below(K: int) -> bool:
        x = _at(replace(setting, n_episodes=K), delta, diameter)
        return formula(x) <= x.H * x.K

    high = 1
    while not below(high):
        high *= 2
        if high > MAX_EPISODES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if below(middle) else (middle, high)
    return high
