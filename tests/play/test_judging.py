import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.ratios import paired_ratio_interval
from omdpd.learners import ProximalOMDPD, Uniform
from omdpd.natures import fixed, pool, revealed
from omdpd.natures.pool import Drifting, Pool
from omdpd.natures.rewards import ChangingRewards
from omdpd.play.judging import Assessment, Comparator, Totals, assess, comparator, growth_exponent, scores
from omdpd.play.loop import batches, met_comparator, play, start_of_run
from omdpd.play.scene import Scene
from omdpd.problem.cmdp import CMDP, Round
from omdpd.worlds.card import slater_gap
from tests.references.instances import forward, random_cmdp, random_policy
from tests.references.reference_programs import dual_value, least_total

H, S, A, I = 4, 3, 2, 2  # noqa: E741


def out_of_reach(n_constraints):
    """A world whose budgets nobody meets."""
    rng = np.random.default_rng(4)
    cost = 0.4 + 0.6 * rng.random((n_constraints, H, S, A))
    p = rng.dirichlet(np.ones(S), (H, S, A))
    return CMDP.from_arrays(p, rng.random((H, S, A)), cost, np.full(n_constraints, 0.3)).with_scenarios(
        {"one": cost, "two": 1.2 * cost[:, ::-1]}
    )


def tables_of(cmdp):
    """Tables of which nobody meets one."""
    rng = np.random.default_rng(5)
    return rng.uniform(-0.1, 1.0, (3, cmdp.n_constraints, H, S, A))


OUT_OF_REACH = {
    "fixed": lambda cmdp: fixed.make(cmdp, 3),
    "noisy": lambda cmdp: fixed.make_noisy(cmdp, 3),
    "scaled": lambda cmdp: revealed.make_scaled(cmdp, 3),
    "independent": lambda cmdp: revealed.make_independent(cmdp, 3),
    "pool": lambda cmdp: Pool(cmdp, 3, tables_of(cmdp)),
    "adaptive": lambda cmdp: Pool(cmdp, 3, tables_of(cmdp), "adaptive"),
    "drifting": lambda cmdp: Drifting(cmdp, tables_of(cmdp), period=7),
    "unrevealed": lambda cmdp: pool.unrevealed(cmdp, 3, tables_of(cmdp)),
    "natural": lambda cmdp: pool.make_natural(cmdp, 3),
    "hostile": lambda cmdp: pool.make_hostile(cmdp, 3),
    "rewards": lambda cmdp: ChangingRewards(np.zeros((1, H, S, A)), revealed.make_scaled(cmdp, 3), 3, "switching"),
}


def totals_of(values, excess, occupancies):
    """The sums of a run, an episode at a time."""
    K, n_constraints = np.shape(excess)
    totals = Totals(0, 0.0, 0.0, np.zeros(n_constraints), np.zeros_like(occupancies[0]))
    for value, paid, q in zip(values, excess, occupancies, strict=True):
        totals = totals.after(Assessment(value, np.array(paid)), q, K)
    return totals


def comparator_of(value, rows=None, prices=()):
    rows = np.zeros((0, 1, 1, 1)) if rows is None else rows
    return Comparator(value is not None, value, rows, np.array(prices, dtype=float), None)


def test_an_episode_is_judged_by_the_true_occupancy():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I)
    q = forward(random_policy(np.random.default_rng(1), H, S, A), cmdp.transition, cmdp.initial)
    judged = assess(Round(cmdp.reward, cmdp.excess), q)
    assert judged.value == pytest.approx((cmdp.reward * q).sum(), abs=1e-13)
    assert judged.excess == pytest.approx([(cmdp.excess[i] * q).sum() for i in range(I)], abs=1e-13)


def test_four_episodes_by_hand():
    values = np.array([0.5, 1.5, 0.25, 1.0])
    excess = np.array([[0.5, -1.0], [-0.25, 0.75], [-0.5, -0.5], [0.5, 1.0]])
    q = np.ones((1, 1, 1))
    result = scores(values, totals_of(values, excess, [q] * 4), comparator_of(1.0))
    assert result.regret == pytest.approx(0.5 - 0.5 + 0.75 + 0.0)
    assert result.regret_positive == pytest.approx(0.5 + 0.75)
    # Strong: the larger constraint of each episode, without cancellation.
    assert result.violation == pytest.approx(0.5 + 0.75 + 0.0 + 1.0)
    # Weak: sums over episodes are .25 and .25.
    assert result.weak_violation == pytest.approx(0.25)
    # Between episode 1 and episode 4: regret .5 -> .75, violation .5 -> 2.25.
    assert result.regret_exponent == pytest.approx(math.log(0.75 / 0.5) / math.log(4))
    assert result.violation_exponent == pytest.approx(math.log(2.25 / 0.5) / math.log(4))


def test_weak_violation_is_zero_when_everything_cancels_and_strong_is_not():
    values, excess = np.zeros(4), np.array([[1.0], [-2.0], [1.0], [-1.0]])
    result = scores(values, totals_of(values, excess, [np.ones((1, 1, 1))] * 4), comparator_of(0.0))
    assert result.weak_violation == 0.0
    assert result.violation == 2.0


def test_lagrangian_regret_takes_away_what_was_earned_by_violating():
    # Two actions worth 1 at cost .5 and 0 at cost -.5: the optimum is .5 and a unit of budget is worth 1.
    table = np.array([[[0.5, -0.5]]])
    greedy, safe = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])
    best = comparator_of(0.5, table[None], [1.0])
    for q, value in ((greedy, 1.0), (safe, 0.0)):
        cost = float((table * q).sum())
        result = scores(np.full(4, value), totals_of([value] * 4, [[cost]] * 4, [q] * 4), best)
        assert result.regret == pytest.approx(4 * (0.5 - value))
        assert result.lagrangian_regret == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_lagrangian_regret_is_never_negative(seed):
    rng = np.random.default_rng(seed)
    cmdp = random_cmdp(rng, H, S, A, 1)
    best = comparator(cmdp, fixed.make(cmdp, 0), [0])
    if not best.exists:
        pytest.skip("no policy is safe in this world")
    occupancies = [forward(random_policy(rng, H, S, A), cmdp.transition, cmdp.initial) for _ in range(8)]
    judged = [assess(Round(cmdp.reward, cmdp.excess), q) for q in occupancies]
    values = np.array([j.value for j in judged])
    result = scores(values, totals_of(values, [j.excess for j in judged], occupancies), best)
    assert result.lagrangian_regret >= -1e-7
    prices = sum(m * (row * q).sum() for m, row in zip(best.multipliers, best.rows, strict=True) for q in occupancies)
    assert result.lagrangian_regret == pytest.approx(result.regret + prices, abs=1e-9)


def test_without_a_comparator_regret_is_not_a_number_that_looks_like_one():
    values, excess = np.zeros(8), np.ones((8, 1))
    result = scores(values, totals_of(values, excess, [np.ones((1, 1, 1))] * 8), comparator_of(None))
    assert result.regret is None
    assert result.regret_positive is None
    assert result.lagrangian_regret is None
    assert result.regret_exponent is None
    assert result.violation == 8.0
    assert result.violation_exponent == pytest.approx(1.0)


def test_the_quarter_is_kept_where_exponents_start():
    q = np.ones((1, 1, 1))
    totals = totals_of(np.arange(10.0), np.ones((10, 1)), [q] * 10)
    assert totals.quarter == (2, 1.0, 2.0)
    assert totals.episodes == 10
    assert totals_of(np.zeros(3), np.ones((3, 1)), [q] * 3).quarter is None


def test_growth_of_a_power_is_its_exponent():
    for power in (0.25, 0.5, 1.0, 1.3):
        assert growth_exponent(100, 3.0 * 100**power, 400, 3.0 * 400**power) == pytest.approx(power)


@pytest.mark.parametrize(
    "arguments", [(0, 1.0, 10, 2.0), (10, 1.0, 10, 2.0), (5, 0.0, 10, 2.0), (5, -1.0, 10, 2.0), (5, 1.0, 10, 0.0)]
)
def test_an_exponent_is_none_unless_positive_at_both_ends(arguments):
    assert growth_exponent(*arguments) is None


def test_a_run_of_three_episodes_has_no_exponent():
    values, excess = np.zeros(3), np.ones((3, 1))
    result = scores(values, totals_of(values, excess, [np.ones((1, 1, 1))] * 3), comparator_of(1.0))
    assert result.regret_exponent is None
    assert result.violation_exponent is None


@pytest.mark.parametrize("seed", range(3))
def test_the_comparator_is_the_linear_program_over_the_tables_that_were_met(seed):
    cmdp = random_cmdp(np.random.default_rng(seed), H, S, A, I)
    nature = pool.make(cmdp, seed)
    for keys in ([0], [1, 3], [0, 1, 2, 3]):
        tables = np.concatenate([nature.table(key) for key in keys])
        best = comparator(cmdp, nature, keys)
        assert best.exists
        assert best.value == pytest.approx(dual_value(cmdp.transition, cmdp.initial, cmdp.reward, tables)[0], abs=1e-7)
        assert np.all(best.multipliers > 0.0)
        assert best.hindsight_violation == 0.0


def test_more_tables_never_raise_the_comparator():
    cmdp = random_cmdp(np.random.default_rng(5), H, S, A)
    nature = pool.make(cmdp, 5)
    found = [comparator(cmdp, nature, range(n)).value for n in range(1, 5)]
    assert all(later <= earlier + 1e-8 for earlier, later in pairwise(found))


def test_without_a_safe_policy_the_best_fixed_ones_violation_is_told():
    # Every action costs .25 or .75 a step, three steps: the least a policy can pay is .75 in every episode.
    cost = np.array([[0.25, 0.75], [0.25, 0.75]])
    cmdp = CMDP.from_arrays(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), cost, budget=0.0, horizon=3)
    best = comparator(cmdp, fixed.make(cmdp, 0), [0], weights=np.array([40.0]))
    assert not best.exists
    assert best.value is None
    assert best.hindsight_violation == pytest.approx(40 * 0.75, abs=1e-6)
    assert comparator(cmdp, fixed.make(cmdp, 0), [0]).hindsight_violation is None  # how often it was met is not known


@pytest.mark.parametrize("n_constraints", [1, 2])
@pytest.mark.parametrize("name", list(OUT_OF_REACH))
def test_the_violation_in_hindsight_is_the_least_sum_over_episodes_of_the_largest_excess(name, n_constraints):
    """An episode counts as often as it was played, by the table that it had, and by its worst constraint alone."""
    cmdp, K = out_of_reach(n_constraints), 60
    nature = OUT_OF_REACH[name](cmdp)
    q = forward(np.full((H, S, A), 1.0 / A), cmdp.transition, cmdp.initial)  # what Uniform plays
    tables = np.array([nature.draw(k, q).cost for k in range(K)])
    scene = Scene(cmdp, nature, Uniform(), K, {})
    end = [now for _, _, now in play(scene, start_of_run(scene), np.random.default_rng(0), lambda k: False)][-1]
    best = met_comparator(scene, end)
    assert best.value is None
    assert best.hindsight_violation == pytest.approx(least_total(cmdp.transition, cmdp.initial, tables), rel=1e-6)


def test_episodes_played_together_are_counted_one_by_one():
    cmdp, K = out_of_reach(2), 80
    found = []
    for nature in (fixed.make_noisy(cmdp, 0), Pool(cmdp, 3, tables_of(cmdp), "adaptive")):
        scene = Scene(cmdp, nature, ProximalOMDPD.standard(), K, {})
        *_, end = batches(scene, start_of_run(scene), np.random.default_rng(0), lambda k: False)
        *_, (_, _, alone) = play(scene, start_of_run(scene), np.random.default_rng(0), lambda k: False)
        assert end.now.weights.sum() == alone.weights.sum() == K
        assert np.array_equal(end.now.weights, alone.weights)
        found.append(met_comparator(scene, end.now).hindsight_violation)
    assert found[0] == pytest.approx(-K * slater_gap(cmdp), rel=1e-6)


def test_a_run_from_before_counts_were_kept_does_not_know_its_violation_in_hindsight():
    cmdp = out_of_reach(1)
    scene = Scene(cmdp, fixed.make(cmdp, 0), Uniform(), 4, {})
    *_, (_, _, end) = play(scene, replace(start_of_run(scene), weights=None), np.random.default_rng(0), lambda k: False)
    assert met_comparator(scene, end).hindsight_violation is None


def test_a_scaled_nature_that_met_one_sign_only_asks_for_that_sign_only():
    cmdp = random_cmdp(np.random.default_rng(6), H, S, A)
    nature = revealed.make_scaled(cmdp, 0)
    one, both = comparator(cmdp, nature, [1]), comparator(cmdp, nature, [0, 1, 2])
    assert one.value == pytest.approx(dual_value(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)[0], abs=1e-7)
    assert both.value <= one.value + 1e-8


def test_a_paired_ratio_knows_that_runs_belong_together():
    rng = np.random.default_rng(9)
    base = rng.uniform(1.0, 100.0, 16)
    ratio, low, high = paired_ratio_interval(0.5 * base, base, np.random.default_rng(10))
    assert (ratio, low, high) == pytest.approx((0.5, 0.5, 0.5))
    ratio, low, high = paired_ratio_interval(base * rng.uniform(0.4, 0.8, 16), base, np.random.default_rng(11))
    assert 0.4 <= low < ratio < high <= 0.8
