"""The trade-off between a budget and value, and why a solution plays what it plays."""

import csv
import json

import numpy as np
import pytest

from omdpd import CMDP, InvalidInputError, Policy, load_problem, save_problem
from omdpd.play.curve import Curve
from omdpd.problem.cmdp import Labels
from omdpd.solvers.trade_off import Point, _hull
from omdpd.storage.atomic import RecordError
from omdpd.worlds import garnet
from tests.references.instances import ladder


def test_the_curve_of_a_problem_worked_out_by_hand():
    """Half a unit of reward costs a half (action 1) three times; then another half costs 1.5, three times."""
    curve = ladder().curve()
    assert curve.budgets == pytest.approx([0.0, 1.5, 6.0])
    assert curve.values == pytest.approx([0.0, 1.5, 3.0])
    assert curve.prices == pytest.approx([1.0, 1 / 3])
    assert curve.complete
    assert [curve.value(b) for b in (-0.1, 0.75, 3.0, 99.0)] == [None, pytest.approx(0.75), pytest.approx(2.0), 3.0]
    assert [curve.price(b) for b in (-0.1, 0.75, 1.5, 6.0)] == [None, pytest.approx(1.0), pytest.approx(1 / 3), 0.0]


@pytest.mark.parametrize("n_constraints", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_at_every_breakpoint_and_between_the_curve_is_what_solve_finds(seed, n_constraints):
    cmdp = garnet.make(np.random.default_rng(seed), 5, 3, 3, branching=2, n_constraints=n_constraints)
    curve = cmdp.curve(n_constraints - 1)
    assert curve.complete
    assert np.all(np.diff(curve.prices) < 0.0)
    middles = 0.5 * (curve.budgets[1:] + curve.budgets[:-1])
    for budget in [*(curve.budgets + 1e-9), *middles]:
        budgets = cmdp.limits.copy()
        budgets[-1] = budget
        found = cmdp.with_budget(budgets).solve()
        assert found.value == pytest.approx(curve.value(budget), abs=1e-7)
        if budget in middles:
            assert found.shadow_prices[-1] == pytest.approx(curve.price(budget), abs=1e-6)
    budgets[-1] = curve.budgets[0] - 1e-3
    assert not cmdp.with_budget(budgets).solve().feasible


def test_with_fewer_points_than_there_are_the_curve_says_how_far_it_is_off():
    cmdp = garnet.make(np.random.default_rng(1), 12, 3, 5, branching=3)
    whole, some = cmdp.curve(), cmdp.curve(most=4)
    assert whole.complete
    assert len(some.budgets) == 4 < len(whole.budgets)
    assert not some.complete
    lost = [whole.value(b) - some.value(b) for b in whole.budgets]
    assert 0.0 < max(lost) <= some.off
    assert "not all" in str(some)


def test_the_curve_is_in_the_users_units_and_is_kept(tmp_path):
    one = CMDP.from_arrays(
        np.ones((1, 2, 1)), [[0.0, 500.0]], [[0.0, 30.0]], budget=45.0, horizon=3, reward_range=(0, 500)
    ).labelled("shop", Labels(constraints=("litres",)))
    curve = one.curve("litres")
    assert curve.budgets == pytest.approx([0.0, 90.0])
    assert curve.values == pytest.approx([0.0, 1500.0])
    assert curve.prices == pytest.approx([500 / 30])
    rows = list(csv.DictReader(curve.save(tmp_path / "curve.csv").read_text().splitlines()))
    assert [float(row["price"]) for row in rows] == pytest.approx([500 / 30, 0.0])
    assert curve.plot().get_xlabel() == "budget of litres"
    assert "litres" in curve._repr_html_()
    with pytest.raises(InvalidInputError, match="there is no constraint 'hours'; there are litres"):
        one.curve("hours")
    with pytest.raises(InvalidInputError, match=r"should end in \.csv"):
        curve.save(tmp_path / "curve.txt")


def test_other_budgets_that_cannot_be_met_are_named():
    p = np.ones((1, 2, 1))
    both = CMDP.from_arrays(p, [[0.0, 1.0]], [[[0.0, 1.0]], [[0.5, 0.5]]], [1.0, 0.2], horizon=2)
    with pytest.raises(InvalidInputError, match="no policy meets the other budgets, whatever that of constraint 0 is"):
        both.curve(0)


def test_without_a_limit_the_cost_is_reported_and_binds_nothing(tmp_path):
    p = np.ones((1, 2, 1))
    costs = [[[0.0, 1.0]], [[7.0, 30.0]]]
    cmdp = CMDP.from_arrays(p, [[0.0, 1.0]], costs, [1.0, None], horizon=2)
    found = cmdp.solve()
    assert found.value == pytest.approx(1.0)
    assert found.evaluation.costs == pytest.approx([1.0, 37.0])
    assert found.evaluation.budget.tolist() == [1.0, np.inf]
    assert found.evaluation.safe
    assert found.shadow_prices == pytest.approx([1.0, 0.0])
    assert "costs 37, no limit" in str(found)
    assert "no limit" in repr(cmdp)
    assert cmdp.with_budget(None).solve().value == pytest.approx(2.0)
    assert cmdp.with_budget([None, 30.0]).solve().value == pytest.approx(16 / 23)
    again = load_problem(save_problem(cmdp, tmp_path / "it.npz"))
    assert again.limits.tolist() == [1.0, np.inf]
    assert again.solve().evaluation.costs == pytest.approx([1.0, 37.0])
    with pytest.raises(InvalidInputError, match="budget is missing"):
        CMDP.from_arrays(p, [[0.0, 1.0]], costs, horizon=2)


def test_values_to_go_are_those_of_a_policy_by_hand():
    cmdp = garnet.make(np.random.default_rng(3), 6, 3, 4, branching=2, n_constraints=2)
    found = cmdp.solve()
    H, S, _ = cmdp.shape
    cost = cmdp.cost * cmdp.cost_scale[:, None, None, None]
    for table, values in ((cmdp.reward, found.values.reward), *zip(cost, found.values.costs, strict=True)):
        after = np.zeros(S)
        for h in reversed(range(H)):
            after = (found.policy.table[h] * (table[h] + cmdp.transition[h] @ after)).sum(axis=1)
            assert values[h] == pytest.approx(after, abs=1e-12)
    assert found.values.costs[:, 0] @ cmdp.initial == pytest.approx(found.evaluation.costs)
    assert found.occupancy.sum(axis=(1, 2)) == pytest.approx(np.ones(H))


def test_where_the_optimum_draws_and_why():
    found = ladder(horizon=1, budget=1.0).solve()
    (draw,) = found.randomises()
    assert (draw.step, draw.state, draw.reached) == (0, 0, 1.0)
    assert draw.probabilities == {"action 0": pytest.approx(1 / 3), "action 1": pytest.approx(2 / 3)}
    assert draw.constraints == ("constraint 0",)
    assert "because of constraint 0" in str(draw)
    assert ladder(budget=7.0).solve().randomises() == []


@pytest.mark.parametrize("seed", range(6))
def test_the_coin_over_pure_policies_is_the_optimum_and_one_of_them_is_safe(seed):
    cmdp = garnet.make(np.random.default_rng(seed), 8, 3, 5, branching=2)
    found = cmdp.solve()
    pure = found.pure_policies()
    assert sum(each.share for each in pure) == pytest.approx(1.0)
    assert sum(each.share * each.evaluation.value for each in pure) == pytest.approx(found.value)
    alone = found.deterministic()
    assert set(np.unique(alone.policy.table)) <= {0.0, 1.0}
    assert alone.evaluation.safe
    left = alone.evaluation.budget[0] - alone.evaluation.costs[0]
    assert alone.loss >= found.shadow_prices[0] * left - 1e-9
    assert alone.loss <= min(each.loss for each in pure if each.evaluation.safe) + 1e-12


def test_a_pure_policy_uses_what_the_budget_leaves():
    """Budget 3: once action 0 and twice action 1 cost just that, and earn what the coin earns."""
    assert ladder().solve().deterministic().loss == pytest.approx(0.0, abs=1e-12)


def test_what_is_never_reached_is_left_out_of_what_is_shown(tmp_path):
    line = CMDP.from_arrays(np.eye(3)[:, None], np.ones((3, 1)), np.ones((3, 1)), 2.0, [0, 1, 0], horizon=2)
    policy = line.solve().policy
    assert policy.reached.tolist() == [[False, True, False]] * 2
    assert str(policy).splitlines()[-1] == "never reached and left out: 4 pairs of step and state"
    rows = list(csv.DictReader(policy.save(tmp_path / "p.csv").read_text().splitlines()))
    assert [(row["step"], row["state"]) for row in rows] == [("0", "1"), ("1", "1")]
    table = json.loads(policy.save(tmp_path / "p.json").read_text())["policy"]
    assert table == [[None, [1.0], None]] * 2
    assert Policy.load(policy.save(tmp_path / "p.npz")).shape == (2, 3, 1)


def test_one_table_is_a_policy_for_every_step(tmp_path):
    policy = Policy([[0.25, 0.75]])
    assert policy.act(1000, 0, deterministic=True) == 1
    assert policy.greedy().table.tolist() == [[[0.0, 1.0]]]
    assert policy.act(3, 0) in (0, 1)
    cmdp = CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.0, 1.0]], budget=4.0, horizon=4)
    assert policy.evaluate(cmdp).value == pytest.approx(3.0)
    assert np.asarray(policy).shape == (1, 2)
    again = Policy.load(policy.save(tmp_path / "p.npz"))
    assert again.every_step
    assert again.evaluate(cmdp).value == pytest.approx(3.0)
    with pytest.raises(InvalidInputError, match="step is -1, but must be a whole number of at least 0"):
        policy.act(-1, 0)


def test_of_policies_of_least_cost_the_curve_begins_with_the_best():
    """Two actions cost nothing; the one that earns more comes second, so that a tie would be broken wrongly."""
    p = np.ones((1, 3, 1))
    both = CMDP.from_arrays(p, [[0.0, 0.5, 1.0]], [[[0.0, 0.0, 1.0]], [[0.0, 0.0, 0.0]]], [0.5, 1.0], horizon=1)
    for curve in (both.curve(0), CMDP.from_arrays(p, [[0.0, 0.5, 1.0]], [[0.0, 0.0, 1.0]], 0.5, horizon=1).curve()):
        assert curve.budgets == pytest.approx([0.0, 1.0])
        assert curve.values == pytest.approx([0.5, 1.0])


def two_rooms(budget, **criterion):
    """From the first room one may work, which leads to the dear second one, or rest, which does not."""
    p = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])
    return CMDP.from_arrays(p, [[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]], budget, [1.0, 0.0], **criterion)


@pytest.mark.parametrize(("criterion", "budget"), [({"discount": 0.9}, 1.0), ({"criterion": "average"}, 0.25)])
def test_without_an_end_a_draw_has_a_share_of_the_steps_and_names_what_comes_later(criterion, budget):
    """Work costs nothing itself, but the room it leads to does; a quarter of steps there are three quarters here."""
    cmdp = two_rooms(budget, **criterion)
    (draw,) = cmdp.solve().randomises()
    here = 1.0 - budget / cmdp.steps
    assert draw.reached == pytest.approx(here)
    assert draw.constraints == ("constraint 0",)
    assert str(draw).startswith(f"state 0 ({100.0 * here:.4g} % of the steps): ")


def test_a_policy_without_an_end_goes_to_json_with_what_is_never_reached_left_out(tmp_path):
    policy = two_rooms(0.0, discount=0.9).solve().policy
    kept = json.loads(policy.save(tmp_path / "p.json").read_text())
    assert kept["policy"] == [[1.0, 0.0], None]
    every = json.loads(Policy([[0.5, 0.5]]).save(tmp_path / "q.json").read_text())
    assert every["policy"] == [[0.5, 0.5]]


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_rounding_of_the_least_budget_does_not_make_it_impossible(unit):
    budgets = unit * np.array([1.7e-15, 3.0])
    found = Curve("it", budgets, np.array([0.0, 3.0]), np.array([1.0]) / unit, np.zeros(1), 3e-9 * unit)
    assert (found.value(0.0), found.price(0.0)) == (0.0, 1.0 / unit)
    assert (found.value(-0.1 * unit), found.price(-0.1 * unit)) == (None, None)


@pytest.mark.parametrize("unit", [1e-6, 0.1, 1e6])
def test_the_least_budget_of_every_curve_can_be_met(unit):
    """Budgets are taken off costs and added again, which rounds: seven tenths and so on are no binary numbers."""
    p = np.ones((1, 3, 1))
    for budget in unit * np.arange(0.1, 3.0, 0.1):
        cmdp = CMDP.from_arrays(p, [[1.0, 0.5, 0.0]], unit * np.array([[0.7, 0.3, 0.0]]), budget, horizon=7)
        curve = cmdp.curve()
        assert curve.value(0.0) == pytest.approx(0.0, abs=1e-9)
        assert curve.price(0.0) == pytest.approx(curve.prices[0])
        assert curve.value(-1e-6 * unit) is None


def shop(**criterion):
    """Stock 0 to 12, order 0 to 3, demand without a largest: a stock-out is never impossible, but may be very rare."""
    demand = 0.6 ** np.arange(60) * 0.4
    law = [[[(p, max(s + a - d, 0)) for d, p in enumerate(demand / demand.sum())] for a in range(4)] for s in range(13)]
    out = np.array([[demand[min(s + a + 1, 59) :].sum() for a in range(4)] for s in range(13)])
    profit = np.array([[5.0 - 4.0 * out[s, a] - 0.3 * s - 0.9 * a for a in range(4)] for s in range(13)])
    allowed = np.array([[s + a <= 12 for a in range(4)] for s in range(13)])
    law = [[[pair for pair in pairs if pair[1] < 13] for pairs in row] for row in law]
    return CMDP.from_arrays(
        law, profit, out, 1.0, np.eye(13)[6], allowed=allowed, reward_range=(-3.0, 6.0), **criterion
    )  # fmt: skip


def best_at(cmdp, price):
    """max (r - price c).q in the user's units, by induction over the laws as a table."""
    H, S, _ = cmdp.shape
    p, (low, high) = cmdp.transition[0], cmdp.reward_range
    table = low + (high - low) * cmdp.reward[0] - price * cmdp.cost[0, 0] * cmdp.cost_scale[0]
    table = np.where(cmdp.mask.allowed[0], table, -np.inf)
    values = np.zeros(S)
    for _ in range(H):
        values = (table + p @ values).max(axis=1)
    return float(cmdp.initial @ values)


def test_no_breakpoint_is_missed_where_prices_are_enormous():
    """A concave curve is known by its highest point above every slope, which induction finds on its own."""
    cmdp = shop(horizon=12)
    curve = cmdp.curve()
    least = cmdp.solve().least_costs[0]
    assert curve.budgets[0] == pytest.approx(least, rel=1e-9)
    assert curve.prices[0] > 100.0
    for price in np.logspace(-2, 7, 200):
        wanted = best_at(cmdp, price)
        assert (curve.values - price * curve.budgets).max() == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    for budget in least * np.array([1.0 + 1e-6, 1.001, 1.01, 2.0, 100.0]):
        found = cmdp.with_budget(budget).solve()
        assert found.value == pytest.approx(curve.value(budget), abs=1e-6)


@pytest.mark.parametrize("criterion", [{"discount": 0.97}, {"criterion": "average"}])
def test_without_an_end_the_curve_begins_at_the_least_cost(criterion):
    cmdp = shop(**criterion)
    curve, least = cmdp.curve(), cmdp.solve().least_costs[0]
    assert curve.budgets[0] == pytest.approx(least, rel=1e-6)
    for budget in least * np.array([1.01, 1.5, 3.0]):
        assert cmdp.with_budget(budget).solve().value == pytest.approx(curve.value(budget), rel=1e-5)


def test_a_gap_that_rounding_leaves_open_is_told():
    """Points that cannot be told apart leave a gap, and the curve is not called complete."""

    def best(price):
        return Point(0.0, 0.0), 0.5 - 0.5 * price

    (piece,) = _hull(best, Point(0.0, 0.0), Point(1.0, 0.6), 9, np.inf)
    assert piece[:2] == ((0.0, 0.0), (1.0, 0.6))
    assert piece.off == pytest.approx(0.2)
    (piece,) = _hull(best, Point(0.0, 0.0), Point(1.0, 0.1), 9, np.inf)
    assert piece.off == pytest.approx(0.1)  # nowhere is more than at the right end


@pytest.mark.parametrize("criterion", [{"horizon": 12}, {"discount": 0.97}, {"criterion": "average"}])
def test_the_proof_is_in_the_users_units(criterion):
    cmdp = shop(**criterion)
    cmdp = cmdp.with_budget(1.5 * cmdp.solve().least_costs[0])
    found = cmdp.solve()
    assert 0.0 <= found.gap < 1e-9 * cmdp.steps
    assert found.bound == pytest.approx(found.value, abs=1e-9 * cmdp.steps)
    assert abs(found.study.mixture.bound - found.value) > 0.1  # that of the scaled problem proves nothing here
    none = cmdp.with_budget(-1.0).solve()
    assert (none.bound, none.gap, none.value) == (None, None, None)


def test_nothing_is_printed_as_minus_zero():
    p = np.ones((1, 2, 1))
    cmdp = CMDP.from_arrays(p, [[0.0, 1.0]], [[[0.3, 0.3]], [[0.0, 0.1]]], [2.1, None], horizon=7)
    for found in (cmdp.solve(), cmdp.with_budget([2.1, 0.7]).solve(), cmdp.with_budget([2.1, 0.0]).solve()):
        assert "-0" not in str(found)
        assert "room below the budgets" in str(found)
        assert not np.signbit(found.shadow_prices).any()


@pytest.mark.parametrize("criterion", [{"discount": 0.9}, {"criterion": "average"}])
def test_without_an_end_states_that_are_never_reached_are_left_out_and_called_states(criterion):
    """State 1 is passed once, 2 and 3 alternate, and 0 is out of reach."""
    p = np.eye(4)[[[0], [2], [3], [2]]]
    cmdp = CMDP.from_arrays(p, np.ones((4, 1)), np.ones((4, 1)), None, [0, 1, 0, 0], **criterion)
    policy = cmdp.solve().policy
    assert policy.reached.tolist() == [[False, True, True, True]]
    assert str(policy).splitlines()[-1] == "never reached and left out: 1 states"


def test_what_is_played_is_a_matrix_of_states_and_steps():
    """A star where it draws, which it may here at every step, and a dot where it never comes."""
    p = np.ones((1, 2, 1))
    labels = Labels(states=("shop",), actions=("rest", "work"))
    cmdp = CMDP.from_arrays(p, [[0.0, 1.0]], [[0.0, 1.0]], 1.0, horizon=3, labels=labels)
    assert cmdp.solve().policy.matrix().splitlines()[1] == "shop  rest*  rest*  rest*"
    line = CMDP.from_arrays(np.eye(3)[:, None], np.ones((3, 1)), np.ones((3, 1)), 2.0, [0, 1, 0], horizon=2)
    assert line.solve().policy.matrix().splitlines() == [
        "step     0  1", "state 0  .  .", "state 1  0  0", "state 2  .  .",
    ]  # fmt: skip
    assert Policy([[[0.3, 0.7]], [[1.0, 0.0]]]).matrix().splitlines()[1] == "state 0  1*  0"


def test_a_long_curve_is_printed_around_the_budget_and_from_end_to_end():
    cmdp = shop(horizon=12)
    curve = cmdp.curve()
    text = curve.lines()
    assert len(curve.budgets) > 60 > len(text)
    assert f"the budget now, 1, earns {curve.value(1.0):.6g}; one more unit earns {curve.price(1.0):.6g}" in text
    shown = np.array([float(line.split()[0]) for line in text[1:] if line[0] == " "])
    assert shown[[0, -1]] == pytest.approx(curve.budgets[[0, -1]], rel=1e-5)
    place = int(np.searchsorted(curve.budgets, 1.0))
    assert set(np.round(curve.budgets[place - 2 : place + 2], 4)) <= set(np.round(shown, 4))
    values = [curve.value(budget) for budget in shown]
    assert np.abs(np.diff(values)).max() < 0.2 * (values[-1] - values[0])
    assert f"not printed: {len(curve.budgets) - len(shown)} breakpoints" in str(curve)
    line = next(line for line in curve.plot().lines if line.get_linestyle() == "--")
    assert line.get_xdata()[0] == 1.0
    assert cmdp.with_budget(None).curve().budget is None
    assert "cannot be met" in str(cmdp.with_budget(0.0).curve())


@pytest.mark.parametrize("table", [[[0.1, 0.9], [1 / 3, 2 / 3]], [[[0.25, 0.75]], [[1.0, 0.0]], [[0.7, 0.3]]]])
def test_a_policy_is_read_from_the_csv_that_it_was_written_to(tmp_path, table):
    policy = Policy(table)
    again = Policy.load(policy.save(tmp_path / "p.csv"))
    assert again.every_step == policy.every_step
    assert np.array_equal(again, policy)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "0 rows are not one for every step"),
        ("a,b\n1,2\n", "no column 'step'"),
        ("step,state,action,probability\n,0,0,1\n,1,1,1\n", "2 rows are not one for every step"),
        ("step,state,action,probability\n,0,0,1\n,0,0,1\n", "2 rows are not one for every step"),
        ("step,state,action,probability\n,0,0,1\n,9999999999,0,1\n", "2 rows are not one for every step"),
        ("step,state,action,probability\n,0,0,x\n", "could not convert"),
        ("step,state,action,probability\n,0\n", "holds no policy"),
        ("step,state,action,probability\n,0,0,0.5\n", "is the sum of a row"),
    ],
)
def test_a_csv_that_holds_no_policy_is_refused(tmp_path, text, sentence):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(RecordError, match=sentence):
        Policy.load(tmp_path / "p.csv")
