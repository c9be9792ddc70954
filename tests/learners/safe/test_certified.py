"""Counts by fold, standard errors of plans and certified plans, against computations of their own."""

import numpy as np
import pytest

from omdpd import Setting
from omdpd.learners.safe import supported as module
from omdpd.learners.safe.certified import Margin, certified_plan, flattery, judged
from omdpd.learners.safe.first_plan import Rules, cloned, first_plan
from omdpd.learners.safe.supported import supported
from omdpd.learners.safe.tally import FOLDS, Tally, Walks


def random_walks(rng, episodes, H, S, A, n_constraints):
    """Episodes in a random world, with noise in everything."""
    law = rng.dirichlet(np.ones(S), (S, A))
    states, actions = np.empty((episodes, H), np.int64), rng.integers(A, size=(episodes, H))
    states[:, 0] = rng.integers(S, size=episodes)
    for k in range(episodes):
        for h in range(1, H):
            states[k, h] = rng.choice(S, p=law[states[k, h - 1], actions[k, h - 1]])
    tables = rng.random((1 + n_constraints, S, A))[:, states.ravel(), actions.ravel()]
    met = tables + rng.normal(0.0, 0.2, tables.shape)
    return Walks(np.arange(episodes + 1) * H, states.ravel(), actions.ravel(), met[0], met[1:])


def plain_totals(p, tables, policy, initial):
    """What a policy earns and costs: a table of laws (H, S, A, S), written out."""
    H, S, _ = policy.shape
    values = np.zeros((len(tables), S))
    for h in range(H - 1, -1, -1):
        q_values = tables[:, h] + (np.einsum("sat,jt->jsa", p[h], values) if h + 1 < H else 0.0)
        values = (q_values * policy[h]).sum(axis=2)
    return values @ initial


def test_counts_are_those_of_the_episodes_by_hand():
    setting = Setting(3, 2, 2)
    # Three episodes: one of three steps, one that ended after two, one more of three.
    walks = Walks(
        np.array([0, 3, 5, 8]), np.array([0, 1, 0, 0, 1, 1, 1, 0]), np.array([0, 1, 0, 0, 1, 1, 0, 0]), np.arange(8.0),
        np.ones((1, 8)), over=True,
    )  # fmt: skip
    tally = Tally.empty(setting, stationary=True).add(walks)
    sample = tally.sample()
    assert sample.visits.tolist() == [4, 0, 1, 3]  # (0,0), (0,1), (1,0), (1,1)
    moves = dict(zip(zip(sample.rows.tolist(), sample.following.tolist(), strict=True), sample.times, strict=True))
    assert moves == {(0, 1): 2, (2, 0): 1, (3, 0): 1, (3, 1): 1, (3, 2): 1}  # state 2 is "over"
    assert sample.sums[0].tolist() == [0 + 2 + 3 + 7, 0, 6, 1 + 4 + 5]
    assert sample.sums[1].tolist() == [0 + 4 + 9 + 49, 0, 36, 1 + 16 + 25]
    by_fold = sorted(tally.sample((fold,)).visits.tolist() for fold in range(FOLDS))
    assert by_fold == [[0] * 4] * 5 + [[1, 0, 0, 1], [1, 0, 1, 1], [2, 0, 0, 1]]
    mean, spread = tally.means_of_episodes()
    assert mean.tolist() == [28 / 3, 8 / 3]
    assert spread[0] == pytest.approx(np.std([3, 7, 18], ddof=1))
    cut = Tally.empty(setting, stationary=True).add(walks._replace(over=False)).sample()
    assert (3, 2) not in set(zip(cut.rows.tolist(), cut.following.tolist(), strict=True))
    apart = Tally.empty(setting, stationary=False).add(walks).sample()
    assert apart.visits.reshape(3, 4).tolist() == [[2, 0, 0, 1], [0, 0, 1, 2], [2, 0, 0, 0]]


def test_one_episode_at_a_time_gives_the_same_counts_as_all_at_once():
    walks = random_walks(np.random.default_rng(10000), 11, 3, 4, 2, 2)
    whole = Tally.empty(Setting(3, 4, 2, 2), stationary=True)
    apart = whole
    for k in range(11):
        at = slice(3 * k, 3 * k + 3)
        one = (walks.states[at], walks.actions[at], walks.rewards[at], walks.costs[:, at])
        apart = apart.add(Walks(np.array([0, 3]), *one))
    whole = whole.add(walks)
    assert np.array_equal(whole.keys, apart.keys)
    assert np.array_equal(whole.times, apart.times)
    assert whole.sums == pytest.approx(apart.sums)
    assert whole.totals == pytest.approx(apart.totals)


def test_rows_that_a_half_lacks_come_from_the_whole():
    walks = random_walks(np.random.default_rng(10001), 9, 3, 4, 2, 1)
    tally = Tally.empty(Setting(3, 4, 2), stationary=True).add(walks)
    half, whole = tally.sample((0,)), tally.sample()
    filled = half.filled(whole)
    left = np.bincount(half.rows, half.times, 8)
    nowhere = np.bincount(whole.rows, minlength=8) == 0  # rows that nothing ever followed
    own = (half.visits > 0) & ((left > 0) | nowhere)
    assert own.any()
    assert not own.all()
    assert np.array_equal(filled.visits, np.where(own, half.visits, whole.visits))
    expected = np.where(own, left, np.bincount(whole.rows, whole.times, 8))
    assert np.array_equal(np.bincount(filled.rows, filled.times, 8), expected)


@pytest.mark.parametrize("stationary", [True, False])
def test_a_standard_error_is_that_of_the_delta_method_by_differences(stationary):
    """Every law is bent towards each next state in turn; the total's slope is compared row by row."""
    rng, (H, S, A) = np.random.default_rng(10002), (3, 3, 2)
    tally = Tally.empty(Setting(H, S, A), stationary).add(random_walks(rng, 200, H, S, A, 1))
    initial = rng.dirichlet(np.ones(S))
    model = supported(tally, tally.sample(), initial, 1)
    policy = rng.dirichlet(np.ones(A), (H, S))
    q = model.occupancy(policy)
    errors, _ = model.errors(policy, q, False)
    n = 1 if stationary else H
    p = np.zeros((n * (S + 1) * A, S + 1))
    p[np.repeat(np.arange(len(p)), np.diff(model.laws.pointers)), model.laws.successors] = model.laws.probabilities
    p = p.reshape(n, S + 1, A, S + 1)
    steps = np.minimum(np.arange(H), n - 1)
    wide = np.concatenate([policy, np.full((H, 1, A), 1 / A)], axis=1)
    start = np.r_[initial, 0.0]
    assert plain_totals(p[steps], model.tables[:, steps], wide, start) == pytest.approx(model.totals(q))
    mass = q.sum(axis=0, keepdims=True) if stationary else q
    spread, eps = np.zeros((2, *mass.shape)), 1e-6
    for h, s, a in np.ndindex(n, S, A):
        slopes = []
        for t in range(S + 1):
            bent = p.copy()
            bent[h, s, a] += eps * ((np.arange(S + 1) == t) - bent[h, s, a])
            changed = plain_totals(bent[steps], model.tables[:, steps], wide, start)
            slopes.append((changed - model.totals(q)) / eps)
        law = p[h, s, a]
        spread[:, h, s, a] = law @ np.array(slopes) ** 2 - (law @ np.array(slopes)) ** 2
    times, seen = model.left, np.maximum(model.visits, 1)
    # What is to come differs between states of one step: its variance there, by rollouts of laws from each state.
    between = np.zeros(2)
    for h in range(1, H):
        law = q[h].sum(axis=1)
        rest = [plain_totals(p[steps][h:], model.tables[:, steps][:, h:], wide[h:], one) for one in np.eye(S + 1)]
        between += (law @ np.array(rest) ** 2 - (law @ np.array(rest)) ** 2) / (H - 1)
    for j in range(2):
        square, freedom = spread[j] * times, np.maximum(times - 1, 0)
        used = mass > 1e-4 * mass.max()
        unit = max((square[used] / mass[used] ** 2).sum() / freedom[used].sum(), module.LEAST_UNIT * between[j])
        shrunk = (square + 2 * unit * mass**2) / (freedom + 2)
        expected = (shrunk / times + mass**2 * model.noise[j] / seen).sum()
        assert errors[j] == pytest.approx(np.sqrt(expected), rel=1e-4)


@pytest.mark.parametrize("stationary", [True, False])
def test_the_slope_of_an_error_is_its_derivative(stationary, monkeypatch):
    monkeypatch.setattr(module, "KAPPA", 1e-9)  # what rows share is held fixed in the slope
    rng, (H, S, A) = np.random.default_rng(10003), (3, 3, 2)
    tally = Tally.empty(Setting(H, S, A), stationary).add(random_walks(rng, 300, H, S, A, 1))
    model = supported(tally, tally.sample(), np.full(S, 1 / S), 1)
    policy = rng.dirichlet(np.ones(A), (H, S))
    q = model.occupancy(policy)
    errors, slopes = model.errors(policy, q, True)
    assert [float(np.vdot(slope, q)) for slope in slopes] == pytest.approx(errors, rel=1e-4)
    for where in ((0, 1, 1), (1, 2, 0), (2, 0, 1)):
        moved = q.copy()
        moved[where] += 1e-6
        after, _ = model.errors(policy, moved, False)
        assert (after - errors) / 1e-6 == pytest.approx(slopes[(slice(None), *where)], rel=1e-3, abs=1e-8)


def arms(rewards, costs):
    """Episodes of one step with one state: pulls of arms, rewards and costs (n, A), dealt out over the folds."""
    n, A = rewards.shape
    actions = np.repeat(np.arange(A), n)
    order = np.lexsort((actions, np.tile(np.arange(n), A)))
    walks = Walks(
        np.arange(n * A + 1), np.zeros(n * A, np.int64), actions[order], rewards.T.ravel()[order],
        costs.T.ravel()[order][None],
    )  # fmt: skip
    return Tally.empty(Setting(1, 1, A), stationary=True).add(walks)


def test_a_plan_takes_as_much_of_a_costly_arm_as_its_error_allows():
    """Arm 0 is free; arm 1 earns 1 and costs 1 on average: p + (t + z) se = b, se^2 = (p^2 v_1 + (1-p)^2 v_0) / n."""
    n, b, margin = 40, 0.5, Margin(np.array([0.0, 1.0]), 1.5)
    costs = np.c_[np.zeros(n), np.tile([0.0, 2.0], n // 2)]
    tally = arms(np.c_[np.zeros(n), np.ones(n)], costs)
    model = supported(tally, tally.sample(), np.ones(1), 5)
    baseline = np.array([[[1.0, 0.0]]])
    plan = certified_plan(model, baseline, np.array([b]), margin)
    assert plan.ok
    pooled = n / (2 * n - 2)  # squares 40 of arm 1, none of arm 0, 78 degrees of freedom
    v0, v1 = 2 * pooled / (n + 1), (n + 2 * pooled) / (n + 1)
    share = np.linspace(0, 1, 100001)
    upper = share + 2.5 * np.sqrt((share**2 * v1 + (1 - share) ** 2 * v0) / n)
    best = share[upper <= b].max()
    assert plan.policy[0, 0, 1] == pytest.approx(best, abs=3e-3)
    assert judged(model, baseline, np.array([0.01]), margin).ok is False  # arm 0 too may cost something


def test_where_nothing_is_certified_the_nearest_is_said_not_to_be():
    tally = arms(np.ones((8, 2)), np.ones((8, 2)))
    model = supported(tally, tally.sample(), np.ones(1), 5)
    plan = certified_plan(model, np.full((1, 1, 2), 0.5), np.array([0.5]), Margin(np.zeros(2), 1.645))
    assert plan is None or not plan.ok


def test_rows_that_were_tried_too_seldom_are_not_planned_with():
    rewards = np.zeros((FOLDS * 5, 3))
    tally = arms(rewards, rewards)
    rare = Walks(np.arange(3), np.zeros(2, np.int64), np.full(2, 2), np.full(2, 9.0), np.zeros((1, 2)))
    many = Tally.empty(Setting(1, 1, 3), stationary=True).add(rare)
    often = Walks(np.arange(7), np.zeros(6, np.int64), np.array([0, 0, 0, 1, 1, 1]), np.zeros(6), np.zeros((1, 6)))
    many = many.add(often)
    for least, best in ((2, 2), (3, 0)):
        model = supported(many, many.sample(), np.ones(1), least)
        plan = certified_plan(model, np.full((1, 1, 3), 1 / 3), np.ones(1), Margin(np.zeros(2), 1.645))
        assert plan.policy[0, 0].argmax() == best
    allowed = np.array([[True, True, False]])
    model = supported(tally, tally.sample(), np.ones(1), 1, allowed)
    assert model.out_of_plan(np.full((1, 2, 3), 1 / 3))[0, 0, 2] == 0.0


def test_flattery_that_is_measured_by_halves_is_that_of_the_plan():
    """Twenty equal arms: whatever a plan promises beyond 0, the mean of all of them, is flattery."""
    rng, measured, real = np.random.default_rng(10004), [], []
    for _ in range(20):
        tally = arms(rng.normal(size=(48, 20)), np.zeros((48, 20)))
        even, b = np.full((1, 1, 20), 1 / 20), np.ones(1)
        t, _ = flattery(tally, np.ones(1), even, b, 1.645, 5)
        plan = certified_plan(supported(tally, tally.sample(), np.ones(1), 5), even, b, Margin(t, 1.645))
        measured.append(t[0])
        real.append(plan.totals[0] / plan.errors[0])
    assert np.mean(real) > 1.0  # standard errors that know nothing of the choice are exceeded
    assert np.mean(measured) == pytest.approx(np.mean(real), abs=0.6)


@pytest.mark.parametrize(("tries", "taken"), [(5, False), (60, True)])
def test_a_plan_is_not_built_on_a_row_that_an_episode_of_it_tries_more_often_than_the_logs(tries, taken):
    """One state and ten steps: five tries of the better action are half of what one episode of the plan would try."""
    setting, episodes = Setting(10, 1, 2), 40
    actions = np.zeros(400, np.int64)
    actions[:: 400 // tries][:tries] = 1
    walks = Walks(
        np.arange(episodes + 1) * 10, np.zeros(400, np.int64), actions, 0.5 + 0.5 * actions, np.full((1, 400), -0.1)
    )
    tally = Tally.empty(setting, stationary=True).add(walks)
    rules = Rules(np.zeros(1), 0.95, 5)
    always_first = np.tile([1.0, 0.0], (10, 1, 1))
    found = first_plan(tally, np.ones(1), always_first, rules, Margin(np.zeros(2), rules.z))
    assert found.judged.policy[0, 0].tolist() == ([0.0, 1.0] if taken else [1.0, 0.0])
    assert found.rare == 0.0


def test_what_logs_show_of_a_state_at_a_step_where_it_was_not_met_is_that_of_all_steps():
    walks = Walks(
        np.array([0, 3, 6]), np.array([0, 1, 0, 1, 1, 0]), np.array([0, 1, 0, 1, 0, 1]), np.zeros(6), np.zeros((1, 6))
    )
    shown = cloned(Tally.empty(Setting(3, 3, 2), stationary=False).add(walks))
    assert shown[:, 0].tolist() == [[1.0, 0.0], [2 / 3, 1 / 3], [0.5, 0.5]]  # not met at the second step
    assert shown[:, 1] == pytest.approx(np.array([[0.0, 1.0], [0.5, 0.5], [1 / 3, 2 / 3]]))  # not met at the last
    assert (shown[:, 2] == 0.5).all()
    only = np.ones((3, 3, 2), dtype=bool)
    only[2, 1, 0] = False
    allowed = cloned(Tally.empty(Setting(3, 3, 2), stationary=False).add(walks), only)
    assert allowed[2, 1].tolist() == [0.0, 1.0]
