"""With another budget a learner plays, from the next episode on, as if it had been the budget from the start."""

import numpy as np
import pytest

from omdpd import OptCMDP, ProximalOMDPD, Session, Setting
from omdpd.storage.journal import SessionWarning

SETTING = Setting(horizon=3, n_states=2, n_actions=2, budget=2.0, cost_scale=1.0, feedback="bandit", seed=5)
LOWER = 0.6
LEARNERS = [ProximalOMDPD.standard(), ProximalOMDPD.cautious(), OptCMDP()]


def outcome(state, action, rng):
    """Action 1 earns 1 and costs 1, action 0 nothing; where it leads is a coin."""
    return float(action), float(action), int(rng.integers(2))


def play(session, n, seed):
    rng = np.random.default_rng(seed)
    for k in range(n):
        episode, state = session.begin(f"{seed}-{k}"), int(rng.integers(2))
        for _ in range(SETTING.horizon):
            action = episode.act(state)
            reward, cost, state = outcome(state, action, rng)
            episode.tell(reward, cost)
        episode.end()


def cost_of(session):
    """What the policy in force costs, when every state is as likely."""
    return np.asarray(session.policy())[:, :, 1].mean(1).sum()


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_the_next_episode_is_planned_for_the_new_budget(tmp_path, learner):
    with Session.open(tmp_path / "a", learner, SETTING) as session:
        play(session, 60, 1)
        session.set_budget(LOWER)
        now = np.asarray(session.policy())
        told = [each.feedback for each in session.books.recent]
    # An independent way: a learner whose setting has that budget, told the same steps.
    fresh = Session(learner, Setting(3, 2, 2, budget=LOWER, cost_scale=1.0, feedback="bandit", seed=5))
    for k, feedback in enumerate(told):
        fresh.tell(f"w{k}", feedback)
    assert len(told) == 60
    assert now == pytest.approx(np.asarray(fresh.policy()), abs=1e-9)


def test_a_learner_comes_down_at_once_and_not_by_and_by(tmp_path):
    with Session.open(tmp_path / "a", ProximalOMDPD.standard(), SETTING) as session:
        play(session, 300, 2)
        before = cost_of(session)
        session.set_budget(LOWER)
        assert before > 1.5
        assert cost_of(session) < LOWER + 0.1


@pytest.mark.parametrize("then", [0, 7])
def test_an_opened_session_is_the_one_that_was_closed(tmp_path, then):
    with Session.open(tmp_path / "a", ProximalOMDPD.standard(), SETTING, snapshot_every=40) as session:
        play(session, 50, 3)
        session.set_budget(LOWER)
        play(session, then, 4)
        before, name = np.asarray(session.policy()), session.playing
    with Session.open(tmp_path / "a", ProximalOMDPD.standard(), SETTING) as again:
        assert again.playing == name
        assert np.array_equal(again.policy(), before)


def test_in_memory_a_learner_comes_to_keep_it_as_it_learns():
    session = Session(ProximalOMDPD.standard(), SETTING)
    play(session, 60, 5)
    before = np.asarray(session.policy())
    session.set_budget(LOWER)
    assert np.array_equal(session.policy(), before)
    play(session, 5, 6)
    assert cost_of(session) < np.asarray(before)[:, :, 1].mean(1).sum()


def test_a_session_that_lost_its_past_says_so_and_goes_on(tmp_path):
    with Session.open(tmp_path / "a", ProximalOMDPD.standard(), SETTING, snapshot_every=20) as session:
        play(session, 50, 7)
    for log in (tmp_path / "a").glob("history-*.log"):
        log.unlink()
    with Session.open(tmp_path / "a", ProximalOMDPD.standard(), SETTING) as session:
        before = np.asarray(session.policy())
        with pytest.warns(SessionWarning, match="as it learns, since what was told cannot be read"):
            session.set_budget(LOWER)
        assert np.array_equal(session.policy(), before)
        assert session.base_budget() == LOWER
