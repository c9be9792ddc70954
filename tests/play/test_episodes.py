"""Episodes of a session: several at once, late, out of order, twice, short, dropped, and after a crash."""

from dataclasses import replace

import numpy as np
import pytest

from omdpd import (
    BanditFeedback,
    InvalidInputError,
    ProximalOMDPD,
    SafePolicy,
    SafeStart,
    Session,
    Setting,
    Trajectory,
    Uniform,
)
from omdpd.learners import BVOPS, OptCMDP
from omdpd.play import books as booking
from omdpd.storage.journal import Journal, SessionWarning, verify_session

H, S, A = 4, 3, 2
SETTING = Setting(H, S, A, seed=5)
EUROS = Setting(H, S, A, n_constraints=2, budget=[8.0, 2.0], cost_scale=[10.0, 4.0], reward_range=(-5.0, 20.0), seed=5)


def learner():
    return ProximalOMDPD.cautious()


def play(episode, k, setting=SETTING, steps=H, tell=True):
    """States, rewards and costs that depend on k alone."""
    rng = np.random.default_rng(k)
    for h in range(steps):
        action = episode.act(int(rng.integers(S)), h)
        if tell:
            episode.tell(*outcome(k, h, action, setting), step=h)


def outcome(k, h, action, setting=SETTING):
    rng = np.random.default_rng((k, h, action))
    low, high = setting.reward_range or (0.0, 1.0)
    costs = rng.uniform(0.0, 1.0, setting.n_constraints)
    return rng.uniform(low, high), costs.tolist()


@pytest.fixture(params=["memory", "disk"])
def session(request, tmp_path):
    opened = Session(learner(), SETTING) if request.param == "memory" else Session.open(tmp_path, learner(), SETTING, 3)
    with opened:
        yield opened


def test_step_by_step_is_the_same_as_the_whole_episode_at_once(session):
    other = Session(learner(), SETTING)
    for k in range(7):
        episode = session.begin()
        play(episode, k)
        steps = session.books.open[episode.id]
        met = Trajectory(np.array(steps.states), np.array(steps.actions))
        other.update(BanditFeedback(met, np.array(steps.rewards), np.array(steps.costs).T))
        episode.end()
    assert session.episodes == other.episodes == session.learnt == 7
    assert np.array_equal(session.policy(), other.policy())


def test_an_action_is_drawn_from_the_policy_that_the_episode_began_with():
    session = Session(learner(), replace(SETTING, seed=None))
    first = session.begin("first")
    law = np.asarray(first.policy)
    for k in range(30):
        episode = session.begin()
        play(episode, k)
        episode.end()
    assert np.array_equal(first.policy, law)
    assert not np.array_equal(session.policy(), law)
    drawn = [booking.drawn("name", str(i), 0, np.array([0.2, 0.0, 0.8])) for i in range(4000)]
    share = np.bincount([a for a, _ in drawn], minlength=3) / 4000
    # Four standard deviations of a share of 4000 draws with chance .2.
    assert abs(share[0] - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 4000)
    assert share[1] == 0.0
    assert {chance for _, chance in drawn} == {0.2, 0.8}


def test_policies_in_play_are_kept_and_others_are_let_go_of(session):
    early = session.begin("early")
    law = np.asarray(early.policy)
    for k in range(40):
        play(session.begin(f"late {k}"), k)
        session.end(f"late {k}")
        assert len(session.mind.played) <= 5
    assert np.array_equal(early.policy, law)


def test_asking_again_gives_the_same_action_and_another_state_is_refused(session):
    episode = session.begin("a")
    action = episode.act(1, step=0)
    assert [episode.act(1, step=0) for _ in range(5)] == [action] * 5
    with pytest.raises(InvalidInputError, match="step 0 of episode 'a' was in state 1, not in 2"):
        episode.act(2, step=0)
    with pytest.raises(InvalidInputError, match="step 2 of episode 'a' comes too early: ask for step 1 first"):
        episode.act(2, step=2)


def test_episodes_that_end_late_and_out_of_order_learn_what_they_would_in_that_order(session):
    open_now = [session.begin(f"e{k}") for k in range(5)]
    for k, episode in enumerate(open_now):
        play(episode, k, tell=False)
    for k in (3, 0, 4, 2, 1):
        steps = session.books.open[f"e{k}"]
        for h in (2, 0, 3, 1):
            open_now[k].tell(*outcome(k, h, steps.actions[h]), step=h)
    told = {k: session.books.open[f"e{k}"] for k in range(5)}
    other = Session(learner(), SETTING)
    for k in (3, 0, 4, 2, 1):
        open_now[k].end()
        met = Trajectory(np.array(told[k].states), np.array(told[k].actions))
        other.update(BanditFeedback(met, np.array(told[k].rewards), np.array(told[k].costs).T))
    assert np.array_equal(session.policy(), other.policy())
    assert session.open_episodes == ()


def test_telling_twice_is_harmless_and_telling_otherwise_is_refused(session):
    episode = session.begin("a")
    play(episode, 0)
    reward, cost = outcome(0, 1, session.books.open["a"].actions[1])
    episode.tell(reward, cost, step=1)
    with pytest.raises(InvalidInputError, match="step 1 of episode 'a' was told otherwise before"):
        episode.tell(reward / 2, cost, step=1)
    episode.end()
    episode.end()
    episode.tell(reward, cost, step=1)
    with pytest.raises(InvalidInputError, match="episode 'a' has ended"):
        episode.tell(reward / 2, cost, step=1)
    with pytest.raises(InvalidInputError, match="episode 'a' has ended"):
        session.begin("a")
    assert session.episodes == 1


def test_a_whole_trajectory_under_an_id_counts_once(session):
    met = BanditFeedback(Trajectory([0, 1, 2, 0], [1, 0, 1, 0]), [0.5] * H, [[0.1] * H])
    asked = session.ask("mine")
    assert asked.policy.shape == (H, S, A)
    for _ in range(3):
        session.tell("mine", met)
    assert session.episodes == 1
    with pytest.raises(InvalidInputError, match="'mine' was told otherwise before"):
        session.tell("mine", replace(met, rewards=[0.25] * H))
    session.tell("never begun", met)
    assert session.episodes == 2
    twice = Session(learner(), SETTING)
    twice.update(met), twice.update(met)
    assert np.array_equal(session.policy(), twice.policy())


def test_a_short_episode_says_what_it_is(session):
    episode = session.begin("a")
    play(episode, 0, steps=2)
    with pytest.raises(InvalidInputError, match="2 of 4 steps: say in which state it is absorbed, or that it was cut"):
        episode.end()
    with pytest.raises(InvalidInputError, match="absorbed is 9, but must be between 0 and 2"):
        episode.end(absorbed=9)
    episode.end(absorbed=2)
    ended = session.books.recent[-1]
    assert (ended.how, ended.steps, ended.states[2:]) == ("absorbed", 2, [2, 2])
    assert ended.rewards[2:] == [0.0, 0.0]
    assert session.learnt == 1


def test_after_its_end_an_episode_earns_nothing_so_nothing_must_be_possible():
    session = Session(learner(), replace(SETTING, reward_range=(1.0, 2.0)))
    episode = session.begin("a")
    episode.act(0)
    episode.tell(1.5, 0.0)
    with pytest.raises(InvalidInputError, match="after its end an episode earns and costs 0: reward"):
        episode.end(absorbed=0)


def test_a_part_is_counted_by_learners_that_can_count_one():
    for made, learns in ((OptCMDP(), True), (SafeStart(None), True), (ProximalOMDPD.standard(), False)):
        session = Session(made, replace(SETTING, n_episodes=100))
        episode = session.begin()
        play(episode, 0, steps=3)
        episode.act(0)  # and nobody knows what came of it
        episode.end(cut=True)
        assert session.mind.unlearnt == (not learns)
        if isinstance(made, OptCMDP):
            assert session._state.counts.visits.sum() == 3.0
            assert session._state.counts.transitions.sum() == 2.0
        if isinstance(made, SafeStart):
            assert session._state.tally.sums[0].sum() == 3.0
        assert session.books.totals.cut == 1


def test_what_is_dropped_is_counted_and_not_learnt(session):
    play(session.begin("a"), 0, steps=2)
    before = np.asarray(session.policy())
    assert session.drop_older(3600.0) == []
    assert session.drop_older(-1.0) == ["a"]
    session.drop("a")
    assert session.books.totals.dropped == 1
    assert np.array_equal(session.policy(), before)
    with pytest.raises(InvalidInputError, match="episode 'a' was dropped"):
        session.act("a", 0)


@pytest.mark.parametrize("shape", [1, 2, 3])
def test_a_forbidden_action_is_never_drawn(shape):
    session = Session(learner(), replace(SETTING, n_actions=3))
    allowed = np.array([True, False, True])
    given = np.broadcast_to(allowed, (H, S, 3)[3 - shape :])
    episode = session.begin("a", allowed=given.tolist())
    law = np.asarray(episode.policy)
    assert np.allclose(law.sum(axis=-1), 1.0)
    assert not law[..., 1].any()
    actions = {session.begin(allowed=given).act(0) for _ in range(60)}
    assert actions == {0, 2}
    with pytest.raises(InvalidInputError, match="leaves a state without any action"):
        session.begin(allowed=[False, False, False])
    with pytest.raises(InvalidInputError, match="began with another budget or other allowed actions"):
        session.begin("a")


def test_a_policy_that_wants_only_what_is_forbidden_is_played_alike_on_the_rest():
    law = booking.masked(np.array([0.0, 1.0, 0.0]), np.array([True, False, True]))
    assert law.tolist() == [0.5, 0.0, 0.5]


def test_another_budget_is_recorded_and_violation_is_measured_against_it(tmp_path):
    with Session.open(tmp_path, learner(), EUROS, 2) as session:
        for k, budget in enumerate((None, [1.0, 0.5], None)):
            episode = session.begin(f"e{k}", budget=budget)
            play(episode, k, EUROS)
            episode.end()
        session.set_budget([4.0, 1.0])
        episode = session.begin("last")
        play(episode, 9, EUROS)
    with Session.open(tmp_path, learner(), EUROS, 2) as session:
        session.episode("last").end()
        totals, ended = session.books.totals, session.books.recent
    assert [each.budget for each in ended] == [None, [1.0, 0.5], None, [4.0, 1.0]]
    assert totals.allowed == [8.0 + 1.0 + 8.0 + 4.0, 2.0 + 0.5 + 2.0 + 1.0]
    over = 0.0
    for each in ended:
        spent = np.sum(each.costs, axis=0)
        over += max(0.0, (spent - (each.budget or [8.0, 2.0])).max())
    assert totals.violation == pytest.approx(over, rel=1e-12)


def test_a_learner_sees_costs_less_the_budget_in_force():
    tight, told = Session(learner(), EUROS), Session(learner(), replace(EUROS, budget=[1.0, 0.5]))
    for k in range(6):
        one, two = tight.begin(budget=[1.0, 0.5]), told.begin()
        play(one, k, EUROS)
        steps = tight.books.open[one.id]
        for h in range(H):
            two.act(steps.states[h])
        for h in range(H):
            told.books.open[two.id].actions[h] = steps.actions[h]
            two.tell(steps.rewards[h], steps.costs[h], step=h)
        one.end(), two.end()
    assert np.array_equal(tight.policy(), told.policy())


@pytest.mark.parametrize("snapshot_every", [1, 2, 100])
def test_open_episodes_survive_and_go_on_with_their_policy(tmp_path, snapshot_every):
    def opened():
        return Session.open(tmp_path, learner(), SETTING, snapshot_every)

    with opened() as session:
        early = session.begin("early", allowed=[True, True])
        actions = [early.act(s) for s in (0, 1)]
        early.tell(0.5, 0.1)
        law = np.asarray(early.policy)
        for k in range(5):
            episode = session.begin(f"e{k}")
            play(episode, k)
            episode.end()
        policy = np.asarray(session.policy())
    for _ in range(2):
        with opened() as session:
            assert session.open_episodes == ("early",)
            assert np.array_equal(session.policy(), policy)
            again = session.episode("early")
            assert np.array_equal(again.policy, law)
            assert [again.act(s, step=h) for h, s in enumerate((0, 1))] == actions
    with opened() as session:
        again = session.episode("early")
        again.tell(0.25, 0.2)
        again.act(2), again.act(0), again.tell(1.0, 0.0), again.tell(1.0, 0.0)
        again.end()
        assert session.books.recent[-1].rewards == [0.5, 0.25, 1.0, 1.0]
        assert session.episodes == 6
    assert verify_session(tmp_path) == 6


def test_a_journal_of_the_first_layout_goes_on(tmp_path):
    """What 0.2 wrote: entries are episodes, and neither claim nor snapshot says more."""
    met = BanditFeedback(Trajectory([0, 1, 2, 0], [1, 0, 1, 0]), [0.5] * H, [[0.1] * H])
    with Session.open(tmp_path, learner(), SETTING, 2) as session:
        for _ in range(5):
            session.update(met)
        policy = np.asarray(session.policy())
    as_before(tmp_path)
    with Session.open(tmp_path, learner(), SETTING, 2) as session:
        assert session.episodes == session.learnt == 5
        assert np.array_equal(session.policy(), policy)
        play(session.begin("a"), 0)
        session.end("a")
    with Session.open(tmp_path, learner(), SETTING, 2) as session:
        assert session.episodes == 6
    assert verify_session(tmp_path) == 6


def as_before(folder):
    """Take off what the first layout did not have."""
    import json

    from omdpd.storage.sealed import sealed_json

    for name, new in (("session.json", ("journal",)), ("snapshot.json", ("entries", "books"))):
        content = json.loads((folder / name).read_text())
        assert all(content.pop(key, None) is not None for key in new)
        run = content.pop("run")
        del content["sha256"], content["format"]
        (folder / name).write_bytes(sealed_json(run, content))


def test_a_journal_of_a_later_layout_is_refused(tmp_path):
    import json

    from omdpd.storage.sealed import sealed_json

    Session.open(tmp_path, learner(), SETTING).close()
    content = json.loads((tmp_path / "session.json").read_text())
    run = content.pop("run")
    del content["sha256"], content["format"]
    (tmp_path / "session.json").write_bytes(sealed_json(run, content | {"journal": 3}))
    with pytest.raises(InvalidInputError, match="its journal is of layout 3: go on with the version that wrote it"):
        Session.open(tmp_path, learner(), SETTING)


def test_a_learner_that_weights_by_the_policy_is_given_the_one_that_played():
    setting, seen = replace(SETTING, n_episodes=50), []

    class Watched(BVOPS):
        def update(self, state, feedback, played=None):
            seen.append(played)
            return super().update(state, feedback, played)

    session = Session(Watched(), setting)
    early = session.begin("early")
    play(early, 0)
    law = np.asarray(early.policy)
    other = session.begin()
    play(other, 1)
    other.end()
    early.end()
    assert np.array_equal(seen[1], law)
    assert not np.array_equal(session.policy(), law)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.begin(""), "id must be 1 to 64 printable characters"),
        (lambda s: s.begin("a/b"), "id must be"),
        (lambda s: s.begin(budget=1.0), "the setting has no budget"),
        (lambda s: s.begin(allowed=[True]), "allowed must be true or false"),
        (lambda s: s.begin(allowed="no"), "allowed must be true or false"),
        (lambda s: s.begin(initial=[1.0]), "initial"),
        (lambda s: s.act("x", 0), "there is no episode 'x'"),
        (lambda s: s.begin().act(3), "state is 3, but must be between 0 and 2"),
        (lambda s: s.begin().act(True), "state is True"),
        (lambda s: s.begin().tell(0.5, 0.0), "step 0 of episode .* was not acted in"),
        (lambda s: s.begin().end(cut=True), "has no step that was told: drop it"),
        (lambda s: told(s, 2.0, 0.0), r"reward"),
        (lambda s: told(s, 0.5, 3.0), r"cost"),
        (lambda s: told(s, 0.5, [0.0, 0.0]), "cost"),
        (lambda s: told(s, float("nan"), 0.0), "reward"),
        (lambda s: told(s, "1", 0.0), "reward"),
        (lambda s: told(s, 0.5, None), "cost"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_a_sentence_and_changes_nothing(session, call, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        call(session)
    assert session.episodes == 0
    assert session.books.totals.ended == 0


def told(session, reward, cost):
    episode = session.begin()
    episode.act(0)
    episode.tell(reward, cost)


def test_entries_that_were_not_synced_outlive_the_process(tmp_path):
    """The journal of a process that dies now, as another one finds it."""
    session = Session.open(tmp_path / "mine", learner(), SETTING)
    episode = session.begin("a")
    action = episode.act(1)
    import shutil

    shutil.copytree(tmp_path / "mine", tmp_path / "killed")
    session.close()
    with Session.open(tmp_path / "killed", learner(), SETTING) as again:
        assert again.books.open["a"].actions == [action]


def test_what_was_told_before_the_snapshot_is_kept_aside(tmp_path):
    with Session.open(tmp_path, learner(), SETTING, 2) as session:
        for k in range(7):
            episode = session.begin(f"e{k}")
            play(episode, k)
            episode.end()
    journal = Journal(tmp_path)
    journal.identify()
    ids = [entry["id"] for entry in journal.past() if entry["do"] == "end"]
    journal.close()
    assert ids == [f"e{k}" for k in range(7)]


def test_what_the_setting_forbids_stays_forbidden_whatever_an_episode_allows():
    mask = np.ones((S, 3), dtype=bool)
    mask[:, 2] = False
    session = Session(ProximalOMDPD.standard(), replace(SETTING, n_actions=3, allowed=mask))
    law = np.asarray(session.begin(allowed=[False, True, True]).policy)
    assert np.array_equal(law[..., 1], np.ones((H, S)))
    with pytest.raises(InvalidInputError, match="without any action that the setting allows"):
        session.begin(allowed=[False, False, True])
    for k in range(3):
        episode = session.begin()
        play(episode, k)
        episode.end()
    assert session.learnt == 3


def test_another_end_than_an_episode_had_is_refused(session):
    for id in ("absorbed", "cut"):
        play(session.begin(id), 1, steps=2)
    session.end("absorbed", absorbed=1)
    session.end("cut", cut=True)
    session.end("absorbed", absorbed=1)
    session.end("cut", cut=True)
    for call in (
        lambda: session.end("absorbed", absorbed=2), lambda: session.end("absorbed", cut=True),
        lambda: session.end("absorbed"), lambda: session.end("cut", absorbed=1),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="ended otherwise before"):
            call()
    assert session.episodes == 2


def test_a_trajectory_that_is_not_what_an_open_episode_did_is_refused(session):
    episode = session.begin("a")
    action = episode.act(1)
    episode.tell(0.5, 0.25)
    states, actions, rewards = np.array([1, 0, 0, 0]), np.array([action, 0, 0, 0]), np.full(H, 0.5)

    def whole(states=states, actions=actions, rewards=rewards):
        return BanditFeedback(Trajectory(states, actions), rewards, np.full((1, H), 0.25))

    for wrong in (whole(states=1 - states), whole(actions=1 - actions), whole(rewards=rewards / 2)):
        with pytest.raises(InvalidInputError, match="step 0 of episode 'a' was otherwise before"):
            session.tell("a", wrong)
    session.tell("a", whole())
    session.tell("a", whole())
    assert session.episodes == 1


def test_a_law_of_first_states_holds_from_the_next_update_on_after_a_restart_too(tmp_path):
    setting, laws = replace(SETTING, n_episodes=20), np.eye(S)

    def opened(name):
        return Session.open(tmp_path / name, OptCMDP(), setting, 3)

    def taught(session, ks):
        for k in ks:
            episode = session.begin(f"e{k}", initial=laws[k % S] if k % 2 else None)
            play(episode, k)
            episode.end()

    with opened("one") as whole:
        taught(whole, range(8))
        expected = np.asarray(whole.policy())
    for k in range(8):
        with opened("two") as parts:
            taught(parts, [k])
    with opened("two") as parts, opened("one") as whole:
        parts_name, whole_name = parts._name, whole._name
        assert parts_name != whole_name
        assert whole.learnt == parts.learnt == 8
        assert np.array_equal(whole.policy(), expected)
    with pytest.raises(InvalidInputError, match="does not keep its setting"):
        Session(Uniform(), SETTING).begin(initial=laws[0])


def test_a_refusal_names_the_step_that_was_told(session):
    episode = session.begin("a")
    episode.act(0)
    episode.act(1)
    with pytest.raises(InvalidInputError, match=r"^step 1 of episode 'a': reward = 9 is outside"):
        episode.tell(9.0, 0.1, step=1)
    with pytest.raises(InvalidInputError, match=r"^step 1 of episode 'a': cost\[0\] \(constraint 0\) = 7 is"):
        episode.tell(0.5, 7.0, step=1)
    with pytest.raises(InvalidInputError, match=r"^step 1 of episode 'a': reward = -3 is outside"):
        session.tell_steps("a", [(0, 0.5, 0.1), (1, -3.0, 0.1)])
    with pytest.raises(InvalidInputError, match=r"^step 0 of episode 'a': cost has length 2 along its constraint axis"):
        session.tell_steps("a", [(0, 0.5, [0.1, 0.2]), (1, 0.5, 0.1)])
    with pytest.raises(InvalidInputError, match=r"^step 0 of episode 'a': reward is not an array of numbers"):
        session.tell_steps("a", [(0, "much", 0.1)])
    with pytest.raises(InvalidInputError, match=r"^step 1 of episode 'a': reward has 1 axes, but needs 0"):
        session.tell_steps("a", [(0, 0.5, 0.1), (1, [0.5], 0.1)])
    assert session.books.open["a"].rewards == [None, None]  # nothing was told by what was refused
    episode.tell(0.5, 0.1, step=1)


def test_steps_that_are_told_together_are_those_told_one_by_one(session):
    for id in ("a", "b"):
        episode = session.begin(id)
        episode.act(0), episode.act(1)
    session.tell_steps("a", [(1, 0.25, 0.1), (None, 1, [0.2]), (1, 0.25, 0.1)])  # the second is the one left: step 0
    session.episode("b").tell(0.25, 0.1, step=1)
    session.episode("b").tell(1.0, 0.2)
    told = [(each.rewards, each.costs) for each in session.books.open.values()]
    assert told == [([1.0, 0.25], [[0.2], [0.1]])] * 2
    session.tell_steps("a", [])


def test_an_episode_is_told_as_a_whole(session):
    for id in ("a", "b", "c"):
        play(session.begin(id), 0, tell=False)
    rewards, costs = zip(*(outcome(0, h, a) for h, a in enumerate(session.books.open["a"].actions)), strict=True)
    for h in range(H):
        session.episode("a").tell(rewards[h], costs[h])
    session.episode("b").tell(rewards, costs)
    session.episode("c").tell(rewards[0], costs[0])
    session.episode("c").tell(np.array(rewards[1:]), [cost[0] for cost in costs[1:]], step=1)
    told = [(each.rewards, each.costs) for each in session.books.open.values()]
    assert told[0] == told[1] == told[2]
    with pytest.raises(InvalidInputError, match="4 rewards are told with 3 costs"):
        session.episode("a").tell(rewards, costs[1:])


def test_a_step_that_is_told_in_two_ways_at_once_is_refused(session):
    session.begin("a").act(0)
    with pytest.raises(InvalidInputError, match="step 0 of episode 'a' was told otherwise before"):
        session.tell_steps("a", [(0, 0.5, 0.1), (0, 0.6, 0.1)])
    assert session.books.open["a"].rewards == [None]


def test_an_episode_shows_its_next_step():
    with Session(ProximalOMDPD.standard(), SETTING) as session:
        episode = session.begin("a")
        assert repr(episode) == f"Episode('a', next step 0 of {H})"
        episode.act(0)
        assert repr(session.begin("a")) == f"Episode('a', next step 1 of {H}, told 0 of 1)"
        episode.tell(0.5, 0.5)
        assert repr(session.episode("a")) == f"Episode('a', next step 1 of {H})"
        session.drop("a")
        assert repr(episode) == "Episode('a', not open)"


def test_a_mask_that_forbids_all_that_is_played_is_warned_of_once():
    """The policy plays action 1 alone; of the two others each is drawn as often."""
    only = np.zeros((H, S, 3))
    only[..., 1] = 1.0
    session = Session(SafeStart(SafePolicy(only, -0.5)), replace(SETTING, n_actions=3))
    session.begin("fine", allowed=[True, True, False])
    with pytest.warns(SessionWarning, match=rf"'a' forbids all .* in state 0 at step 0 and in {H * S - 1} more places"):
        episode = session.begin("a", allowed=[True, False, True])
    assert np.asarray(episode.policy) == pytest.approx(np.broadcast_to([0.5, 0.0, 0.5], (H, S, 3)))
    session.begin("again", allowed=[True, False, True])  # a second warning would fail the test
