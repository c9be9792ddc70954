"""SafeStart plans for the budget in force, from costs that are counted alike whatever budget they were met under."""

import numpy as np
import pytest

from omdpd import InvalidInputError, ProximalOMDPD, SafeStart, Session, Setting
from omdpd.problem.setting import BanditFeedback, Trajectory
from tests.learners.safe.test_safe_start import setting_of

LOWER = (14.0, 5.0)


def told(session, weeks, budget=None):
    """Play logged weeks as they are, whatever the session would have done."""
    for k, week in weeks:
        session.tell(f"w{k}", week, budget=budget)


def amounts(session):
    return [(each.name, each.expected, each.low, each.high, each.budget) for each in session.forecast().amounts]


@pytest.mark.parametrize("explore", [0.0, 0.5])
def test_another_budget_is_planned_for_at_once_as_if_it_had_been_the_first(workshop, explore):
    log, setting = setting_of(workshop)
    session = Session(SafeStart(explore=explore), setting, logged=log)
    before = np.asarray(session.policy())
    session.set_budget(LOWER)
    fresh = Session(SafeStart(explore=explore), log.setting(LOWER, n_states=workshop.STATES), logged=log)
    truth = workshop.workshop()
    mine, other = (each.policy().evaluate(truth) for each in (session, fresh))
    assert not np.array_equal(session.policy(), before)
    assert mine.value == pytest.approx(other.value, rel=5e-3)
    assert mine.costs == pytest.approx(other.costs, rel=5e-2)
    for one, two in zip(amounts(session), amounts(fresh), strict=True):
        assert one[1:4] == pytest.approx(two[1:4], rel=0.05)
        assert one[4] == two[4]
    session.set_budget(workshop.BUDGET)
    assert [each.budget for each in session.forecast().costs] == list(workshop.BUDGET)


def test_costs_count_alike_whatever_budget_was_in_force(workshop):
    log, setting = setting_of(workshop)
    weeks = list(enumerate(log))
    plain, moved = (Session(SafeStart(), setting, logged=log) for _ in range(2))
    told(plain, weeks[:12])
    told(moved, weeks[:4])
    moved.set_budget(LOWER)
    told(moved, weeks[4:8])
    told(moved, weeks[8:12], budget=(17.0, 5.5))
    one, two = plain._state.tally, moved._state.tally
    assert two.sums == pytest.approx(one.sums, abs=1e-9)
    assert two.totals == pytest.approx(one.totals, abs=1e-9)


@pytest.mark.parametrize("learner", [SafeStart(), ProximalOMDPD.cautious()])
@pytest.mark.parametrize("budget", [0.5, 30.0])
def test_what_may_be_told_does_not_hang_on_the_budget_in_force(learner, budget):
    """Steps cost 0 to 3, as the scale says with the budget of the setting."""
    session = Session(learner, Setting(2, 2, 2, budget=3.0, cost_scale=1.5))
    session.set_budget(budget)
    episode = session.begin("one")
    for cost in (0.0, 3.0):
        episode.act(0)
        episode.tell(0.5, cost)
    episode.end()
    session.tell("two", BanditFeedback(Trajectory(np.zeros(2, int), np.zeros(2, int)), np.zeros(2), [[3.0, 0.0]]))
    with pytest.raises(InvalidInputError, match=r"declare a cost_scale of at least 1\.7 for cost 0"):
        session.tell("three", BanditFeedback(Trajectory(np.zeros(2, int), np.zeros(2, int)), np.zeros(2), [[3.2, 0.0]]))
    assert session.episodes == 2


def test_a_verdict_is_about_the_budget_in_force(workshop):
    log, setting = setting_of(workshop)
    session = Session(SafeStart(), setting, logged=log)
    told(session, enumerate(log))
    assert session.judge(session.policy(), resamples=0).budget.tolist() == list(workshop.BUDGET)
    session.set_budget(LOWER)
    assert session.judge(session.policy(), resamples=0).budget.tolist() == list(LOWER)


@pytest.mark.parametrize("snapshot_every", [2, 100])
def test_a_budget_comes_back_where_it_was_with_episodes_that_were_not_learnt_from_yet(
    workshop, tmp_path, snapshot_every
):
    """As a server has it: two weeks wait while the plan for another budget is made."""
    log, setting = setting_of(workshop)
    weeks = list(enumerate(log))

    def opened():
        return Session.open(tmp_path / "kept", None, setting, snapshot_every, logged=log)

    with opened() as session:
        session.lag()
        told(session, weeks[:3])
        assert session.learn_next()
        session.set_budget(LOWER)
        assert session.playing == "learnt 1+1"
        session.begin("between")
        between = np.asarray(session.policy_of("between"))
        assert session.learn_next()
        session.set_budget((15.0, 5.5))
        session.begin("later")
        while session.learn_next():
            pass
        policy, seen = np.asarray(session.policy()), amounts(session)
        later = np.asarray(session.policy_of("later"))
        session.sync()
        with session.fork(tmp_path / "fork") as fork:
            assert fork.base_budget().tolist() == [15.0, 5.5]
    with opened() as again:
        assert np.array_equal(again.policy(), policy)
        assert np.array_equal(again.policy_of("between"), between)
        assert np.array_equal(again.policy_of("later"), later)
        assert amounts(again) == seen
    assert not np.array_equal(between, later)


def test_a_forecast_says_that_an_alarm_rings(workshop):
    log, setting = setting_of(workshop)
    session = Session(SafeStart(), setting, logged=log)
    assert "alarm" not in str(session.forecast())
    told(session, enumerate(log), budget=(2.0, 1.0))
    assert "Do not rely on it while an alarm rings (over " in session.forecast().what
