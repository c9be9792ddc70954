import numpy as np
import pytest

from omdpd.play.simulate import observe, play_episode
from omdpd.problem.cmdp import Round
from omdpd.problem.setting import BanditFeedback, FullFeedback
from tests.references.instances import forward, random_cmdp, random_policy

H, S, A, I = 4, 3, 2, 2  # noqa: E741


def world():
    return random_cmdp(np.random.default_rng(0), H, S, A, I, budget=0.4)


def test_bandit_feedback_shows_what_was_met_and_nothing_else():
    cmdp = world()
    policy = random_policy(np.random.default_rng(1), H, S, A)
    met = play_episode(cmdp, Round(cmdp.reward, cmdp.excess), policy, "bandit", np.random.default_rng(2))
    assert isinstance(met, BanditFeedback)
    at = (np.arange(H), met.trajectory.states, met.trajectory.actions)
    assert np.array_equal(met.rewards, cmdp.reward[at])
    assert np.array_equal(met.costs, cmdp.excess[(slice(None), *at)])


def test_full_feedback_shows_the_cost_tables_and_the_rewards_met():
    cmdp = world()
    policy = random_policy(np.random.default_rng(1), H, S, A)
    met = play_episode(cmdp, Round(cmdp.reward, cmdp.excess), policy, "full", np.random.default_rng(2))
    assert isinstance(met, FullFeedback)
    assert np.array_equal(met.cost, cmdp.excess)
    assert met.rewards.shape == (H,)


def test_the_luck_of_an_episode_does_not_depend_on_the_policy_or_the_feedback():
    cmdp = world()
    after = []
    for seed in (3, 4):
        for kind in ("bandit", "full"):
            rng = np.random.default_rng(5)
            policy = random_policy(np.random.default_rng(seed), H, S, A)
            play_episode(cmdp, Round(cmdp.reward, cmdp.excess, 0, "two-point", "two-point"), policy, kind, rng)
            after.append(rng.random())
    assert len(set(after)) == 1


@pytest.mark.parametrize("noise", ["exact", "two-point", "beta"])
def test_observations_have_the_right_means_and_range(noise):
    means = np.array([-0.9, -0.25, 0.0, 0.6, 1.0])
    rng = np.random.default_rng(6)
    n = 4000
    drawn = np.array([observe(means, rng.random(5), -1.0, 1.0, noise) for _ in range(n)])
    assert drawn.min() >= -1.0
    assert drawn.max() <= 1.0
    # The variance of a number in [-1, 1] of mean m is at most 1 - m^2: five standard errors.
    assert np.all(np.abs(drawn.mean(axis=0) - means) <= 5.0 * np.sqrt((1.0 - means**2) / n) + 1e-6)


def test_two_point_observations_are_the_ends_of_the_range():
    drawn = observe(np.full(200, 0.3), np.random.default_rng(7).random(200), 0.0, 1.0, "two-point")
    assert set(drawn.tolist()) == {0.0, 1.0}


def test_beta_observations_have_the_stated_variance():
    rng = np.random.default_rng(8)
    drawn = observe(np.full(20_000, 0.3), rng.random(20_000), 0.0, 1.0, "beta")
    assert drawn.var() == pytest.approx(0.3 * 0.7 / 3.0, rel=0.05)


def test_played_frequencies_match_the_occupancy():
    cmdp = world()
    rng = np.random.default_rng(9)
    policy = random_policy(rng, H, S, A)
    n, met = 4000, np.zeros((H, S, A))
    for _ in range(n):
        walk = play_episode(cmdp, Round(cmdp.reward, cmdp.excess), policy, "full", rng).trajectory
        met[np.arange(H), walk.states, walk.actions] += 1.0
    expected = n * forward(policy, cmdp.transition, cmdp.initial)
    chi_square = ((met - expected) ** 2 / np.maximum(expected, 1.0)).sum(axis=(1, 2))
    # Five degrees of freedom a step: mean 5, standard deviation sqrt(10).
    assert chi_square.max() < 30.0
