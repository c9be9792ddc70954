from dataclasses import replace

import numpy as np
import pytest
from instances import random_kernel

from omdpd.beliefs.exploration import bonus
from omdpd.beliefs.sharing import SharedBeliefs, SharedTable
from omdpd.solvers.compiled.lookahead import lagrangian_bonus, row_bonus

H, S, A = 4, 3, 2
# What `beliefs_of` is worth after four visits of every row.
PLAIN = 0.8 * 0.25 + 0.9 * 0.125 + 0.75 * 0.4 / 4.75


def table_of(mean, size, noise):
    full = np.full((H, S, A), 1.0)
    return SharedTable(mean * full, full / size, 0 * full, noise * full)


def beliefs_of(seed=0, size=4.0, costs=()):
    kernel = random_kernel(np.random.default_rng(seed), H, S, A)
    sizes = np.full((H, S, A), size)
    reward = table_of(0.5, size, 0.25)
    return SharedBeliefs(kernel, 1.0 / sizes, 0 * sizes, reward, tuple(costs), 0.5, 0.9, 0.25)


def test_without_prices_a_row_is_worth_a_try_by_its_own_visits():
    """n = 4, n_r = 4, r = .5, v = 1/4, hope .9: .8 sqrt(.25/4) + .9 min(.5/4, 1) + .75 (.9 - .5) / 4.75."""
    found = bonus(beliefs_of(), np.full((H, S, A), 4.0), np.zeros(0), np.zeros((0, H, S, A)))
    assert np.allclose(found, PLAIN, rtol=1e-12, atol=0.0)


def test_a_row_never_tried_counts_a_tenth_of_a_visit_and_little_of_its_neighbours():
    """n = 0, n_r = 4 and m = .5: n_x = 4 * .5/10.5."""
    found = bonus(beliefs_of(), np.zeros((H, S, A)), np.zeros(0), np.zeros((0, H, S, A)))
    n_x = 4.0 * 0.5 / 10.5
    assert np.allclose(found, 0.8 * np.sqrt(0.25) + 0.9 + 0.75 * 0.4 / (n_x + 0.75), rtol=1e-12, atol=0.0)
    assert 0.5 / n_x > 1.0  # hope is not taken twice
    row, _, reach = row_bonus(*(np.full((1, 1, 1), x) for x in (0.0, 0.9, 0.0, 0.0, 0.0)), 0.0, 0.9, 0.25)
    assert row[0, 0, 0] == pytest.approx(0.8 * np.sqrt(0.25 * 40 / 40.1) + 0.9, rel=1e-12)
    assert reach[0, 0, 0] == pytest.approx(0.45, rel=1e-12)


def twin(p, table, row, variance, reach, size, share):
    """The optimistic pass in plain NumPy."""
    b, after = np.empty(table.shape), np.zeros(table.shape[1])
    for h in reversed(range(len(table))):
        mu = p[h] @ after if h + 1 < len(table) else np.zeros(table.shape[1:])
        var = np.maximum(p[h] @ after**2 - mu**2, 0.0) if h + 1 < len(table) else 0.0 * mu
        val = 0.5 * np.sqrt(variance[h] + var / size[h]) + reach[h] + np.minimum(0.5 / size[h], 1) * (after.max() - mu)
        b[h] = row[h] + share * np.maximum(val - row[h], 0.0)
        after = (table[h] + b[h] + mu).max(-1)
    return b


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_compiled_pass_is_the_formula(share):
    rng = np.random.default_rng(1)
    p, table = random_kernel(rng, H, S, A), rng.normal(size=(H, S, A))
    row, variance, reach = rng.random((3, H, S, A))
    size = 1.0 + 5.0 * rng.random((H, S, A))
    found = lagrangian_bonus(p, table, row, variance, reach, size, share)
    assert np.allclose(found, twin(p, table, row, variance, reach, size, share), rtol=0.0, atol=1e-12)


def test_the_noise_of_costs_counts_at_the_square_of_their_price():
    cost = table_of(0.1, 5.0, 0.8)
    visits = np.full((H, S, A), 4.0)
    tables = np.full((1, H, S, A), 0.1)
    plain = bonus(beliefs_of(costs=[cost]), visits, np.array([0.0]), tables)
    dear = bonus(beliefs_of(costs=[cost]), visits, np.array([3.0]), tables)
    least = PLAIN + 0.8 * (np.sqrt(0.25 / 4 + 9.0 * 0.8 / 5) - 0.25)
    assert np.all(dear >= least - 1e-12)
    assert np.allclose(plain, PLAIN, rtol=1e-12, atol=0.0)
    # A revealed table has a price but no noise of its own.
    revealed = bonus(beliefs_of(), visits, np.array([3.0]), tables)
    assert np.all(revealed < dear)


def test_more_data_never_raises_a_bonus():
    beliefs = beliefs_of()
    less = bonus(beliefs, np.full((H, S, A), 4.0), np.array([0.5]), np.full((1, H, S, A), 0.2))
    more = replace(beliefs, own=beliefs.own / 4, reward=table_of(0.5, 16.0, 0.25))
    assert np.all(bonus(more, np.full((H, S, A), 16.0), np.array([0.5]), np.full((1, H, S, A), 0.2)) < less)
