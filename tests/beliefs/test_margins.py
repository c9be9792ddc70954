import numpy as np
import pytest
from instances import conditional, forward, random_kernel, random_policy

from omdpd.beliefs.margins import Caution, distance, standard_error
from omdpd.beliefs.revealed import TableMemory
from omdpd.beliefs.sharing import POOLED, SharedBeliefs, SharedTable
from omdpd.solvers.compiled.lookahead import kernel_variance, noise_variance
from omdpd.solvers.compiled.sharing import shared_kernel, shared_table

H, S, A = 4, 3, 2
NEARLY_NONE = 1e-9


def beliefs_of(kernel, own, common):
    empty = SharedTable(*(np.zeros(own.shape) for _ in range(4)))
    return SharedBeliefs(kernel, own, common, empty, (), 1.0, 1.0, 0.25)


def twin(q, p, d, own, common):
    """The variance of d.q that is due to the kernel, in plain NumPy."""
    policy, after = conditional(q), np.zeros(q.shape[1])
    total, linear = 0.0, np.zeros(q.shape[1:])
    for h in reversed(range(len(q))):
        mean = p[h] @ after if h + 1 < len(q) else np.zeros(q.shape[1:])
        variance = p[h] @ after**2 - mean**2 if h + 1 < len(q) else np.zeros(q.shape[1:])
        total += (q[h] ** 2 * variance * own[h]).sum()
        linear += q[h] * np.sqrt(np.maximum(variance, 0.0) * common[h])
        after = (policy[h] * (d[h] + mean)).sum(-1)
    return total + (linear**2).sum()


@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_variance_is_the_formula(seed):
    rng = np.random.default_rng(seed)
    p, mu = random_kernel(rng, H, S, A), rng.dirichlet(np.ones(S))
    q, d = forward(random_policy(rng, H, S, A), p, mu), rng.uniform(-1, 1, (H, S, A))
    own, common, noise = rng.random((3, H, S, A))
    assert kernel_variance(q, conditional(q), p, d, own, common) == pytest.approx(twin(q, p, d, own, common), rel=1e-10)
    expected = (q**2 * noise * own).sum() + ((q * np.sqrt(noise * common)).sum(0) ** 2).sum()
    assert noise_variance(q, noise, own, common) == pytest.approx(expected, rel=1e-12)


def test_one_step_has_the_standard_error_of_a_mean():
    """H = 1, one state, actions 3/4 and 1/4, costs met 8 and 2 times: se^2 = (9/16) v/8 + (1/16) v/2."""
    q = np.array([[[0.75, 0.25]]])
    n = np.array([[[8.0, 2.0]]])
    observed = SharedTable(np.zeros((1, 1, 2)), 1.0 / n, np.zeros((1, 1, 2)), np.full((1, 1, 2), 0.96))
    none = np.zeros((1, 1, 2))
    found = standard_error(beliefs_of(np.ones((1, 1, 2, 1)), none, none), q, observed.mean, observed)
    assert found == pytest.approx(np.sqrt(0.96 * (9 / 16 / 8 + 1 / 16 / 2)), rel=1e-12)


def sampled_kernels(rng, p, n, draws, m):
    """Estimates of the kernel from n departures per row, again and again."""
    for _ in range(draws):
        seen = np.zeros_like(p)
        seen[:-1] = rng.multinomial(n, p[:-1])
        yield shared_kernel(seen, np.full(p.shape[:3], float(n)), m, NEARLY_NONE)


def test_the_standard_error_is_the_spread_of_estimates_whose_steps_are_apart():
    """Monte Carlo: the cost of one policy under 3000 estimated kernels, no sharing."""
    rng = np.random.default_rng(5)
    p, mu, policy = random_kernel(rng, H, S, A), rng.dirichlet(np.ones(S)), random_policy(rng, H, S, A)
    d, n = rng.uniform(-1, 1, (H, S, A)), 100
    q = forward(policy, p, mu)
    costs, errors = [], []
    for kernel, own, common in sampled_kernels(rng, p, n, 3000, NEARLY_NONE):
        costs.append(float((forward(policy, kernel, mu) * d).sum()))
        errors.append(standard_error(beliefs_of(kernel, own, common), q, d))
    assert np.mean(errors) == pytest.approx(np.std(costs), rel=0.07)


def test_the_standard_error_is_near_and_not_below_the_spread_where_steps_are_pooled():
    """The errors of one row are added over the steps as if they were one, which is at most too careful."""
    rng = np.random.default_rng(6)
    p = np.repeat(random_kernel(rng, 1, S, A), H, axis=0)
    mu, policy, d = rng.dirichlet(np.ones(S)), random_policy(rng, H, S, A), rng.uniform(-1, 1, (H, S, A))
    q = forward(policy, p, mu)
    costs, errors = [], []
    for kernel, own, common in sampled_kernels(rng, p, 50, 3000, POOLED):
        costs.append(float((forward(policy, kernel, mu) * d).sum()))
        errors.append(standard_error(beliefs_of(kernel, own, common), q, d))
    assert 0.95 * np.std(costs) <= np.mean(errors) <= 1.6 * np.std(costs)


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
    found = np.sqrt(noise_variance(q, np.full((3, 1, 1), v), own, common))
    assert found == pytest.approx(np.std(errors), rel=0.04)


def gaussian_table(sums, n, m, base, trust):
    """`shared_table` is linear but for its cut at 0 and 1: moved and shrunk there and back, normal numbers fit."""
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
    assert distance(memory, first) == 0.0
    assert distance(memory, np.full((H, S, A), 0.8)) == pytest.approx(0.25, rel=1e-12)
    assert distance(memory, np.zeros((H, S, A))) == 0.0
    caution = Caution().after_tables((memory,), np.full((1, H, S, A), 0.8))
    assert caution.novelty == pytest.approx(0.125 * 0.25, rel=1e-12)
    assert Caution().after_tables((TableMemory(2),), first[None]).novelty == 0.0


def test_a_margin_is_futile_only_once_new_tables_keep_coming_and_push_others_out():
    rng = np.random.default_rng(8)
    memory, caution = TableMemory(2), Caution()
    for k in range(12):
        table = rng.uniform(-1, 1, (H, S, A))
        caution, memory = caution.after_tables((memory,), table[None]), memory.meet(table)
        if k < 2:
            assert not caution.futile((memory,))
    assert caution.futile((memory,))
    for _ in range(20):
        caution = caution.after_tables((memory,), memory.tables[0][None])
    assert not caution.futile((memory,))
