"""A user who makes mistakes, or asks for more than there is: one sentence, before time and memory are gone."""

import errno
import os
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

from omdpd import (
    CMDP,
    OMDPD,
    BanditFeedback,
    InvalidInputError,
    Policy,
    ProximalOMDPD,
    Session,
    Setting,
    Trajectory,
    Uniform,
    run,
    save_problem,
)
from omdpd.experiments import load_experiment, run_experiment
from omdpd.experiments.executors import InProcess
from omdpd.gym import from_gymnasium, learn
from omdpd.learners.dope import DOPE
from omdpd.learners.protocol import Card, Report
from omdpd.learners.triple_q import TripleQ
from omdpd.play import guards
from omdpd.problem import machine_memory

H, S, A = 3, 2, 2


def small():
    return CMDP.from_arrays(np.full((S, A, S), 0.5), [[0, 1], [0, 1]], [[0, 1], [0, 1]], budget=1.5, horizon=H)


@dataclass(frozen=True)
class Broken:
    """A learner that plays a table of one's choice."""

    table: object

    card = Card("plays a table", ("bandit", "full"), "none", "a test")

    def init(self, setting: Setting) -> int:
        return 0

    def policy(self, state):
        return self.table

    def update(self, state, feedback):
        return state + 1

    def report(self, state):
        return Report()


def spoilt(entry, value):
    table = np.full((H, S, A), 0.5)
    table[entry] = value
    return table


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (spoilt((1, 0, 1), 0.9), r"the policy of Broken\[1, 0\] \(step 1, state 0\) = 1.4 is the sum of a row"),
        (spoilt((1, 0, 1), np.nan), r"the policy of Broken\[1, 0, 1\] .* = nan is not a finite number"),
        (spoilt((1, 0), [1.5, -0.5]), r"the policy of Broken\[1, 0, 1\] .* = -0.5 is negative"),
        (np.full((H + 1, S, A), 0.5), "the policy of Broken has length 4 along its step axis"),
        (np.full((S, A), 0.5), "the policy of Broken has 2 axes, but needs 3"),
        (None, "the policy of Broken is not an array of numbers"),
        ("half", "the policy of Broken is not an array of numbers"),
    ],
)
def test_a_learner_whose_policy_is_no_policy_is_stopped(table, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        run(small(), Broken(table), n_episodes=2)


@pytest.mark.parametrize(
    "table",
    [
        Policy(np.full((H, S, A), 0.5)),
        np.full((H, S, A), 0.5).tolist(),
        np.asfortranarray(np.full((H, S, A), 0.5)),
        np.broadcast_to(0.5, (H, S, A)),
    ],
)
def test_a_policy_may_come_in_any_form_of_a_table(table):
    assert np.allclose(run(small(), Broken(table), n_episodes=2).values, 1.5)


PLUGIN = '''
from dataclasses import dataclass
import numpy as np
from omdpd.learners.protocol import Card, Report
from omdpd.problem.setting import Setting

@dataclass(frozen=True)
class Greedy:
    """Rows that sum to more than one."""
    card = Card("wrong", ("bandit", "full"), "none", "a test")
    def init(self, setting: Setting) -> int: return 0
    def policy(self, state): return np.full((10, 10, 2), 0.7)
    def update(self, state, feedback): return state + 1
    def report(self, state): return Report()

LEARNERS = {"Greedy": Greedy}
'''


def test_an_experiment_stops_such_a_learner_too(tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "x.toml").write_text(
        'episodes = 2\nseeds = 1\nworlds = [{name = "streaming"}]\nnatures = [{name = "fixed"}]\n'
        'learners = [{name = "Greedy"}]\n'
    )
    experiment = load_experiment(tmp_path / "x.toml", plugins=[tmp_path / "mine.py"])
    with pytest.raises(InvalidInputError, match=r"the policy of Greedy\[0, 0\].* = 1.4 is the sum of a row"):
        run_experiment(experiment, tmp_path / "results", InProcess())


class WithoutUpdate:
    card = Broken.card

    def init(self, setting):
        return 0

    def policy(self, state):
        return np.full((H, S, A), 0.5)


def test_a_missing_verb_a_class_and_a_stranger_are_refused_with_a_sentence():
    for start in (lambda learner: run(small(), learner), lambda learner: Session(learner, Setting(H, S, A))):
        with pytest.raises(InvalidInputError, match="WithoutUpdate has no update: a learner has init, policy, update"):
            start(WithoutUpdate())
        with pytest.raises(InvalidInputError, match=r"learner is the class OMDPD, but must be an object: OMDPD\(\)"):
            start(OMDPD)
        with pytest.raises(InvalidInputError, match="NoneType has no init"):
            start(None)
        with pytest.raises(InvalidInputError, match=r"learner is the function OMDPD.tuned, .*: write OMDPD.tuned\(\)"):
            start(OMDPD.tuned)
    with pytest.raises(InvalidInputError, match=r"learner is the name 'Uniform', .*from omdpd\.learners import"):
        Session("Uniform", Setting(H, S, A))


def test_a_run_takes_the_name_of_a_learner():
    named, made = run(small(), "Uniform", n_episodes=4), run(small(), Uniform(), n_episodes=4)
    assert named.label == "Uniform"
    assert named.scores == made.scores
    assert [each.label for each in run(small(), "Uniform", n_episodes=2, seeds=2, label="mine")] == ["mine"] * 2
    with pytest.raises(InvalidInputError, match=r"no learner 'Unifrm' \(did you mean 'Uniform'\?\)"):
        run(small(), "Unifrm")


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(InvalidInputError, match=r"seed is .*, but must be a whole number of at least 0"):
        run(small(), Uniform(), seed=seed)
    with pytest.raises(InvalidInputError, match="seed is"):
        learn("FrozenLake-v1", Uniform(), 2, horizon=3, budget=1.0, cost=lambda s, a, t: 0.0, seed=seed)


@dataclass(frozen=True)
class Scaled(Uniform):
    """A learner of somebody's own that checks nothing."""

    scale: float = 1.0


@pytest.mark.parametrize(
    ("learner", "sentence"),
    [
        (ProximalOMDPD.standard(stationary="no"), "SharingEstimator's stationary is 'no', but must be a number"),
        (Scaled(scale="1"), "Scaled's scale is '1', but must be a number"),
    ],
)
def test_a_setting_that_is_no_number_is_refused_by_its_name(learner, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        run(small(), learner, n_episodes=2)
    with pytest.raises(InvalidInputError, match=sentence):
        Session(learner, Setting(H, S, A, n_episodes=5))


@pytest.mark.parametrize("answer", ["much", None, 1j, [["a"]]])
def test_a_cost_function_that_gives_no_number_is_refused(answer):
    with pytest.raises(InvalidInputError, match="cost"):
        from_gymnasium("FrozenLake-v1", horizon=3, cost=lambda s, a, t: answer, budget=1.0)
    with pytest.raises(InvalidInputError, match="cost"):
        learn("FrozenLake-v1", Uniform(), 1, horizon=3, budget=1.0, cost=lambda s, a, t: answer)


def test_a_metric_that_gives_no_number_is_refused_by_its_name():
    with pytest.raises(InvalidInputError, match="the metric 'mine' gave 'high', but must give a number"):
        run(small(), Uniform(), n_episodes=1, metrics={"mine": lambda cmdp, met, policy: "high"})


def test_a_session_is_not_kept_in_a_file_and_says_where_it_is(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"notes.txt', which is a file, but a session is kept in a folder"):
        Session.open(tmp_path / "notes.txt", Uniform(), Setting(H, S, A))
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert repr(Session(Uniform(), Setting(H, S, A))) == "Session(Uniform, 0 episodes, in memory)"
    with Session.open(tmp_path / "kept", Uniform(), Setting(H, S, A)) as session:
        assert repr(session) == f"Session(Uniform, 0 episodes, in {tmp_path / 'kept'})"
    assert repr(session) == "Session(Uniform, 0 episodes, closed)"


def test_a_history_under_a_budget_that_nobody_can_keep_says_why_it_has_no_regret():
    p, r = np.full((S, A, S), 0.5), np.full((S, A), 0.5)
    history = run(CMDP.from_arrays(p, r, np.ones((S, A)), budget=0.5, horizon=H), Uniform(), n_episodes=4)
    assert history.regret is None
    assert "regret undefined (no policy is safe in every episode), strong violation 10" in repr(history)


def test_nothing_can_be_told_to_a_closed_session(tmp_path):
    episode = BanditFeedback(Trajectory([0, 1, 0], [0, 0, 1]), np.zeros(H), np.zeros((1, H)))
    for session in (Session.open(tmp_path, Uniform(), Setting(H, S, A)), Session(Uniform(), Setting(H, S, A))):
        session.update(episode)
        session.close()
        with pytest.raises(InvalidInputError, match="the session is closed"):
            session.update(episode)
        assert session.episodes == 1


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_full_or_read_only_disk_is_named(tmp_path, monkeypatch, code):
    def refuse(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    for save in (lambda file: save_problem(small(), file), run(small(), Uniform(), n_episodes=1).policy.save):
        with pytest.raises(OSError, match=os.strerror(code)) as told:
            save(tmp_path / "x.npz")
        assert told.value.errno == code
        assert told.value.filename == str(tmp_path / "x.npz")
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_into_the_machine_is_refused_before_anything_large_is_made():
    tracemalloc.start()
    with pytest.raises(
        InvalidInputError, match=r"ProximalOMDPD on 1000000 states, 50 actions and 2000 steps needs about"
    ):
        Session(ProximalOMDPD.standard(), Setting(2000, 1_000_000, 50))  # its policy alone is 800 GB
    with pytest.raises(InvalidInputError, match=r"but this machine has .* GB: lump states together, shorten"):
        Session(OMDPD.tuned(), Setting(200, 20000, 50, n_episodes=10))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1e8


def test_run_and_learn_ask_before_they_allocate(monkeypatch):
    monkeypatch.setattr(machine_memory, "machine_bytes", lambda: 10**7)
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.ones(300), (300, 2))
    cmdp = CMDP.from_arrays(kernel, rng.random((300, 2)), rng.random((300, 2)), budget=5.0, horizon=20)
    with pytest.raises(InvalidInputError, match="ProximalOMDPD on 300 states, 2 actions and 20 steps needs about"):
        run(cmdp, ProximalOMDPD.standard(), n_episodes=1)
    with pytest.raises(InvalidInputError, match="OMDPD on 501 states, 6 actions and 15 steps needs about"):
        learn("Taxi-v4", OMDPD.tuned(), 1, horizon=15, budget=9.0, cost=lambda s, a, t: float(a < 4))
    several = CMDP.from_arrays(kernel, cmdp.reward[0], rng.random((2, 300, 2)), [8.0, 8.0], horizon=20)
    monkeypatch.setattr(machine_memory, "machine_bytes", lambda: 5 * 10**5)
    with pytest.raises(InvalidInputError, match="solving a problem of 300 states, 2 actions and 20 steps needs about"):
        several.solve()


def test_a_lighter_learner_is_let_through_and_a_slow_one_is_announced(monkeypatch):
    setting = Setting(50, 400, 4, n_episodes=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guards.check_footprint(TripleQ(), setting)
    monkeypatch.setattr(guards, "LONG_EPISODE", 0.01)
    with pytest.warns(
        guards.LargeProblemWarning, match=r"will take about \d+ s per episode and .* GB; to make it light"
    ):
        guards.check_footprint(OMDPD.tuned(), setting)


def some_feedback(rng, setting):
    """An episode that means nothing."""
    H, S, A = setting.shape
    path = Trajectory(rng.integers(S, size=H), rng.integers(A, size=H))
    return BanditFeedback(path, rng.random(H), rng.uniform(-1.0, 1.0, (setting.n_constraints, H)))


def most_bytes(learner, setting):
    """What a learner has in memory at most while it plays three episodes, in a thread that has no working memory."""

    def play():
        rng, state = np.random.default_rng(0), learner.init(setting)
        for _ in range(3):
            learner.policy(state)
            state = learner.update(state, some_feedback(rng, setting))
        return tracemalloc.get_traced_memory()[1]

    tracemalloc.start()
    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(play).result()
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "learner",
    [ProximalOMDPD.standard(), ProximalOMDPD.cautious(), OMDPD.tuned(), OMDPD.theory(), TripleQ()],
    ids=("standard", "cautious", "tuned", "theory", "TripleQ"),
)
def test_memory_is_estimated_within_a_factor_of_two(learner):
    setting = Setting(6, 70, 3, n_episodes=5)
    most_bytes(learner, setting)  # which compiles what it calls
    expected = guards.footprint(learner, setting).n_bytes
    assert expected / 2.0 < most_bytes(learner, setting) < 2.0 * expected


def test_a_learner_that_cannot_be_tried_on_small_problems_is_not_refused():
    assert guards.footprint(DOPE(), Setting(50, 400, 4)) is None


@pytest.mark.parametrize("judged", [True, False])
def test_of_a_learner_that_keeps_no_tables_those_beside_it_are_counted_within_a_factor_of_two(monkeypatch, judged):
    """Of 3000 states and 40 steps a table has 2 MB, against which nothing else counts."""
    rng, n = np.random.default_rng(0), 3000
    laws = [[[(0.5, int(t)), (0.5, int(u))] for t, u in rng.integers(0, n, (2, 2))] for _ in range(n)]
    cmdp = CMDP.from_arrays(laws, rng.random((n, 2)), rng.random((n, 2)), 18.0, np.eye(n)[0], 40)
    learner, setting, needed = ProximalOMDPD.standard(), cmdp.setting(3, "bandit"), []
    monkeypatch.setattr(guards, "refuse_beyond_memory", lambda what, n_bytes, advice: needed.append(n_bytes))

    def play():
        if judged:
            return run(cmdp, learner, "noisy", n_episodes=3)
        session = Session(learner, setting)
        for _ in range(3):
            session.policy()
            session.update(some_feedback(rng, setting))
        return session

    play()  # which compiles what it calls
    tracemalloc.start()
    try:
        play()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert needed[-1] / 2.0 < most < 2.0 * needed[-1]
