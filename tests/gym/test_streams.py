"""Actions and the environment are drawn apart: what is learnt and what is evaluated follows nobody's luck."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from omdpd import ProximalOMDPD, Uniform
from omdpd.gym import Agent, Task, learn, learn_by_context
from omdpd.gym.env import CMDPEnv
from omdpd.gym.learned import Learned
from omdpd.play.policy import Policy
from omdpd.report.statistics import half_width
from omdpd.worlds import WORLDS


class Coin(gymnasium.Env):
    """Tosses its own coin at every reset and step, and writes down actions beside tosses."""

    observation_space, action_space = Discrete(2), Discrete(2)

    def __init__(self, at_reset, per_step):
        self.at_reset, self.per_step, self.seen = at_reset, per_step, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.np_random.random(self.at_reset)
        return 0, {}

    def step(self, action):
        toss = self.np_random.random(self.per_step)[-1]
        self.seen.append((action, toss))
        return int(toss < 0.5), float(action), False, False, {"cost": float(action)}


def largest_correlation(seen):
    """Of an action with the toss of its step, or one of three steps around."""
    actions, tosses = np.array(seen).T
    return max(abs(np.corrcoef(actions[3:-3], tosses[3 + lag : len(tosses) - 3 + lag])[0, 1]) for lag in range(-3, 4))


@pytest.mark.parametrize(("at_reset", "per_step"), [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2)])
def test_actions_do_not_follow_the_environments_luck(at_reset, per_step):
    env = Coin(at_reset, per_step)
    task = Task(env, 10, 5.0)
    learned = learn(task, Uniform(), 300, seed=7)
    learnt, env.seen = env.seen, []
    learned.evaluate(n_episodes=300, seed=7)
    evaluated, env.seen = env.seen, []
    learn_by_context(task, Uniform(), 300, lambda observation: 0, 1, seed=7)
    # 3000 pairs: a correlation has a standard deviation of .018, and fourteen lags of two kinds are looked at
    assert max(map(largest_correlation, (learnt, evaluated, env.seen))) < 0.08
    env.seen = []
    Agent(env, budget=5.0, horizon=100)
    assert largest_correlation(env.seen) < 0.2  # 500 pairs


def test_what_is_evaluated_has_other_luck_than_what_was_learnt_from():
    env = Coin(1, 1)
    learned = learn(Task(env, 10, 5.0), Uniform(), 20, seed=3)
    learnt, env.seen = env.seen, []
    learned.evaluate(n_episodes=20, seed=3)
    assert not {toss for _, toss in learnt} & {toss for _, toss in env.seen}


@pytest.mark.parametrize("name", ["grid", "intrusion", "mars_rover", "streaming"])
def test_intervals_of_evaluate_hold_the_exact_value_in_nineteen_of_twenty(name):
    cmdp, seeds = WORLDS[name](), 60
    H, _, A = cmdp.shape
    policy = Policy(0.8 * np.asarray(cmdp.solve().policy) + 0.2 / A)
    exact, none = policy.evaluate(cmdp), np.zeros(0)
    low, high = cmdp.reward_range
    fixed = Learned(policy, none, np.zeros((0, 1)), none, exact.budget)
    task = Task(CMDPEnv(cmdp), H, exact.budget, reward_range=(min(low, 0), max(high, 0)), cost_scale=1e3)
    played = [fixed.evaluate(task, 100, seed) for seed in range(seeds)]
    rewards, costs = [each.rewards for each in played], [each.costs[:, 0] for each in played]
    for truth, values in [(exact.value, rewards), (exact.costs[0], costs)]:
        within = [abs(each.mean() - truth) <= half_width(each) + 1e-9 for each in values]
        # 60 tosses of .95: fewer than 50 come once in 2000
        assert sum(within) >= 50
        assert np.mean(values) == pytest.approx(truth, abs=4.0 * np.std(values) / np.sqrt(100 * seeds) + 1e-9)


def test_a_checkpoint_changes_no_number(tmp_path):
    without, kept = (
        learn(CMDPEnv("streaming"), ProximalOMDPD.standard(), 8, 10, 5.0, seed=2, cost_scale=2.0, checkpoint=folder)
        for folder in (None, tmp_path)
    )
    assert np.array_equal(without.policy, kept.policy)
    assert np.array_equal(without.rewards, kept.rewards)
