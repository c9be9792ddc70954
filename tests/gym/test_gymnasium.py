"""Gymnasium in (tables, and learning without them) and out (every world as an environment)."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary
from gymnasium.utils.env_checker import check_env

from omdpd import ProximalOMDPD, Session, Uniform
from omdpd.gym.env import CMDPEnv, env_id
from omdpd.gym.learned import plot_learned
from omdpd.gym.learning import learn, learn_by_context
from omdpd.gym.table import from_gymnasium
from omdpd.gym.task import Task
from omdpd.problem.arrays import InvalidInputError
from omdpd.solvers.compiled.flow import value_of_policy
from omdpd.worlds import cyclic, queue, streaming
from omdpd.worlds.card import problem_card
from omdpd.worlds.components import parts_of
from tests.references.named import WORLDS

HOLES = (5, 7, 11, 12)


def falls(state, action, next_state):
    return float(next_state in HOLES)


class Corridor(gymnasium.Env):
    """Cells 0, 1, 2 in a row; action 1 moves on, and leaving cell 2 ends the episode; every move costs 1.

    How it reports costs, where its numbers start and when it truncates are settings of the test.
    """

    def __init__(self, report="cost", start=0, limit=None):
        self.observation_space, self.action_space = Discrete(3, start=start), Discrete(2, start=start)
        self.report, self.start, self.limit = report, start, limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.steps = 0, 0
        return self.start, {}

    def step(self, action):
        move = int(action) - self.start
        self.cell, self.steps = self.cell + move, self.steps + 1
        over, cut = self.cell == 3, self.limit is not None and self.steps >= self.limit
        seen, reward, cost = self.start + min(self.cell, 2), float(over), float(move)
        if self.report == "six":
            return seen, reward, cost, over, cut, {}
        info = {"cost": {"cost": cost}, "costs": {"costs": np.array([cost, 0.5])}, "key": {"toll": cost}}
        return seen, reward, over, cut, info.get(self.report, {})


ALWAYS_MOVE = np.tile([0.0, 1.0], (9, 9, 1))


# ---- in: tables ----


def test_frozen_lake_becomes_its_exact_cmdp():
    cmdp = from_gymnasium("FrozenLake-v1", horizon=20, cost=falls, budget=0.1)
    assert cmdp.shape == (20, 16, 4)
    assert cmdp.name == "FrozenLake-v1"
    assert cmdp.labels.layout == ("SFFF", "FHFH", "FFFH", "HFFG")
    # state 0, left: up and left bounce (2/3), down goes to 4
    assert cmdp.transition[0, 0, 0, [0, 4]] == pytest.approx([2 / 3, 1 / 3])
    # from 14, down: left, down (bounces), right to the goal: one third each, and the goal pays 1
    assert cmdp.reward[3, 14, 1] == pytest.approx(1 / 3)
    # from 4, left: up 0, left bounce, down 8: no hole; right: up 0, right 5 (a hole), down 8
    assert cmdp.cost[0, 0, 4, [0, 2]] == pytest.approx([0.0, 1 / 3])
    for end in (*HOLES, 15):
        assert cmdp.transition[0, end, :, end].tolist() == 4 * [1.0]
        assert not cmdp.reward[:, end].any()
        assert not cmdp.cost[:, :, end].any()


def test_the_value_of_a_policy_agrees_with_playing_the_environment():
    env = gymnasium.make("FrozenLake-v1", is_slippery=True)
    cmdp = from_gymnasium(env, horizon=15, cost=falls, budget=0.3)
    policy = np.tile(np.random.default_rng(0).dirichlet(np.ones(4), 16), (15, 1, 1))
    task = Task(env, 15, 0.3, falls, initial=env.unwrapped.initial_state_distrib)
    padded = np.concatenate([policy, np.full((15, 1, 4), 0.25)], axis=1)
    rng = np.random.default_rng(1)
    played = [task.play(padded, rng, seed=k if k == 0 else None) for k in range(4000)]
    exact = value_of_policy(policy, cmdp.transition, cmdp.initial, cmdp.reward)
    risk = value_of_policy(policy, cmdp.transition, cmdp.initial, cmdp.cost[0])
    # 4000 episodes of 0/1 returns: five standard deviations are below .04
    assert np.mean([e.reward for e in played]) == pytest.approx(exact, abs=0.04)
    assert np.mean([e.costs[0] for e in played]) == pytest.approx(risk, abs=0.04)


def test_cliff_walking_keeps_its_units():
    """Thirteen steps at -1 along the cliff; a cost for the row above the cliff, budget 2, makes it a longer way."""
    cmdp = from_gymnasium("CliffWalking-v1", horizon=20, cost=lambda s, a, t: float(24 <= s < 36), budget=2.0)
    card = problem_card(cmdp)
    assert cmdp.reward_range == (-100.0, 0.0)
    assert card.free_value == pytest.approx(-13.0)
    assert card.value == pytest.approx(-15.0)


def test_taxi_falls_into_a_part_per_destination():
    cmdp = from_gymnasium("Taxi-v4", horizon=10, cost=lambda s, a, t: float(a < 4), budget=6.0)
    assert cmdp.shape == (10, 500, 6)
    parts = parts_of(cmdp)
    # 25 cells x 4 places of the passenger (3 waiting, 1 riding), and the one state after the drop-off
    assert [part.states.size for part in parts] == 4 * [101]
    assert [part.weight for part in parts] == pytest.approx(4 * [0.25])
    assert all(len({int(s) % 4 for s in part.states}) == 1 for part in parts)
    whole = problem_card(cmdp).free_value
    assert np.mean([problem_card(part.cmdp).free_value for part in parts]) == pytest.approx(whole)


def test_long_horizons_share_one_table():
    cmdp = from_gymnasium("Taxi-v4", horizon=200, cost=lambda s, a, t: float(a < 4), budget=9.0)
    assert cmdp.transition.shape == (200, 500, 6, 500)
    assert cmdp.transition.strides[0] == 0
    uniform = np.full((200, 500, 6), 1 / 6)
    assert 0.0 < value_of_policy(uniform, cmdp.transition, cmdp.initial, cmdp.reward) < 200.0


class Mixed:
    """State 1 is entered by a transition that ends the episode and by one that does not."""

    P = {  # noqa: RUF012
        0: {0: [(0.5, 1, 2.0, True), (0.5, 1, 0.0, False)]},
        1: {0: [(1.0, 0, 0.0, False)]},
    }
    unwrapped = property(lambda self: self)

    def reset(self, seed=None):
        return seed % 4 == 0, {}


def test_a_state_that_ends_and_does_not_end_gets_a_companion():
    cmdp = from_gymnasium(Mixed(), 4, [[1.0], [0.0]], 2.0)
    assert cmdp.shape == (4, 3, 1)
    assert cmdp.transition[0, :, 0].tolist() == [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert cmdp.reward[0, :, 0].tolist() == [0.5, 0.0, 0.0]
    assert cmdp.cost[0, 0, :, 0].tolist() == [1.0, 0.0, 0.0]
    assert cmdp.initial.tolist() == [0.75, 0.25, 0.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: from_gymnasium("CartPole-v1", 5, 0.0, 1.0), "publishes no table P"),
        (lambda: from_gymnasium("Nowhere-v7", 5, 0.0, 1.0), "Gymnasium cannot make 'Nowhere-v7'"),
        (lambda: from_gymnasium("FrozenLake-v1", 5, lambda s, a, t: [1.0] * (1 + s // 4), 1.0), "2 numbers in state 4"),
        (lambda: from_gymnasium("FrozenLake-v1", 0, falls, 1.0), "horizon is 0"),
        (lambda: from_gymnasium("FrozenLake-v1", 5, np.zeros((3, 4)), 1.0), r"cost has shape \(3, 4\)"),
        (
            lambda: from_gymnasium("FrozenLake-v1", 5, falls, 1.0, initial=[1.0]),
            "initial has length 1",
        ),
        (lambda: from_gymnasium("FrozenLake-v1", 5, falls, 1.0, reward_range=(0.5, 1.0)), "with 0 between"),
        (lambda: from_gymnasium("FrozenLake-v1", 5, falls, 1.0, reward_range=(0.0, 0.5)), "go from 0 to 1"),
        (lambda: from_gymnasium("FrozenLake-v1", 5, falls, 1.0, reward_range=(-1e308, 1e308)), "is beyond 1e.100"),
        (lambda: from_gymnasium("FrozenLake-v1", 5, falls), "budget is missing: give what an episode may cost"),
    ],
)
def test_what_cannot_be_imported_is_named(call, words):
    with pytest.raises(InvalidInputError, match=words):
        call()


# ---- in: learning without the table ----


@pytest.mark.parametrize("report", ["cost", "six"])
@pytest.mark.parametrize("start", [0, 5])
def test_an_early_end_is_absorbed_with_nothing(report, start):
    task = Task(Corridor(report, start), horizon=5, budget=2.0, initial=[1.0, 0.0, 0.0])
    episode = task.play(ALWAYS_MOVE[:5, :4], np.random.default_rng(0))
    assert episode.length == 3
    assert (episode.reward, episode.costs.tolist()) == (1.0, [3.0])
    assert episode.feedback.trajectory.states.tolist() == [0, 1, 2, 3, 3]
    assert episode.feedback.rewards.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]
    # cost less budget per step: 1 - .4 while moving, 0 - .4 once it ended
    assert episode.feedback.costs[0] == pytest.approx([0.6, 0.6, 0.6, -0.4, -0.4])


def test_an_unknown_start_is_one_more_step():
    task = Task(Corridor(), horizon=4, budget=2.0)
    setting = task.setting(10)
    assert (setting.shape, setting.mu.tolist()) == ((5, 5, 2), [0.0, 0.0, 0.0, 0.0, 1.0])
    episode = task.play(ALWAYS_MOVE[:5, :5], np.random.default_rng(0))
    assert episode.feedback.trajectory.states.tolist() == [4, 0, 1, 2, 3]
    assert episode.feedback.costs[0] == pytest.approx([-0.4, 0.6, 0.6, 0.6, -0.4])
    assert task.own_policy(ALWAYS_MOVE[:5, :5]).shape == (4, 3, 2)


def test_rewards_of_other_ranges_keep_their_zero():
    task = Task(Corridor(), horizon=4, budget=2.0, initial=[1.0, 0.0, 0.0], reward_range=(-3.0, 1.0))
    episode = task.play(ALWAYS_MOVE[:4, :4], np.random.default_rng(0))
    assert episode.feedback.rewards.tolist() == [0.75, 0.75, 1.0, 0.75]


def test_several_costs_other_keys_and_functions():
    play = lambda task: task.play(ALWAYS_MOVE[:5, :5], np.random.default_rng(0)).costs.tolist()  # noqa: E731
    assert play(Task(Corridor("costs"), 4, [2.0, 1.0])) == [3.0, 1.5]
    assert play(Task(Corridor("key"), 4, 2.0, "toll")) == [3.0]
    assert play(Task(Corridor("none"), 4, 2.0, lambda s, a, t: s / 2)) == [1.5]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Task(gymnasium.make("CartPole-v1"), 5, 1.0), "observations are Box.*give state_of and n_states"),
        (lambda: Task(gymnasium.make("Pendulum-v1"), 5, 1.0), "actions are Box.*not Discrete"),
        (lambda: Task(gymnasium.make("FrozenLake-v1"), 101, 1.0), "after 100 steps, before the horizon 101"),
        (lambda: Task(gymnasium.make("Taxi-v4"), 200, 1.0), "need tables of 2.3 GiB each"),
        (lambda: Task(Corridor(), 5, 1.0, reward_range=(0.5, 1.0)), "reward_range is"),
        (lambda: Task(Corridor(), 5, 1.0, reward_range=(-1e308, 1e308)), "is beyond 1e.100"),
        (lambda: Task(Corridor(), 5), "budget is missing: give what an episode may cost"),
        (lambda: Task(Corridor(), 5, 1.0, cost_scale=0.0), "cost_scale is 0.0"),
        (lambda: learn(Corridor(limit=2), Uniform(), 9, 4, 1.0), "cut an episode short after 2 steps"),
        (lambda: learn(Corridor("none"), Uniform(), 9, 4, 1.0), "reports no cost .info has nothing."),
        (lambda: learn(Corridor("cost"), Uniform(), 9, 4, 1.0, "toll"), "info has no 'toll'; it has cost"),
        (lambda: learn(Corridor(), Uniform(), 9, 4, [1.0, 1.0]), "reported 1 costs, but there are 2 budgets"),
        (lambda: learn(Corridor(), Uniform(), 9, 4, 1.0, lambda s, a, t: 7.0), "the cost 7 at step 0 does not fit"),
        (lambda: learn(Corridor(), Uniform(), 9), "needs a horizon and a budget"),
        (lambda: learn("FrozenLake-v9", Uniform(), 9, 4, 1.0), "Gymnasium cannot make 'FrozenLake-v9'"),
    ],
)
def test_what_cannot_be_learnt_from_is_named(call, words):
    with pytest.raises(InvalidInputError, match=words):
        call()


def test_a_binary_space_is_not_discrete():
    env = Corridor()
    env.observation_space = MultiBinary(3)
    with pytest.raises(InvalidInputError, match="not Discrete"):
        Task(env, 4, 1.0)


def test_a_session_learns_from_an_environment():
    task = Task(Corridor(), horizon=4, budget=2.0)
    session = Session(ProximalOMDPD.cautious(), task.setting(20))
    rng = np.random.default_rng(0)
    for _ in range(20):
        session.update(task.play(session.policy(), rng).feedback)
    assert session.episodes == 20


def test_learning_finds_the_way_across_the_lake(tmp_path):
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    learned = learn(env, ProximalOMDPD.cautious(stationary=True), 300, horizon=10, budget=0.2, cost=falls)
    assert learned.policy.shape == (10, 16, 4)
    assert learned.rewards[-30:].mean() > 0.9
    assert learned.costs[-30:].mean() <= 0.2
    assert 0 <= learned.act(0, 0, np.random.default_rng(0)) < 4
    assert len(plot_learned(learned, tmp_path / "lake.png").axes) == 2
    assert (tmp_path / "lake.png").stat().st_size > 10_000


def test_the_same_seed_gives_the_same_run():
    runs = [
        learn(gymnasium.make("FrozenLake-v1"), ProximalOMDPD.balanced(), 30, 8, 0.2, falls, seed=seed)
        for seed in (4, 4, 5)
    ]
    assert np.array_equal(runs[0].policy, runs[1].policy)
    assert np.array_equal(runs[0].costs, runs[1].costs)
    assert not np.array_equal(runs[0].policy, runs[2].policy)


def test_lumped_states_and_contexts():
    """Taxi in the small: the destination is the context, the other 125 numbers are the states."""
    env = gymnasium.make("Taxi-v4")
    law = env.unwrapped.initial_state_distrib
    task = Task(
        env, 6, 5.0, lambda s, a, t: float(a < 4), law, (-10.0, 20.0), state_of=lambda o: int(o) // 4, n_states=125
    )
    learned = learn_by_context(task, Uniform(), 12, lambda o: int(o) % 4, 4)
    assert [part.policy.shape for part in learned] == 4 * [(6, 125, 6)]
    assert sum(part.rewards.size for part in learned) == 12
    with pytest.raises(InvalidInputError, match="left the context 0"):
        learn_by_context(Task(Corridor(), 9, 2.0), Uniform(), 12, lambda o: int(o) > 1, 2)


def test_other_observations_need_a_state_each():
    class Boxed(Corridor):
        def __init__(self):
            super().__init__()
            self.observation_space = Box(0.0, 2.0, (1,))

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.array([0.0]), {}

        def step(self, action):
            answer = super().step(action)
            return np.array([float(answer[0])]), *answer[1:]

    task = Task(Boxed(), 4, 2.0, state_of=lambda x: int(x[0]), n_states=3)
    assert task.play(ALWAYS_MOVE[:5, :5], np.random.default_rng(0)).length == 3
    with pytest.raises(InvalidInputError, match="is state 2, but states go from 0 to 1"):
        Task(Boxed(), 4, 2.0, state_of=lambda x: int(x[0]), n_states=2).play(
            ALWAYS_MOVE[:5, :4], np.random.default_rng(0)
        )
    for answer in (0.5, float("nan"), "left", [0, 1], None):
        with pytest.raises(InvalidInputError, match=r"the state of the observation .* is .*, but must be a whole"):
            Task(Boxed(), 4, 2.0, state_of=lambda x, answer=answer: answer, n_states=3).state(np.array([0.0]))
    assert Task(Boxed(), 4, 2.0, state_of=lambda x: x, n_states=3).state(np.array([2.0])) == 2


# ---- out ----


@pytest.mark.parametrize("world", list(WORLDS))
def test_every_world_passes_gymnasiums_own_check(world):
    check_env(gymnasium.make(env_id(world)).unwrapped)


def test_an_environment_plays_its_world():
    env = gymnasium.make("omdpd/Cyclic-v0")
    seen, info = env.reset(seed=0)
    assert (seen, info["step"], info["budget"].tolist()) == (0, 0, [3.0])
    assert env.step(1)[:4] == (1, pytest.approx(1 / 3), False, False)
    for step in range(2, 7):
        _, _, terminated, truncated, info = env.step(0)
        assert (terminated, truncated, info["cost"], info["step"]) == (step == 6, False, 0.0, step)
    with pytest.raises(InvalidInputError, match="over after 6 steps"):
        env.unwrapped.step(0)
    env.reset()
    with pytest.raises(InvalidInputError, match="the action is 2"):
        env.unwrapped.step(2)


def test_costs_are_in_natural_units():
    env = gymnasium.make("omdpd/Inventory-v0")
    _, info = env.reset(seed=0)
    assert info["budget"] == pytest.approx([66.5])
    assert env.step(5)[4]["cost"] == pytest.approx(19.0)
    two = CMDPEnv(queue.make())
    two.reset(seed=0)
    info = two.step(3)[4]
    assert info["costs"] == pytest.approx([0.5, 0.1])
    assert info["cost"] == pytest.approx(0.6)


def test_pictures_and_words():
    env = gymnasium.make("omdpd/Grid-v0", render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (160, 160, 3)
    assert picture.dtype == np.uint8
    assert picture[16, 16].tolist() == [204, 51, 17]
    assert picture[16, 80].tolist() == [230, 159, 0]
    text = gymnasium.make("omdpd/Grid-v0", render_mode="ansi")
    text.reset(seed=0)
    assert text.render().splitlines()[:2] == ["step 0 of 12: (0, 0) S", "[S] .  O  .  G "]
    row = CMDPEnv(streaming.make(), render_mode="rgb_array")
    row.reset(seed=0)
    assert row.render().shape == (32, 320, 3)
    assert CMDPEnv(cyclic.make()).render() is None
    with pytest.raises(InvalidInputError, match="render_mode is 'human'"):
        CMDPEnv(cyclic.make(), render_mode="human")


def test_a_world_is_learnt_through_its_own_environment():
    """Out and in again: what `learn` meets in an environment is what the exact run meets."""
    learned = learn("omdpd/Cyclic-v0", ProximalOMDPD.cautious(), 200, horizon=6, budget=3.0)
    assert learned.costs[-50:].mean() <= 3.1
    assert learned.rewards[-50:].mean() > 1.6


class WithMatrix:
    """Three states in a ring: action 0 stays, action 1 goes on with .8; state 2 can only stay."""

    initial_state_distrib = (1.0, 0.0, 0.0)

    def get_transition_matrix(self):
        matrix = np.zeros((3, 3, 2))
        matrix[[0, 1, 2], [0, 1, 2], 0] = 1.0
        for s in range(2):
            matrix[s + 1, s, 1], matrix[s, s, 1] = 0.8, 0.2
        return matrix


def test_a_transition_matrix_is_read_with_rewards_that_are_given():
    cmdp = from_gymnasium(WithMatrix(), 3, lambda s, a, t: float(a), 1.0, reward=lambda s, a, t: float(t == 2))
    assert cmdp.mask.allowed.tolist() == [[[True, True], [True, True], [True, False]]]
    assert cmdp.laws.law(0, 0, 1)[1].tolist() == [0.2, 0.8]
    # Free: going on until state 2, where every step pays, earns P(2 after two steps) + P(2 after three).
    free = cmdp.with_budget(None).solve()
    assert free.value == pytest.approx(0.64 + 0.64 + 2 * 0.2 * 0.64)
    table = from_gymnasium(WithMatrix(), 3, [[0, 1], [0, 1], [0, 1]], 1.0, reward=[[0, 0.5], [0, 0.5], [1, 0]])
    assert table.with_budget(None).solve().value > 1.0


@pytest.mark.parametrize(
    ("matrix", "reward", "words"),
    [
        (np.ones((2, 3, 1)), [[0.0]], "has shape"),
        (np.zeros((2, 2, 1)), [[0.0], [0.0]], "state 0 has no successor"),
        (np.eye(2)[:, :, None], None, "give them as reward"),
        (np.eye(2)[:, :, None] / 2.0, [[0.0], [0.0]], "should be 1"),
        (np.eye(2)[:, :, None], [[0.0, 1.0]], "reward has shape"),
    ],
)
def test_a_matrix_that_is_none_is_refused(matrix, reward, words):
    env = WithMatrix()
    env.get_transition_matrix = lambda: matrix
    env.initial_state_distrib = (1.0, 0.0)
    with pytest.raises(InvalidInputError, match=words):
        from_gymnasium(env, 3, np.zeros((2, 1)), 1.0, reward=reward)


def test_an_id_takes_the_settings_of_its_world():
    env = gymnasium.make("omdpd/Grid-v0", budget=0.2, horizon=15)
    assert env.unwrapped.horizon == 15
    assert env.reset(seed=0)[1]["budget"] == pytest.approx([0.2])
    with pytest.raises(InvalidInputError, match=r"the world grid:.*budgets"):
        gymnasium.make("omdpd/Grid-v0", budgets=0.2)
    with pytest.raises(InvalidInputError, match="budget is given beside a CMDP"):
        CMDPEnv(streaming.make(), budget=1.0)
