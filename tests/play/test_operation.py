"""A session in operation: alarms, budgets that carry over, forks, shadows, going back, and a fallback."""

from copy import deepcopy
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pytest

from omdpd import InvalidInputError, OptCMDP, ProximalOMDPD, Session, Setting, Uniform
from omdpd.play import alarms
from omdpd.play.alarms import AT_CAP, RINGS, UPDATES, Watch
from omdpd.play.books import Books, Open
from omdpd.play.carry import Carry
from omdpd.problem.setting import BanditFeedback, Trajectory
from omdpd.storage.journal import SessionWarning

H, S, A = 4, 3, 2
SETTING = Setting(H, S, A, budget=4.0, cost_scale=2.0, seed=3)


def teach(session, n, first=0, mean=0.9, budget=None):
    """Episodes whose steps cost `mean` on average, whatever is played."""
    for k in range(first, first + n):
        rng = np.random.default_rng(k)
        episode = session.begin(f"e{k}", budget=budget)
        for _ in range(H):
            action = episode.act(int(rng.integers(S)))
            episode.tell(float(rng.random() * (1 + action) / 2), float(np.clip(rng.normal(mean, 0.3), 0.0, 2.0)))
        episode.end()


def rings(session, name):
    return next(alarm for alarm in session.alarms() if alarm.name == name).rings


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("mean", "expected"), [(0.9, False), (1.0, False), (1.3, True)])
def test_spending_too_much_rings_and_spending_all_there_is_does_not(seed, mean, expected):
    """A budget of 1 a step, costs of this mean with a spread of a third, for 1500 episodes."""
    rng, watch = np.random.default_rng(seed), Watch()
    rang = False
    for _ in range(1500):
        watch.spent(np.atleast_1d((rng.normal(mean, 0.3, H).clip(0.0, 2.0) - 1.0).sum()), np.array([float(H)]))
        rang |= watch.alarms(["money"], 0)[0].rings
    assert rang == expected


def episodes_of(cost, scale, budget=5.0, n=400):
    """How many episodes of one step it takes until the alarm rings, out of n; told with a wide or a narrow scale."""
    setting, books = Setting(1, 1, 1, budget=budget, cost_scale=scale), Books()
    for k, paid in enumerate(cost[:n]):
        met = [[0], [0], [0.0], [[float(paid)]]]
        books.apply({"do": "end", "id": f"e{k}", "how": "whole", "at": 0.0, "met": met}, setting)
        if books.watch.alarms(["money"], 0)[0].rings:
            return k + 1
    return None


@pytest.mark.parametrize(("excess", "most"), [(0.3, 110), (1.0, 30)])
def test_a_wide_scale_does_not_blind_the_alarm(excess, most):
    """Costs whose spread is half of the budget; the numbers are those of the docs, with room for luck."""
    delays = []
    for seed in range(10):
        cost = np.random.default_rng(seed).gamma(4.0, 5.0 * (1.0 + excess) / 4.0, 400)
        narrow, wide = (episodes_of(cost, scale) for scale in (60.0, 6000.0))
        assert narrow == wide
        delays.append(narrow)
    assert np.median(delays) <= most


def test_costs_below_zero_count_by_what_is_declared():
    """Gains of 100 in one episode of fifty make up for the others: the mean keeps to the budget, and nothing rings."""
    rng = np.random.default_rng(0)
    cost = np.where(rng.random(3000) < 0.02, -100.0, 6.9)
    assert cost.mean() < 5.0
    first = int(np.flatnonzero(cost < 0.0)[0])
    assert episodes_of(np.r_[cost[first:], cost[:first]], 200.0, n=3000) is None


def test_bets_at_fair_odds_keep_their_mean():
    """The guarantee's ground: whatever was met before, a fair y leaves the expected wealth where it was."""
    watch = Watch()
    for y in (0.3, -0.1, 0.5, 0.4):
        watch.spent(np.array([y]), np.array([1.0]))
    ends = []
    for y in (-0.6, 0.6):
        tried = deepcopy(watch)
        tried.spent(np.array([y]), np.array([1.0]))
        ends.append(np.exp(tried.over[0].wealth))
    assert np.mean(ends, axis=0) == pytest.approx(np.exp(np.maximum(watch.over[0].wealth, 0.0)), rel=1e-12)
    assert RINGS >= 1000.0


@pytest.mark.parametrize("met", [[0, 0, 1], [3, 1, 2, 2, 0], [1] * 4, [0, 1, 2, 3, 4, 4, 4]])
def test_ranks_are_uniform_whatever_came_in_whatever_order(met, monkeypatch):
    """Any of those met may be the last; u is taken from a fine grid."""
    grid, bins = (np.arange(400) + 0.5) / 400, np.zeros(alarms.BINS)
    for last in range(len(met)):
        for u in grid:
            monkeypatch.setattr(alarms, "_drawn", lambda n, u=u: u)
            watch = Watch(by_step=False)
            for t in [*met[:last], *met[last + 1 :]]:
                watch.moved([0, t], [0], bet=False)
            watch.moved([0, met[last]], [0])
            bins += watch.ranks["0,0"]
    assert bins / bins.sum() == pytest.approx(1.0 / alarms.BINS, abs=1e-2)


def test_a_bet_on_ranks_is_at_fair_odds():
    watch = Watch()
    for place in (0, 0, 3, 1, 0):
        watch._counted("", place, 0.97)
    each = [np.exp(deepcopy(watch)._counted("", place, 0.97)) for place in range(alarms.BINS)]
    assert np.mean(each) == pytest.approx(1.0, rel=1e-12)


def laws_of(rng, n_states, dense):
    """Laws (S, 2, S) to all states, or to three."""
    laws = rng.dirichlet(np.ones(n_states), (n_states, 2))
    if not dense:
        far = laws < np.sort(laws, axis=2)[..., -3:-2]
        laws = np.where(far, 0.0, rng.random(laws.shape))
    return np.cumsum(laws / laws.sum(axis=2, keepdims=True), axis=2)


def walks(rng, laws, horizon, prefer=None):
    """An episode: states and actions, drawn alike or as `prefer` chooses them."""
    states, actions = [int(rng.integers(len(laws)))], []
    for u in rng.random(horizon):
        actions.append(int(rng.integers(2)) if prefer is None else prefer(states[-1]))
        states.append(min(int(np.searchsorted(laws[states[-1], actions[-1]], u)), len(laws) - 1))
    return states[:-1], actions


SIZES = [(4, 4, False), (20, 9, False), (20, 9, True), (20, 30, False)]


@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize(("horizon", "n_states", "dense"), SIZES)
def test_a_world_that_changes_rings_and_one_that_does_not_stays_quiet(horizon, n_states, dense, by_step):
    """At every size, whether laws are ranked by step or not."""
    for seed in range(3):
        rng, watch, rang = np.random.default_rng(seed), Watch(by_step=by_step), []
        before, after = laws_of(rng, n_states, dense), laws_of(rng, n_states, dense)
        for _ in range(400):
            watch.moved(*walks(rng, before, horizon))
            rang.append(watch.alarms([], 0)[0].rings)
        assert not any(rang)
        for _ in range(200):
            watch.moved(*walks(rng, after, horizon))
            rang.append(watch.alarms([], 0)[0].rings)
        assert any(rang)


def test_who_goes_where_ranks_were_uneven_rings_no_more_often():
    """Rows are chosen by what was met there: bets are not quite fair then, and still nothing rings."""
    for seed in range(4):
        rng, watch = np.random.default_rng(seed), Watch(by_step=False)
        laws = laws_of(rng, 9, dense=False)

        def uneven(s, watch=watch):
            seen = [watch.ranks.get(f"{s},{a}", [0.0]) for a in (0, 1)]
            return int(np.argmax([max(each) - np.mean(each) for each in seen]))

        for _ in range(400):
            watch.moved(*walks(rng, laws, 20, uneven))
            assert not watch.alarms([], 0)[0].rings


@pytest.mark.parametrize("changes", [False, True])
def test_logs_are_what_the_world_is_compared_with(changes):
    """Sixty logged weeks of a queue; service all but stops before the first that is played, or nothing changes."""

    def queue(rng, served):
        states, q = [], int(rng.integers(4))
        for _ in range(20):
            states.append(q)
            q = min(max(q - int(rng.choice(3, p=served)), 0) + int(rng.integers(2)), 8)
        return states

    before, after = [0.3, 0.5, 0.2], [0.8, 0.2, 0.0]
    rng, setting = np.random.default_rng(0), Setting(20, 9, 1, budget=5.0, cost_scale=10.0)
    blank = {"rewards": np.zeros(20), "costs": np.zeros((1, 20))}
    zeros = np.zeros(20, dtype=int)
    log = [BanditFeedback(Trajectory(np.array(queue(rng, before)), zeros), **blank) for _ in range(60)]
    session = Session(Uniform(), setting, logged=log, start="explore")
    rang = False
    for k in range(104):
        states = np.array(queue(rng, after if changes else before))
        session.tell(f"w{k}", BanditFeedback(Trajectory(states, zeros), **blank))
        rang |= rings(session, "drift")
    assert rang == changes


def test_a_weight_that_stays_at_its_cap_rings():
    names = [alarm.rings for capped in (AT_CAP, AT_CAP + 1) for alarm in Watch().alarms([], capped)]
    assert names == [False, False, False, True]


@pytest.mark.parametrize(("mean", "expected"), [(0.3, False), (1.9, True)])
def test_a_budget_that_cannot_be_kept_rings_for_the_weight_and_one_that_can_does_not(tmp_path, mean, expected):
    """A step may cost 1, and costs this whatever is played."""
    with Session.open(tmp_path, ProximalOMDPD.standard(), SETTING, 40) as session:
        teach(session, 120, mean=mean)
        assert rings(session, "weight at its cap") == expected
        found = session.alarms()
    with Session.open(tmp_path, ProximalOMDPD.standard(), SETTING, 40) as session:
        assert session.alarms() == found


def test_alarms_survive_a_restart(tmp_path):
    with Session.open(tmp_path, OptCMDP(), replace(SETTING, n_episodes=200), 7) as session:
        teach(session, 60, mean=1.6)
        assert rings(session, "over cost 0")
        found = session.alarms()
        assert sum(session.mind.capped) <= UPDATES
    with Session.open(tmp_path, OptCMDP(), replace(SETTING, n_episodes=200), 7) as session:
        assert session.alarms() == found


def test_what_an_earlier_version_kept_of_its_alarms_can_be_read():
    """Its bets and counts were others: they begin anew."""
    old = b'{"bets":[{"wealth":0.1,"n":2.0,"total":0.1,"squares":1.1}],"drift":1.5,"moves":{"0,1":{"2":[1.0,1.0]}}}'
    assert msgspec.json.decode(old, type=Watch) == Watch()


def test_every_constraint_carries_over_by_itself():
    setting = replace(SETTING, n_constraints=2, budget=[4.0, 3.0], cost_scale=[2.0, 2.0])
    session = Session(ProximalOMDPD.cautious(), setting, carry=Carry(5, [1.0, 0.5]))
    episode = session.begin("a")
    for _ in range(H):
        episode.act(0)
        episode.tell(0.5, [0.5, 0.25])
    episode.end()
    session.begin("b")
    for call in (session.set_budget, lambda budget: session.begin("c", budget)):
        for one in (5.0, [5.0]):
            with pytest.raises(InvalidInputError, match="budget is 1 number, but there are 2 costs: cost 0, cost 1"):
                call(one)
    # Of 20 and 15, 2 and 1 were spent: 18 / 4 and 14 / 4.
    assert session.books.open["b"].budget == [4.5, 3.5]


def test_what_was_not_spent_is_carried_over_within_bounds():
    carry, base, books = Carry(period=3, most=2.0), np.array([4.0]), Books()
    assert carry.budget(base, books).tolist() == [4.0]
    session = Session(ProximalOMDPD.cautious(), SETTING, carry=carry)
    budgets = []
    for k, cost in enumerate((0.25, 1.5, 1.0, 2.0)):
        episode = session.begin()
        budgets.append(session.books.open[episode.id].budget)
        for _ in range(H):
            episode.act(k % S)
            episode.tell(0.5, cost)
        episode.end()
    # Of 12 for three episodes 1 was spent: 11 / 2 is within 2 of 4.  Then 7: 12 - 7 = 5.  A new period begins anew.
    assert budgets == [[4.0], [5.5], [5.0], [4.0]]
    open_now = {str(k): Open(str(k), "", 0.0, [5.0]) for k in range(2)}
    assert carry.budget(base, Books(open=open_now)).tolist() == [2.0]


@pytest.mark.parametrize("seed", range(4))
def test_a_period_costs_what_it_may_if_every_episode_keeps_its_budget(seed):
    """Costs that are noise around the budget in force, by itself: over many periods the mean is at most P b."""
    rng, carry, base = np.random.default_rng(seed), Carry(10, 3.0), np.array([4.0])
    sums = []
    for _ in range(200):
        spent, books = 0.0, Books()
        for j in range(10):
            books.totals.ended = j
            met = max(0.0, float(carry.budget(base, books)[0]) + rng.normal(0.0, 0.5))
            books.recent.append(_costing(met))
            spent += met
        sums.append(spent)
    # Two standard errors of a mean over 200 periods.
    assert np.mean(sums) <= 40.0 + 2.0 * np.std(sums) / np.sqrt(200)


def _costing(cost):
    from omdpd.play.books import Ended

    return Ended("", None, None, "whole", 0.0, 0.0, [0], [0], [0.0], [[cost]])


def test_a_carry_needs_a_budget_and_a_period_that_is_remembered():
    with pytest.raises(InvalidInputError, match="the setting has no budget"):
        Session(ProximalOMDPD.cautious(), Setting(H, S, A), carry=Carry(3, 1.0))
    with pytest.raises(InvalidInputError, match="at most 200 episodes are remembered"):
        Carry(1000, 1.0)


def test_a_fork_was_told_everything_and_may_have_another_budget(tmp_path):
    with Session.open(tmp_path / "one", ProximalOMDPD.cautious(), SETTING, 4) as session:
        teach(session, 10)
        session.begin("open")
        with session.fork(tmp_path / "same") as same:
            assert np.array_equal(same.policy(), session.policy())
            assert same.open_episodes == ()
        with session.fork(tmp_path / "tight", setting=replace(SETTING, budget=2.0)) as tight:
            assert tight.episodes == 10
            told = Session(ProximalOMDPD.cautious(), replace(SETTING, budget=2.0))
            for ended in session.books.recent:
                told.take_over(ended)
            assert np.array_equal(tight.policy(), told.policy())
        with session.fork(tmp_path / "other", learner=OptCMDP(), setting=replace(SETTING, n_episodes=99)) as other:
            assert other.episodes == 10
    with pytest.raises(InvalidInputError, match="a session in memory does not keep what it was told"):
        Session(ProximalOMDPD.cautious(), SETTING).fork(tmp_path / "x")


def test_a_shadow_learns_the_same_and_plays_nothing(tmp_path):
    def both():
        session = Session.open(tmp_path / "one", ProximalOMDPD.cautious(), SETTING, 3)
        shadow = Session.open(tmp_path / "two", OptCMDP(), replace(SETTING, n_episodes=99), 3)
        return session, shadow

    session, shadow = both()
    session.follow(shadow)
    teach(session, 5)
    shadow.close()  # it dies first, and misses what comes
    session._followers.clear()
    teach(session, 4, first=5)
    session.close()
    session, shadow = both()
    assert (session.episodes, shadow.episodes) == (9, 5)
    session.follow(shadow)
    assert shadow.episodes == 9
    teach(session, 20, first=9)
    assert [each.id for each in shadow.books.recent] == [each.id for each in session.books.recent]
    alone = Session(OptCMDP(), replace(SETTING, n_episodes=99))
    for ended in session.books.recent:
        alone.take_over(ended)
    assert np.array_equal(alone.policy(), shadow.policy())
    verdict = session.judge(shadow.policy())
    assert verdict.by_model is not None or verdict.refusal
    # The policy that played is judged by its own episodes: weights are one, so it is their mean.
    played = session.judge(np.full((H, S, A), 0.5))
    assert played.effective is not None
    session.close(), shadow.close()


def test_a_shadow_that_fails_is_left_behind(tmp_path, monkeypatch):
    with Session.open(tmp_path, ProximalOMDPD.cautious(), SETTING) as session:
        shadow = Session(ProximalOMDPD.cautious(), SETTING)
        session.follow(shadow)
        monkeypatch.setattr(shadow, "take_over", lambda ended: 1 / 0)
        with pytest.warns(SessionWarning, match="a shadow failed and follows no more"):
            teach(session, 1)
        teach(session, 1, first=1)
        assert (session.learnt, shadow.episodes) == (2, 0)


def test_one_goes_back_to_a_policy_of_before_and_the_learner_goes_on(tmp_path):
    def opened():
        return Session.open(tmp_path, ProximalOMDPD.standard(), SETTING, 5)

    with opened() as session:
        teach(session, 12)
        assert session.kept_policies == (5, 10)
        session.rollback(5)
        assert session.begin("old").policy.shape == (H, S, A)
        law = np.asarray(session.policy())
        teach(session, 5, first=12)
        assert np.array_equal(session.policy(), law)
        with pytest.raises(InvalidInputError, match="no policy was kept after 7 episodes, but after 5, 10"):
            session.rollback(7)
    with opened() as session:
        assert np.array_equal(session.policy(), law)
        assert np.array_equal(session.episode("old").policy, law)
        session.rollback(None)
        again = np.asarray(session.policy())
    plain = Session(ProximalOMDPD.standard(), SETTING)
    for ended in session.books.recent:
        plain.take_over(ended)
    assert np.array_equal(again, plain.policy())
    assert not np.array_equal(again, law)


@dataclass(frozen=True)
class Fragile(Uniform):
    """Cannot learn from an episode that begins in state 2."""

    def update(self, state, feedback):
        if feedback.trajectory.states[0] == 2:
            raise ArithmeticError("no")
        return super().update(state, feedback)


def one(session, state):
    episode = session.begin()
    for _ in range(H):
        episode.act(state)
        episode.tell(0.5, 0.5)
    episode.end()


def test_a_fallback_is_played_while_the_last_update_failed(tmp_path):
    safe = np.zeros((H, S, A))
    safe[..., 0] = 1.0

    def opened():
        return Session.open(tmp_path, Fragile(), SETTING, 3, fallback=safe)

    with opened() as session:
        one(session, 0)
        uniform = np.asarray(session.policy())
        one(session, 2)
        assert np.array_equal(session.policy(), safe)
        session.begin("while")
        one(session, 1)
        assert np.array_equal(session.policy(), uniform)
        one(session, 2)
        assert session.mind.failures == 2
    with pytest.warns(SessionWarning, match="an update failed and is left out: ArithmeticError"):
        session = opened()
    with session:
        assert np.array_equal(session.policy(), safe)
        assert np.array_equal(session.episode("while").policy, safe)
        assert session.mind.failures == 2


def test_without_a_fallback_an_update_that_fails_is_refused():
    session = Session(Fragile(), SETTING)
    with pytest.raises(ArithmeticError):
        one(session, 2)
    assert session.episodes == 0
    assert len(session.open_episodes) == 1
