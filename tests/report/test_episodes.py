"""Histories drawn episode by episode show their own numbers."""

import numpy as np
import pytest

from omdpd import ProximalOMDPD, Uniform, plot, run
from omdpd.problem.arrays import InvalidInputError
from omdpd.worlds import WORLDS


@pytest.fixture(scope="module")
def histories():
    world = WORLDS["inventory"]()  # costs and rewards in units of its own
    learners = {"a": ProximalOMDPD.standard(), "b": Uniform()}
    return [run(world, learner, "noisy", 8, seed=0, label=name) for name, learner in learners.items()]


def test_each_episode_is_drawn_beside_its_budget_and_the_best_safe_policy(histories):
    left, right = plot(histories, by="episode").axes
    for place, history in enumerate(histories):
        assert np.array_equal(left.get_lines()[place].get_ydata(), history.excess.max(axis=1))
        assert np.array_equal(right.get_lines()[place].get_ydata(), history.values)
    assert left.get_lines()[2].get_ydata()[0] == 0.0
    regret = histories[0].regret
    assert 8 * right.get_lines()[2].get_ydata()[0] == pytest.approx(regret[-1] + histories[0].values.sum())
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["a", "b", "best safe policy"]


def test_a_figure_is_drawn_by_sums_or_by_episodes(histories):
    with pytest.raises(InvalidInputError, match="by is 'step', but must be 'sum' or 'episode'"):
        plot(histories, by="step")
