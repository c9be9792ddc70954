"""Limits that hold in every episode, and chances to exceed them, against sums over all that can happen."""

import numpy as np
import pytest

from omdpd import CMDP, InvalidInputError, Labels
from omdpd.play.simulate import trajectory_under
from omdpd.problem.machine_memory import TooLargeError
from omdpd.problem.spent import size_with_spent


def whole_costs(seed, horizon=4, n_states=4, by_step=False):
    """Random laws with costs 0, 1, 2 (of which an episode may cost 4 on average), and one more constraint."""
    rng = np.random.default_rng(seed)
    steps = (horizon,) if by_step else ()
    p = rng.dirichlet(np.full(n_states, 0.5), (*steps, n_states, 3))
    cost = rng.integers(0, 3, (1, *steps, n_states, 3)).astype(float)
    reward = 0.3 * rng.random(cost.shape[1:]) + 0.3 * cost[0]
    return CMDP.from_arrays(p, reward, cost, None, rng.dirichlet(np.ones(n_states)), None if by_step else horizon)


def law_of_totals(cmdp, grown, policy, limit):
    """{(spent so far, whether ever above the limit): probability} at the end, from every path on its own."""
    H, S, A = cmdp.shape
    cost = cmdp.cost[0] * cmdp.cost_scale[0]
    paths = {(s, 0.0, False): float(cmdp.initial[s]) for s in range(S)}
    for h in range(H):
        after = {}
        for (s, spent, over), mass in paths.items():
            place = (limit + 1 if over else round(spent)) * S + s
            for a in range(A):
                total = spent + cost[h, s, a]
                for t in range(S):
                    chance = mass * policy[h, place, a] * cmdp.transition[h, s, a, t]
                    if chance > 0.0:
                        key = (t, total, over or total > limit + 1e-9)
                        after[key] = after.get(key, 0.0) + chance
        paths = after
    return paths


def test_by_hand():
    """Working earns and costs 1, three times; more than 2 only with probability .25: 2 + .25."""
    one = CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.0, 1.0]], budget=None, horizon=3)
    hard, chance = one.with_spent(0, [0, 1, 2]), one.with_spent(0, [0, 1, 2], 0.25)
    assert hard.solve().value == pytest.approx(2.0)
    assert chance.solve().value == pytest.approx(2.25)
    assert chance.shape == (3, 4, 2)
    assert chance.labels.states == (
        "state 0, 0 spent",
        "state 0, 1 spent",
        "state 0, 2 spent",
        "state 0, over the limit",
    )
    assert chance.labels.constraints == ("constraint 0", "chance of constraint 0 above 2")
    assert chance.solve().evaluation.costs == pytest.approx([2.25, 0.25])
    assert chance.curve(1).prices == pytest.approx([1.0])


@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize(("seed", "chance"), [(0, 0.0), (1, 0.1), (2, 0.3)])
def test_the_chance_is_that_of_all_paths_and_the_value_is_kept(seed, chance, by_step):
    cmdp = whole_costs(seed, by_step=by_step)
    grown = cmdp.with_spent(0, range(5), chance)
    found = grown.solve()
    assert found.feasible
    paths = law_of_totals(cmdp, grown, found.policy.table, 4)
    above = sum(mass for (_, _, over), mass in paths.items() if over)
    mean = sum(mass * total for (_, total, _), mass in paths.items())
    assert above == pytest.approx(found.evaluation.costs[1], abs=1e-12)
    assert above <= chance + 1e-9
    assert mean == pytest.approx(found.evaluation.costs[0], abs=1e-9)
    free = cmdp.solve().value
    assert found.value <= free + 1e-9
    if found.shadow_prices[1] > 1e-9:
        assert above == pytest.approx(chance, abs=1e-9)


def test_episodes_that_are_played_exceed_the_limit_as_often():
    cmdp = whole_costs(5)
    grown = cmdp.with_spent(0, range(5), 0.2)
    policy = grown.solve().policy.table
    rng, cost, n = np.random.default_rng(0), cmdp.cost[0] * cmdp.cost_scale[0], 4000
    over = 0
    for _ in range(n):
        states, actions = trajectory_under(grown.laws, policy, grown.initial, rng.random((4, 2)))
        over += cost[np.arange(4), states % 4, actions].sum() > 4.0
    assert over / n == pytest.approx(0.2, abs=4.0 * np.sqrt(0.16 / n))


def test_sums_between_levels_are_refused_or_rounded_up():
    p = np.ones((1, 2, 1))
    odd = CMDP.from_arrays(p, [[0.0, 1.0]], [[0.0, 0.7]], budget=None, horizon=3)
    with pytest.raises(InvalidInputError, match=r"0 and the cost 0\.7 of state 0, action 1 make 0\.7, which is none"):
        odd.with_spent(0, [0, 1, 2])
    assert odd.with_spent(0, [0, 1, 2], round_up=True).solve().value == pytest.approx(2.0)
    assert odd.with_spent(0, [0, 0.7, 1.4]).solve().value == pytest.approx(2.0)


def test_bad_levels_are_named_and_a_size_is_told_before_anything_is_built(monkeypatch):
    cmdp = whole_costs(0)
    for levels, sentence in (
        ([1, 2], "levels must hold 0"), ([0, 2, 2], r"levels\[2\] = 2 is not above"), ([], "length 0"),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match=sentence):
            cmdp.with_spent(0, levels)
    with pytest.raises(InvalidInputError, match="there is no constraint 3; there are constraint 0"):
        cmdp.with_spent(3, [0, 1])
    with pytest.raises(InvalidInputError, match=r"chance is 1\.5"):
        cmdp.with_spent(0, [0, 1], 1.5)
    assert size_with_spent(cmdp, range(9))[0] == 40
    monkeypatch.setattr("omdpd.problem.machine_memory.machine_bytes", lambda: 1000)
    with pytest.raises(TooLargeError, match="a problem of 40 states needs about"):
        cmdp.with_spent(0, range(9))


@pytest.mark.parametrize("constraint", [0.0, True, 1, -1, "0", None])
def test_a_constraint_that_is_none_is_refused(constraint):
    with pytest.raises(InvalidInputError, match="there is no constraint"):
        whole_costs(0).with_spent(constraint, range(9))


def test_a_constraint_may_be_named():
    cmdp = whole_costs(0)
    fuel = cmdp.labelled("own", Labels(constraints=("fuel",)))
    assert fuel.with_spent("fuel", range(9)).solve().value == cmdp.with_spent(0, range(9)).solve().value


@pytest.mark.parametrize("chance", [True, "0.1", None, -0.1, 1.1, float("nan")])
def test_a_chance_that_is_none_is_refused(chance):
    with pytest.raises(InvalidInputError, match="chance is "):
        whole_costs(0).with_spent(0, range(9), chance)


@pytest.mark.parametrize("seed", range(20))
def test_the_price_of_a_hard_limit_is_what_a_little_chance_earns(seed):
    """The slope between no chance and a tiny one; the bound is proved by the price itself."""
    cmdp = whole_costs(seed, horizon=5)
    hard = cmdp.with_spent(0, range(4)).solve()
    if hard.feasible:
        little = cmdp.with_spent(0, range(4), 1e-7).solve()
        assert hard.shadow_prices[1] == pytest.approx((little.value - hard.value) / 1e-7, rel=1e-3, abs=1e-6)
        assert hard.cmdp.curve(1).price(0.0) == pytest.approx(hard.shadow_prices[1], rel=1e-6)


@pytest.mark.parametrize("chance", [0.5, 1e-14, 1e-200])
def test_never_is_no_question_of_how_likely(chance):
    """Whatever is played, the dear state may follow; playing 1 there earns more, and is dear for sure."""
    p = np.array([[[1 - chance, chance], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]])
    one = CMDP.from_arrays(p, [[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]], None, [1.0, 0.0], horizon=2)
    found = one.with_spent(0, [0]).solve()
    assert not found.feasible
    assert f"the least possible cost is {chance:.6g}" in found.impossible
    assert found.evaluation.costs[1] == chance
    assert not one.with_budget(0.0).solve().feasible
    assert one.with_spent(0, [0, 1]).solve().value == pytest.approx(1.0 + 0.5)
    far = CMDP.from_arrays(one.laws, [[0.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]], 0.0, [1.0, 0.0])
    assert not far.solve().feasible


def possible(cmdp, limit):
    """The best value where the limit is never exceeded, by what can follow at all; minus infinity where none is."""
    H, S, A = cmdp.shape
    cost, p = cmdp.cost[0] * cmdp.cost_scale[0], cmdp.transition
    values = np.zeros((limit + 1, S))
    for h in reversed(range(H)):
        before = np.full_like(values, -np.inf)
        for spent, s, a in np.ndindex(limit + 1, S, A):
            total = spent + round(cost[h, s, a])
            if total <= limit:
                follows = p[h, s, a] > 0.0
                value = cmdp.reward[h, s, a] + (p[h, s, a, follows] @ values[total, follows] if h + 1 < H else 0.0)
                before[spent, s] = max(before[spent, s], value)
        values = before
    begins = cmdp.initial > 0.0
    return float(cmdp.initial[begins] @ values[0, begins])


@pytest.mark.parametrize("seed", range(12))
def test_a_hard_limit_is_kept_where_what_can_follow_allows_it(seed):
    rng = np.random.default_rng(100 + seed)
    cmdp = whole_costs(200 + seed, horizon=5)
    p = np.where(rng.random(cmdp.transition[0].shape) < 0.4, 0.0, cmdp.transition[0]) + 1e-13 * np.eye(4)[:, None]
    p = np.where(p > 0.1, p, np.where(p > 0.0, 1e-13, 0.0))
    cmdp = CMDP.from_arrays(
        p / p.sum(axis=-1, keepdims=True), cmdp.reward[0], cmdp.cost[0, 0] * cmdp.cost_scale[0], None, horizon=5
    )
    for limit in range(8):
        best, found = possible(cmdp, limit), cmdp.with_spent(0, range(limit + 1)).solve()
        assert found.feasible == (best > -np.inf)
        if found.feasible:
            assert found.value == pytest.approx(best, abs=1e-9)
            assert found.evaluation.costs[1] == 0.0


def test_costs_that_are_rounding_do_not_make_a_budget_of_nothing_impossible():
    one = CMDP.from_arrays(np.ones((1, 2, 1)), [[0.5, 1.0]], [[1e-17, 1.0]], 0.0, horizon=3)
    assert one.solve().value == pytest.approx(1.5)


def shop(horizon=6):
    """Stock 0 to 4, order 0 to 2, demand 0 to 3: outcomes, and a problem whose cost is the chance of a stock-out."""
    demand = (0.3, 0.3, 0.25, 0.15)

    def outcomes(s, a):
        return [(p, max(s + a - d, 0), float(d > s + a)) for d, p in enumerate(demand)]

    def kept(s, a):
        return s + a <= 4

    law = [[[(p, t) for p, t, _ in outcomes(s, a) if t < 5] for a in range(3)] for s in range(5)]
    out = np.array([[sum(p * c for p, _, c in outcomes(s, a)) for a in range(3)] for s in range(5)])
    profit = np.array([[1.0 - 0.08 * s - 0.2 * a - 0.1 * (a > 0) for a in range(3)] for s in range(5)])
    allowed = np.array([[kept(s, a) for a in range(3)] for s in range(5)])
    made = CMDP.from_arrays(law, profit, out, None, np.eye(5)[2], horizon, allowed=allowed)
    return made, outcomes


def flagged(cmdp, outcomes):
    """The recipe without outcomes: whether the last step had a stock-out is in the state, and is paid a step later."""
    H, S, A = cmdp.shape
    reward = np.zeros((H + 1, 2 * S, A))
    reward[:H] = np.tile(cmdp.reward, (1, 2, 1))
    cost = np.zeros((H + 1, 2 * S, A))
    cost[:, S:] = 1.0
    p = np.zeros((2 * S, A, 2 * S))
    for s, a in np.ndindex(2 * S, A):
        for chance, t, paid in outcomes(s % S, a) if cmdp.mask.allowed[0, s % S, a] else ():
            p[s, a, t + S * int(paid)] += chance
    p = np.broadcast_to(p, (H + 1, *p.shape))
    allowed = np.tile(cmdp.mask.allowed[0], (2, 1))
    return CMDP.from_arrays(p, reward, cost, None, np.r_[cmdp.initial, np.zeros(S)], allowed=allowed)


@pytest.mark.parametrize("chance", [0.0, 0.02, 0.1, 0.3])
@pytest.mark.parametrize("limit", [0, 1, 2])
def test_random_costs_are_exact_by_their_outcomes(limit, chance):
    """Two ways to the same number: outcomes, and the event as a part of the state."""
    cmdp, outcomes = shop()
    found = cmdp.with_spent(0, range(limit + 1), chance, outcomes=outcomes).solve()
    wanted = flagged(cmdp, outcomes).with_spent(0, range(limit + 1), chance).solve()
    assert found.feasible == wanted.feasible
    if found.feasible:
        assert found.value == pytest.approx(wanted.value, abs=1e-9)
        assert found.evaluation.costs == pytest.approx(wanted.evaluation.costs, abs=1e-9)


def test_a_simulated_month_exceeds_its_limit_as_often_as_was_said():
    cmdp, outcomes = shop()
    H, S, A = cmdp.shape
    policy = cmdp.with_spent(0, range(2), 0.1, outcomes=outcomes).solve().policy.table
    rng, n, over = np.random.default_rng(0), 20_000, 0
    for _ in range(n):
        s, spent = 2, 0
        for h in range(H):
            a = rng.choice(A, p=policy[h, min(spent, 2) * S + s])
            given = outcomes(s, a)
            _, s, cost = given[rng.choice(len(given), p=[p for p, _, _ in given])]
            spent += int(cost)
        over += spent > 1
    assert over / n == pytest.approx(0.1, abs=4.0 * np.sqrt(0.09 / n))


def test_outcomes_that_do_not_fit_are_named():
    cmdp, outcomes = shop()
    with pytest.raises(InvalidInputError, match="if costs are random and this a mean, give outcomes instead"):
        cmdp.with_spent(0, [0, 1])
    lists = [[outcomes(s, a) for a in range(3)] for s in range(5)]
    assert cmdp.with_spent(0, [0, 1], 0.1, outcomes=lists).shape == (6, 15, 3)
    for wrong, sentence in (
        ([(1.0, 0, 0.0)], r"outcomes\[2, 1\].* is how far they lead away"),
        ([(1.0, 0)], "no list of"), ([(1.0, 9, 0.0)], "leads to state 9, but there are only 5"),
        ([(p, t, 0.5) for p, t, _ in lists[2][1]], r"outcomes\[2, 1\] .* is their mean cost, which"),
    ):  # fmt: skip
        changed = [list(row) for row in lists]
        changed[2][1] = wrong
        with pytest.raises(InvalidInputError, match=sentence):
            cmdp.with_spent(0, [0, 1], 0.1, outcomes=changed)
    dear = [[[(p, t, 1.5 * c) for p, t, c in entries] for entries in row] for row in lists]
    cost, allowed = 1.5 * cmdp.cost[0, 0] * cmdp.cost_scale[0], cmdp.mask.allowed[0]
    twice = CMDP.from_arrays(cmdp.laws, cmdp.reward[0], cost, None, allowed=allowed)
    with pytest.raises(InvalidInputError, match="an outcome of state 0, action 0 make"):
        twice.with_spent(0, [0, 1, 2], outcomes=dear)
    with pytest.raises(InvalidInputError, match=r"so outcomes\[step\]\[state\]\[action\] are asked for"):
        whole_costs(0, by_step=True).with_spent(0, range(9), outcomes=outcomes)


def test_outcomes_may_change_by_step():
    """Every step is drawn anew: a cost of 0 or 1 by the next state, against the policies of both steps written out."""
    rng, (H, S, A) = np.random.default_rng(8), (3, 2, 2)
    p, reward = rng.dirichlet(np.ones(S), (H, S, A)), rng.random((H, S, A))
    paid = rng.integers(0, 2, (H, S, A, S))
    cost = (p * paid).sum(axis=-1)
    given = [[[[(p[h, s, a, t], t, paid[h, s, a, t]) for t in range(S)] for a in range(A)] for s in range(S)]
             for h in range(H)]  # fmt: skip
    cmdp = CMDP.from_arrays(p, reward, cost, None, labels=Labels(constraints=("lost",)))
    by_name = cmdp.with_spent("lost", range(2), 0.3, outcomes=given)
    found = by_name.solve()
    same = cmdp.with_spent(0, range(2), 0.3, outcomes=lambda h, s, a: given[h][s][a]).solve()
    assert same.value == pytest.approx(found.value, rel=1e-12)
    earned, where = 0.0, {(s, 0): 1.0 / S for s in range(S)}
    for h in range(H):
        after = {}
        for (s, spent), mass in where.items():
            for a, played in enumerate(found.policy.table[h, min(spent, 2) * S + s]):
                earned += mass * played * reward[h, s, a]
                for chance, t, more in given[h][s][a]:
                    after[t, spent + more] = after.get((t, spent + more), 0.0) + mass * played * chance
        where = after
    over = sum(mass for (_, spent), mass in where.items() if spent > 1)
    assert found.value == pytest.approx(earned, abs=1e-9)
    assert found.evaluation.costs[-1] == pytest.approx(over, abs=1e-9)
    assert over <= 0.3 + 1e-9
    dear = [[[list(each) for each in row] for row in step] for step in given]
    dear[1][0][1] = [(chance, t, more + 1) for chance, t, more in dear[1][0][1]]
    with pytest.raises(InvalidInputError, match=r"outcomes\[1, 0, 1\] \(step 1, state 0, action 1\) .* mean cost"):
        cmdp.with_spent("lost", range(2), outcomes=dear)
    with pytest.raises(InvalidInputError, match="there is no constraint 'found'; there are lost"):
        cmdp.with_spent("found", range(2), outcomes=given)


@pytest.mark.parametrize("chance", [0.0, 0.2])
def test_allowed_actions_may_change_by_step(chance):
    """A forbidden action is one whose cost goes over every limit."""
    cmdp, allowed = whole_costs(31), np.random.default_rng(31).random((4, 4, 3)) < 0.7
    allowed[:, :, 0] = True
    cost, reward = cmdp.cost[0] * cmdp.cost_scale[0], cmdp.reward
    p = np.broadcast_to(cmdp.transition, (4, 4, 3, 4))
    masked = CMDP.from_arrays(p, reward, cost, None, cmdp.initial, allowed=allowed).with_spent(0, range(6), chance)
    costs = np.stack([cost, np.where(allowed, 0.0, 1.0)])
    wanted = CMDP.from_arrays(p, reward, costs, [None, 0.0], cmdp.initial).with_spent(0, range(6), chance).solve()
    found = masked.solve()
    assert found.value == pytest.approx(wanted.value, abs=1e-9)
    assert not found.policy.table[~np.tile(allowed, (1, 7, 1))].any()
