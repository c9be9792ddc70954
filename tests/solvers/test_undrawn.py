"""Policies that never draw: the best of all, with a bound that no such policy exceeds."""

from itertools import product
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omdpd import CMDP, Policy
from omdpd.solvers import undrawn

ENDLESS = ({"discount": 0.8}, {"criterion": "average"})


def tiny(seed, n_budgets, how):
    rng = np.random.default_rng(seed)
    law, reward, cost = rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2)), rng.random((n_budgets, 3, 2))
    free = CMDP.from_arrays(law, reward, cost, budget=None, initial=[1, 0, 0], **how).solve()
    budget = 0.5 * (free.least_costs + free.evaluation.costs)
    return CMDP.from_arrays(law, reward, cost, budget=budget + 1e-3, initial=[1, 0, 0], **how)


def all_pure(cmdp):
    """What every policy without randomness earns and costs, one by one."""
    H, S, A = cmdp.shape
    for actions in product(range(A), repeat=H * S):
        table = np.eye(A)[np.array(actions).reshape(H, S)]
        yield Policy(table[0] if cmdp.discount is not None else table).evaluate(cmdp)


@pytest.mark.parametrize("how", [{"horizon": 2}, {"horizon": 3}, *ENDLESS], ids=str)
@pytest.mark.parametrize("n_budgets", [1, 2])
def test_it_is_proved_the_best_of_all_in_tiny_problems(how, n_budgets):
    """Every policy without randomness is evaluated, one by one."""
    n_safe = 0
    for seed in range(12):
        cmdp = tiny(seed, n_budgets, how)
        found = cmdp.solve()
        safe = [each.value for each in all_pure(cmdp) if each.safe]
        alone = found.deterministic()
        assert alone.proved
        if not safe:
            assert not alone
            assert not found.feasible or str(alone).startswith("there is none")
            continue
        n_safe += 1
        assert alone.evaluation.safe
        assert alone.evaluation.value == pytest.approx(max(safe), abs=1e-9)
        assert alone.at_most == pytest.approx(max(safe), abs=1e-9)
        assert alone.loss == pytest.approx(found.value - max(safe), abs=1e-9)
        assert str(alone).endswith("proved the best that never draws")
    assert n_safe > 3


@pytest.mark.parametrize("parts", [0, 1, 2, 4])
@pytest.mark.parametrize("how", [{"horizon": 3}, *ENDLESS], ids=str)
def test_a_search_that_is_cut_short_has_a_bound_that_none_exceeds(monkeypatch, how, parts):
    monkeypatch.setattr(undrawn, "MOST_PARTS", parts)
    n_proved = 0
    for seed in range(20, 32):
        cmdp = tiny(seed, 1, how)
        alone = cmdp.solve().deterministic()
        best = max(each.value for each in all_pure(cmdp) if each.safe)
        assert alone.evaluation.value - 1e-9 <= best <= alone.at_most + 1e-9
        n_proved += alone.proved
        assert alone.proved or f"at most {alone.at_most - alone.evaluation.value:.3g} below the best" in str(alone)
    assert parts or n_proved < 12


def test_bounds_are_in_the_users_units():
    """The same shop in cents: a hundred times the euros."""
    law, profit, hold, _, _, allowed = shop()
    alone = [
        CMDP.from_arrays(law, k * profit, k * hold, 39.0 * k, np.eye(20)[5], 6, allowed=allowed).solve().deterministic()
        for k in (1.0, 100.0)
    ]
    assert 100.0 * alone[0].at_most == pytest.approx(alone[1].at_most)
    assert alone[0].proved


@given(st.integers(0, 2000), st.integers(1, 3), st.sampled_from([{"horizon": 4}, *ENDLESS]))
def test_what_is_returned_is_safe_and_no_change_of_one_place_is_better(seed, n_budgets, how):
    cmdp = tiny(seed, n_budgets, how)
    found = cmdp.solve()
    alone = found.deterministic()
    if not alone:
        assert n_budgets > 1 or not found.feasible
        return
    assert alone.evaluation.safe
    assert alone.evaluation.value <= found.bound + 1e-9
    table = np.asarray(alone.policy)
    assert set(np.unique(table)) <= {0.0, 1.0}
    for place in product(*(range(n) for n in table.shape[:-1])):
        other = table.copy()
        other[place] = 1.0 - table[place]
        changed = Policy(other).evaluate(cmdp)
        assert not changed.safe or changed.value <= alone.evaluation.value + 1e-9


def shop(n_states=20, sizes=(0, 3, 6, 9, 12), rate=4.0):
    """A store that orders in lots: law, profit, holding cost, minus what is served, mean demand, what is allowed."""
    demand = np.array([rate**d / factorial(d) for d in range(15)])
    demand /= demand.sum()
    S, A = n_states, len(sizes)
    law, profit, hold, served = np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A)), np.zeros((S, A))
    for s, a in np.ndindex(S, A):
        for d, p in enumerate(demand if s + sizes[a] < S else ()):
            left = max(s + sizes[a] - d, 0)
            law[s, a, left] += p
            hold[s, a] += p * 0.5 * left
            served[s, a] += p * min(d, s + sizes[a])
        profit[s, a] = 9 * served[s, a] - 5 * sizes[a] - 8 * (a > 0)
    allowed = np.add.outer(np.arange(S), sizes) < S
    return law, profit, hold, -served, float(demand @ np.arange(15)), allowed


@pytest.mark.parametrize(
    ("how", "steps", "at_least"), [({"discount": 0.95}, 20, 220.8037), ({"criterion": "average"}, 1, 10.8713)], ids=str
)
def test_two_budgets_that_no_policy_of_the_mixture_meets(how, steps, at_least):
    """By hand the best order-up-to rules earn 215.053 and 10.0482; others earn more."""
    law, profit, hold, served, mean, allowed = shop()
    cmdp = CMDP.from_arrays(
        law, profit, [hold, served], budget=[1.7 * steps, -0.95 * mean * steps], initial=np.eye(20)[5],
        allowed=allowed, **how,
    )  # fmt: skip
    found = cmdp.solve()
    assert not any(each.evaluation.safe for each in found.pure_policies())
    alone = found.deterministic()
    assert alone.evaluation.safe
    assert alone.policy.evaluate(cmdp).value >= at_least
    assert alone.proved
    cmdp.mask.refuse(alone.policy.table)  # what it plays exists


def test_one_budget_of_an_average():
    """Order 9 at none, else nothing: found by trying order-up-to rules one by one, and proved the best of all."""
    law, profit, hold, _, _, allowed = shop()
    start = np.eye(20)[5]
    cmdp = CMDP.from_arrays(law, profit, hold, 1.3, start, allowed=allowed, criterion="average")
    alone = cmdp.solve().deterministic()
    assert alone.evaluation.value >= 10.17996
    assert alone.proved


def test_where_there_is_none_it_says_so(monkeypatch):
    """One step, two actions, each of which exceeds a budget: only a coin meets both."""
    coin = CMDP.from_arrays(np.ones((1, 2, 1)), [[0, 1]], [[[1, 0]], [[0, 1]]], budget=[0.5, 0.5], horizon=1)
    alone = coin.solve().deterministic()
    assert not alone
    assert str(alone).startswith("there is none")
    monkeypatch.setattr(undrawn, "MOST_PARTS", 0)
    unproved = coin.solve().deterministic()
    assert not unproved.proved
    assert str(unproved).startswith("none found")
    assert "over budget" in str(alone)
    assert alone.evaluation.costs.tolist() in ([0, 1], [1, 0])
    impossible = coin.with_budget([0.5, 0.4]).solve()
    assert not impossible.deterministic()
    assert str(impossible.deterministic()).startswith(impossible.impossible)


def test_what_must_never_be_paid_is_not_paid():
    """Action 1 earns most and costs a little; a budget of 0 leaves the best of the others."""
    cmdp = CMDP.from_arrays(np.ones((1, 3, 1)), [[0, 1, 0.5]], [[0, 1e-3, 0]], budget=0.0, horizon=3)
    alone = cmdp.solve().deterministic()
    assert (alone.evaluation.value, alone.evaluation.costs[0]) == (1.5, 0.0)


def test_the_nearest_exceeds_its_budget_least_as_a_share_of_it():
    """Two over of a thousand are nearer than one over of one, though costs of the second are counted in thousands."""
    cost = [[[1002, 0]], [[0, 2000]]]
    near = CMDP.from_arrays(np.ones((1, 2, 1)), [[0, 1]], cost, budget=[1000, 1000], horizon=1).solve().deterministic()
    assert not near
    assert near.evaluation.costs.tolist() == [1002, 0]
    cost = [[[1002, 0]], [[0, 1.5]]]
    near = CMDP.from_arrays(np.ones((1, 2, 1)), [[0, 1]], cost, budget=[1000, 1], horizon=1).solve().deterministic()
    assert near.evaluation.costs.tolist() == [1002, 0]
