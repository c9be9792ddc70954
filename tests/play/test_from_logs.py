"""A plan from logs is safe in the truth and rightly forecast; it is the baseline where nothing is certified."""

from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from typer.testing import CliRunner

from omdpd import (
    InvalidInputError,
    Log,
    Policy,
    SafePolicy,
    SafeStart,
    Session,
    Setting,
    Uniform,
    plan_from_logs,
    verdict_from_logs,
)
from omdpd.cli.main import app
from omdpd.play.start import fingerprint_of

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def found(workshop):
    log = workshop.read()
    return plan_from_logs(log.setting(workshop.BUDGET, n_states=workshop.STATES), log)


def test_the_example_is_planned_safely_and_forecast_rightly(workshop, found):
    true = found.policy.evaluate(workshop.workshop())
    logged = Policy(workshop.logged_policy()).evaluate(workshop.workshop())
    assert found.certified
    assert true.safe
    assert true.value > 1.1 * logged.value
    for amount, truth in zip(found.forecast.amounts, (true.value, *true.costs), strict=True):
        assert amount.low <= truth <= amount.high
    for amount in found.forecast.costs:
        assert amount.high <= amount.budget
        assert amount.chance >= 0.95


@pytest.mark.parametrize("seed", range(5))
def test_certified_means_that_no_interval_ends_above_its_budget(workshop, tmp_path, seed):
    """As it is printed, too; of plans from logs, and of the learner's, which may keep one that was certified."""
    file = tmp_path / "logs.csv"
    file.write_text("\n".join(workshop.weeks(60, 700 + seed)))
    columns = {"episode": "week", "state": "queue", "reward": "euros", "step": "shift"}
    log = Log.from_csv(file, ("overtime", "complaints"), **columns)
    setting = log.setting(workshop.BUDGET, n_states=workshop.STATES)
    found = plan_from_logs(setting, log)
    session, said = Session(None, setting, logged=log), [(found.certified, found.forecast)]
    for k, week in enumerate(log):
        told = session.forecast()
        said.append((told.what.startswith("A certified plan"), told))
        session.tell(f"w{k}", week)
    assert any(certified for certified, _ in said)
    for _, forecast in filter(lambda each: each[0], said):
        for amount, line in zip(forecast.costs, forecast.lines()[3:5], strict=True):
            assert amount.high <= amount.budget
            assert amount.chance >= 0.95
            high, budget = (float(word) for word in line.split()[-4:-2])
            assert high <= budget


def test_chances_are_those_of_a_normal_law(found):
    wide = found.forecast.costs[0]
    error = (wide.high - wide.expected) / NormalDist().inv_cdf(0.95)
    assert wide.chance == pytest.approx(NormalDist(wide.expected, error).cdf(wide.budget))


def test_a_forecast_says_what_was_left_out(found):
    text = str(found)
    assert "certified to be within each budget" in text
    assert "59 pairs never tried" in text  # 90 pairs, 31 tried
    assert "NOTE: states never seen: 18; every action there is equally likely: give a baseline, or allowed=" in text
    assert "steps on pairs never tried: 0.0 %" in text
    said = " ".join(text.split())
    assert "the best of many plans looks too good, as halves of the episodes show" in said
    assert "1.64 for 95 %" in said


def test_a_tight_budget_gives_the_baseline_and_says_why(workshop):
    log = workshop.read()
    setting = log.setting((0.5, 6.0), n_states=workshop.STATES)
    own = SafePolicy(workshop.logged_policy(), [0.4, 5.0])
    for baseline in (None, own):
        kept = plan_from_logs(setting, log, baseline)
        assert not kept.certified
        assert "The baseline: 60 logged episodes certify nothing better" in str(kept)
    assert kept.policy.table == pytest.approx(own.policy)


def test_what_is_not_allowed_is_not_planned(workshop):
    log = workshop.read()
    allowed = np.ones((workshop.STATES, 3), dtype=bool)
    allowed[:, 0] = False
    setting = log.setting((16.0, 60.0), n_states=workshop.STATES)
    baseline = np.tile([0.0, 0.0, 1.0], (workshop.SHIFTS, workshop.STATES, 1))
    plan = plan_from_logs(replace(setting, allowed=allowed), log, baseline)
    assert plan.certified
    assert plan.policy.table[:, :, 0].max() == 0.0
    allowed[4] = False
    with pytest.raises(InvalidInputError, match="state 4"):
        plan_from_logs(replace(setting, allowed=allowed), log)


def banned(workshop):
    """The setting of the logs, in which they play what is forbidden now: action 0 in state 3."""
    allowed = np.ones((workshop.STATES, 3), dtype=bool)
    allowed[3, 0] = False
    log = workshop.read()
    assert np.count_nonzero((log.states == 3) & (log.actions == 0)) > 5
    return log, log.setting(workshop.BUDGET, n_states=workshop.STATES, allowed=allowed)


@pytest.mark.parametrize("explore", [0.0, 0.5])
@pytest.mark.parametrize("declared", [False, True])
def test_a_session_takes_logs_of_what_is_forbidden_now_and_never_plays_it(workshop, explore, declared):
    log, setting = banned(workshop)
    plan = plan_from_logs(setting, log)
    assert plan.certified
    safe = SafePolicy(plan.policy.table, [15.9, 5.9]) if declared else None
    session = Session(SafeStart(safe, explore=explore), setting, logged=log)
    table = np.asarray(session.policy())
    assert table[:, 3, 0].max() == 0.0
    assert table[:, 3].max() > 0.0
    if explore == 0.0:
        cmdp = workshop.workshop()
        assert Policy(table).evaluate(cmdp).value == pytest.approx(plan.policy.evaluate(cmdp).value, rel=0.01)
    session.update(next(iter(log)))
    assert np.asarray(session.policy())[:, 3, 0].max() == 0.0
    # What is told of a forbidden action, in an episode that was played elsewhere, is counted, too.
    assert session._state.tally.visits[0, 3, 0] >= np.count_nonzero((log.states == 3) & (log.actions == 0))


def test_a_declared_policy_that_plays_what_is_forbidden_is_refused(workshop):
    log, setting = banned(workshop)
    safe = SafePolicy(workshop.logged_policy(), [15.0, 5.0])
    with pytest.raises(InvalidInputError, match="action 0 is not allowed in state 3"):
        Session(SafeStart(safe), setting, logged=log)


def test_a_ban_may_come_with_a_fork_and_nowhere_else(workshop, tmp_path):
    """A session's own episodes with what is forbidden now are data, too; opening it with a ban says what differs."""
    log, setting = banned(workshop)
    free = replace(setting, allowed=None)
    with Session.open(tmp_path / "free", None, free, logged=log) as session:
        for k, episode in enumerate(list(log)[:3]):
            session.tell(f"week {k}", episode)
        with session.fork(tmp_path / "banned", setting=setting) as fork:
            assert fork.episodes == 3
            assert np.asarray(fork.policy())[:, 3, 0].max() == 0.0
            assert fork._state.tally.episodes == session._state.tally.episodes
    with pytest.raises(InvalidInputError, match=r"setting.allowed is .*session\.fork"):
        Session.open(tmp_path / "free", None, setting)
    with Session.open(tmp_path / "banned", None, setting) as again:
        assert np.asarray(again.policy())[:, 3, 0].max() == 0.0


def test_the_baseline_plays_only_what_is_allowed(workshop):
    """Nothing is certified, so that the clone is played: the shares of the logs among allowed actions, by hand."""
    log = workshop.read()
    setting = log.setting((0.5, 6.0), n_states=workshop.STATES)
    allowed = np.ones((workshop.STATES, 3), dtype=bool)
    allowed[:, 1] = False
    kept = plan_from_logs(replace(setting, allowed=allowed), log)
    assert not kept.certified
    expected = np.zeros((workshop.STATES, 3))
    for s in range(workshop.STATES):
        tries = [np.count_nonzero((log.states == s) & (log.actions == a)) if allowed[s, a] else 0 for a in range(3)]
        expected[s] = np.array(tries) / sum(tries) if sum(tries) else allowed[s] / allowed[s].sum()
    assert kept.policy.table == pytest.approx(np.tile(expected, (workshop.SHIFTS, 1, 1)))
    baseline = np.tile([1.0, 0.0, 0.0], (workshop.SHIFTS, workshop.STATES, 1))
    baseline[2, 3] = [0.9, 0.1, 0.0]
    with pytest.raises(InvalidInputError, match="the baseline plays action 1 in state 3 at step 2, which is not allow"):
        plan_from_logs(replace(setting, allowed=allowed), log, baseline)


@pytest.mark.parametrize("confidence", [0.5, 0.1, 1.0])
def test_a_confidence_without_a_margin_is_refused(workshop, confidence):
    log = workshop.read()
    setting = log.setting(workshop.BUDGET, n_states=workshop.STATES)
    uniform = np.full(setting.shape, 1.0 / 3.0)
    for asked in (
        lambda: plan_from_logs(setting, log, confidence=confidence),
        lambda: verdict_from_logs(setting, log, uniform, confidence=confidence),
        lambda: SafeStart(confidence=confidence),
    ):
        with pytest.raises(InvalidInputError, match=f"confidence is {confidence}, but must"):
            asked()


def test_episodes_that_end_early_cost_nothing_afterwards():
    """Action 1 ends the episode; action 0 goes on and costs 1 a step: with three steps the plan must end early."""
    rng, rows = np.random.default_rng(10005), {"episode": [], "state": [], "action": [], "reward": [], "cost": []}
    for k in range(400):
        for h in range(3):
            action = int(rng.integers(2))
            for name, value in zip(rows, (k, 0, action, 1.0 - action, 1.0 - action), strict=True):
                rows[name].append(value)
            if action or h == 2:
                break
    log = Log.from_frame(rows).with_short("over")
    plan = plan_from_logs(Setting(3, 1, 2, budget=1.0), log)
    assert plan.certified
    # Staying with p, p^2, p^3 costs p + p^2 + p^3 <= 1: the plan stays below, and near.
    p = plan.policy.table[:, 0, 0]
    cost = p[0] + p[0] * p[1] + p[0] * p[1] * p[2]
    assert 0.8 < cost <= 1.0


def test_too_few_episodes_are_refused(workshop):
    log = workshop.read()
    few = Log.from_episodes(list(log)[:19])
    with pytest.raises(InvalidInputError, match="19 episodes, but at least 20"):
        plan_from_logs(few.setting(workshop.BUDGET), few)


def test_the_command_prints_the_same_forecast_and_writes_the_policy(workshop, tmp_path):
    words = ["plan", str(EXAMPLES / "logs.csv"), "--costs", "overtime,complaints", "-o", str(tmp_path / "plan.npz")]
    words += ["--columns", "episode=week,state=queue,reward=euros,step=shift", "--budget"]
    done = CliRunner().invoke(app, [*words, "16,6"])
    assert done.exit_code == 0, done.output
    log = workshop.read()
    expected = plan_from_logs(log.setting(workshop.BUDGET), log)
    assert str(expected.forecast) in done.output
    assert np.array_equal(Policy.load(tmp_path / "plan.npz"), expected.policy)
    assert CliRunner().invoke(app, [*words, "0.1,6"]).exit_code == 1
    for budget, sentence in (
        ("1,2,3", "budget is 3 numbers, but there are 2 costs"),
        ("1", "budget is 1 number, but there are 2 costs"),
        ("a", "must be numbers"),
    ):
        assert sentence in str(CliRunner().invoke(app, [*words, budget]).exception)


def test_a_forecast_says_what_is_played_in_states_that_were_never_seen(workshop):
    log = workshop.read()
    shown = log.setting(workshop.BUDGET)
    more = replace(shown, n_states=shown.n_states + 2, initial=np.r_[shown.mu, 0.0, 0.0])
    unseen = more.n_states - len(np.unique(log.states))
    assert unseen >= 2
    declared = np.zeros(more.shape)
    declared[..., 1] = 1.0
    alone, given = plan_from_logs(more, log), plan_from_logs(more, log, declared)
    note = f"NOTE: states never seen: {unseen}; every action there is equally likely: give a baseline, or allowed="
    assert np.allclose(np.asarray(alone.policy)[:, -2:], 1.0 / more.n_actions)
    assert note in alone.forecast.notes
    assert note in Session(None, more, logged=log).forecast().notes
    assert np.array_equal(np.asarray(given.policy)[:, -2:], declared[:, -2:])
    assert f"states never seen: {unseen}; the baseline is played there" in given.forecast.notes
    all_seen = replace(log, states=np.r_[np.arange(shown.n_states), log.states[shown.n_states :]])
    assert "never seen" not in str(plan_from_logs(shown, all_seen))


def test_too_few_states_or_actions_are_refused_with_those_that_were_logged(workshop):
    log = workshop.read()
    most = int(log.states.max())
    sentence = (
        rf"^episode \d+, step \d+: state {most} is not between 0 and {most - 1}; the log has states up to {most}$"
    )
    with pytest.raises(InvalidInputError, match=sentence):
        log.setting(workshop.BUDGET, n_states=most)
    with pytest.raises(InvalidInputError, match=r"action \d is not between 0 and 0; the log has actions up to \d"):
        log.setting(workshop.BUDGET, n_actions=1)


def test_a_chance_that_is_next_to_none_has_no_digits(workshop):
    log = workshop.read()
    told = plan_from_logs(log.setting([0.01, 6]), log).forecast
    assert 0.0 <= told.costs[0].chance < 1e-3
    assert "(overtime holds with < 0.1 %" in told.warning
    assert next(line for line in told.lines() if line.startswith("overtime")).endswith(" 0.01    < 0.1 %")


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_a_csv_file_without_commas_is_refused_with_its_separator(tmp_path, sign):
    file = tmp_path / "logs.csv"
    file.write_text("episode,state,action,reward,cost\n0,0,0,1,1\n".replace(",", sign))
    with pytest.raises(InvalidInputError, match=r"no column 'episode'.* its separator is .* a comma") as at:
        Log.from_csv(file)
    assert repr(sign) in str(at.value)


def test_without_a_law_of_first_states_episodes_begin_as_the_logged_ones_did(workshop):
    """One that was said holds, and so does one that was said to be uniform."""
    log = workshop.read()
    shown = log.setting(workshop.BUDGET, n_states=workshop.STATES)
    facts = {"budget": shown.budget, "cost_scale": shown.cost_scale, "reward_range": shown.reward_range}
    unsaid, alike = Setting(*shown.shape, 2, **facts), np.full(workshop.STATES, 1.0 / workshop.STATES)
    said = Setting(*shown.shape, 2, alike, **facts)
    for given in (unsaid, replace(unsaid, budget=shown.budget)):
        session = Session(None, given, logged=log)
        assert np.array_equal(session.setting.mu, shown.mu)
        assert str(session.forecast()) == str(Session(None, shown, logged=log).forecast())
        assert str(plan_from_logs(given, log)) == str(plan_from_logs(shown, log))
        policy = session.policy()
        verdicts = [verdict_from_logs(each, log, policy, resamples=0) for each in (given, shown)]
        assert str(verdicts[0]) == str(verdicts[1])
    assert np.array_equal(Session(None, said, logged=log).setting.mu, alike)
    assert np.array_equal(Session(Uniform(), unsaid).setting.mu, alike)


def test_a_session_on_disk_keeps_the_first_states_of_its_logs(workshop, tmp_path):
    log = workshop.read()
    shown = log.setting(workshop.BUDGET, n_states=workshop.STATES)
    unsaid = Setting(*shown.shape, 2, budget=shown.budget, cost_scale=shown.cost_scale, reward_range=shown.reward_range)
    with Session.open(tmp_path, None, unsaid, logged=log) as session:
        seen = str(session.forecast())
    with Session.open(tmp_path, None, unsaid) as again:
        assert np.array_equal(again.setting.mu, shown.mu)
        assert str(again.forecast()) == seen


def test_costs_keep_their_names_in_a_session_its_alarms_and_on_disk(workshop, tmp_path):
    log, names = workshop.read(), ("overtime", "complaints")
    shown = log.setting(workshop.BUDGET, n_states=workshop.STATES)
    plain = replace(shown, names=None)
    with Session.open(tmp_path, None, plain, logged=log) as session:
        session.tell("w0", next(iter(log)))
    for opened in (
        Session(None, shown, logged=log),
        Session(None, plain, logged=log),
        Session.open(tmp_path, None, plain),
    ):
        opened.tell("w1", next(iter(log)))
        assert tuple(each.name for each in opened.forecast().costs) == names
        assert [alarm.name for alarm in opened.alarms()][:2] == ["over overtime", "over complaints"]
        assert opened.judge(opened.policy(), resamples=0).names == names
    opened.close()
    with Session.open(tmp_path, None, replace(shown, names=("a", "b"))) as renamed:  # names are for people to read
        assert renamed.setting.cost_names == ("a", "b")
    with pytest.raises(InvalidInputError, match="must be 2 different ones"):
        replace(shown, names=("a", "a"))


def test_what_is_not_certified_is_said_aloud(workshop, tmp_path):
    log = workshop.read()
    tight = plan_from_logs(log.setting((6.0, 3.0), n_states=workshop.STATES), log)
    assert not tight.certified
    assert "WARNING: this policy is likely to go over its budget (overtime holds with" in str(tight.forecast)
    assert "WARNING" not in str(plan_from_logs(log.setting(workshop.BUDGET, n_states=workshop.STATES), log))
    words = ["plan", str(EXAMPLES / "logs.csv"), "--costs", "overtime,complaints", "--budget", "6,3"]
    columns = ["--columns", "episode=week,state=queue,reward=euros,step=shift,propensity=chance"]
    result = CliRunner().invoke(app, [*words, *columns, "-o", str(tmp_path / "plan.csv")])
    assert result.exit_code == 1
    assert "WARNING: this policy is likely to go over its budget" in result.output
    assert "(the baseline: nothing better is certified)" in result.output
    assert "say how many with --states" in result.output


def test_sizes_and_ranges_may_be_wider_than_what_was_logged(workshop, tmp_path):
    """A state, a cost and a reward that were never logged are taken where the setting says that they can happen."""
    log = workshop.read()
    wide = log.setting(workshop.BUDGET, n_states=30, n_actions=4, cost_scale=(30.0, 20.0), reward_range=(0.0, 80.0))
    assert wide.shape == (14, 30, 4)
    session = Session(None, wide, logged=log)
    episode = session.begin()
    episode.act(29)
    episode.tell(80.0, (25.0, 15.0))
    words = ["plan", str(EXAMPLES / "logs.csv"), "--costs", "overtime,complaints", "--budget", "16,6"]
    columns = ["--columns", "episode=week,state=queue,reward=euros,step=shift"]
    out = tmp_path / "plan.npz"
    result = CliRunner().invoke(app, [*words, *columns, "--states", "30", "--actions", "4", "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert Policy.load(out).shape == (14, 30, 4)


def test_the_next_episode_may_begin_in_a_state_that_is_named(workshop, found, tmp_path):
    """The command plans for it as `plan_from_logs` does for a setting that begins there."""
    words = ["plan", str(EXAMPLES / "logs.csv"), "--costs", "overtime,complaints", "--budget", "16,6"]
    columns = ["--columns", "episode=week,state=queue,reward=euros,step=shift", "-o", str(tmp_path / "plan.npz")]
    result = CliRunner().invoke(app, [*words, *columns, "--initial", "3"])
    assert result.exit_code == 0, result.output
    log = workshop.read()
    setting = replace(log.setting(workshop.BUDGET), initial=np.eye(13)[3])
    there = plan_from_logs(setting, log)
    assert Policy.load(tmp_path / "plan.npz").table == pytest.approx(there.policy.table)
    assert there.forecast.value.expected != found.forecast.value.expected
    refused = CliRunner().invoke(app, [*words, *columns, "--initial", "13"])
    assert "--initial is 13, but must be a state: 0 to 12" in str(refused.exception)


def test_what_the_logs_show_stands_beside_the_plan(workshop, found):
    log = workshop.read()
    assert [each.logged for each in found.forecast.amounts] == pytest.approx(log.totals().mean(axis=1).tolist())
    assert "in logs" in str(found)
    assert "234.33" in str(found)
    session = Session(None, log.setting(workshop.BUDGET), logged=log)
    assert "in logs" not in str(session.forecast())


def test_one_word_stands_for_what_is_earned(workshop, found):
    log = workshop.read()
    verdict = verdict_from_logs(log.setting(workshop.BUDGET, n_states=workshop.STATES), log, found.policy, resamples=0)
    for text in (str(found), str(log), str(verdict)):
        assert "reward" in text
        assert "value" not in text


def test_where_steps_are_counted_apart_a_plan_of_few_tries_is_not_certified(workshop):
    """Sixty weeks leave a third of the steps on pairs tried fewer than five times at that step."""
    log = workshop.read()
    setting = log.setting(workshop.BUDGET, n_states=workshop.STATES)
    few = plan_from_logs(setting, log, stationary=False)
    assert not few.certified
    assert "% of the best plan's steps are on pairs tried fewer than 5 times" in few.forecast.what
    assert plan_from_logs(setting, log, stationary=False, least=1).certified  # whoever says that one try is enough
    many = plan_from_logs(setting, replace(log, **_repeated(log, 20)), stationary=False)
    assert many.certified
    assert many.forecast.rarely <= 0.1


def _repeated(log, n):
    """A log n times over."""
    starts = np.r_[0, np.cumsum(np.tile(log.lengths, n))]
    once = {name: np.tile(getattr(log, name), n) for name in ("states", "actions", "rewards", "propensities")}
    return once | {"starts": starts, "costs": np.tile(log.costs, (1, n))}


@pytest.mark.parametrize("n_states", [6, 7, 13])
def test_names_do_not_change_whose_session_it_is(n_states):
    """Not even where the uniform law of so many states changes by rounding when it is scaled to one again."""
    plain, named = (Setting(2, n_states, 2, budget=1.0, names=names) for names in (None, ("money",)))
    assert fingerprint_of(SafeStart(), plain) == fingerprint_of(SafeStart(), named)
