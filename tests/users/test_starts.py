"""A user with logs from before, and one whose weeks begin where the last one ended."""

import numpy as np
import pytest
from instances import bandit, random_cmdp, revealed

from omdpd import (
    BanditFeedback,
    InvalidInputError,
    OptCMDP,
    ProximalOMDPD,
    Session,
    Setting,
    Trajectory,
    Uniform,
    episodes_of_counts,
)
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.evidence import Past
from omdpd.learners.greedy_lp import GreedyLP
from omdpd.learners.oracle import Oracle
from omdpd.learners.triple_q import TripleQ

H, S, A = 4, 3, 2


def world():
    return random_cmdp(np.random.default_rng(0), H, S, A, budget=0.4)


def logs(n, kind="bandit"):
    """Episodes of the uniform policy, which somebody played before."""
    cmdp, rng = world(), np.random.default_rng(1)
    uniform = np.full((H, S, A), 1.0 / A)
    if kind == "bandit":
        return [bandit(rng, cmdp, uniform) for _ in range(n)]
    return [revealed(rng, cmdp, uniform, cmdp.excess) for _ in range(n)]


@pytest.mark.parametrize(
    "learner", [ProximalOMDPD.standard(), ProximalOMDPD.cautious(), OptCMDP.practical(), GreedyLP()]
)
def test_the_first_policy_is_planned_with_what_was_logged(learner):
    cmdp = world()
    cold = Session(learner, cmdp.setting(400, "bandit"))
    warm = Session(learner, cmdp.setting(400, "bandit"), logged=logs(400))
    best = cmdp.solve().value
    gaps = [best - session.policy().evaluate(cmdp).value for session in (cold, warm)]
    assert warm.episodes == 0
    assert abs(gaps[1]) < 0.5 * abs(gaps[0])


def test_logged_episodes_are_counted_with_all_that_is_kept_of_them():
    """A learner that counts the logs one by one as it plays ends with the same counts and the same evidence."""
    learner, setting = ProximalOMDPD.standard(), world().setting(100, "bandit")
    warm = Session(learner, setting, logged=logs(30))
    state = learner.init(setting)
    for feedback in logs(30):
        state = learner.update(state, feedback)
    for name in Past._fields:
        one, other = getattr(warm._state.parts, name), getattr(state.parts, name)
        assert np.allclose(one, other, rtol=0.0, atol=1e-9), name
    assert warm._state.counts.visits.sum() == 30 * H
    assert warm._state.k == 1


@pytest.mark.parametrize("learner", [TripleQ(), Uniform()])
def test_a_learner_without_counts_learns_from_every_logged_episode(learner):
    setting = world().setting(100, "bandit")
    warm, state = Session(learner, setting, logged=logs(5)), learner.init(setting)
    for feedback in logs(5):
        state = learner.update(state, feedback)
    assert np.array_equal(warm.policy(), learner.policy(state))


def test_logs_with_whole_cost_tables_will_do():
    warm = Session(ProximalOMDPD.cautious(), world().setting(100, "full"), logged=logs(50, "full"))
    assert warm._state.counts.visits.sum() == 50 * H


def test_a_wrong_log_is_refused_by_its_entry():
    path = Trajectory([0, 1, 9, 0], [0, 0, 0, 0])
    with pytest.raises(InvalidInputError, match=r"states\[2\] = 9 is not between 0 and 2"):
        Session(Uniform(), world().setting(100, "bandit"), logged=[BanditFeedback(path, np.zeros(H), np.zeros((1, H)))])


def test_a_warm_session_lasts_and_other_logs_are_refused(tmp_path):
    setting = world().setting(100, "bandit")
    more = logs(23)[20:]
    memory = Session(ProximalOMDPD.standard(), setting, logged=logs(20))
    for feedback in more:
        memory.update(feedback)
        with Session.open(tmp_path, ProximalOMDPD.standard(), setting, 2, logged=logs(20)) as session:
            session.update(feedback)
    with Session.open(tmp_path, ProximalOMDPD.standard(), setting, 2, logged=logs(20)) as session:
        assert session.episodes == 3
        assert np.array_equal(session.policy(), memory.policy())
    with pytest.raises(InvalidInputError, match="another learner or setting"):
        Session.open(tmp_path, ProximalOMDPD.standard(), setting, logged=logs(19))


# Two places that an episode never leaves.  Working earns 1 anywhere and costs 1 in the first place; resting is free.
# An episode of two steps may cost one half.
BUDGET = 0.5
# The learner shrinks its estimates of cost by two pseudo-observations; with fifty of each kind this is what is left.
SHRUNK = 0.02


def two_places():
    return Setting(2, 2, 2, budget=BUDGET, n_episodes=100)


def an_episode(place, actions):
    worked = np.array(actions, dtype=float)
    return BanditFeedback(Trajectory([place, place], list(actions)), worked, [worked * (place == 0)])


def every_episode():
    return [an_episode(place, (a, b)) for place in (0, 1) for a in (0, 1) for b in (0, 1)] * 25


def work_in_the_first_place(session):
    return float(np.asarray(session.policy())[:, 0, 1].sum())


def test_every_week_is_planned_from_where_it_begins():
    session = Session(GreedyLP(), two_places(), logged=every_episode())
    # Half of the weeks begin in the first place: there one step of work costs one half on average.
    assert work_in_the_first_place(session) == pytest.approx(1.0, abs=SHRUNK)
    session.update(an_episode(0, (1, 0)), initial=[1.0, 0.0])  # this one does: work half a step
    assert work_in_the_first_place(session) == pytest.approx(0.5, abs=SHRUNK)
    session.update(an_episode(0, (1, 0)))  # and so does the next, as nothing else was said
    assert work_in_the_first_place(session) == pytest.approx(0.5, abs=SHRUNK)
    session.update(an_episode(0, (0, 0)), initial=[0.25, 0.75])
    assert work_in_the_first_place(session) == pytest.approx(2.0, abs=SHRUNK)


def test_starts_that_carry_over_are_kept_on_disk(tmp_path):
    laws = [[1.0, 0.0], None, [0.3, 0.7], [0.1, 0.9]]
    memory = Session(ProximalOMDPD.cautious(), two_places())
    for k, law in enumerate(laws):
        memory.update(an_episode(k % 2, (1, 0)), initial=law)
        with Session.open(tmp_path, ProximalOMDPD.cautious(), two_places(), snapshot_every=3) as session:
            session.update(an_episode(k % 2, (1, 0)), initial=law)
    with Session.open(tmp_path, ProximalOMDPD.cautious(), two_places(), snapshot_every=3) as session:
        assert session.episodes == 4
        assert np.array_equal(session.policy(), memory.policy())
        assert np.allclose(session._state.setting.mu, [0.1, 0.9])


def test_a_start_that_is_no_law_or_that_a_learner_cannot_take_is_refused():
    session = Session(GreedyLP(), two_places())
    with pytest.raises(InvalidInputError, match=r"initial = 1\.5 is the sum of a row"):
        session.update(an_episode(0, (1, 0)), initial=[1.0, 0.5])
    assert session.episodes == 0
    cmdp = world()
    known = Session(Oracle(cmdp.transition, cmdp.reward, cmdp.excess), cmdp.setting(10, "bandit"))
    with pytest.raises(InvalidInputError, match="Oracle does not keep its setting in its state"):
        known.update(logs(1)[0], initial=[1.0, 0.0, 0.0])


def counts_of(logged):
    counts = Counts.empty(world().setting(100, "bandit"))
    for feedback in logged:
        counts = counts.add(feedback)
    return counts


def from_counts(counts, setting=None, **changed):
    tables = {name: getattr(counts, name) for name in ("visits", "transitions", "reward_sum", "cost_sum")} | changed
    return episodes_of_counts(setting or world().setting(100, "bandit"), **tables)


def test_episodes_of_counts_leave_these_counts():
    counts = counts_of(logs(40))
    again = counts_of(from_counts(counts))
    for name in vars(counts):
        assert np.allclose(getattr(again, name), getattr(counts, name), rtol=0.0, atol=1e-9), name


def test_the_first_policy_is_planned_with_counts_alone():
    cmdp, learner = world(), ProximalOMDPD.standard()
    setting = cmdp.setting(400, "bandit")
    cold, warm = Session(learner, setting), Session(learner, setting, logged=from_counts(counts_of(logs(400))))
    best = cmdp.solve().value
    gaps = [abs(best - session.policy().evaluate(cmdp).value) for session in (cold, warm)]
    assert gaps[1] < 0.5 * gaps[0]


def test_counts_are_in_the_units_of_the_setting():
    setting = Setting(2, 1, 1, budget=10.0, cost_scale=20.0, reward_range=(-100.0, 300.0))
    visits = np.full((2, 1, 1), 4.0)
    moves = np.array([[[[4.0]]], [[[0.0]]]])
    logged = episodes_of_counts(setting, visits, moves, 50.0 * visits, 3.0 * visits)
    assert sum(each.rewards for each in logged) == pytest.approx([200.0, 200.0])
    assert sum(each.costs for each in logged).ravel() == pytest.approx([12.0, 12.0])
    Session(ProximalOMDPD.cautious(), setting, logged=logged)


@pytest.mark.parametrize(
    ("name", "place", "value", "sentence"),
    [
        ("visits", (0, 0, 0), 0.5, r"visits\[0, 0, 0\].*is no count"),
        ("visits", (0, 0, 0), 99.0, r"visits\[0, 0, 0\].*another number of times followed by a next state"),
        ("visits", (H - 1, 0, 0), 99.0, r"arrivals\[2, 0\].*counts must be those of whole episodes"),
        ("reward_sum", (0, 0, 0), 999.0, r"reward_sum / visits\[0, 0, 0\].*is outside \[0, 1\]"),
        ("transitions", (H - 1, 0, 0, 0), 1.0, r"transitions\[-1\]\[0, 0, 0\].*follows the last step"),
    ],
)
def test_what_cannot_be_counts_of_episodes_is_refused_by_its_entry(name, place, value, sentence):
    counts = counts_of(logs(40))
    wrong = getattr(counts, name).copy()
    wrong[place] = value
    with pytest.raises(InvalidInputError, match=sentence):
        from_counts(counts, **{name: wrong})


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"cost_sum": "much"}, "cost_sum"),
        ({"cost_sum": [[1.0], [2.0, 3.0]]}, "cost_sum"),
        ({"seed": -1}, "seed is -1, but must be"),
    ],
)
def test_what_is_no_table_or_no_seed_is_refused_in_a_sentence(changed, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        from_counts(counts_of(logs(3)), **changed)


def test_counts_hold_no_cost_tables():
    with pytest.raises(InvalidInputError, match="only a setting with bandit feedback"):
        from_counts(counts_of(logs(3)), world().setting(100, "full"))
