from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread

from omdpd.problem.arrays import InvalidInputError
from omdpd.report.curves import Curves, band
from omdpd.report.figures import STYLES, draw, exponent_text, save, styles_by_name
from omdpd.report.publication import ONE_COLUMN, TWO_COLUMNS, draw_paper, write_paper
from omdpd.report.tables import formatted
from tests.report.test_tables import record

EPISODES = np.arange(1.0, 1601.0)


def curves(learner, nature, power=0.5, regret=True):
    runs = np.stack([scale * EPISODES**power for scale in (1.0, 1.5, 2.0)])
    return Curves(learner, nature, band(EPISODES, runs), band(EPISODES, 2.0 * runs) if regret else None)


def test_a_band_is_the_mean_with_its_exponent_and_encloses_it():
    made = band(EPISODES, np.stack([scale * np.sqrt(EPISODES) for scale in (1.0, 2.0, 3.0)]))
    assert made.growth.exponent == pytest.approx(0.5)
    assert made.n_runs == 3
    assert made.episodes[0] == 1.0
    assert made.episodes[-1] == 1600.0
    assert np.allclose(made.mean, 2.0 * np.sqrt(made.episodes))
    assert np.all(made.low < made.mean)
    assert np.all(made.mean < made.high)


def test_a_long_curve_is_thinned_and_keeps_its_ends():
    k = np.arange(1.0, 5001.0)
    made = band(k, k[None])
    assert len(made.episodes) <= 300 + 2
    assert (made.mean[0], made.mean[-1]) == (1.0, 5000.0)


def test_a_curve_that_ends_below_zero_has_no_exponent():
    assert band(EPISODES, -EPISODES[None]).growth.exponent is None


def test_every_nature_has_a_row_with_a_ranking_violation_and_regret():
    figure = draw([curves("A", "fixed"), curves("B", "fixed"), curves("A", "pool")], "a title")
    panels = figure.axes
    assert len(panels) == 6
    assert [p.get_title(loc="left").split(":")[0] for p in panels[::3]] == ["fixed", "pool"]
    assert "violation" in panels[1].get_title()
    assert "regret" in panels[2].get_title()


def test_the_ranking_puts_the_least_violation_first_and_says_its_regret():
    figure = draw([curves("Linear", "fixed", 1.0), curves("Fast", "fixed", 0.5)], "")
    ranking = figure.axes[0]
    names = ranking.get_yticklabels()
    assert [name.get_text() for name in names] == ["Fast", "Linear"]
    assert [text.get_text() for text in ranking.texts if text.get_fontweight() == "bold"] == ["60"]
    texts = [text.get_text() for text in ranking.texts]
    assert texts[:8] == ["60", "$K^{0.50}$", "120", "$K^{0.50}$", "2400", "$K^{1.00}$", "4800", "$K^{1.00}$"]


def test_learners_are_named_once_in_a_row_and_there_is_no_legend():
    figure = draw([curves("A", "fixed"), curves("B", "fixed")], "")
    assert all(axes.get_legend() is None for axes in figure.axes)


def test_lines_show_the_numbers_they_were_given():
    given = curves("A", "fixed")
    line = draw([given], "").axes[1].get_lines()[0]
    assert np.array_equal(line.get_ydata(), given.violation.mean)
    assert np.array_equal(line.get_xdata(), given.violation.episodes)


@pytest.mark.parametrize(
    ("spread", "middle", "n_lines", "ends"),
    [("interval", 1.5, 1, None), ("quantiles", 1.5, 1, (1.1, 1.9)), ("seeds", 1.5, 4, None)],
)
def test_what_stands_around_a_mean_can_be_chosen(spread, middle, n_lines, ends):
    left = draw([curves("A", "fixed")], "", spread=spread).axes[1]
    own = [line for line in left.get_lines() if line.get_color() == STYLES[0][0] and len(line.get_xdata()) > 2]
    assert len(own) == n_lines
    assert own[-1].get_ydata()[-1] == pytest.approx(middle * 40.0)
    if spread == "seeds":
        assert [line.get_ydata()[-1] for line in own[:3]] == pytest.approx([40.0, 60.0, 80.0])
        assert not left.collections
    if ends is not None:
        (area,) = left.collections
        heights = area.get_paths()[0].vertices[:, 1]
        assert heights.max() == pytest.approx(ends[1] * 40.0)


def test_an_unknown_spread_is_refused_with_those_there_are():
    with pytest.raises(InvalidInputError, match="no spread 'bogus'; there are interval, quantiles, seeds"):
        draw([curves("A", "fixed")], "", spread="bogus")


def test_learners_can_be_told_apart_without_colour():
    looks = [(line, marker) for _, line, marker in STYLES]
    assert len(set(looks)) == len(STYLES)
    names = [f"L{i}" for i in range(len(STYLES))]
    lines = draw([curves(name, "fixed") for name in names], "").axes[1].get_lines()[: len(names)]
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == len(names)


def test_no_two_learners_of_many_look_alike_in_a_figure_or_in_greyscale():
    looks = list(styles_by_name([f"L{i}" for i in range(64)]).values())
    assert looks[: len(STYLES)] == list(STYLES)
    assert len({(colour, marker) for colour, _, marker in looks}) == 64
    assert len({(line, marker) for _, line, marker in looks[:32]}) == 32


def test_whoever_learns_nothing_is_never_set_in_bold():
    shown = [
        curves("Uniform", "fixed", 0.1),
        curves("Oracle", "fixed", 0.2),
        curves("A", "fixed"),
        curves("B", "fixed", 0.9),
    ]
    ranking = draw(shown, "").axes[0]
    assert {text.get_text() for text in ranking.texts if text.get_fontweight() == "bold"} == {"60"}
    assert not [name for name in ranking.get_yticklabels() if name.get_fontweight() == "bold"]
    alone = draw([curves("Uniform", "fixed")], "").axes[0]
    assert all(name.get_fontweight() == "normal" for name in alone.get_yticklabels())


def test_where_nobody_can_be_safe_the_figure_says_so_and_draws_the_floor():
    figure = draw([curves("A", "independent", 1.0, regret=False)], "", {"independent": 0.146})
    _, left, right = figure.axes
    assert any("0.146" in text.get_text() for text in left.texts)
    assert any("No policy is safe" in text.get_text() for text in right.texts)


def test_three_files_are_written_and_the_same_figure_gives_the_same_bytes(tmp_path):
    contents = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        files = save(draw([curves("A", "fixed")], "title"), folder)
        assert [file.name for file in files] == ["figure.png", "figure.svg", "figure.pdf"]
        contents.append([file.read_bytes() for file in files])
    png, svg, pdf = contents[0]
    assert png.startswith(b"\x89PNG")
    assert b"<svg" in svg
    assert pdf.startswith(b"%PDF")
    assert contents[0] == contents[1]


def test_a_figure_is_not_blank(tmp_path):
    save(draw([curves("A", "fixed")], "title"), tmp_path)
    picture = imread(tmp_path / "figure.png")
    assert picture.shape[0] > 200
    assert np.unique(picture.reshape(-1, picture.shape[2]), axis=0).shape[0] > 20


@pytest.mark.parametrize("width", [ONE_COLUMN, TWO_COLUMNS])
def test_a_figure_for_a_paper_has_the_width_of_its_columns_and_one_legend(width):
    figure = draw_paper([curves("A", n) for n in ("fixed", "noisy", "pool")] + [curves("B_1", "fixed")], width)
    assert figure.get_size_inches()[0] == width
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["A", "B_1"]
    assert all(axes.get_legend() is None for axes in figure.axes)
    assert figure.axes[0].title.get_fontfamily() == ["STIXGeneral"]


def test_the_table_of_a_paper_stands_beside(tmp_path):
    given = [curves("B_1", "fixed"), curves("A", "independent", regret=False)]
    records = [record(learner="B_1", nature="fixed"), record(learner="A", nature="independent", regret=None)]
    names = {file.name for file in write_paper(given, records, tmp_path)}
    assert {"paper-one.pdf", "paper-two.pdf", "exponents.tex"} <= names
    assert (tmp_path / "exponents.tex").read_text() == formatted(records, "latex")


def test_a_curve_without_an_exponent_leaves_its_place_empty_and_columns_have_headings():
    falling = curves("A", "fixed")
    falling = replace(falling, regret=band(EPISODES, np.tile(-EPISODES, (3, 1))))
    assert exponent_text(falling.regret) == ""
    figure = draw([falling], "t")
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "-" not in texts
    assert texts.count("grows") == 1
