"""Histories drawn episode by episode show their own numbers."""

import numpy as np
import pytest

from omdpd import CMDP, ProximalOMDPD, Uniform, plot, run
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


@pytest.mark.parametrize("budget", [0.2, 5.0, 1000.0])
def test_the_budget_is_in_sight_and_its_words_stand_above_the_curves(tmp_path, budget, recwarn):
    """Far below the budget, around it and far above it."""
    p = np.full((2, 2, 2), 0.5)
    allowed = [[True, True], [True, False]]
    cmdp = CMDP.from_arrays(p, [[0, 1]] * 2, [[0, 1]] * 2, budget, horizon=10, allowed=allowed, rescale=True)
    history = run(cmdp, Uniform(), "noisy", 20, seed=1)
    figure = plot([history], tmp_path / "it.png", by="episode")
    left = figure.axes[0]
    low, high = left.get_ylim()
    assert low <= 0.0 < high
    words = left.texts[0].get_window_extent()
    bottom = left.transData.inverted().transform((words.x0, words.y0))[1]
    assert bottom > max(history.excess.max(), 0.0)
    assert words.y1 <= left.get_window_extent().y1
    assert not [each for each in recwarn if "layout" in str(each.message)]
    assert next(text.get_text() for text in figure.axes[1].get_legend().get_texts()) == "Uniform"
    assert "Uniform" in repr(history)
