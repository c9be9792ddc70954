"""Histories drawn episode by episode show their own numbers."""

import numpy as np
import pytest

from omdpd import CMDP, Policy, ProximalOMDPD, Uniform, plot, run
from omdpd.problem.arrays import InvalidInputError
from omdpd.report.episodes import UNSAFE
from omdpd.report.figures import STYLES
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
    cmdp = CMDP.from_arrays(p, [[0, 1]] * 2, [[0, 1]] * 2, budget, horizon=10, allowed=allowed)
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


def test_seeds_of_one_label_are_one_mean_with_its_interval():
    world = WORLDS["inventory"]()
    seeds = [run(world, ProximalOMDPD.standard(), "noisy", 8, seed=seed, label="a") for seed in range(3)]
    left, right = plot(seeds, by="episode").axes
    mean, budget = left.get_lines()
    assert np.allclose(mean.get_ydata(), np.mean([each.excess.max(axis=1) for each in seeds], axis=0), rtol=1e-12)
    assert not np.any(budget.get_ydata())
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["a", "best safe policy"]
    runs = plot(seeds, by="episode", spread="seeds").axes[1].get_lines()
    assert [line.get_linewidth() for line in runs[:3]] == [0.5] * 3
    assert np.array_equal(runs[2].get_ydata(), seeds[2].values)
    with pytest.raises(InvalidInputError, match="different lengths"):
        plot([*seeds, run(world, ProximalOMDPD.standard(), "noisy", 7, label="a")], by="episode")


def test_the_budget_has_a_colour_that_no_curve_has():
    assert UNSAFE not in {colour for colour, _, _ in STYLES}


def test_a_policy_is_drawn_where_it_comes_on_its_map_or_by_state():
    grid, stream = WORLDS["grid"](), WORLDS["streaming"]()
    figure = plot(grid.solve().policy, world=grid)
    assert figure.axes[0].get_title() == "step 0"
    assert figure.get_suptitle().startswith("grid: earns 4.42394, costs 0.5 of 0.5")
    for drawn in (plot(stream.solve().policy, world=stream), plot(stream.solve().policy)):
        shown = [image.get_array() for axes in drawn.axes for image in axes.images]
        assert np.isnan(np.ma.filled(shown[-1].astype(float), np.nan)).any()
    everywhere = np.full(stream.shape, 1.0 / stream.shape[2])
    assert not np.isnan(np.ma.filled(plot(Policy(everywhere)).axes[0].images[0].get_array(), np.nan)).any()


def test_a_curve_is_drawn_into_a_file_from_both_doors(tmp_path):
    curve = WORLDS["grid"]().curve()
    for draw in (lambda file: curve.plot(file), lambda file: plot(curve, file)):
        for kind in ("png", "svg", "pdf"):
            draw(tmp_path / f"curve.{kind}")
            assert (tmp_path / f"curve.{kind}").stat().st_size > 1000
            (tmp_path / f"curve.{kind}").unlink()
        with pytest.raises(InvalidInputError, match="should end in one of"):
            draw(tmp_path / "curve.txt")
