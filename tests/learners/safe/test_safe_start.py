"""SafeStart plays what is certified, deviates within slack, and says beforehand what will come."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from omdpd import (
    InvalidInputError,
    Policy,
    ProximalOMDPD,
    SafePolicy,
    SafeStart,
    Session,
    Setting,
    Trajectory,
    plan_from_logs,
)
from omdpd.learners.safe import deviations
from omdpd.learners.safe.certified import Margin, judged
from omdpd.learners.safe.supported import supported
from omdpd.learners.safe.tally import Tally, Walks
from omdpd.learners.safe_start import _believed
from omdpd.play.simulate import play_episode
from omdpd.problem.cmdp import Round
from omdpd.storage.journal import SessionWarning


def setting_of(workshop):
    log = workshop.read()
    return log, log.setting(workshop.BUDGET, n_states=workshop.STATES)


def weeks(session, cmdp, n, seed):
    """What is played for n weeks, judged by the truth, in a session without units."""
    rng, found = np.random.default_rng(seed), []
    for k in range(n):
        policy = np.asarray(session.policy())
        found.append(Policy(policy).evaluate(cmdp))
        round_ = Round(cmdp.reward, cmdp.excess, k, "exact", "exact")
        session.update(play_episode(cmdp, round_, policy, "bandit", rng))
    return found


def test_without_deviations_the_first_week_is_the_plan_from_logs(workshop):
    log, setting = setting_of(workshop)
    session = Session(SafeStart(explore=0.0), setting, logged=log)
    planned = plan_from_logs(setting, log)
    # Plans are made in other units, and ended where they gain a fiftieth of a standard error.
    assert session.policy().evaluate(workshop.workshop()).value == pytest.approx(
        planned.policy.evaluate(workshop.workshop()).value, rel=2e-3
    )
    told = session.forecast()
    for mine, theirs in zip(told.amounts, planned.forecast.amounts, strict=True):
        for name in ("expected", "low", "high"):
            assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=0.05)


def test_a_session_from_logs_alone_is_safe_from_the_first_week_on(workshop):
    log, setting = setting_of(workshop)
    session = Session(None, setting, logged=log)
    assert isinstance(session.learner, SafeStart)
    first = session.policy().evaluate(workshop.workshop())
    told = session.forecast()
    assert first.safe
    assert first.value > Policy(workshop.logged_policy()).evaluate(workshop.workshop()).value
    for amount, truth in zip(told.costs, first.costs, strict=True):
        assert truth <= amount.high
    assert "A certified plan, from 60 episodes." in str(told)
    # Plans are renewed when episodes have grown by a twentieth: the third makes 63.
    for k, what in enumerate(("60 episodes; 1 more since are", "60 episodes; 2 more since are", "63 episodes.")):
        amounts = session.forecast().amounts
        session.update(next(iter(log)))
        assert f", from {what}" in session.forecast().what
        assert (session.forecast().amounts == amounts) == (k < 2)


def test_a_run_from_a_safe_policy_without_logs_stays_safe_and_gains(workshop):
    cmdp = workshop.workshop()
    baseline = Policy(workshop.logged_policy()).evaluate(cmdp)
    setting = cmdp.setting(None, "bandit")
    safe = SafePolicy(workshop.logged_policy(), (baseline.costs - baseline.budget) / cmdp.cost_scale, scaled=True)
    runs = [weeks(Session(SafeStart(safe), setting), cmdp, 60, 10010 + seed) for seed in range(5)]
    over = np.array([[each.excess / each.budget for each in run] for run in runs]).max(axis=2)
    assert (over > 1e-3).mean() <= 0.05
    assert over.max() <= 0.05
    values = np.array([[each.value for each in run] for run in runs])
    assert values[:, :20] == pytest.approx(baseline.value)
    assert (values[:, -1] > 1.05 * baseline.value).all()


def test_a_forecast_is_of_the_plan_and_the_allowance_stands_apart(workshop):
    """Deviations change neither what is expected nor an interval; the chances that budgets hold count them."""
    log, _ = setting_of(workshop)
    setting = log.setting([60.0, 40.0], n_states=workshop.STATES)  # much slack
    plain, more = (Session(SafeStart(explore=share), setting, logged=log).forecast() for share in (0.0, 0.5))
    for ours, theirs in zip(plain.amounts, more.amounts, strict=True):
        assert (ours.expected, ours.low, ours.high) == (theirs.expected, theirs.low, theirs.high)
        assert ours.extra == 0.0
        assert ours.logged == theirs.logged
    assert plain.allowance == ""
    assert max(each.extra for each in more.costs) > 0.5
    for ours, theirs in zip(plain.costs, more.costs, strict=True):
        assert theirs.high + theirs.extra <= theirs.budget
        assert theirs.chance <= ours.chance
    overtime = more.costs[0]
    assert f"Trying other actions may add up to {overtime.extra:.3g} (overtime), " in str(more)
    for amount, truth in zip(
        more.costs, Session(None, setting, logged=log).policy().evaluate(workshop.workshop()).costs, strict=True
    ):
        assert truth <= amount.high + amount.extra


def test_a_fork_has_the_declared_policy_at_its_own_cost(workshop, tmp_path):
    log, setting = setting_of(workshop)
    safe = SafePolicy(workshop.logged_policy(), [15.0, 5.5])
    roomy = replace(setting, budget=[20.0, 8.0])
    with Session.open(tmp_path / "one", SafeStart(safe), setting, logged=log) as session:
        for k, other in enumerate((None, roomy)):
            with session.fork(tmp_path / f"fork {k}", setting=other) as fork:
                limits, scales = fork.setting.limits, fork.setting.scales
                assert limits + scales * fork.learner.safe.cost == pytest.approx([15.0, 5.5])
    Session.open(tmp_path / "fork 0", SafeStart(safe), setting).close()


def test_a_budget_that_is_set_is_shown_as_it_was_said_and_one_without_a_plan_is_warned_of(workshop):
    log, setting = setting_of(workshop)
    session = Session(None, setting, logged=log)
    with pytest.warns(SessionWarning, match=r"the budget \[1.0, 0.0\]: this policy is likely to go over its budget"):
        session.set_budget([1, 0.0])
    assert [each.budget for each in session.forecast().costs] == [1.0, 0.0]
    session.set_budget([15.5, 6.0])
    assert session._state.forecast.certified


def test_the_baseline_from_logs_is_that_of_the_logs_alone(workshop, tmp_path):
    """Own episodes are plans and deviations: they change no baseline, also not that of a fork or a later opening."""
    log, setting = setting_of(workshop)
    counted = np.zeros((workshop.STATES, 3))
    np.add.at(counted, (log.states, log.actions), 1.0)
    seen = counted.sum(axis=1) > 0.0
    shares = counted[seen] / counted[seen].sum(axis=1, keepdims=True)
    own = replace(next(iter(log)), trajectory=Trajectory(np.full(14, 3), np.full(14, 2)))
    with Session.open(tmp_path / "one", None, setting, logged=log) as session:
        for _ in range(10):
            session.update(own)
        session.keep()
        with pytest.warns(SessionWarning, match="likely to go over"):
            session.set_budget([0.5, 0.5])
        assert not session._state.forecast.certified
        assert np.asarray(session.policy())[:, seen] == pytest.approx(np.tile(shares, (14, 1, 1)))
        with pytest.warns(SessionWarning, match="likely to go over"):
            forked = session.fork(tmp_path / "two")
    with Session.open(tmp_path / "one", None, setting) as again, forked:
        for each in (again, forked):
            each.update(own)
            assert each._state.fallback[:, seen] == pytest.approx(np.tile(shares, (14, 1, 1)))


def test_deviations_cost_no_more_than_the_slack_where_the_assumption_holds():
    """One action was tried, at -0.5 a step; others cost at most 1: 0.3 of slack pays for a fifth of a deviation."""
    rng, (H, S, A) = np.random.default_rng(10011), (4, 2, 3)
    n = 200
    states = rng.integers(S, size=n * H)
    walks = Walks(
        np.arange(n + 1) * H, states, np.zeros(n * H, np.int64), np.full(n * H, 0.5), np.full((1, n * H), -0.5)
    )
    tally = Tally.empty(Setting(H, S, A), stationary=True).add(walks)
    model = supported(tally, tally.sample(), np.full(S, 0.5), 5)
    only = np.tile([1.0, 0.0, 0.0], (H, S, 1))
    plan = judged(model, only, np.zeros(1), Margin(np.zeros(2), 1.645))
    policy, extra = deviations.with_deviations(model, plan, np.array([0.3]), 0.5)
    tried = (policy[..., 1:].sum(axis=2) * plan.occupancy[:, :-1].sum(axis=2)).sum()  # deviations an episode
    assert tried == pytest.approx(0.3 / 1.5, rel=1e-6)  # an untried step costs at most 1, which is 1.5 more than -0.5
    assert extra == pytest.approx([0.3])
    assert policy.sum(axis=2) == pytest.approx(1.0)
    kept, nothing = deviations.with_deviations(model, plan, np.array([0.0]), 0.5)
    assert np.array_equal(kept, only)
    assert nothing.tolist() == [0.0]


def test_own_episodes_correct_what_is_believed_of_flattery(workshop):
    """By hand: t of variance s^2 and an observation x of variance v are averaged, weighted by what is known of each."""
    log, setting = setting_of(workshop)
    session = Session(SafeStart(explore=0.0), setting, logged=log)
    before, told = session._state, session._state.forecast
    week = next(iter(log))
    session.update(week)
    after = session._state
    unit = np.r_[np.diff(setting.reward_range), setting.cost_scale]
    met = (
        np.r_[week.rewards.sum(), week.costs.sum(axis=1)] - np.r_[14 * setting.reward_range[0], setting.budget]
    ) / unit
    x = np.array([-1, 1, 1]) * (met - told.totals) / told.errors
    v = (before.tally.means_of_episodes()[1] / told.errors) ** 2
    z = NormalDist().inv_cdf(0.95)
    variance = (before.z / z) ** 2 - 1
    left = 1 / (1 / variance + 1 / v)
    found = _believed(after, z)
    assert found.flattery == pytest.approx(np.maximum(left * (before.flattery / variance + x / v), 0))
    assert z < found.z < before.z
    assert found.z == pytest.approx(z * np.sqrt(1 + left[1:].max()))


@pytest.mark.parametrize("n", [1, 10, 19])
def test_few_logs_are_played_on_until_there_are_enough_for_a_plan(workshop, n):
    """The shares of the logs, by hand; a declared baseline instead, and the uniform policy without logs."""
    log, setting = setting_of(workshop)
    few = list(log)[:n]
    session = Session(None, setting, logged=few)
    expected = np.zeros(setting.shape[1:])
    for week in few:
        np.add.at(expected, (week.trajectory.states, week.trajectory.actions), 1.0)
    seen = expected.sum(axis=1) > 0
    expected = np.where(seen[:, None], expected / np.maximum(expected.sum(axis=1, keepdims=True), 1), 1 / 3)
    assert session.policy().table == pytest.approx(np.broadcast_to(expected, setting.shape))
    for week in list(log)[n:19]:
        session.update(week)
        assert session.policy().table == pytest.approx(np.broadcast_to(expected, setting.shape))
    session.update(list(log)[19])
    assert session.forecast().costs
    own = SafeStart(SafePolicy(workshop.logged_policy(), [12.0, 5.3]))
    assert Session(own, setting, logged=few).policy().table == pytest.approx(workshop.logged_policy())
    alone = Session(SafeStart(), setting)
    alone.update(few[0])
    assert alone.policy().table == pytest.approx(1 / 3)


def test_reopening_goes_on_with_the_same_policy(workshop, tmp_path):
    log, setting = setting_of(workshop)
    week = next(iter(log))
    with Session.open(tmp_path / "kept", SafeStart(), setting, logged=log) as session:
        session.update(week)
        policy = session.policy().table
    with Session.open(tmp_path / "kept", SafeStart(), setting, logged=log) as again:
        assert np.array_equal(again.policy(), policy)


def test_a_session_on_disk_needs_no_learner_where_there_are_logs(workshop, tmp_path):
    log, setting = setting_of(workshop)
    with Session.open(tmp_path / "kept", None, setting, 1, logged=log) as session:
        for week in list(log)[:2]:
            session.update(week)
        policy = session.policy().table
    with Session.open(tmp_path / "kept", None, setting, 1, logged=log) as again:
        assert isinstance(again.learner, SafeStart)
        assert np.array_equal(again.policy(), policy)
    with pytest.raises(InvalidInputError, match="NoneType has no init"):
        Session.open(tmp_path / "other", None, setting)


def test_a_forecast_names_deviations_only_where_there_are_some(workshop):
    log, setting = setting_of(workshop)
    for explore in (0.0, 0.5):
        session = Session(SafeStart(explore=explore), setting, logged=log)
        assert ("Trying other actions may add up to" in str(session.forecast())) == (explore > 0.0)
        assert session._state.forecast.extra.any() == (explore > 0.0)


def test_what_cannot_be_forecast_is_said(workshop):
    _, setting = setting_of(workshop)
    with pytest.raises(InvalidInputError, match="0 episodes are too few for a forecast"):
        Session(SafeStart(), setting).forecast()
    with pytest.raises(InvalidInputError, match="ProximalOMDPD forecasts nothing: SafeStart does"):
        Session(ProximalOMDPD.cautious(), setting).forecast()
    with pytest.raises(InvalidInputError, match="confidence"):
        SafeStart(confidence=1.5)
    with pytest.raises(InvalidInputError, match=r"explore is 1\.5, but must be at most 1"):
        SafeStart(explore=1.5)
