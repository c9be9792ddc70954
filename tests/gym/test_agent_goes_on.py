"""An agent that goes on: more episodes, wider ranges, another budget, a file; and what it says when it cannot."""

import gymnasium
import numpy as np
import pytest

from omdpd import CMDP, Uniform, plot
from omdpd.gym import Agent, Task, plot_learned
from omdpd.gym.env import CMDPEnv
from omdpd.learners import OptPessPrimalDual
from omdpd.problem.arrays import InvalidInputError
from omdpd.worlds import WORLDS
from tests.gym.test_agent import Priced


class Rare(gymnasium.Env):
    """A corridor of eight cells: every step costs a tenth, the end pays 10, and raises at the start of one episode."""

    observation_space, action_space = gymnasium.spaces.Discrete(8), gymnasium.spaces.Discrete(2)

    def __init__(self, breaks_at=None, toll=1.0):
        self.breaks_at, self.toll, self.resets = breaks_at, toll, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets += 1
        if self.resets == self.breaks_at:
            raise RuntimeError("the plug was pulled")
        self.cell = 0
        return 0, {}

    def step(self, action):
        self.cell = self.cell + 1 if action else 0
        over = self.cell == 7
        return self.cell, 10.0 * over - 0.1, over, False, {"cost": self.toll * float(action)}


def test_a_reward_that_no_probe_met_widens_the_range_and_nothing_is_lost():
    agent = Agent(Rare(), budget=7.0, horizon=7, learner=Uniform())
    assert agent.task.reward_range == pytest.approx((-0.1, 0.0))
    agent.learn(400, seed=1)
    assert agent.task.reward_range == pytest.approx((-0.1, 9.9))
    assert len(agent.learned.rewards) == 400
    assert agent.learned.rewards.max() == pytest.approx(9.3)
    # What was told before is told in the new units: nothing earned is 1/100 of the range above its low end.
    assert agent._episodes[0].feedback.rewards.min() == pytest.approx(0.0)
    assert agent._episodes[0].feedback.rewards.max() == pytest.approx(0.01)


def test_the_goal_is_learnt_after_the_range_was_widened():
    agent = Agent(Rare(), budget=7.0, horizon=7).learn(400)
    assert agent.evaluate(50).rewards.mean() > 8.0


def test_a_cost_that_no_probe_met_widens_the_scale():
    env = Rare(toll=0.5)
    agent = Agent(env, budget=2.0, horizon=4)
    before = agent.task.scale.copy()
    env.toll = 30.0
    agent.learn(30, seed=2)
    assert agent.task.scale > before
    assert len(agent.learned.rewards) == 30


@pytest.mark.parametrize("held", [{"reward_range": (-1.0, 0.5)}, {"reward_range": (-1.0, 0.5), "cost_scale": 9.0}])
def test_a_range_that_was_given_is_held_and_what_was_learnt_stays(held):
    agent = Agent(Rare(), budget=7.0, horizon=7, learner=Uniform(), **held)
    with pytest.raises(InvalidInputError, match=r"episode \d+: the reward 9.9 at step 6 does not fit; give a wider"):
        agent.learn(400, seed=1)
    assert 0 < len(agent.learned.rewards) < 400
    assert agent.evaluate(400).rewards.max() == pytest.approx(9.3)  # to play needs no range


def test_what_was_learnt_stays_when_the_environment_breaks():
    env = Rare(breaks_at=5 + 8)  # five resets are probes
    agent = Agent(env, budget=7.0, horizon=7)
    with pytest.raises(
        InvalidInputError, match="episode 8: reset of the environment: it raised RuntimeError: the plug"
    ):
        agent.learn(20)
    assert len(agent.learned.rewards) == 7
    assert len(agent.learn(13).learned.rewards) == 20


def test_to_learn_twice_is_to_learn_on():
    rows = []
    once = Agent(Priced(), budget=30.0, horizon=4).learn(30, callback=rows.append)
    twice = Agent(Priced(), budget=30.0, horizon=4).learn(18).learn(12)
    assert np.array_equal(once.learned.policy, twice.learned.policy)
    assert np.array_equal(once.learned.rewards, twice.learned.rewards)
    assert [row.episode for row in rows] == list(range(1, 31))
    assert [row.reward for row in rows] == once.learned.rewards.tolist()
    counting = Agent(Priced(), budget=30.0, horizon=4, learner=OptPessPrimalDual(room=1.0)).learn(5).learn(5)
    assert len(counting.learned.rewards) == 10


def test_another_budget_is_planned_for_from_what_was_met():
    agent = Agent(Priced(), budget=40.0, horizon=4).learn(300)
    before = np.array(agent.learned.policy)
    tight = agent.with_budget(8.0)
    assert tight.evaluate(300).costs.mean() < 12.0 < 25.0 < agent.evaluate(300).costs.mean()
    assert "of 8" in str(tight.evaluate(5))
    assert tight.budget.tolist() == [8.0]
    assert len(tight.learn(10).learned.rewards) == 310
    assert agent.with_budget(None).budget is None
    assert np.array_equal(agent.learned.policy, before)
    assert agent.budget.tolist() == [40.0]
    with pytest.raises(InvalidInputError, match="there are 2 budgets, but the agent has 1"):
        agent.with_budget([1.0, 2.0])
    with pytest.raises(InvalidInputError, match="the agent knows no cost"):
        Agent(Priced(reports_cost=False), budget=None, horizon=4).with_budget(1.0)


def test_a_budget_is_not_set():
    agent = Agent(Priced(), budget=40.0, horizon=4)
    with pytest.raises(AttributeError, match=r"agent\.with_budget\(0\.3\)"):
        agent.budget = 0.3
    with pytest.raises(AttributeError):
        agent.horizon = 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"budget": 0.3}, r"learnt with budget \[30\.\], not 0\.3: leave budget out, or learn anew"),
        ({"budget": None}, r"learnt with budget \[30\.\], not None"),
        ({"horizon": 3}, "learnt with horizon 4, not 3"),
        ({"reward_range": (0.0, 1.0)}, "learnt with reward_range"),
    ],
)
def test_a_file_is_not_loaded_as_another_agent(tmp_path, settings, words):
    file = Agent(Priced(), budget=30.0, horizon=4).learn(5).save(tmp_path / "agent.npz")
    with pytest.raises(InvalidInputError, match=words):
        Agent.load(file, Priced(), **settings)
    again = Agent.load(file, Priced(), budget=30.0, horizon=4)
    assert again.task.reward_range == pytest.approx((-3.0, 7.0))


def test_a_file_is_loaded_beside_its_own_environment(tmp_path):
    file = Agent(Priced(), budget=30.0, horizon=4).learn(5).save(tmp_path / "agent.npz")
    with pytest.raises(InvalidInputError, match=r"does not fit the environment: the policy is \(4, 2, 2\).*8 states"):
        Agent.load(file, Rare())
    with pytest.raises(InvalidInputError, match=r"load needs the settings.*such as cost=.*reports no cost"):
        Agent.load(file, Priced(reports_cost=False))
    with pytest.raises(InvalidInputError, match=r"learnt with budget \[30\.\], not \[20\.\]"):
        Agent.load(file, Task(Priced(), 4, 20.0))
    loaded = Agent.load(file, Task(Priced(), 4, 30.0))
    with pytest.raises(InvalidInputError, match="no episodes that learn could go on from"):
        loaded.learn(3)
    with pytest.raises(InvalidInputError, match="no episodes that with_budget could go on from"):
        loaded.with_budget(3.0)


@pytest.mark.parametrize("budget", [np.nan, "1", [], np.inf])
def test_a_budget_that_is_none_is_named(budget):
    with pytest.raises(InvalidInputError, match="budget"):
        Agent(Priced(), budget=budget, horizon=4)


def test_a_budget_that_cannot_be_kept_is_said():
    agent = Agent(Priced(), budget=1.0, horizon=4, cost=lambda s, a, t: 1.0)
    with pytest.warns(UserWarning, match="the last 20 episodes cost 4 on average, of a budget of 1: either no policy"):
        agent.learn(60)


def test_our_own_environments_say_their_horizon():
    cmdp = CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.0, 1.0]], 2.0, horizon=3)
    assert Agent(CMDPEnv(cmdp), budget=2.0).task.horizon == 3
    assert Agent(gymnasium.make("omdpd.gym.env:omdpd/Grid-v0"), budget=0.5).task.horizon == 12


def test_what_a_task_takes_an_agent_takes():
    limited = gymnasium.wrappers.TimeLimit(Priced(), 3)
    agent = Agent(limited, budget=30.0, horizon=5, truncation="end").learn(3)
    assert agent.learned.lengths.tolist() == [3, 3, 3]
    cart = Agent(
        "CartPole-v1", 10.0, 6, state_of=lambda seen: int(seen[2] > 0), n_states=2,
        observation_cost=lambda seen, action, then: float(abs(then[0]) > 0.01),
    )  # fmt: skip
    assert cart.task.sizes == (2, 2)
    with pytest.raises(InvalidInputError, match="budget is given beside a Task, which says it itself"):
        Agent(Task(Priced(), 4, 30.0), budget=1.0)


def test_a_deterministic_policy_may_break_its_budget_and_says_so():
    agent = Agent(Priced(), budget=30.0, horizon=4).learn(20)
    with pytest.warns(UserWarning, match="keeps its budget by drawing actions"):
        agent.predict(0, step=0, deterministic=True)
    grid = WORLDS["grid"]()
    policy = Agent("omdpd/Grid-v0", budget=0.5).learn(500).learned.policy
    assert policy.evaluate(grid).safe
    assert policy.greedy().evaluate(grid).costs == pytest.approx([0.92], abs=0.005)  # as the tutorial says


def test_an_action_stays_within_a_mask():
    agent = Agent(Priced(), budget=30.0, horizon=4).learn(5)
    assert {agent.predict(0, 0, action_mask=[0, 1]) for _ in range(20)} == {5}


def test_an_agent_is_drawn_without_a_line_for_no_budget():
    free, limited = Agent(Priced(), budget=None, horizon=4).learn(12), Agent(Priced(), budget=40.0, horizon=4).learn(12)
    names = lambda figure: [text.get_text() for text in figure.axes[1].get_legend().get_texts()]  # noqa: E731
    assert names(free.plot()) == ["one episode", "mean of the last 1"]
    assert names(plot_learned(limited)) == ["one episode", "mean of the last 1", "budget"]
    assert names(limited.learned.plot()) == names(limited.plot()) == names(plot_learned(limited))
    for each in (limited, limited.learned):
        with pytest.raises(InvalidInputError, match="draws itself: call its own plot"):
            plot(each)
    with pytest.raises(InvalidInputError, match="call learn first"):
        plot_learned(Agent(Priced(), budget=None, horizon=4))
