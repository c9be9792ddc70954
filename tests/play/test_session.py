import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from omdpd import OMDPD, BanditFeedback, InvalidInputError, ProximalOMDPD, Session, Setting, Trajectory
from omdpd.beliefs.counts import Counts
from omdpd.learners.protocol import Card, Report
from tests.references.instances import bandit, random_cmdp, revealed

H, S, A = 4, 3, 2


def world():
    return random_cmdp(np.random.default_rng(0), H, S, A)


def teach(session, cmdp, rng, n):
    for _ in range(n):
        if session.setting.feedback == "bandit":
            session.update(bandit(rng, cmdp, session.policy()))
        else:
            session.update(revealed(rng, cmdp, session.policy(), cmdp.excess))


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_ask_and_tell_is_the_learners_own_loop(kind):
    cmdp = world()
    learner = ProximalOMDPD.cautious()
    session = Session(learner, cmdp.setting(20, kind))
    teach(session, cmdp, np.random.default_rng(1), 5)
    state, rng = learner.init(cmdp.setting(20, kind)), np.random.default_rng(1)
    for _ in range(5):
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, cmdp.excess)
        state = learner.update(state, met)
    assert np.array_equal(session.policy(), learner.policy(state))
    assert session.episodes == 5
    assert session.report().log == learner.report(state).log


def test_wrong_feedback_is_refused_with_a_sentence_and_changes_nothing():
    session = Session(ProximalOMDPD.cautious(), Setting(2, 2, 2))
    before = session.policy()
    met = Trajectory(np.array([0, 5]), np.array([0, 0]))
    with pytest.raises(InvalidInputError, match=r"states\[1\] = 5 is not between 0 and 1"):
        session.update(BanditFeedback(met, np.zeros(2), np.zeros((1, 2))))
    assert session.episodes == 0
    assert np.array_equal(session.policy(), before)


def test_plain_lists_will_do():
    session = Session(ProximalOMDPD.cautious(), Setting(2, 2, 2))
    session.update(BanditFeedback(Trajectory([0, 1], [1, 0]), [1, 0], [[0.2, -0.1]]))
    assert session.episodes == 1


def test_a_learner_that_needs_the_number_of_episodes_says_so():
    with pytest.raises(InvalidInputError, match="n_episodes"):
        Session(OMDPD.tuned(), Setting(2, 2, 2))


@pytest.mark.parametrize("snapshot_every", [1, 3, 100])
def test_a_session_on_disk_goes_on_to_the_last_bit(tmp_path, snapshot_every):
    cmdp = world()
    setting = cmdp.setting(20, "full")
    memory = Session(ProximalOMDPD.cautious(), setting)
    teach(memory, cmdp, np.random.default_rng(1), 8)
    rng = np.random.default_rng(1)
    for _ in range(4):
        with Session.open(tmp_path, ProximalOMDPD.cautious(), setting, snapshot_every) as session:
            teach(session, cmdp, rng, 2)
    with Session.open(tmp_path, ProximalOMDPD.cautious(), setting, snapshot_every) as session:
        assert session.episodes == 8
        assert np.array_equal(session.policy(), memory.policy())


def test_a_session_of_another_learner_or_setting_is_refused(tmp_path):
    setting = world().setting(20, "bandit")
    Session.open(tmp_path, ProximalOMDPD.balanced(), setting).close()  # nothing was begun with it
    with Session.open(tmp_path, ProximalOMDPD.cautious(), setting) as session:
        session.begin("one")
    with pytest.raises(InvalidInputError, match="another learner or setting"):
        Session.open(tmp_path, ProximalOMDPD.balanced(), setting)
    with pytest.raises(InvalidInputError, match="another learner or setting"):
        Session.open(tmp_path, ProximalOMDPD.cautious(), world().setting(21, "bandit"))


def test_a_session_has_one_owner_at_a_time(tmp_path):
    setting = world().setting(20, "bandit")
    with (
        Session.open(tmp_path, ProximalOMDPD.cautious(), setting),
        pytest.raises(InvalidInputError, match="one session has one owner"),
    ):
        Session.open(tmp_path, ProximalOMDPD.cautious(), setting)
    Session.open(tmp_path, ProximalOMDPD.cautious(), setting).close()


@dataclass(frozen=True, eq=False)
class OwnState:
    setting: Setting
    counts: Counts
    k: int


@dataclass(frozen=True)
class OwnLearner:
    """Somebody's own learner: plays uniformly and counts."""

    card = Card("counts", ("bandit",), "none", "a test")

    def init(self, setting: Setting) -> OwnState:
        return OwnState(setting, Counts.empty(setting), 0)

    def policy(self, state):
        H, S, A = state.setting.shape
        return np.full((H, S, A), 1.0 / A)

    def update(self, state, feedback):
        return replace(state, counts=state.counts.add(feedback), k=state.k + 1)

    def report(self, state):
        return Report()


def test_a_session_of_ones_own_learner_lasts_through_snapshots(tmp_path):
    cmdp = world()
    setting, rng = cmdp.setting(20, "bandit"), np.random.default_rng(1)
    for _ in range(3):
        with Session.open(tmp_path, OwnLearner(), setting, snapshot_every=2) as session:
            teach(session, cmdp, rng, 3)
    with Session.open(tmp_path, OwnLearner(), setting, snapshot_every=2) as session:
        assert session.episodes == 9
        assert session._state.k == 9
        assert session._state.counts.visits.sum() == 9 * H


class Unannotated(OwnLearner):
    def init(self, setting):
        return OwnState(setting, Counts.empty(setting), 0)


class WithDictionary(OwnLearner):
    def init(self, setting: Setting) -> dict:
        return {}


class PromisesAnother(OwnLearner):
    def init(self, setting: Setting) -> int:
        return OwnState(setting, Counts.empty(setting), 0)


class NoDataclass:
    card, policy, update, report = OwnLearner.card, OwnLearner.policy, OwnLearner.update, OwnLearner.report

    def init(self, setting: Setting) -> OwnState:
        return OwnState(setting, Counts.empty(setting), 0)


@pytest.mark.parametrize(
    ("learner", "sentence"),
    [
        (Unannotated(), "Unannotated.init does not say what it returns"),
        (WithDictionary(), "the state of WithDictionary is of type dict, which cannot be stored"),
        (PromisesAnother(), "'OwnState', which is not a known class"),
        (NoDataclass(), "NoDataclass has to be a dataclass of plain settings"),
    ],
)
def test_a_session_that_could_not_be_opened_again_is_refused_before_anything_is_written(tmp_path, learner, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Session.open(tmp_path / "new", learner, world().setting(20, "bandit"))
    assert not (tmp_path / "new").exists()
    Session(learner, world().setting(20, "bandit"))  # in memory it will do


def test_a_session_of_an_earlier_version_is_refused_with_what_to_do(tmp_path):
    shutil.copytree(Path(__file__).parents[1] / "recorded" / "stored" / "session", tmp_path / "old")
    before = {file.name: file.read_bytes() for file in (tmp_path / "old").iterdir()}
    with pytest.raises(InvalidInputError, match="go on with the version that wrote it, or begin a session in a new"):
        Session.open(tmp_path / "old", ProximalOMDPD.cautious(), world().setting(20, "bandit"))
    after = {file.name: file.read_bytes() for file in (tmp_path / "old").iterdir() if file.name != "lock"}
    assert after == before
