"""The theorem's terms against numbers worked out apart from the code, and what they say at the paper's size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from omdpd.learners.omdpd import surrogate_bound
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from omdpd.theory.bounds import theorem_numbers, theorem_terms, total


def paper(K: int = 3000) -> Setting:
    return Setting(5, 5, 3, 1, n_episodes=K)


def by_name(K: int = 3000, **kwargs: float) -> dict[str, float]:
    return {term.name: term.value for term in theorem_terms(paper(K), **kwargs)}


def test_the_terms_of_the_papers_size_by_hand() -> None:
    SAH, K, H, delta = 75, 3000, 5, 0.01
    L = math.log(6 * 2 * SAH * K / delta)
    G = math.sqrt(6 * SAH * K)
    terms = by_name()
    assert terms["regret, optimisation"] == pytest.approx(2 * (1 + L**0.5) * (SAH + 4 * 5**0.5 * G))
    assert terms["regret, optimisation, known model"] == pytest.approx(2 * (1 + L**0.5) * SAH)
    assert terms["regret, optimism of rewards"] == pytest.approx(SAH * (2999 / 2 * math.log(200)) ** 0.5 + SAH)
    visits = 6 * SAH + 2 * H * (15 * K) ** 0.5 + 2 * SAH * math.log(K) + 5 * math.log(2 * H * K / delta)
    assert terms["estimation of a table"] == pytest.approx(2 * L**0.5 * visits)
    assert terms["estimation of the kernel"] == pytest.approx((5 * 15 * 125 * K) ** 0.5 + 25 * 3 * 125)
    A = K + 8 * 5**0.5 * G / SAH + 2
    assert terms["violation, optimisation"] == pytest.approx(16 * (1 + L**0.5) * 5**0.5 * G * math.log(A))


def test_they_agree_with_the_numbers_of_the_theorem() -> None:
    terms, numbers = by_name(), theorem_numbers(paper())
    assert numbers.violation == pytest.approx(terms["violation, optimisation"], rel=1e-12)
    regret = terms["regret, optimisation"] + terms["regret, optimism of rewards"]
    assert numbers.regret == pytest.approx(regret, rel=1e-12)


def test_a_wider_diameter_widens_what_depends_on_it_alone() -> None:
    tight, wide = by_name(), by_name(diameter=75 / 2)
    changed = {name for name in tight if tight[name] != wide[name]}
    assert changed == {"regret, optimisation", "violation, optimisation"}


def test_the_first_meaningful_k_is_where_a_term_crosses_the_trivial_bound() -> None:
    for term in theorem_terms(paper()):
        assert term.first is not None
        at, before = by_name(term.first), by_name(term.first - 1)
        assert at[term.name] <= 5 * term.first
        assert before[term.name] > 5 * (term.first - 1)
    violation = next(t for t in theorem_terms(paper()) if t.name == "violation, optimisation")
    assert violation.first == pytest.approx(3.9e8, rel=0.01)  # what docs/departures.md and docs/bounds.md say


def test_the_total_counts_a_known_model_for_nothing() -> None:
    terms = theorem_terms(paper())
    values = {t.name: t.value for t in terms}
    assert total(terms, "violation") == pytest.approx(
        values["violation, optimisation"] + values["estimation of a table"] + values["estimation of the kernel"]
    )
    assert total(terms, "regret") < sum(t.value for t in terms if t.side != "violation")


def test_bounds_need_a_number_of_episodes_and_a_probability() -> None:
    with pytest.raises(InvalidInputError, match="number of episodes"):
        theorem_terms(Setting(5, 5, 3, 1))
    with pytest.raises(InvalidInputError, match="delta is 2"):
        theorem_terms(paper(), delta=2.0)


def test_the_surrogate_bound_grows_with_the_variation() -> None:
    assert surrogate_bound(5.0, 0.0) == pytest.approx(5**0.5)
    assert surrogate_bound(5.0, 100.0) == pytest.approx(46 * 5**0.5)


@pytest.mark.parametrize("seed", range(3))
def test_the_surrogate_bound_is_above_every_step_of_its_proof(seed: int) -> None:
    """Optimistic mirror steps on a simplex (C = 1) against any gradients: the sums of docs/theory.md, section 9."""
    rng, n, K = np.random.default_rng(seed), 4, 300
    size = 10.0 ** rng.uniform(-3.0, 2.0)
    q = q_hat = np.full(n, 1.0 / n)
    last, E, E_before, eta, linear, etas, paid, gradients = np.zeros(n), 0.0, 0.0, 1.0, 0.0, [1.0], 0.0, []
    for _ in range(K):
        # Against the point in play, with noise: what follows the last gradient is wrong every other time.
        g = size * (rng.normal(size=n) * rng.choice([0.0, 1.0]) + rng.choice([0.0, 3.0]) * (q - q.mean()))
        linear, gradients = linear + g @ q, [*gradients, g]
        q_hat = on_simplex(q_hat - eta * g)
        E, E_before = E + ((g - last) ** 2).sum(), E
        eta = min(1.0 / max(E**0.5 + E_before**0.5, 1e-300), 1.0)
        paid += 0.5 * eta * ((g - last) ** 2).sum()
        etas, last, q = [*etas, eta], g, on_simplex(q_hat - eta * g)
        regret = linear - np.sum(gradients, axis=0).min()
        exact = 1.0 / etas[-2] + 1.0 / etas[-1] - 1.0 + paid
        assert regret <= exact + 1e-9
        assert exact <= surrogate_bound(1.0, E) * (1.0 + 1e-12)


def on_simplex(y: np.ndarray) -> np.ndarray:
    """The nearest law, by bisection on what is taken off every entry."""
    low, high = y.min() - 1.0, y.max()
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(y - middle, 0.0).sum() > 1.0 else (low, middle)
    return np.maximum(y - low, 0.0)
