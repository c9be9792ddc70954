"""`Agent` is `gym.learn` with familiar verbs: same numbers, ranges found by itself, a baseline without a limit."""

import gymnasium
import numpy as np
import pytest

import omdpd
from omdpd.gym import Agent, Bins, Task, learn
from omdpd.problem.arrays import InvalidInputError


class Priced(gymnasium.Env):
    """Two states; action 1 earns 7, or loses 3 in state 1, and costs 20."""

    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2, start=4)

    def __init__(self, reports_cost=True):
        self.reports_cost = reports_cost

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.steps = 0, 0
        return 0, {}

    def step(self, action):
        reward = 0.0 if action == 4 else (7.0 if self.state == 0 else -3.0)
        self.state, self.steps = int(self.np_random.integers(2)), self.steps + 1
        info = {"cost": 20.0 * (action == 5)} if self.reports_cost else {}
        return self.state, reward, self.steps == 4, False, info


def test_an_agent_learns_what_learn_learns():
    agent = Agent(Priced(), budget=30.0, horizon=4).learn(30, seed=3)
    same = learn(
        Priced(), agent.learner, 30, 4, 30.0, seed=3,
        reward_range=agent.task.reward_range, cost_scale=agent.task.scale,
    )  # fmt: skip
    assert np.array_equal(agent.learned.policy, same.policy)
    assert np.array_equal(agent.learned.rewards, same.rewards)


def test_ranges_are_those_of_a_few_episodes():
    task = Agent(Priced(), budget=30.0, horizon=4).task
    assert task.reward_range == pytest.approx((-3.0, 7.0))
    assert task.scale == pytest.approx([20.0 + 30.0 / 5])  # one step is added where the first state is not known
    given = Agent(Priced(), budget=30.0, horizon=4, reward_range=(-10.0, 10.0), cost_scale=50.0).task
    assert given.reward_range == (-10.0, 10.0)
    assert list(given.scale) == [50.0]


def test_a_published_table_gives_rewards_that_random_play_never_finds():
    taxi = Agent("Taxi-v4", horizon=3, budget=2.0, cost=lambda s, a, t: float(a < 4)).task
    assert taxi.reward_range == (-10.0, 20.0)


@pytest.mark.parametrize("reports_cost", [True, False])
def test_without_a_budget_reward_alone_counts(reports_cost):
    free = Agent(Priced(reports_cost), budget=None, horizon=4).learn(200)
    assert free.predict(0, 1, deterministic=True) == 5
    assert free.predict(1, 1, deterministic=True) == 4
    assert "no limit" in str(free.evaluate(5))
    assert "budget none" in repr(free)


def test_a_budget_is_kept_and_a_baseline_is_not_held_to_it():
    limited = Agent(Priced(), budget=10.0, horizon=4).learn(400).evaluate(300)
    free = Agent(Priced(), budget=None, horizon=4).learn(400).evaluate(300)
    assert limited.costs.mean() < 14.0 < 35.0 < free.costs.mean()
    assert limited.rewards.mean() < free.rewards.mean()


def test_an_agent_that_was_saved_is_the_same_agent(tmp_path):
    for budget in (30.0, None):
        agent = Agent(Priced(), budget=budget, horizon=4).learn(20)
        again = Agent.load(agent.save(tmp_path / "agent.npz"), Priced())
        assert np.array_equal(again.evaluate(10).rewards, agent.evaluate(10).rewards)
        assert repr(again) == repr(agent)


def test_actions_are_numbered_as_the_environment_does():
    agent = Agent(Priced(), budget=30.0, horizon=4).learn(10)
    assert agent.predict(1, step=2, rng=np.random.default_rng(0)) in (4, 5)


def test_continuous_observations_are_put_into_cells():
    cells = Bins.even(low=[-2.4, -1.0, -0.2, -1.0], high=[2.4, 1.0, 0.2, 1.0], counts=[1, 1, 3, 3])
    agent = Agent(
        "CartPole-v1", 10, 6, state_of=cells, cost=lambda s, a, t: float(a), learner=omdpd.default(stationary=True)
    )
    assert agent.task.sizes == (9, 2)
    assert len(agent.learn(3).learned.rewards) == 3


def test_a_task_says_everything_itself():
    task = Task(Priced(), 4, 30.0, reward_range=(-3.0, 7.0), cost_scale=30.0)
    assert Agent(task).learn(5).task is task


def test_what_is_missing_is_said():
    with pytest.raises(InvalidInputError, match="horizon is missing"):
        Agent(Priced(), budget=1.0)
    with pytest.raises(InvalidInputError, match="call learn first"):
        Agent(Priced(), budget=1.0, horizon=4).predict(0, 0)
    with pytest.raises(InvalidInputError, match="reports no cost"):
        Agent(Priced(reports_cost=False), budget=1.0, horizon=4)


def test_the_default_learner_is_the_standard_one():
    assert omdpd.default() == omdpd.ProximalOMDPD.standard()
    assert omdpd.default(2.0, stationary=True) == omdpd.ProximalOMDPD.standard(z=2.0, stationary=True)
