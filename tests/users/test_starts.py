"""A user with logs from before, and one whose weeks begin where the last one ended."""

from dataclasses import replace

import numpy as np
import pytest

from omdpd import (
    BanditFeedback,
    InvalidInputError,
    Log,
    OptCMDP,
    Policy,
    ProximalOMDPD,
    SafePolicy,
    SafeStart,
    Session,
    Setting,
    Trajectory,
    Uniform,
    run,
)
from omdpd.beliefs.evidence import Past
from omdpd.learners.dope import DOPE
from omdpd.learners.dope_plus import DOPEPlus
from omdpd.learners.episode_safe import EpisodeSafe
from omdpd.learners.greedy_lp import GreedyLP
from omdpd.learners.optpess_lp import OptPessLP
from omdpd.learners.oracle import Oracle
from omdpd.learners.triple_q import TripleQ
from omdpd.storage.atomic import RecordError
from omdpd.storage.journal import verify_session
from tests.references.instances import bandit, random_cmdp, revealed

H, S, A = 4, 3, 2


# With this budget the uniform policy, which costs about 0, is clearly safe.
ROOMY = 0.8


def world(budget=0.4):
    return random_cmdp(np.random.default_rng(0), H, S, A, budget=budget)


def roomy():
    return world(ROOMY)


def roomy_logs(n, kind="bandit"):
    return logs(n, kind, roomy())


def logs(n, kind="bandit", cmdp=None):
    """Episodes of the uniform policy, which somebody played before."""
    cmdp, rng = cmdp or world(), np.random.default_rng(1)
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
    warm = Session(learner, cmdp.setting(400, "bandit"), logged=logs(400), start="explore")
    best = cmdp.solve().value
    gaps = [best - session.policy().evaluate(cmdp).value for session in (cold, warm)]
    assert warm.episodes == 0
    assert abs(gaps[1]) < 0.5 * abs(gaps[0])


def test_logged_episodes_are_counted_with_all_that_is_kept_of_them():
    """A learner that counts the logs one by one as it plays ends with the same counts and the same evidence."""
    learner, setting = ProximalOMDPD.standard(), world().setting(100, "bandit")
    warm = Session(learner, setting, logged=logs(30), start="explore")
    state = learner.init(setting)
    for feedback in logs(30):
        state = learner.update(state, feedback)
    for name in Past._fields:
        one, other = getattr(warm._state.parts.past, name), getattr(state.parts.past, name)
        assert np.allclose(one, other, rtol=0.0, atol=1e-9), name
    assert warm._state.counts.visits.sum() == 30 * H
    assert warm._state.k == 1


@pytest.mark.parametrize("learner", [TripleQ(), Uniform()])
def test_a_learner_without_counts_learns_from_every_logged_episode(learner):
    setting = world().setting(100, "bandit")
    warm, state = Session(learner, setting, logged=logs(5), start="explore"), learner.init(setting)
    for feedback in logs(5):
        state = learner.update(state, feedback)
    assert np.array_equal(warm.policy(), learner.policy(state))


def test_logs_with_whole_cost_tables_will_do():
    warm = Session(ProximalOMDPD.cautious(), world().setting(100, "full"), logged=logs(50, "full"), start="explore")
    assert warm._state.counts.visits.sum() == 50 * H


def test_a_wrong_log_is_refused_by_its_entry():
    path = Trajectory([0, 1, 9, 0], [0, 0, 0, 0])
    with pytest.raises(InvalidInputError, match=r"states\[2\] = 9 is not between 0 and 2"):
        Session(
            Uniform(),
            world().setting(100, "bandit"),
            logged=[BanditFeedback(path, np.zeros(H), np.zeros((1, H)))],
            start="explore",
        )


def test_a_warm_session_lasts_and_other_logs_are_refused(tmp_path):
    setting = world().setting(100, "bandit")
    more = logs(23)[20:]
    memory = Session(ProximalOMDPD.standard(), setting, logged=logs(20), start="explore")
    for feedback in more:
        memory.update(feedback)
        with Session.open(tmp_path, ProximalOMDPD.standard(), setting, 2, logged=logs(20), start="explore") as session:
            session.update(feedback)
    with Session.open(tmp_path, ProximalOMDPD.standard(), setting, 2, logged=logs(20), start="explore") as session:
        assert session.episodes == 3
        assert np.array_equal(session.policy(), memory.policy())
    with pytest.raises(InvalidInputError, match="another learner or setting"):
        Session.open(tmp_path, ProximalOMDPD.standard(), setting, logged=logs(19), start="explore")


def test_a_session_is_opened_again_without_the_logs_it_started_from(tmp_path):
    cmdp = roomy()
    for name, learner, start, kind in (
        ("safe", None, "safe", "bandit"),
        ("dope", DOPE(stationary=True), "safe", "bandit"),
        ("explore", ProximalOMDPD.cautious(), "explore", "full"),
    ):
        setting, more = cmdp.setting(100, kind), roomy_logs(63, kind)[60:]
        memory = Session(learner, setting, logged=roomy_logs(60, kind), start=start)
        with Session.open(tmp_path / name, learner, setting, 2, logged=roomy_logs(60, kind), start=start) as session:
            session.update(more[0])
        memory.update(more[0])
        for feedback in more[1:]:
            memory.update(feedback)
            with Session.open(tmp_path / name, learner, setting, 2) as session:
                assert type(session.learner) is type(memory.learner)
                session.update(feedback)
                assert np.array_equal(session.policy(), memory.policy())
        with pytest.raises(RecordError, match=r"setting.n_episodes is 100, not 99; "):
            Session.open(tmp_path / name, learner, cmdp.setting(99, kind))
        assert verify_session(tmp_path / name) == 3
        kept = tmp_path / name / "logged.npz"
        kept.write_bytes(kept.read_bytes()[:-1] + b"x")
        with pytest.raises(RecordError, match=r"logged\.npz is damaged: its checksum"):
            Session.open(tmp_path / name, learner, setting)
        with pytest.raises(RecordError, match=r"logged\.npz is damaged: its checksum"):
            verify_session(tmp_path / name)


def test_a_crash_after_the_logs_were_kept_leaves_a_folder_that_can_be_begun_in(tmp_path):
    (tmp_path / "logged.npz").write_bytes(b"half of somebody's start")
    with Session.open(tmp_path, None, roomy().setting(100, "bandit"), logged=roomy_logs(60)) as session:
        policy = session.policy()
    with Session.open(tmp_path, None, roomy().setting(100, "bandit")) as session:
        assert np.array_equal(session.policy(), policy)


def test_logs_start_safely_unless_told_otherwise():
    cmdp = roomy()
    setting = cmdp.setting(100, "bandit")
    with pytest.raises(InvalidInputError, match=r"GreedyLP may try first .* leave the learner out \(None\)"):
        Session(GreedyLP(), setting, logged=roomy_logs(60))
    with pytest.raises(InvalidInputError, match="start is 'bold', but must be 'safe' or 'explore'"):
        Session(None, setting, logged=roomy_logs(60), start="bold")
    assert isinstance(Session(None, setting, logged=roomy_logs(60)).learner, SafeStart)
    assert isinstance(Session(None, setting, logged=roomy_logs(60), start="explore").learner, ProximalOMDPD)


@pytest.mark.parametrize("kind", [DOPE, DOPEPlus, OptPessLP, EpisodeSafe])
def test_learners_around_a_safe_policy_take_one_that_logs_certify(kind):
    """The uniform policy logged: what it costs is known from outside, and the certificate is above it."""
    cmdp = roomy()
    setting = cmdp.setting(100, "bandit")
    session = Session(kind(stationary=True), setting, logged=roomy_logs(200))
    safe = session.learner.safe
    true = Policy(safe.policy).evaluate(cmdp)
    assert safe.room > 0.0
    assert (true.excess / cmdp.cost_scale <= safe.cost).all()
    with pytest.raises(InvalidInputError, match="5 logged episodes with observed costs are too few"):
        Session(kind(), setting, logged=roomy_logs(5))
    own = kind(safe=SafePolicy(safe.policy, safe.cost, scaled=True))
    assert np.array_equal(Session(own, setting, logged=roomy_logs(200)).learner.safe.policy, safe.policy)
    tight = replace(setting, budget=[-1.0], cost_scale=[2.0])
    with pytest.raises(InvalidInputError, match="the 200 logged episodes certify none"):
        Session(kind(), tight, logged=[in_units(each) for each in roomy_logs(200)])


def in_units(feedback):
    """The same episode with costs as they are met, where the budget of an episode was that of `roomy`."""
    return replace(feedback, costs=feedback.costs + ROOMY / H)


def test_a_run_starts_from_logs_in_the_units_of_the_problem():
    cmdp = roomy()
    log = Log.from_episodes([in_units(each) for each in roomy_logs(60)])
    history = run(cmdp, None, "fixed", 3, logged=log)
    assert history.label == "SafeStart"
    session = Session(None, cmdp.setting(3, "bandit"), logged=roomy_logs(60))
    first = session.policy().evaluate(cmdp)
    assert history.values[0] == pytest.approx(first.value, rel=1e-3)
    assert run(cmdp, None, "fixed", 3, logged=log, start="explore").label == "ProximalOMDPD"
    several = run(cmdp, DOPE(), "fixed", 2, logged=log, seeds=2)
    assert [each.label for each in several] == ["DOPE", "DOPE"]
    with pytest.raises(InvalidInputError, match="say start='explore'"):
        run(cmdp, ProximalOMDPD.standard(), "fixed", 3, logged=log)


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
    session = Session(GreedyLP(), two_places(), logged=every_episode(), start="explore")
    # Half of the weeks begin in the first place: there one step of work costs one half on average.
    assert work_in_the_first_place(session) == pytest.approx(1.0, abs=SHRUNK)
    session.update(an_episode(0, (1, 0)), initial=[1.0, 0.0])  # this one does: work half a step
    assert work_in_the_first_place(session) == pytest.approx(0.5, abs=SHRUNK)
    session.update(an_episode(0, (1, 0)))  # and so does the next, as nothing else was said
    assert work_in_the_first_place(session) == pytest.approx(0.5, abs=SHRUNK)
    session.update(an_episode(0, (0, 0)), initial=[0.25, 0.75])
    assert work_in_the_first_place(session) == pytest.approx(2.0, abs=SHRUNK)


def cheap_places(initial=None):
    return Setting(2, 2, 2, budget=BUDGET, initial=initial, n_episodes=100, cost_scale=1.0, reward_range=(0.0, 1.0))


FIRST = [1.0, 0.0]


def safe(initial=None, logged=None):
    return Session(None, cheap_places(initial), logged=every_episode() if logged is None else logged)


def numbers_of(session):
    return [(each.expected, each.low, each.high, each.chance) for each in session.forecast().amounts]


def planned_for(session):
    return np.asarray(session.policy()), numbers_of(session), session.forecast().warning


def same_plan(one, other):
    return (
        np.allclose(one[0], other[0], atol=1e-9)
        and one[2] == other[2]
        and np.array_equal(np.array(one[1], dtype=float), np.array(other[1], dtype=float), equal_nan=True)
    )


def test_the_safe_learner_plans_for_another_start_before_the_episode_begins():
    """An independent way: a session whose setting has that law from the start."""
    expected, session = planned_for(safe(FIRST)), safe([0.0, 1.0])
    assert not same_plan(planned_for(session), expected)
    episode = session.begin("a", initial=FIRST)
    assert same_plan(planned_for(session), expected)
    assert np.allclose(episode.policy, expected[0], atol=1e-9)
    session.begin("b", initial=[0.0, 1.0])
    session.begin("a", initial=FIRST)  # is open already, so nothing new is said
    assert not same_plan(planned_for(session), expected)
    name = session.begin("c", initial=FIRST), session.playing
    assert (session.begin("d", initial=FIRST), session.playing)[1] == name[1]  # the law in force needs no new plan


def test_the_safe_learner_plans_for_a_start_that_an_update_brings():
    session, more = safe([0.0, 1.0]), an_episode(0, (1, 0))
    session.update(more, initial=FIRST)
    expected = safe(FIRST, [*every_episode(), more])
    assert np.allclose(session.policy(), expected.policy(), atol=1e-9)
    assert session.forecast().warning == expected.forecast().warning


@pytest.mark.parametrize("learner", [None, ProximalOMDPD.cautious()])
def test_another_budget_is_planned_for_the_start_in_force(tmp_path, learner):
    start = "safe" if learner is None else "explore"
    made = []
    for first, told in ((FIRST, None), ([0.0, 1.0], FIRST)):
        folder, setting = tmp_path / str(len(made)), cheap_places(first)
        with Session.open(folder, learner, setting, logged=every_episode(), start=start) as session:
            session.begin("a", initial=told)
            session.tell("b", an_episode(0, (1, 0)))
            session.set_budget(0.25)
            made.append(np.asarray(session.policy()))
    assert np.allclose(*made, atol=1e-6)


def test_a_start_that_was_planned_for_is_there_after_a_restart_and_in_a_fork(tmp_path):
    with Session.open(tmp_path / "a", None, cheap_places([0.0, 1.0]), 2, logged=every_episode()) as session:
        for k, law in enumerate((FIRST, None, [0.5, 0.5], FIRST)):
            session.begin(f"e{k}", initial=law)
            session.tell(f"t{k}", an_episode(k % 2, (1, 0)))
        session.begin("last", initial=[0.25, 0.75])
        before, name, played = planned_for(session), session.playing, np.asarray(session.policy_of("e0"))
        with session.fork(tmp_path / "b") as other:
            assert np.allclose(other._state.setting.mu, [0.25, 0.75])
    with Session.open(tmp_path / "a", None, cheap_places([0.0, 1.0])) as again:
        assert again.playing == name
        assert same_plan(planned_for(again), before)
        assert np.array_equal(again.policy_of("e0"), played)


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
