import numpy as np
import pytest

from omdpd.beliefs import rules
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.memory import TableMemory
from tests.references import plain_beliefs as plain
from tests.references.doors import shared_kernel, shared_table, variances
from tests.references.instances import conditional, forward, random_kernel, random_policy

H, S, A = 4, 3, 2
NEARLY_NONE = 1e-9


def beliefs_of(kernel, own, common):
    return plain.Beliefs(kernel, own, common, None, (), 1.0, 1.0, 0.25)


@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_variance_is_the_formula(seed):
    rng = np.random.default_rng(seed)
    p, mu = random_kernel(rng, H, S, A), rng.dirichlet(np.ones(S))
    q, d = forward(random_policy(rng, H, S, A), p, mu), rng.uniform(-1, 1, (H, S, A))
    q[:, 1] = 0.0  # where no plan comes, any action is as good
    own, common, noise = rng.random((3, H, S, A))
    by_kernel, by_noise = variances(p, q, conditional(q), d, noise, own, common)
    assert by_kernel == pytest.approx(plain.standard_error(beliefs_of(p, own, common), q, d) ** 2, rel=1e-10)
    assert by_noise == pytest.approx(plain.noise_variance(q, noise, own, common), rel=1e-12)


def test_one_step_has_the_standard_error_of_a_mean():
    """H = 1, one state, actions 3/4 and 1/4, costs met 8 and 2 times: se^2 = (9/16) v/8 + (1/16) v/2."""
    q, n = np.array([[[0.75, 0.25]]]), np.array([[[8.0, 2.0]]])
    d, none = np.full((1, 1, 2), 0.3), np.zeros((1, 1, 2))
    by_kernel, by_noise = variances(np.ones((1, 1, 2, 1)), q, q, d, np.full((1, 1, 2), 0.96), 1.0 / n, none)
    assert by_kernel == 0.0
    assert by_noise == pytest.approx(0.96 * (9 / 16 / 8 + 1 / 16 / 2), rel=1e-12)


def test_a_margin_is_a_number_of_standard_errors_over_the_steps_and_half_as_many_again_of_revealed_tables():
    assert rules.margin(2.0, 0.5, 0.09, H, False) == pytest.approx(2.0 * 0.5 * 0.3 / H, rel=1e-14)
    assert rules.margin(2.0, 0.5, 0.09, H, True) == pytest.approx(1.5 * 2.0 * 0.5 * 0.3 / H, rel=1e-14)
    assert rules.margin(2.0, -0.5, 0.09, H, True) < 0.0  # the benefit of the doubt


def sampled_kernels(rng, p, n, draws, m):
    """Estimates of the kernel from n departures per row, again and again."""
    for _ in range(draws):
        seen = np.zeros_like(p)
        seen[:-1] = rng.multinomial(n, p[:-1])
        yield shared_kernel(seen, np.full(p.shape[:3], float(n)), m)


def spread_and_error(rng, p, n, m):
    """Monte Carlo: how the cost of one policy spreads under 3000 estimated kernels, and its mean standard error."""
    mu, policy, d = rng.dirichlet(np.ones(S)), random_policy(rng, H, S, A), rng.uniform(-1, 1, (H, S, A))
    q, none = forward(policy, p, mu), np.zeros((H, S, A))
    costs, errors = [], []
    for kernel, own, common in sampled_kernels(rng, p, n, 3000, m):
        costs.append(float((forward(policy, kernel, mu) * d).sum()))
        errors.append(np.sqrt(variances(kernel, q, policy, d, none, own, common)[0]))
    return np.std(costs), np.mean(errors)


def test_the_standard_error_is_the_spread_of_estimates_whose_steps_are_apart():
    rng = np.random.default_rng(5)
    spread, error = spread_and_error(rng, random_kernel(rng, H, S, A), 100, NEARLY_NONE)
    assert error == pytest.approx(spread, rel=0.07)


def test_the_standard_error_is_near_and_not_below_the_spread_where_steps_are_pooled():
    """The errors of one row are added over the steps as if they were one, which is at most too careful."""
    rng = np.random.default_rng(6)
    spread, error = spread_and_error(rng, np.repeat(random_kernel(rng, 1, S, A), H, axis=0), 50, rules.POOLED)
    assert 0.95 * spread <= error <= 1.6 * spread


def test_the_noise_of_met_costs_spreads_as_the_formula_says():
    """Monte Carlo: means of -1/+1 costs that share a level, the truth drawn from the model that sharing states."""
    rng = np.random.default_rng(7)
    m, trust, n = 20.0, 5.0, np.array([4.0, 30.0, 9.0]).reshape(3, 1, 1)
    q, v = np.array([0.9, 0.7, 0.8]).reshape(3, 1, 1), 1.0
    errors = []
    for _ in range(4000):
        level = rng.normal(0.5, np.sqrt(v / trust))
        x = level + rng.normal(0.0, np.sqrt(v / m), (3, 1, 1))
        sums = n * x + rng.normal(0.0, np.sqrt(n * v))
        estimate, own, common = gaussian_table(sums, n, m, 0.5, trust)
        errors.append(float((q * (estimate - x)).sum()))
    noise = np.full((3, 1, 1), v)
    found = np.sqrt(variances(np.ones((3, 1, 1, 1)), q, np.ones((3, 1, 1)), noise, noise, own, common)[1])
    assert found == pytest.approx(np.std(errors), rel=0.04)


def gaussian_table(sums, n, m, base, trust):
    """`share_table` is linear but for its cut at 0 and 1: moved and shrunk there and back, normal numbers fit."""
    scale = 1e-4
    x, own, common = shared_table(n * 0.5 + scale * (sums - n * base), n, m, 0.5, trust)
    return base + (x - 0.5) / scale, own, common


def test_the_margin_falls_while_no_plan_has_room_and_grows_back():
    caution, plan = Caution(), np.ones((H, 1, 1))
    assert caution.after_plan(plan, 1.0, H, False).plan is plan
    assert caution.after_plan(plan, 1.0, H, False).share == 0.8
    assert caution.after_plan(plan, 0.0, H, False).share == 1.0
    for _ in range(30):
        caution = caution.after_plan(plan, 1.0, H, False)
    assert caution.share == 0.05
    assert caution.after_plan(plan, 0.5e-6 * H, H, False).share == pytest.approx(0.055, rel=1e-12)


def test_revealed_tables_that_no_plan_meets_get_the_benefit_of_the_doubt_for_a_while():
    caution, plan = Caution(share=0.05), np.ones((H, 1, 1))
    assert caution.after_plan(plan, 1.0, H, True).share == 0.0
    for _ in range(30):
        caution = caution.after_plan(plan, 1.0, H, True)
    assert caution.share == -1.0
    assert caution.after_plan(plan, 0.0, H, True).share == -0.975
    for _ in range(100):
        caution = caution.after_plan(plan, 0.0, H, True)
    assert caution.share == 1.0


def test_novelty_is_the_distance_to_the_nearest_remembered_table():
    first, second = np.ones((H, S, A)), -0.5 * np.ones((H, S, A))
    memory = TableMemory(2).meet(first).meet(second)
    assert memory.distance(first) == 0.0
    assert memory.distance(np.full((H, S, A), 0.8)) == pytest.approx(0.25, rel=1e-12)
    assert memory.distance(np.zeros((H, S, A))) == 0.0
    caution = Caution().after_tables((memory,), np.full((1, H, S, A), 0.8))
    assert caution.novelty == pytest.approx(0.125 * 0.25, rel=1e-12)
    assert Caution().after_tables((TableMemory(2),), first[None]).novelty == 0.0


@pytest.mark.parametrize("revealed", [False, True])
@pytest.mark.parametrize("exceeded", [False, True])
@pytest.mark.parametrize("share", [-1.0, -0.5, 0.0, 0.04, 0.05, 0.06, 0.5, 0.95, 1.0])
def test_the_share_of_the_margin_moves_as_the_rule_says(share, exceeded, revealed):
    found = rules.margin_share(share, exceeded, revealed)
    assert found == pytest.approx(plain.share_after(share, exceeded, revealed), rel=1e-14, abs=1e-14)
    assert -1.0 <= found <= 1.0


def test_a_margin_is_futile_only_once_new_tables_keep_coming_and_push_others_out():
    rng = np.random.default_rng(8)
    memory, caution = TableMemory(2), Caution()
    for k in range(12):
        table = rng.uniform(-1, 1, (H, S, A))
        caution, memory = caution.after_tables((memory,), table[None]), memory.meet(table)
        if k < 2:
            assert not caution.margin_is_useless((memory,))
    assert caution.margin_is_useless((memory,))
    for _ in range(20):
        caution = caution.after_tables((memory,), memory.tables[0][None])
    assert not caution.margin_is_useless((memory,))
