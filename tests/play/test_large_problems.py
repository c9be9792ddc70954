"""A problem that is held as lists and views plays as one that is held as tables."""

import numpy as np
import pytest

from omdpd import CMDP, ProximalOMDPD, Uniform, run
from omdpd.natures import NATURES
from omdpd.play.simulate import play_judged
from omdpd.worlds import WORLDS


@pytest.fixture
def as_large(monkeypatch):
    """Make every problem large from now on: views of one step, laws rolled out as lists."""

    def switch():
        monkeypatch.setattr("omdpd.problem.arrays.MAX_REPEATED", 8)
        monkeypatch.setattr("omdpd.play.simulate.MAX_TABLE", 0)

    return switch


@pytest.mark.parametrize("nature", ["fixed", "noisy", "hostile", "pool"])
def test_a_run_is_the_same_run(as_large, nature):
    learner = ProximalOMDPD.cautious()
    small = run(WORLDS["mars_rover"](map="4x4"), learner, nature, n_episodes=12, seed=3)
    as_large()
    rover = WORLDS["mars_rover"](map="4x4")
    assert rover.reward.strides[0] == rover.excess.strides[1] == 0
    large = run(rover, learner, nature, n_episodes=12, seed=3)
    assert np.allclose(large.values, small.values, rtol=0.0, atol=1e-10)
    assert np.allclose(large.excess, small.excess, rtol=0.0, atol=1e-10)
    assert large.comparator.value == pytest.approx(small.comparator.value, abs=1e-8)
    assert large.scores.regret == pytest.approx(small.scores.regret, abs=1e-6)


def test_an_episode_shows_the_same_and_is_judged_the_same(as_large):
    queue = WORLDS["queue"]()
    policy = np.random.default_rng(1).dirichlet(np.ones(6), (10, 6))
    occupancy = np.random.default_rng(2).random((10, 6, 6))
    nature = NATURES["noisy"](queue, 0)
    episode = (queue, nature.draw(0, occupancy), policy, occupancy, "bandit")
    seen, judged = play_judged(*episode, np.random.default_rng(5))
    as_large()
    again, same = play_judged(*episode, np.random.default_rng(5))
    assert np.array_equal(seen.trajectory.states, again.trajectory.states)
    assert np.array_equal(seen.trajectory.actions, again.trajectory.actions)
    assert np.array_equal(seen.rewards, again.rewards)
    assert np.array_equal(seen.costs, again.costs)
    assert same.value == pytest.approx(judged.value, abs=1e-13)
    assert np.allclose(same.excess, judged.excess, rtol=0.0, atol=1e-13)


def test_thousands_of_states_are_played_without_a_table_of_them():
    line = CMDP.from_functions(
        (30, 6000, 2), lambda s, a: [(0.9, min(s + 2 * a, 5999)), (0.1, max(s - 1, 0))],
        lambda s, a: s / 5999, lambda s, a: float(a), 20.0, np.eye(1, 6000, 3000)[0],
    )  # fmt: skip
    history = run(line, Uniform(), "noisy", n_episodes=3)
    assert history.comparator.value > history.values.max()
    assert history.excess.max() < 0.0
    assert "_table" not in vars(line.laws)
