"""Problems without an end, against linear programs over their occupancies and answers that are known."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from omdpd import CMDP, InvalidInputError, Policy, ProximalOMDPD, load_problem, run, save_problem
from omdpd.problem.laws import laws_of_entries
from omdpd.solvers import chains, long_run
from omdpd.solvers.compiled.reduction import ROOM_FOR_TIES


def program(p, r, c, b, mu, discount):
    """max r.x over discounted occupancies, or over long-run shares of steps (with what is transient in y); or None."""
    S, A, _ = p.shape
    n, own, into = S * A, np.kron(np.eye(S), np.ones(A)), p.reshape(S * A, S).T
    c = c.reshape(len(c), n)
    if discount < 1.0:
        found = linprog(-r.ravel(), c, b, own - discount * into, mu)
    else:
        flow = np.block([[own - into, np.zeros((S, n))], [own, own - into]])
        found = linprog(np.r_[-r.ravel(), np.zeros(n)], np.c_[c, np.zeros_like(c)], b, flow, np.r_[np.zeros(S), mu])
    return -found.fun if found.status == 0 else None


def instance(seed):
    """Random laws: dense, leading to one state each (several closed classes), or to two."""
    rng = np.random.default_rng(seed)
    S, A, n = (int(rng.integers(low, high)) for low, high in ((2, 12), (1, 5), (1, 4)))
    one = np.eye(S)[rng.integers(0, S, (2, S, A))]
    p = (rng.dirichlet(np.full(S, 0.3), (S, A)), one[0], 0.5 * one.sum(axis=0))[seed % 3]
    return p, rng.random((S, A)), rng.random((n, S, A)), rng.uniform(0.3, 0.6, n), rng.dirichlet(np.ones(S))


def built(p, r, c, b, mu, discount):
    kind = {"criterion": "average"} if discount == 1.0 else {"discount": discount}
    return CMDP.from_arrays(p, r, c, b, mu, **kind)


@pytest.mark.parametrize("discount", [0.5, 0.95, 1.0])
def test_a_hundred_problems_have_the_optimum_of_their_program(discount):
    for seed in range(100):
        p, r, c, rates, mu = instance(seed)
        steps = 1.0 if discount == 1.0 else 1.0 / (1.0 - discount)
        wanted = program(p, r, c, rates * steps, mu, discount)
        found = built(p, r, c, rates * steps, mu, discount).solve()
        assert found.feasible == (wanted is not None), seed
        if wanted is not None:
            assert found.value == pytest.approx(wanted, abs=1e-7 * steps), seed
            assert abs(found.study.plan.bound - found.study.plan.value) <= 1e-10 * steps
            assert found.evaluation.safe
            if discount < 1.0:
                assert found.policy.evaluate(found.cmdp).value == pytest.approx(found.value, abs=1e-9 * steps)
            assert found.occupancy.sum() == pytest.approx(steps)


def test_a_textbook_problem_without_constraints():
    """Puterman's two states at discount .95: staying put earns -1 for ever, so -20; the other state -60/7."""
    p = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    reward = np.array([[5.0, 10.0], [-1.0, -1.0]])
    free = CMDP.from_arrays(
        p, reward, np.zeros((2, 2)), None, [1.0, 0.0], reward_range=(-1.0, 10.0), discount=0.95
    ).solve()
    assert free.value == pytest.approx(-60.0 / 7.0, abs=1e-8)
    assert free.values.reward[0] == pytest.approx([-60.0 / 7.0, -20.0], abs=1e-8)
    assert free.policy.every_step
    assert free.policy.act(10**6, 0) == 0


def test_the_average_of_a_queue_by_hand():
    """Work earns 1 and costs 1 in either of two states that alternate; half of the steps may work."""
    p = np.eye(2)[[[1, 1], [0, 0]]]
    found = CMDP.from_arrays(p, [[0.0, 1.0]] * 2, [[0.0, 1.0]] * 2, budget=0.5, criterion="average")
    assert found.solve().value == pytest.approx(0.5)
    assert found.solve().shadow_prices == pytest.approx([1.0])
    assert found.solve().note == "the policy has one closed class"
    curve = found.curve()
    assert curve.budgets == pytest.approx([0.0, 1.0])
    assert curve.prices == pytest.approx([1.0])
    assert repr(found) == "CMDP(own: 2 states, 2 actions, average per step, budget 0.5)"


def test_where_no_stationary_policy_is_the_optimum_the_solution_says_so():
    """Leave state 0 once, for state 1 that pays and costs 1 or state 2 that does neither: half of the runs may pay."""
    p = np.zeros((3, 2, 3))
    p[0, 0, 1] = p[0, 1, 2] = p[1, :, 1] = p[2, :, 2] = 1.0
    table = [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    mixed = CMDP.from_arrays(p, table, table, 0.5, [1.0, 0.0, 0.0], criterion="average")
    found = mixed.solve()
    assert found.value == pytest.approx(0.5)
    assert found.evaluation.costs == pytest.approx([0.5])
    assert "closed classes" in found.note
    pure = found.pure_policies()
    assert sum(each.share * each.evaluation.value for each in pure) == pytest.approx(0.5)


def test_policies_are_evaluated_as_the_chain_goes():
    rng = np.random.default_rng(3)
    p, table = rng.dirichlet(np.ones(4), (4, 3)), rng.random((4, 3))
    policy = Policy(rng.dirichlet(np.ones(3), 4))
    chain = np.einsum("sa,sat->st", policy.table[0], p)
    earned = (policy.table[0] * table).sum(axis=1)
    mu = np.full(4, 0.25)
    total = sum(0.9**t * mu @ np.linalg.matrix_power(chain, t) @ earned for t in range(400))
    mean = mu @ np.linalg.matrix_power(chain, 400) @ earned
    for kind, value in (({"discount": 0.9}, total), ({"criterion": "average"}, mean)):
        cmdp = CMDP.from_arrays(p, table, table, None, **kind)
        found = policy.evaluate(cmdp)
        assert found.value == pytest.approx(value, abs=1e-12)
        assert found.costs == pytest.approx([value], abs=1e-12)


def test_large_problems_are_solved_by_iterations_to_the_same_numbers(monkeypatch):
    p, r, c, rates, mu = instance(9)
    for discount, steps in ((0.95, 20.0), (1.0, 1.0)):
        cmdp = built(p, r, c, (rates + 0.2) * steps, mu, discount)
        wanted = cmdp.solve().value
        with monkeypatch.context() as patched:
            patched.setattr(chains, "MAX_FACTORISED", 1)
            patched.setattr(chains, "MAX_MULTIPLICATIONS", 0.0)  # nothing is reduced
            assert cmdp.solve().value == pytest.approx(wanted, abs=1e-9)


def ring(n_states, seed=0, n_actions=3, reach=10):
    """Every step leads to five of the nearest states on either side."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(n_states * n_actions), 5)
    following = (row // n_actions + rng.integers(-reach, reach + 1, len(row))) % n_states
    chances = rng.dirichlet(np.ones(5), n_states * n_actions).ravel()
    laws = laws_of_entries(row, following, chances, (1, n_states, n_actions))
    return laws, rng.random((n_states, n_actions)), rng.random((n_states, n_actions))


def in_order(chain, discount):
    return chains.reduced_chain(chain, discount, chains.order_of(chain))


def no_row(kind, n, seed):
    """A walk (n, n) of steps to neighbours: on a tree, a torus, a comb, a ring with far links, or with a hub."""
    rng, p, every = np.random.default_rng(seed), np.zeros((n, n)), np.arange(n)
    side = int(n**0.5)
    away = {
        "tree": [(every - 1) // 2, 2 * every + 1, 2 * every + 2],
        "torus": [(every + step) % (side * side) for step in (1, -1, side, -side)],
        "comb": [every + (every % 10 < 9), every - (every % 10 > 0), np.where(every % 10, every, every + 10)],
        "far links": [every + 1, every - 1, np.where(every % 40, every, rng.integers(0, n, n))],
        "hub": [every + 1, every - 1, 0 * every],
        "apart": [every, np.where(every % 3, every - 1, every)],
    }[kind]
    for to in (*away, np.where(every % 10, every, every - 10) if kind == "comb" else every):
        p[every, to % n] += rng.random(n) + 1e-3
    return csr_matrix(p / p.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kind", ["tree", "torus", "comb", "far links", "hub", "apart"])
@pytest.mark.parametrize("hubs", [1000, 12])
def test_chains_of_every_form_are_reduced_to_the_same_numbers(monkeypatch, kind, hubs):
    monkeypatch.setattr(chains, "MAX_FACTORISED", 1)
    monkeypatch.setattr(chains, "MAX_TIES", hubs)
    chain, n = no_row(kind, 400, 0), 400
    rng = np.random.default_rng(1)
    mu, earned, within = rng.dirichlet(np.ones(n)), rng.random(n), in_order(chain, 0.999)
    system = np.eye(n) - 0.999 * chain.toarray()
    assert within.values(earned) == pytest.approx(np.linalg.solve(system, earned), rel=1e-9)
    assert within.visits(mu) == pytest.approx(np.linalg.solve(system.T, mu), rel=1e-9)
    gain, bias = chains.gain_and_bias(chain, earned)
    found = chains.gain_and_bias(chain, earned, chains.UNKNOWN, in_order(chain, 1.0))
    assert found[0] == pytest.approx(gain, rel=1e-9)
    if kind != "apart":  # biases of closed classes are apart by what they were made of
        assert found[1] - found[1][0] == pytest.approx(bias - bias[0], rel=1e-7, abs=1e-7)
    visits = chains.visits_of(chain, mu, 1.0, None, None)
    assert chains.visits_of(chain, mu, 1.0, None, in_order(chain, 1.0)) == pytest.approx(visits, rel=1e-9, abs=1e-15)


def test_averages_are_proved_where_policies_do_not_settle():
    """Valleys so deep that values of policies there are rounding, summed over the steps until they are left."""
    rng, n, A = np.random.default_rng(3), 5000, 4
    to = (np.arange(n)[:, None, None] + rng.integers(-10, 11, (n, A, 5))) % n
    chances = rng.dirichlet(np.ones(5), (n, A))
    laws = laws_of_entries(np.repeat(np.arange(n * A), 5), to.ravel(), chances.ravel(), (1, n, A))
    found = CMDP.from_arrays(laws, rng.random((n, A)), rng.random((n, A)), 0.4, criterion="average").solve()
    assert found.evaluation.safe
    assert found.gap < 1e-9


@pytest.mark.parametrize("discount", [0.5, 0.99, 0.999999])
def test_chains_with_short_steps_are_reduced_to_the_same_numbers(monkeypatch, discount):
    monkeypatch.setattr(chains, "MAX_FACTORISED", 1)
    laws, table, _ = ring(300)
    rng = np.random.default_rng(1)
    chain, mu = chains.chain_of(laws, rng.dirichlet(np.ones(3), 300)), rng.dirichlet(np.ones(300))
    within, system = in_order(chain, discount), np.eye(300) - discount * chain.toarray()
    assert np.array_equal(np.sort(within.states), np.arange(300))
    found = chains.discounted_values(chain, table[:, 0], discount, chains.UNKNOWN, within)
    assert found == pytest.approx(np.linalg.solve(system, table[:, 0]), rel=1e-9)
    visits = chains.visits_of(chain, mu, discount, None, within)
    assert visits == pytest.approx(np.linalg.solve(system.T, mu), rel=1e-9)
    assert visits.sum() * (1.0 - discount) == pytest.approx(1.0, abs=1e-13)  # what no factors keep at .999999


def test_averages_of_chains_with_short_steps_are_reduced_to_the_same_numbers(monkeypatch):
    laws, table, _ = ring(300)
    rng = np.random.default_rng(1)
    chain, mu = chains.chain_of(laws, rng.dirichlet(np.ones(3), 300)), rng.dirichlet(np.ones(300))
    gain, bias = chains.gain_and_bias(chain, table[:, 0])
    visits = chains.visits_of(chain, mu, 1.0, None, None)
    monkeypatch.setattr(chains, "MAX_FACTORISED", 1)
    within = in_order(chain, 1.0)
    found = chains.gain_and_bias(chain, table[:, 0], chains.UNKNOWN, within)
    assert found[0] == pytest.approx(gain, rel=1e-12)
    assert found[1] - found[1][0] == pytest.approx(bias - bias[0], rel=1e-9, abs=1e-9)
    assert chains.visits_of(chain, mu, 1.0, None, within) == pytest.approx(visits, rel=1e-9)


def test_two_halves_that_are_left_once_in_many_lives_of_the_universe_count_as_closed(monkeypatch):
    """A walk of 600 places that runs to the nearer end earns 1 at the left one, where half of its runs are for good."""
    monkeypatch.setattr(chains, "MAX_FACTORISED", 1)
    n, up = 600, np.where(np.arange(600) < 300, 0.1, 0.9)
    chain = np.zeros((n, n))
    chain[np.arange(n), np.maximum(np.arange(n) - 1, 0)] += 1.0 - up
    chain[np.arange(n), np.minimum(np.arange(n) + 1, n - 1)] += up
    chain, earned = csr_matrix(chain), (np.arange(n) < 300).astype(float)
    within = in_order(chain, 1.0)
    gain, bias = chains.gain_and_bias(chain, earned, chains.UNKNOWN, within)
    assert gain[[0, 250, 350, 599]] == pytest.approx([1.0, 1.0, 0.0, 0.0], abs=1e-12)
    assert chain @ bias - bias + earned == pytest.approx(gain, abs=1e-9)
    visits = chains.visits_of(chain, np.full(n, 1.0 / n), 1.0, None, within)
    assert visits[:300].sum() == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_rings_have_the_averages_of_their_programs(monkeypatch, seed):
    """Also where parts of the ring lead nowhere else (seeds divisible by 3), or where some state lies off the ring."""
    laws, r, c = ring(60 + 10 * seed, seed, reach=2 + seed % 3)
    p, n = laws.expand()[0].copy(), len(r)
    if seed % 3 == 0:
        p[n // 2, :] = np.eye(n)[n // 2]
    if seed % 3 == 1:
        p[0, :] = np.eye(n)[1]
        p[:, :, 1] += p[:, :, 0]
        p[:, :, 0] = 0.0
    mu = np.random.default_rng(seed).dirichlet(np.ones(n))
    wanted = program(p, r, c[None], np.array([0.35]), mu, 1.0)
    monkeypatch.setattr(chains, "MAX_FACTORISED", 1)
    monkeypatch.setattr(long_run, "MAX_FACTORISED", 1)
    cmdp = built(p, r, c[None], np.array([0.35]), mu, 1.0)
    found = cmdp.solve()
    assert found.feasible == (wanted is not None)
    if wanted is not None:
        assert found.value == pytest.approx(wanted, abs=1e-7)
        assert found.gap < 1e-8  # digits of the bound are lost where gains differ
        assert found.evaluation.safe
        each = found.pure_policies()
        assert sum(pure.share * pure.evaluation.value for pure in each) == pytest.approx(found.value, abs=1e-9)


def test_states_are_tied_to_those_that_are_left_of_all_that_went_before(monkeypatch):
    """Also where ties are moved to make room: those of this torus grow sixfold, and move about forty times as much."""
    monkeypatch.setattr(chains, "MAX_FACTORISED", 1)
    chain, tied = no_row("torus", 1600, 0), {}
    for i, j in zip(*chain.nonzero(), strict=True):
        tied.setdefault(i, set()).add(j)
        tied.setdefault(j, set()).add(i)
    order = chains.order_of(chain)
    place = np.argsort(order.states)
    for k, state in enumerate(order.states):
        left = tied.pop(state) - {state}
        assert set(order.later[order.start[k] : order.start[k + 1]]) == set(place[list(left)])
        for i in left:
            tied[i] = (tied[i] | left) - {state, i}


def test_the_search_for_an_order_ends_early_where_ties_outgrow_their_room():
    """About 3000 states go before it ends, and memory stays below twice the room of all ties."""
    rng, n = np.random.default_rng(0), 10_000
    chain = csr_matrix((np.ones(5 * n), (np.repeat(np.arange(n), 5), rng.integers(0, n, 5 * n))), shape=(n, n))
    tracemalloc.start()
    assert chains.order_of(chain) is None
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 2 * ROOM_FOR_TIES * 4 * 10 * n


def test_steps_that_lead_anywhere_are_not_reduced(monkeypatch):
    monkeypatch.setattr(chains, "MAX_FACTORISED", 1)
    monkeypatch.setattr(chains, "MAX_MULTIPLICATIONS", 1e6)
    assert chains.order_of(csr_matrix(np.random.default_rng(0).dirichlet(np.ones(300), 300))) is None
    assert chains.order_of(chains.chain_of(ring(300)[0], np.full((300, 3), 1.0 / 3.0))) is not None


def test_a_ring_has_the_optimum_that_factors_find(monkeypatch):
    laws, r, c = ring(200)
    cmdp = CMDP.from_arrays(laws, r, c, 40.0, discount=0.99)
    wanted = cmdp.solve()
    monkeypatch.setattr(chains, "MAX_FACTORISED", 1)
    found = cmdp.solve()
    assert found.value == pytest.approx(wanted.value, abs=1e-9)
    assert found.study.plan.bound - found.study.plan.value < 1e-9
    assert found.policy.evaluate(cmdp).costs == pytest.approx([40.0])


def test_a_problem_without_an_end_is_kept_and_is_not_learnt(tmp_path):
    p, r, c, rates, mu = instance(0)
    for discount in (0.9, 1.0):
        cmdp = built(p, r, c, rates, mu, discount)
        again = load_problem(save_problem(cmdp, tmp_path / f"{discount}.npz"))
        assert again.discount == discount
        assert again.limits == pytest.approx(cmdp.limits)
        with pytest.raises(InvalidInputError, match="learners play episodes, but this problem has no end"):
            run(cmdp, ProximalOMDPD.standard(), n_episodes=2)
        with pytest.raises(InvalidInputError, match="no end"):
            cmdp.with_spent(0, [0, 1])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"discount": 1.0}, "strictly between 0 and 1"), ({"discount": 0.9, "horizon": 4}, "give one of horizon"),
        ({"criterion": "mean"}, "criterion is 'mean'"), ({"criterion": "average", "discount": 0.9}, "give one of"),
    ],
)  # fmt: skip
def test_what_is_no_criterion_is_refused(given, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        CMDP.from_arrays(np.ones((1, 1, 1)), [[1.0]], [[1.0]], 1.0, **given)


@pytest.mark.parametrize("seed", range(14900, 14912))
def test_a_discounted_budget_of_zero_is_kept_without_a_tolerance(seed):
    """Every policy is tried: of those that never come to what costs, however rarely, the best."""
    rng = np.random.default_rng(seed)
    law = np.where(rng.random((4, 2, 4)) < 0.5, 1e-13, 1.0) * (rng.random((4, 2, 4)) < 0.4)
    law[:, :, 0] += law.sum(axis=2) == 0.0
    law /= law.sum(axis=2, keepdims=True)
    reward, cost = rng.random((4, 2)), np.where(rng.random((4, 2)) < 0.25, 1.0, 0.0)
    cmdp = CMDP.from_arrays(law, reward, cost, 0.0, [1, 0, 0, 0], discount=0.9)
    values = []
    for actions in product(range(2), repeat=4):
        rows, reached = law[range(4), actions], np.array([True, False, False, False])
        for _ in range(4):
            reached |= reached @ (rows > 0.0)
        if not cost[range(4), actions][reached].any():
            values.append(np.linalg.solve(np.eye(4) - 0.9 * rows, reward[range(4), actions])[0])
    found = cmdp.solve()
    assert found.feasible == bool(values)
    if values:
        assert found.value == pytest.approx(max(values), abs=1e-9)
        assert found.evaluation.costs[0] <= 1e-15
        assert found.deterministic().proved
    else:
        assert "no policy meets the budget 0" in found.impossible


@pytest.mark.parametrize("unit", [1.0, 1e-20])
def test_a_large_chain_that_mixes_is_solved_by_iterations_in_any_unit(unit, monkeypatch):
    monkeypatch.setattr(chains, "splu", None)  # factors of such a chain would fill the memory
    rng = np.random.default_rng(5)
    n = 3000
    p = csr_matrix((rng.dirichlet(np.ones(5), n).ravel(), rng.integers(0, n, 5 * n), 5 * np.arange(n + 1)), (n, n))
    right = unit * rng.random(n)
    found = chains._solved(0.9 * p, right)
    assert np.abs(found - 0.9 * (p @ found) - right).max() <= 1e-13 * np.abs(found).max()
