"""The boundary line: by simulation, by hand, and beside the table of docs/dials.md."""

import math

import numpy as np
import pytest

from omdpd.experiments.registry import Registry
from omdpd.natures.fixed import make_noisy
from omdpd.problem.arrays import InvalidInputError
from omdpd.solvers.programs import best_policy
from omdpd.theory.limits import boundary, boundary_in, boundary_of, limits_of, noise_of
from omdpd.worlds import WORLDS
from tests.references.instances import forward, random_cmdp


def test_without_a_margin_it_is_the_mean_of_half_a_normal_error():
    found = boundary(2, 0.0, 3.0, 0.5)
    assert found.regret == 0.0
    assert found.violation == pytest.approx(3.0 * (1.0 + 1.0 / math.sqrt(2.0)) / math.sqrt(2.0 * math.pi), rel=1e-12)


@pytest.mark.parametrize("z", [0.0, 0.5, 1.5])
def test_it_is_what_drawn_errors_exceed_a_margin_by(z):
    errors = np.random.default_rng(0).standard_normal(400_000)
    excess = np.maximum(errors - z, 0.0)
    found = boundary(1, z, 1.0, 1.0)
    assert abs(found.violation - excess.mean()) <= 4.0 * excess.std() / math.sqrt(errors.size)
    assert found.regret == pytest.approx(z, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(
    ("K", "z", "growth", "regret", "violation"),
    [(3000, 0.5, 0.0, 15, 45), (100_000, 1.0, 0.0, 172, 110), (100_000, 1.0, 0.5, 335, 21), (3000, 1.0, -0.5, 24, 27)],
)
def test_the_page_has_its_numbers(K, z, growth, regret, violation):
    found = boundary(K, z, 2.1, 0.13, growth)
    assert (round(found.regret), round(found.violation)) == (regret, violation)


@pytest.mark.parametrize("growth", [0.5, -0.5])
def test_a_margin_that_changes_is_the_sum_of_margins_that_do_not(growth):
    parts = []
    for k in (1, 2, 3):
        z = (1.0 + math.log(1.0 + k / 1000.0)) ** growth
        alone, before = boundary(k, z, 2.1, 0.13), boundary(k - 1, z, 2.1, 0.13) if k > 1 else (0.0, 0.0)
        parts.append([a - b for a, b in zip(alone, before, strict=True)])
    assert boundary(3, 1.0, 2.1, 0.13, growth) == pytest.approx(np.sum(parts, axis=0), rel=1e-9)


@pytest.mark.parametrize(("episodes", "z", "name"), [(0, 1.0, "episodes"), (5, -1.0, "z"), (5, math.nan, "z")])
def test_bad_input_is_named(episodes, z, name):
    with pytest.raises(InvalidInputError, match=name):
        boundary(episodes, z, 1.0, 1.0)


def binding(seed):
    """A world whose constraint has a price."""
    rng = np.random.default_rng(seed)
    while True:
        cmdp = random_cmdp(rng, 3, 2, 2)
        best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
        if best.feasible and best.multipliers[0] > 0.05:
            return cmdp, best


@pytest.mark.parametrize("noise", ["two-point", "own-range", "exact"])
def test_sigma_is_the_spread_of_the_estimated_cost_of_the_best_plan(noise):
    """Many times over: k episodes' worth of every row, its cost and law estimated, and the plan's cost with them."""
    cmdp, best = binding(0)
    rng, n, costs = np.random.default_rng(1), 400 * best.occupancy, []
    low, high = (cmdp.excess[0].min(), cmdp.excess[0].max()) if noise == "own-range" else (-1.0, 1.0)
    for _ in range(1500):
        n_row = np.maximum(rng.poisson(n), 1)
        law = rng.multinomial(n_row, cmdp.transition) / n_row[..., None]
        share = rng.binomial(n_row, np.clip((cmdp.excess[0] - low) / (high - low), 0.0, 1.0)) / n_row
        table = cmdp.excess[0] if noise == "exact" else low + (high - low) * share
        costs.append(float((table * forward(best.policy, law, cmdp.initial)).sum()))
    sigma = math.sqrt(400.0) * float(np.std(costs))
    expected = boundary(1000, 1.0, sigma, float(best.multipliers[0]))
    assert boundary_of(cmdp, cmdp.excess, 1000, 1.0, noise) == pytest.approx(expected, rel=0.1)


def test_a_budget_that_does_not_bind_costs_nothing_and_a_world_without_a_safe_policy_has_no_line():
    cmdp, _ = binding(0)
    assert boundary_of(cmdp, cmdp.excess - 1.0, 100, 1.0, "exact") == (0.0, 0.0)
    assert boundary_of(cmdp, cmdp.excess + 1.0, 100, 1.0, "exact") is None


def test_limits_stand_beside_runs():
    """Means over instances, by place; tables that are revealed have 1.5 z and no noise of their own."""
    registry = Registry.installed()
    runs = [
        registry.run("random_dirichlet", nature, learner, 50, seed)
        for nature in ("noisy", "pool", "anchored")
        for learner in ("Uniform", "PlanLP")
        for seed in (3, 4)
    ]
    noisy, pool = limits_of(runs)
    assert (noisy.nature, noisy.seeds, pool.nature) == ("noisy", 2, "pool")
    each = []
    for spec in runs[:2]:
        cmdp = spec.world.build(np.random.default_rng(spec.stream(0)))
        each.append(boundary_of(cmdp, cmdp.excess, 50, 1.0, "two-point"))
    assert (noisy.regret, noisy.violation) == pytest.approx(np.mean(each, axis=0))
    assert 0.0 < pool.violation < noisy.violation


def test_one_world_and_nature_have_what_a_run_of_them_has():
    """Costs that are met in their own range are less noisy than coins of -1 and 1: less is paid for the margin."""
    spec = Registry.installed().run("random_dirichlet", "noisy", "Uniform", 50, 3)
    cmdp = spec.world.build(np.random.default_rng(spec.stream(0)))
    (limit,) = limits_of([spec])
    coins = boundary_in(cmdp, make_noisy(cmdp, 0), 50)
    assert coins == pytest.approx((limit.regret, limit.violation))
    own = boundary_in(cmdp, make_noisy(cmdp, 0, noise="own-range"), 50)
    assert 0.0 < own.violation < coins.violation
    assert noise_of(np.array([0.5]), "beta") == pytest.approx(0.75 / 3.0)


def test_limits_are_in_the_users_units():
    """`inventory` has costs of 13.7 to a learner's 1."""
    registry = Registry.installed()
    (limit,) = limits_of([registry.run("inventory", "noisy", "Uniform", 50, 0)])
    cmdp = WORLDS["inventory"]()
    least = boundary_of(cmdp, cmdp.excess, 50, 1.0, "two-point")
    assert limit.violation == pytest.approx(float(cmdp.cost_scale[0]) * least.violation)
    assert cmdp.cost_scale[0] > 10.0


def paid(play, K, runs=400):
    """E[regret + 2 lam* violation] in the worse of the two worlds of Proposition F, H = 1, one state: lam* = 1.

    *Wait* earns 0 and costs -1/2, *risk* earns 1 and costs 1/2, and both cost delta more, or less, in one world and the
    other.  ``play(seen, k, shift)`` is the chance of the risk, from the sum of what costs were off these numbers.
    """
    v, worst = 0.7, 0.0
    delta = math.sqrt(v / (8.0 * K))
    assert 1.0 - (0.5 + delta) ** 2 > v
    for shift in (delta, -delta):
        rng, seen, total = np.random.default_rng(4), np.zeros(runs), np.zeros(runs)
        for k in range(K):
            x = np.clip(play(seen, k, shift), 0.0, 1.0)
            cost = x - 0.5 + shift
            total += (0.5 - shift - x) + 2.0 * np.maximum(cost, 0.0)  # the best safe policy takes the risk 1/2 - shift
            mean = np.where(rng.random(runs) < x, 0.5, -0.5)
            seen += np.where(rng.random(runs) < (1.0 + mean + shift) / 2.0, 1.0, -1.0) - mean
        worst = max(worst, float(total.mean()))
    return worst, math.sqrt(v * K) / 12.0


@pytest.mark.parametrize("z", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("K", [100, 1000])
def test_no_learner_has_little_of_both_sums(K, z):
    """docs/theory.md, 12; who is told the world has none of either."""
    found, bound = paid(lambda seen, k, shift: 0.5 - seen / max(k, 1) - z / math.sqrt(k + 1.0), K)
    assert found >= bound
    still, _ = paid(lambda seen, k, shift: np.full(seen.shape, 0.5), K)
    assert still >= bound
    told, _ = paid(lambda seen, k, shift: np.full(seen.shape, 0.5 - shift), K)
    assert abs(told) < 1e-9 < bound
