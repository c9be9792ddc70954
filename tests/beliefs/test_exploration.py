import numpy as np
import pytest

from omdpd.beliefs import rules
from tests.references import plain_beliefs as plain
from tests.references.doors import plainly, reward_with_bonus
from tests.references.instances import random_kernel

H, S, A = 4, 3, 2
# What `beliefs_of` is worth after four visits of every row.
PLAIN = 0.8 * 0.25 + 0.9 * 0.125 + 0.75 * 0.4 / 4.75
NO_PRICES = np.zeros(0), np.zeros((0, H, S, A))


def table_of(mean, size, noise):
    full = np.full((H, S, A), 1.0)
    return plain.Shared(mean * full, full / size, 0 * full, noise * full)


def beliefs_of(seed=0, size=4.0, costs=()):
    """Rewards of 1/2 that are coins, and every row known as well as `size` observations of it tell."""
    kernel = random_kernel(np.random.default_rng(seed), H, S, A)
    sizes = np.full((H, S, A), size)
    return plain.Beliefs(kernel, 1.0 / sizes, 0 * sizes, table_of(0.5, size, 0.25), tuple(costs), 0.5, 0.9, 0.25)


def bonus(beliefs, visits, prices, tables):
    """What is added to the rewards, under prices of tables of which the first are estimated costs."""
    noise = np.zeros(visits.shape)
    for price, cost in zip(prices, beliefs.costs, strict=False):
        noise += np.vectorize(plainly(rules.noise_at_price))(price, cost.noise, cost.own, cost.common)
    return reward_with_bonus(beliefs, 1.0, visits, noise, prices, tables) - beliefs.reward.mean


def test_without_prices_a_row_is_worth_a_try_by_its_own_visits():
    """n = 4, n_r = 4, r = .5, v = 1/4, hope .9: .8 sqrt(.25/4) + .9 min(.5/4, 1) + .75 (.9 - .5) / 4.75."""
    found = bonus(beliefs_of(), np.full((H, S, A), 4.0), *NO_PRICES)
    assert np.allclose(found, PLAIN, rtol=1e-12, atol=0.0)


def test_a_row_never_tried_counts_a_tenth_of_a_visit_and_little_of_its_neighbours():
    """n = 0, n_r = 4 and m = .5: n_x = 4 * .5/10.5."""
    found = bonus(beliefs_of(), np.zeros((H, S, A)), *NO_PRICES)
    n_x = 4.0 * 0.5 / 10.5
    assert np.allclose(found, 0.8 * np.sqrt(0.25) + 0.9 + 0.75 * 0.4 / (n_x + 0.75), rtol=1e-12, atol=0.0)
    assert 0.5 / n_x > 1.0  # hope is not taken twice
    row, variance, reach = plainly(rules.row_bonus)(0.0, 0.9, 0.0, 0.0, 0.0, 0.0, 0.9, 0.25)
    assert row == pytest.approx(0.8 * np.sqrt(0.25 * 40 / 40.1) + 0.9, rel=1e-12)
    assert reach == pytest.approx(0.45, rel=1e-12)
    assert variance == pytest.approx(0.25 * 40 / 41, rel=1e-12)


def test_a_row_with_a_bad_start_has_a_way_back():
    """n = 9, r = .1 against r = .9, noise and hope alike: three quarters of an observation of hope, .75 .8 / 9.75."""
    bad, good = (plainly(rules.row_bonus)(9.0, r, 9.0, 0.09, 0.0, 0.5, 0.9, 0.01)[0] for r in (0.1, 0.9))
    assert bad - good == pytest.approx(0.75 * 0.8 / 9.75, rel=1e-12)


def test_what_follows_counts_as_far_as_prices_are_high():
    """row .2, variance .04 + Var 1/4, size 4, mean 1 of at most 3: val = .5 sqrt(.04 + (1.25 - 1)/4) + .1 + 2/8."""
    value = 0.5 * np.sqrt(0.04 + 0.0625) + 0.1 + 0.25
    for capped_price in (0.0, 0.4, 1.0):
        found = plainly(rules.value_bonus)(0.2, 0.04, 0.1, 4.0, 1.0, 1.25, 3.0, capped_price)
        assert found == pytest.approx(0.2 + capped_price * (value - 0.2), rel=1e-12)
    assert plainly(rules.value_bonus)(9.0, 0.04, 0.1, 4.0, 1.0, 1.25, 3.0, 1.0) == 9.0  # nothing is taken away


@pytest.mark.parametrize("total", [0.0, 0.4, 1.0, 7.0])
@pytest.mark.parametrize("m", [0.5, 1e4])
def test_the_compiled_pass_is_the_formula(total, m):
    rng = np.random.default_rng(1)
    visits = rng.integers(0, 6, (H, S, A)).astype(float)
    mean, coin = rng.random((H, S, A)), 0.6
    reward = plain.Shared(mean, *rng.random((2, H, S, A)), coin * mean * (1 - mean))
    cost = plain.Shared(rng.uniform(-1, 1, (H, S, A)), *rng.random((3, H, S, A)))
    beliefs = plain.Beliefs(random_kernel(rng, H, S, A), *rng.random((2, H, S, A)), reward, (cost,), m, 0.8, 0.1)
    prices, tables = total * rng.dirichlet(np.ones(5)), rng.normal(size=(5, H, S, A))
    noise = prices[0] ** 2 * cost.noise / cost.size
    found = reward_with_bonus(beliefs, coin, visits, noise, prices, tables, exploration=0.7)
    expected = mean + 0.7 * plain.bonus(beliefs, visits, prices, tables)
    assert np.allclose(found, expected, rtol=0.0, atol=1e-12)


def seldom(rng, n_costs):
    """A long past in which every row had between no and two hundred of a thousand visits."""
    past = plain.Past(H, S, A, n_costs)
    past.visits[...] = rng.choice([0.0, 1.0, 3.0, 200.0], (H, S, A))
    past.visits[0, 0, 0] += 4000.0 - past.visits[0].sum()
    past.transitions[...] = past.visits[..., None] * random_kernel(rng, H, S, A)
    past.reward_sum[...] = past.visits * rng.random((H, S, A))
    past.cost_sum[...] = past.visits * rng.uniform(-1, 1, (n_costs, H, S, A))
    return past


@pytest.mark.parametrize("total", [0.0, 0.4, 7.0])
@pytest.mark.parametrize("n_costs", [0, 1])
@pytest.mark.parametrize("persistence", [1e-3, 1.0, 5.0])
def test_the_bonus_that_grows_and_a_row_s_own_word_are_the_formula(total, n_costs, persistence):
    rng = np.random.default_rng(2)
    past, mean, coin = seldom(rng, n_costs), rng.random((H, S, A)), 0.6
    reward = plain.Shared(mean, *rng.random((2, H, S, A)), coin * mean * (1 - mean))
    costs = tuple(plain.Shared(rng.uniform(-1, 1, (H, S, A)), *rng.random((3, H, S, A))) for _ in range(n_costs))
    beliefs = plain.Beliefs(random_kernel(rng, H, S, A), *rng.random((2, H, S, A)), reward, costs, 0.5, 0.8, 0.1)
    prices, tables = total * rng.dirichlet(np.ones(1)), rng.normal(size=(1, H, S, A))
    noise = sum((x**2 * d.noise / d.size for x, d in zip(prices, costs, strict=False)), np.zeros((H, S, A)))
    found = reward_with_bonus(beliefs, coin, past.visits, noise, prices, tables, 0.7, past, persistence)
    expected, without = (plain.bonus(beliefs, past.visits, prices, tables, own, persistence) for own in (past, None))
    assert np.allclose(found, mean + 0.7 * expected, rtol=1e-11, atol=1e-11)
    assert persistence < 1.0 or not np.allclose(expected, without)


def test_a_bonus_grows_where_a_row_had_less_than_its_even_share():
    """r = .5, N = 3, v = 1/4, c + .4 Var/n_p = .19, hope .9: sqrt((.64 + due) (.25/4 + .19)) + .4/3."""
    for due in (0.0, 2.0):
        found = plainly(rules.bonus)(0.5, 3.0, 0.25, 0.19, 0.9, 0.1, due)
        assert found == pytest.approx(np.sqrt((0.64 + due) * 0.2525) + 0.4 / 3, rel=1e-12)
    assert plainly(rules.bonus)(0.9, 0.0, 0.0, 0.0, 0.8, 0.41, 0.0) == pytest.approx(0.8 * np.sqrt(0.2), rel=1e-12)
    assert plainly(rules.way_out)(0.5, 4.0, 1.0, 3.0) == 0.5 * 0.125 * 2.0
    assert plainly(rules.way_out)(7.0, 0.1, 1.0, 3.0) == 2.0
    assert plainly(rules.overdue)(1000.0, 10.0, 100.0) == 0.0
    assert plainly(rules.overdue)(1000.0, 4.0, 100.0) == pytest.approx(np.log(2.5), rel=1e-12)
    assert plainly(rules.overdue)(1000.0, 0.0, 100.0) == pytest.approx(np.log(20.0), rel=1e-12)
    found = plainly(rules.own_bonus)(2.0, 0.3, 1.5, 6.0)
    assert found == pytest.approx(2.0 * np.sqrt(1.25) * 0.8 * 0.5, rel=1e-12)


def test_the_noise_of_costs_counts_at_the_square_of_their_price():
    assert plainly(rules.noise_at_price)(3.0, 0.8, 0.15, 0.05) == pytest.approx(9.0 * 0.8 / 5, rel=1e-12)
    assert plainly(rules.noise_at_price)(3.0, 0.8, 1.5, 0.5) == pytest.approx(9.0 * 0.8, rel=1e-12)  # at least one
    cost = table_of(0.1, 5.0, 0.8)
    visits = np.full((H, S, A), 4.0)
    tables = np.full((1, H, S, A), 0.1)
    without = bonus(beliefs_of(costs=[cost]), visits, np.array([0.0]), tables)
    capped_price = bonus(beliefs_of(costs=[cost]), visits, np.array([3.0]), tables)
    least = PLAIN + 0.8 * (np.sqrt(0.25 / 4 + 9.0 * 0.8 / 5) - 0.25)
    assert np.all(capped_price >= least - 1e-12)
    assert np.allclose(without, PLAIN, rtol=1e-12, atol=0.0)
    # A revealed table has a price but no noise of its own.
    revealed = bonus(beliefs_of(), visits, np.array([3.0]), tables)
    assert np.all(revealed < capped_price)


def test_more_data_never_raises_a_bonus():
    less, more = (
        bonus(beliefs_of(size=n), np.full((H, S, A), n), np.array([0.5]), np.full((1, H, S, A), 0.2))
        for n in (4.0, 16.0)
    )
    assert np.all(more < less)
