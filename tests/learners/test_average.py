"""Learners of averages, by hand and against programs that are written otherwise."""

import sys

import numpy as np
import pytest
from scipy.optimize import linprog

from omdpd import CMDP, InvalidInputError, Session, Setting, run
from omdpd.experiments.registry import Registry
from omdpd.learners import AVERAGE_LEARNERS, UCRLCMDP, ChenJainLuo, TripleQA
from omdpd.play.windows import learn_windows
from omdpd.problem.setting import BanditFeedback, Trajectory
from omdpd.solvers.programs import average_plan
from tests.references.instances import ring


@pytest.mark.parametrize("seed", range(10))
def test_of_one_kernel_the_program_finds_the_best_policy_of_the_long_run(seed):
    rng = np.random.default_rng(seed)
    p, r, c = rng.dirichlet(np.full(4, 0.5), (4, 3)), rng.random((4, 3)), rng.random((2, 4, 3)) - 0.45
    found = average_plan(p, p, r[None], c[:, None])
    wanted = CMDP.from_arrays(p, r, c, [0.0, 0.0], criterion="average").solve()
    assert found.feasible == wanted.feasible
    if wanted.feasible:
        assert found.value == pytest.approx(wanted.value, abs=1e-8)
        shares = np.einsum("sa,sat->t", found.occupancy[0], p)
        assert found.occupancy[0].sum(axis=1) == pytest.approx(shares, abs=1e-9)
    else:
        assert found.violation == pytest.approx(-wanted.slater_gap, abs=1e-8)


def by_linprog(lower, upper, r, c):
    """max r.q over x(s,a,t) alone: dense rows, one after the other."""
    S, A, _ = lower.shape
    x = np.arange(S * A * S).reshape(S, A, S)
    keeps, limits = np.zeros((S + 1, x.size)), []
    for s in range(S):
        keeps[s, x[s].ravel()] += 1.0
        keeps[s, x[:, :, s].ravel()] -= 1.0
    keeps[S] = 1.0
    for s, a, t in np.ndindex(S, A, S):
        for sign, bound in ((1.0, upper), (-1.0, lower)):
            row = np.zeros(x.size)
            row[x[s, a]] = -sign * bound[s, a, t]
            row[x[s, a, t]] += sign
            limits.append(row)
    limits.append(np.repeat(c.ravel(), S))
    found = linprog(-np.repeat(r.ravel(), S), limits, np.zeros(len(limits)), keeps, np.r_[np.zeros(S), 1.0])
    return -found.fun


@pytest.mark.parametrize("seed", range(5))
def test_over_a_box_it_is_the_extended_program(seed):
    rng = np.random.default_rng(seed)
    p, r, c = rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2)), rng.random((3, 2)) - 0.6
    lower, upper = np.maximum(p - 0.1, 0.0), np.minimum(p + 0.1, 1.0)
    found = average_plan(lower, upper, r[None], c[None, None])
    assert found.feasible
    assert found.value == pytest.approx(by_linprog(lower, upper, r, c), abs=1e-8)
    assert found.value >= average_plan(p, p, r[None], c[None, None]).value - 1e-9


def test_where_every_kernel_is_possible_it_stays_where_a_step_earns_most():
    r = np.array([[0.1, 0.2], [0.9, 0.3]])
    found = average_plan(np.zeros((2, 2, 2)), np.ones((2, 2, 2)), r[None], np.zeros((1, 1, 2, 2)))
    assert found.value == pytest.approx(0.9)
    assert found.policy[0, 1].tolist() == [1.0, 0.0]
    learner = UCRLCMDP()
    policy = learner.policy(learner.init(Setting(horizon=4, n_states=2, n_actions=2, n_episodes=5, windows=True)))
    assert np.array_equal(policy, np.repeat(policy[:1], 4, axis=0))
    assert policy.sum(axis=2) == pytest.approx(1.0)


def test_one_window_of_triple_qa_by_hand():
    """Of two steps the first one has a next pair, and teaches."""
    setting = Setting(
        horizon=2, n_states=2, n_actions=2, n_episodes=32, windows=True
    )  # T = 64: chi = eta = 1 / (1 - gamma) = 2
    learner = TripleQA(reward_scale=0.0, cost_scale=0.0)
    state = learner.init(setting)
    assert (state.tables == 2.0).all()
    walk = Trajectory(np.array([0, 1]), np.array([1, 0]))
    after = learner.update(state, BanditFeedback(walk, np.array([0.5, 1.0]), np.array([[-1.0, 1.0]])))
    # alpha = 3 / 3 = 1: Q = 0.5 + 0.5 * 2, C = 1 + 0.5 * 2
    assert after.tables[:, 0, 1] == pytest.approx([1.5, 2.0])
    assert (np.delete(after.tables.reshape(2, -1), 1, axis=1) == 2.0).all()
    assert (after.earned, after.in_frame) == (2.0, 1)
    assert learner.policy(after)[0, 0].tolist() == [1.0, 0.0]
    dear = state
    for _ in range(16):  # a frame of 64^(2/3) = 16 steps, each of which costs as much as can be
        dear = learner.update(dear, BanditFeedback(walk, np.zeros(2), np.ones((1, 2))))
    assert dear.in_frame == 0
    assert dear.queue == pytest.approx(max(0.5 - spent_by_hand() / 16.0 / 2.0, 0.0))


def spent_by_hand():
    """The sum of C(0, 1) over sixteen updates towards 0 + 0.5 * 2, before each of them."""
    C, total = 2.0, 0.0
    for t in range(1, 17):
        total += C
        alpha = 3.0 / (2.0 + t)
        C = (1.0 - alpha) * C + alpha * 1.0
    return total


def test_triple_qa_needs_to_know_how_long_and_has_one_constraint():
    for setting in (Setting(2, 2, 2, 2, n_episodes=5, windows=True), Setting(2, 2, 2, 1, windows=True)):
        with pytest.raises(InvalidInputError, match=r"one constraint|n_episodes"):
            TripleQA().init(setting)


@pytest.mark.parametrize(
    ("learner", "n", "told"),
    [(UCRLCMDP(), 150, False), (TripleQA(), 1500, False), (ChenJainLuo(stationary=True), 60, True)],
)
def test_they_learn_the_long_run(learner, n, told):
    found = learn_windows(ring(), learner, 20, n, seed=1, told_start=told)
    reward, costs = found.after()
    assert reward > 0.85 * found.best
    assert costs[0] < 0.3 + 0.05


def test_with_restarts_a_frame_begins_anew():
    setting = Setting(horizon=9, n_states=2, n_actions=2, n_episodes=3, windows=True)
    learner = TripleQA(restart=True)
    state = learner.init(setting)
    walk = Trajectory(np.zeros(9, int), np.zeros(9, int))
    for _ in range(2):
        state = learner.update(state, BanditFeedback(walk, np.ones(9), np.ones((1, 9))))
    assert state.in_frame == 0
    assert np.array_equal(state.tables, learner.init(setting).tables)
    assert not state.visits.any()


@pytest.mark.parametrize("name", AVERAGE_LEARNERS)
def test_one_that_is_to_play_episodes_says_what_plays_it(name):
    cmdp = CMDP.from_arrays(np.full((2, 2, 2), 0.5), [[0, 1]] * 2, [[0, 1]] * 2, budget=1.5, horizon=3)
    for play in (
        lambda: run(cmdp, AVERAGE_LEARNERS[name](), n_episodes=2),
        lambda: Session(AVERAGE_LEARNERS[name](), cmdp.setting(2, "bandit")),
        lambda: Registry.installed().spec("learners", name),
    ):
        with pytest.raises(InvalidInputError, match=f"{name} learns averages per step without an end.*learn_windows"):
            play()


@pytest.mark.parametrize("name", AVERAGE_LEARNERS)
def test_what_one_does_says_what_is_certain_from_memory_and_ours(name):
    text = sys.modules[type(AVERAGE_LEARNERS[name]()).__module__].__doc__
    assert [text.count(word) for word in ("Certain:", "From memory:", "Ours:", "Source:")] == [1, 1, 1, 1]


@pytest.mark.parametrize("name", AVERAGE_LEARNERS)
def test_one_keeps_to_the_actions_that_the_long_run_allows(name):
    p, allowed = ring().laws.expand()[0], [[True, True], [True, False], [True, True], [False, True]]
    masked = CMDP.from_arrays(p, [[0.1, 0.9]] * 4, [[0.0, 1.0]] * 4, 0.5, criterion="average", allowed=allowed)
    found = learn_windows(masked, AVERAGE_LEARNERS[name](), 6, 12)
    assert not found.policy.table[:, 1, 1].any()
    assert not found.policy.table[:, 3, 0].any()
