"""The trade-off of one budget where another binds as well, against linear programs over occupancies."""

import csv
import re
from math import comb

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, eye, hstack, kron, vstack

from omdpd import CMDP
from omdpd.solvers import trade_off
from omdpd.worlds import garnet

EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
KINDS = [{"horizon": 6}, {"discount": 0.95}, {"criterion": "average"}]


def program(cmdp, budgets):
    """The best value and the price of every budget, from the program in the user's units; None where none is met."""
    H, S, A = cmdp.shape
    p, low, high = cmdp.transition, *cmdp.reward_range
    played = np.ones((S, A), bool) if cmdp.mask is None else cmdp.mask.allowed[0]
    reward = (low + (high - low) * cmdp.reward) * np.ones((H, S, A))
    costs = (cmdp.cost * cmdp.cost_scale[:, None, None, None] * np.ones((H, S, A))).reshape(len(cmdp.budget), -1)
    leaves, lands = kron(eye(S), np.ones((1, A))), csr_matrix(p[0].reshape(S * A, S).T)
    if cmdp.discount is None:
        flow, start = kron(eye(H), leaves) - kron(eye(H, k=-1), lands), np.r_[cmdp.initial, np.zeros((H - 1) * S)]
    elif cmdp.discount < 1.0:
        flow, start = leaves - cmdp.discount * lands, cmdp.initial
    else:  # what is visited for ever, and what is passed before
        flow = vstack([hstack([leaves - lands, csr_matrix((S, S * A))]), hstack([leaves, leaves - lands])])
        start = np.r_[np.zeros(S), cmdp.initial]
        reward, costs = np.r_[reward, np.zeros((1, S, A))], np.c_[costs, np.zeros_like(costs)]
    n = reward.size // (S * A)
    most = [(0.0, None if may else 0.0) for may in np.tile(played.ravel(), n)]
    found = linprog(-reward.ravel(), costs, budgets, flow.tocsr(), start, bounds=most, options=EXACT)
    return (-found.fun, -found.ineqlin.marginals) if found.status == 0 else None


def queue(budgets, **criterion):
    """Forty places; nobody may enter, somebody, or somebody with a second agent: hours that are spent, people served.

    That long queues cost next to nothing because they are next to never there makes breakpoints at any price.
    """
    S, A = 40, 3
    p, reward, hours, served = np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A)), np.zeros((S, A))
    arrivals = [comb(5, k) / 32.0 for k in range(6)]
    for s, a in np.ndindex(S, A):
        n, hours[s, a] = (1, 2, 4)[a], (0.5, 1.0, 2.0)[a]
        for j in range(n + 1):
            for i, come in enumerate(arrivals):
                chance, done = comb(n, j) * 0.85**j * 0.15 ** (n - j) * come, min(j, s)
                enter = min(i, S - 1 - s + done) if a else 0
                p[s, a, s - done + enter] += chance
                served[s, a] += chance * done
                reward[s, a] += chance * (12.5 * done - 3.0 * (i - enter))
        reward[s, a] -= 0.8 * s + 15.0 * hours[s, a]
    allowed = np.ones((S, A), bool)
    allowed[0, 2] = False
    allowed[35:, 1:] = False
    return CMDP.from_arrays(
        p, reward, [hours, -served], budgets, np.eye(S)[3], allowed=allowed, **criterion
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: next(iter(kind)))
@pytest.mark.parametrize("seed", range(8))
def test_the_curve_is_the_program_at_every_budget_where_another_binds(seed, kind):
    drawn = garnet.make(np.random.default_rng(seed), 6, 8, 3, branching=3, n_constraints=2)
    tables = drawn.transition[0], drawn.reward[0], drawn.cost[:, 0]
    free = CMDP.from_arrays(*tables, [None, None], drawn.initial, **kind).solve()
    other = free.least_costs[1] + 0.3 * (free.evaluation.costs[1] - free.least_costs[1])
    curve = CMDP.from_arrays(*tables, [None, other], drawn.initial, **kind).curve(0)
    assert curve.complete
    ends, both = curve.budgets[[0, -1]], 0
    cmdp = CMDP.from_arrays(*tables, [float(ends.mean()), other], drawn.initial, **kind)
    for budget in [*np.linspace(*ends, 9)[1:], *(0.5 * (curve.budgets[1:] + curve.budgets[:-1]))]:
        value, prices = program(cmdp, [budget, other])
        both += prices[0] > 1e-6 and prices[1] > 1e-6
        assert curve.value(budget) == pytest.approx(value, abs=1e-7 * cmdp.steps)
    assert both > 2
    assert program(cmdp, [ends[0] - 1e-4 * cmdp.steps, other]) is None


@pytest.mark.parametrize(
    ("budgets", "criterion"),
    [
        ([110.0, -180.0], {"discount": 0.99}),
        ([120.0, -190.0], {"discount": 0.99}),
        ([1.2, -1.9], {"criterion": "average"}),
        ([28.0, -44.0], {"horizon": 24}),
    ],
)
def test_breakpoints_that_crowd_at_the_least_budget_leave_the_rest_exact(budgets, criterion, monkeypatch, tmp_path):
    asked = []
    best = trade_off._best
    monkeypatch.setattr(trade_off, "_best", lambda *how: asked.append(how) or best(*how))
    cmdp = queue(budgets, **criterion)
    curve, found = cmdp.curve("constraint 0"), cmdp.solve()
    assert len(asked) < 1200
    value, prices = program(cmdp, budgets)
    assert found.value == pytest.approx(value, rel=1e-8)
    assert curve.value(budgets[0]) == pytest.approx(found.value, rel=1e-12)
    assert curve.price(budgets[0]) == pytest.approx(found.shadow_prices[0], rel=1e-9)
    assert curve.price(budgets[0]) == pytest.approx(prices[0], abs=1e-6)
    assert f"earns {found.value:.6g}; one more unit earns {found.shadow_prices[0]:.6g}" in str(curve)
    least, spread = curve.budgets[0], np.ptp(curve.budgets)
    for share in (1e-4, 1e-3, 0.01, 0.05, 0.1, 0.3, 0.6, 0.9):
        budget = least + share * spread
        wanted = program(cmdp, [budget, budgets[1]])[0]
        assert np.interp(budget, curve.budgets, curve.values) == pytest.approx(wanted, rel=1e-7, abs=1e-7)
    exact = curve.budgets[:-1] > least + 1e-4 * spread
    assert exact.sum() > 5
    assert not curve.gaps[exact].any()
    rows = list(csv.DictReader(curve.save(tmp_path / "curve.csv").read_text().splitlines()))
    assert [float(row["gap"]) for row in rows] == [*curve.gaps, 0.0]
    if not curve.complete:
        assert "of the least budget the best value is at most" in str(curve)
        assert str(curve).endswith("; beyond, the curve is exact")


def test_with_few_points_the_piece_around_the_budget_is_exact_and_each_piece_has_its_bound():
    cmdp = queue([110.0, -180.0], discount=0.99)
    curve, found = cmdp.curve(most=16), cmdp.solve()
    assert len(curve.budgets) <= 16
    assert not curve.complete
    place = int(np.searchsorted(curve.budgets, 110.0))
    assert curve.gaps[place - 1] == 0.0
    assert np.interp(110.0, curve.budgets, curve.values) == pytest.approx(found.value, rel=1e-10)
    for left, right, gap in zip(curve.budgets[:-1], curve.budgets[1:], curve.gaps, strict=True):
        if right - left > 1e-4:
            for budget in left + np.array([0.05, 0.3, 0.7]) * (right - left):
                above = program(cmdp, [budget, -180.0])[0] - np.interp(budget, curve.budgets, curve.values)
                assert -1e-6 <= above <= gap + 1e-6


def test_what_crowds_at_the_least_budget_is_one_line_and_other_budgets_are_told_apart():
    curve = queue([28.0, -44.0], horizon=24).curve()
    rows = [line.split()[0] for line in curve.lines()[1:] if line.split()[0][0].isdigit()]
    shown = [row for row in rows if "." in row]
    assert len(set(shown)) == len(shown) < 40
    (told,) = re.findall(r"rises by (\S+) within (\S+) of the least budget: (\d+) breakpoints", str(curve))
    rise, within, n = float(told[0]), float(told[1]), int(told[2])
    assert within == pytest.approx(curve.budgets[n] - curve.budgets[0], rel=0.05)
    assert rise == pytest.approx(curve.values[n] - curve.values[0], rel=1e-4)
    assert "at the least budget" in curve._repr_html_()
    assert not any("rises by" in line for line in curve.lines(None))
