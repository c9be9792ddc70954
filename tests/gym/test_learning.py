"""Learning in environments as they come: vectors cut into cells, other units, cuts, crashes."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given
from hypothesis import strategies as st

from omdpd import Log, ProximalOMDPD, Uniform
from omdpd.gym import Bins, Learned, Task, learn
from omdpd.gym.checkpoints import FILE
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.atomic import RecordError


class Slide(gymnasium.Env):
    """A point between 0 and 1: action 1 pushes it right by about a tenth, 0 left; it earns 20 times its place in euros.

    It is cut after `limit` steps, and raises at the start of episode `breaks_at`.
    """

    observation_space = Box(0.0, 1.0, (1,))
    action_space = Discrete(2)

    def __init__(self, limit=None, breaks_at=None):
        self.limit, self.breaks_at, self.episode = limit, breaks_at, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.steps, self.x = self.episode + 1, 0, 0.5
        if self.episode == self.breaks_at:
            raise RuntimeError("the plug was pulled")
        return np.array([self.x]), {}

    def step(self, action):
        self.x = float(np.clip(self.x + (0.1 if action else -0.1) + self.np_random.normal(0.0, 0.02), 0.0, 1.0))
        self.steps += 1
        cut = self.limit is not None and self.steps >= self.limit
        return np.array([self.x]), 20.0 * self.x, False, cut, {}


BINS = Bins.even([0.0], [1.0], 5)
# Half a step's cost for being far right.
RIGHT = {"observation_cost": lambda seen, action, then: float(then[0] > 0.7), "reward_range": (0.0, 20.0)}


def test_an_observation_lies_in_the_cell_of_its_state():
    bins = Bins.even([-1.0, 0.0], [1.0, 10.0], [4, 5])
    assert bins.shape == (4, 5)
    assert bins.n_states == 20
    assert bins([-7.0, -7.0]) == 0
    assert bins([7.0, 70.0]) == 19
    assert bins([-0.5, 0.0]) == 5  # a border belongs to the bin above it
    assert bins.cell(5) == ((-0.5, 0.0), (-np.inf, 2.0))


@given(st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=2))
def test_every_vector_has_exactly_one_cell(x):
    bins = Bins(edges=([-1.0, 0.5], [0.0, 1.0, 2.0]))
    inside = [
        all(low <= value < high for value, (low, high) in zip(x, bins.cell(state), strict=True))
        for state in range(bins.n_states)
    ]
    assert np.flatnonzero(inside).tolist() == [bins(x)]


def test_bins_of_a_space_are_even():
    assert Bins.of(Box(0.0, 1.0, (2,)), 4).shape == (4, 4)
    assert Bins.of(Box(0.0, 1.0, (1,)), 4).edges[0] == pytest.approx([0.25, 0.5, 0.75])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Bins(()), "edges is empty"),
        (lambda: Bins(([1.0, 0.0],)), r"edges\[0\] must be ascending"),
        (lambda: Bins.even([0.0], [1.0], [2, 3]), "there are 2 counts, but 1 coordinates"),
        (lambda: Bins.even([1.0], [1.0], 2), "coordinate 0 goes from 1 to 1"),
        (lambda: Bins.even([0.0], [1.0], 0), r"counts\[0\] is 0"),
        (lambda: Bins.of(gymnasium.make("CartPole-v1").observation_space, 3), "coordinate 1 of the space has no end"),
        (lambda: Bins.of(Discrete(3), 3), "must be a Box"),
        (lambda: BINS([0.1, 0.2]), "not a vector of 1 numbers"),
        (lambda: BINS([np.nan]), "not a vector of 1 numbers"),
        (lambda: BINS.cell(5), "between 0 and 4"),
    ],
)
def test_what_cannot_be_binned_is_named(call, words):
    with pytest.raises(InvalidInputError, match=words):
        call()


def test_cells_euros_and_costs_of_observations_are_said_to_learn_itself():
    learned = learn(Slide(), ProximalOMDPD.standard(stationary=True), 60, 8, 1.0, state_of=BINS, **RIGHT)
    assert learned.policy.shape == (8, 5, 2)
    assert learned.rewards.max() > 8 * 0.5 * 20.0  # in euros
    assert set(np.unique(learned.costs)) <= set(range(9))
    played = learned.evaluate(n_episodes=40)
    assert played.costs.mean() < 2.0
    assert "40 episodes: reward" in str(played)
    assert "60 episodes" in repr(learned)
    assert len(repr(learned)) < 300


def test_costs_of_states_and_of_observations_are_not_both_taken():
    with pytest.raises(InvalidInputError, match="cost and observation_cost are both given"):
        learn(Slide(), Uniform(), 3, 8, 1.0, "toll", state_of=BINS, **RIGHT)


def test_what_an_error_of_learn_advises_learn_takes():
    """Each of these ends with advice; with it, the same call goes through."""
    cases = [
        ({"state_of": None}, "give state_of and n_states", {}),
        ({"reward_range": (0.0, 1.0)}, "give a wider reward_range", {}),
        ({"budget": 50.0}, "give a wider cost_scale", {"cost_scale": 10.0}),
        ({"max_entries": 100}, "pass max_entries=None", {"max_entries": None}),
    ]
    base = {
        "env": Slide(),
        "learner": Uniform(),
        "n_episodes": 3,
        "horizon": 8,
        "budget": 1.0,
        "state_of": BINS,
        **RIGHT,
    }
    for wrong, advice, mended in cases:
        with pytest.raises(InvalidInputError, match=advice):
            learn(**(base | wrong))
        learn(**(base | ({} if not mended else wrong | mended)))


def test_a_cut_is_refused_or_an_end():
    with pytest.raises(InvalidInputError, match=r"cut an episode short after 3 steps.*truncation='end'"):
        learn(Slide(limit=3), Uniform(), 4, 8, 1.0, state_of=BINS, **RIGHT)
    learned = learn(Slide(limit=3), Uniform(), 4, 8, 1.0, state_of=BINS, truncation="end", **RIGHT)
    assert learned.lengths.tolist() == [3, 3, 3, 3]
    limited = gymnasium.wrappers.TimeLimit(gymnasium.make("FrozenLake-v1"), 5)
    assert learn(limited, Uniform(), 4, 8, 1.0, lambda s, a, t: 0.0, truncation="end").lengths.max() <= 5
    with pytest.raises(InvalidInputError, match="truncation is 'ignore', but must be 'refuse' or 'end'"):
        learn(Slide(), Uniform(), 4, 8, 1.0, state_of=BINS, truncation="ignore", **RIGHT)


def test_a_vector_of_environments_is_refused_with_the_reason():
    envs = gymnasium.make_vec("FrozenLake-v1", num_envs=3)
    with pytest.raises(
        InvalidInputError, match=r"a vector of 3 environments.*each policy depends on the episode before"
    ):
        learn(envs, Uniform(), 4, 8, 1.0, lambda s, a, t: 0.0)


def test_a_setting_beside_a_task_is_refused():
    task = Task(Slide(), 8, 1.0, state_of=BINS, **RIGHT)
    assert learn(task, Uniform(), 3).rewards.shape == (3,)
    with pytest.raises(InvalidInputError, match="cost_scale is given beside a Task"):
        learn(task, Uniform(), 3, cost_scale=2.0)


def test_what_was_learnt_comes_back_from_its_file(tmp_path):
    learned = learn(Slide(), Uniform(), 5, 8, 1.0, state_of=BINS, **RIGHT)
    back = Learned.load(learned.save(tmp_path / "kept" / "slide.npz"))
    for name in ("rewards", "costs", "lengths", "budget"):
        assert np.array_equal(getattr(back, name), getattr(learned, name))
    assert np.array_equal(np.asarray(back.policy), np.asarray(learned.policy))
    assert np.array_equal(back.evaluate(learned.task, 6, seed=3).rewards, learned.evaluate(None, 6, seed=3).rewards)
    with pytest.raises(InvalidInputError, match="give evaluate the Task"):
        back.evaluate()
    with pytest.raises(InvalidInputError, match=r"should end in \.npz"):
        learned.save(tmp_path / "slide.csv")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(RecordError, match="holds nothing learnt: it has no numbers 'policy'"):
        Learned.load(tmp_path / "other.npz")


def test_learning_goes_on_after_a_crash_as_if_there_had_been_none(tmp_path):
    def again(env, folder):
        learner = ProximalOMDPD.standard(stationary=True)
        return learn(env, learner, 12, 8, 1.0, seed=4, state_of=BINS, checkpoint=tmp_path / folder, **RIGHT)

    for breaks_at in (5, 3):
        with pytest.raises(InvalidInputError, match="reset of the environment: it raised RuntimeError: the plug"):
            again(Slide(breaks_at=breaks_at), "crashed")
    crashed, whole = again(Slide(), "crashed"), again(Slide(), "whole")
    assert np.array_equal(np.asarray(crashed.policy), np.asarray(whole.policy))
    for name in ("rewards", "costs", "lengths"):
        assert np.array_equal(getattr(crashed, name), getattr(whole, name))
    # A third call has nothing to play, and an environment that breaks at once is not asked.
    assert np.array_equal(again(Slide(breaks_at=0), "whole").rewards, whole.rewards)


def test_an_episode_that_was_written_but_not_learnt_from_is_played_again(tmp_path):
    call = lambda: learn(Slide(), Uniform(), 6, 8, 1.0, state_of=BINS, checkpoint=tmp_path, **RIGHT)  # noqa: E731
    whole = call()
    with open(tmp_path / FILE, "a") as stream:
        stream.write("6,1.0,8,")  # and cut off half-way
    assert np.array_equal(call().rewards, whole.rewards)
    (tmp_path / FILE).write_text("0,1.0,8,0.0\n")
    with pytest.raises(RecordError, match="lacks episodes that were learnt from"):
        call()


@pytest.mark.parametrize("other", [{"budget": 2.0}, {"reward_range": (0.0, 30.0)}, {"cost_scale": 3.0}])
def test_a_checkpoint_goes_on_in_its_own_units_alone(tmp_path, other):
    base = {"budget": 1.0, "state_of": BINS, "checkpoint": tmp_path, **RIGHT}
    learn(Slide(), Uniform(), 2, 8, **base)
    with pytest.raises(InvalidInputError, match=f"was begun with {next(iter(other))} .*take another folder"):
        learn(Slide(), Uniform(), 4, 8, **(base | other))
    (tmp_path / "task.json").write_text("{")
    with pytest.raises(RecordError, match=r"task\.json is damaged"):
        learn(Slide(), Uniform(), 4, 8, **base)


def test_learning_starts_from_logs_in_the_environments_units(tmp_path):
    """A log of an environment's own cells is what a task that played them would have told."""
    task = Task(Slide(), 8, 5.0, state_of=BINS, **RIGHT)
    rng, uniform = np.random.default_rng(10012), np.full(task.setting(None).shape, 0.5)
    played = [task.play(uniform, rng, 10012 + k) for k in range(60)]
    first, rows = 1, []  # the state "before" comes first, because nobody knows the first cell
    for k, episode in enumerate(played):
        met = episode.feedback
        for h in range(first, 8 + first):
            cost = met.costs[0, h] + 5.0 / (8 + first)
            rows.append((k, met.trajectory.states[h], met.trajectory.actions[h], 20.0 * met.rewards[h], cost))
    columns = dict(zip(("episode", "state", "action", "reward", "cost"), zip(*rows, strict=True), strict=True))
    told = task.logged(Log.from_frame(columns))
    for mine, theirs in zip(told, played, strict=True):
        assert np.array_equal(mine.trajectory.states, theirs.feedback.trajectory.states)
        assert mine.rewards == pytest.approx(theirs.feedback.rewards)
        assert mine.costs == pytest.approx(theirs.feedback.costs)
    safe = learn(task, None, 2, logged=Log.from_frame(columns), checkpoint=tmp_path)
    again = learn(task, None, 2, checkpoint=tmp_path)  # its folder keeps the logs
    assert np.array_equal(again.policy, safe.policy)
    with pytest.raises(InvalidInputError, match="Uniform may try first what the logs never tried"):
        learn(task, Uniform(), 2, logged=told)
    assert learn(task, Uniform(), 2, logged=told, start="explore").rewards.shape == (2,)
