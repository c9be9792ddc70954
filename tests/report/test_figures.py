import numpy as np
import pytest
from matplotlib import pyplot as plt

from omdpd.report.curves import Curves, band
from omdpd.report.figures import STYLES, draw, save

EPISODES = np.arange(1.0, 401.0)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def curves(learner, nature, power=0.5, regret=True):
    runs = np.stack([scale * EPISODES**power for scale in (1.0, 1.5, 2.0)])
    return Curves(learner, nature, band(EPISODES, runs), band(EPISODES, 2.0 * runs) if regret else None)


def test_a_band_is_the_mean_with_its_exponent_and_encloses_it():
    made = band(EPISODES, np.stack([np.sqrt(EPISODES), 3.0 * np.sqrt(EPISODES)]))
    assert made.exponent == pytest.approx(0.5)
    assert made.n_runs == 2
    assert made.episodes[0] == 1.0
    assert made.episodes[-1] == 400.0
    assert np.allclose(made.mean, 2.0 * np.sqrt(made.episodes))
    assert np.all(made.low <= made.mean)
    assert np.all(made.mean <= made.high)


def test_a_long_curve_is_thinned_and_keeps_its_ends():
    k = np.arange(1.0, 5001.0)
    made = band(k, k[None])
    assert len(made.episodes) <= 300
    assert (made.mean[0], made.mean[-1]) == (1.0, 5000.0)


def test_a_curve_that_ends_below_zero_has_no_exponent():
    assert band(EPISODES, -EPISODES[None]).exponent is None


def test_every_nature_has_a_row_with_violation_left_and_regret_right():
    figure = draw([curves("A", "fixed"), curves("B", "fixed"), curves("A", "pool")], "a title")
    panels = figure.axes
    assert len(panels) == 4
    assert [p.get_title().split(":")[0] for p in panels] == ["fixed", "fixed", "pool", "pool"]
    assert "violation" in panels[0].get_title()
    assert "regret" in panels[1].get_title()


def test_the_legend_names_learners_exponents_and_the_square_root():
    figure = draw([curves("Fast", "fixed", 0.5), curves("Linear", "fixed", 1.0)], "")
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert any("Fast" in text and "0.50" in text for text in texts)
    assert any("Linear" in text and "1.00" in text for text in texts)
    assert any("sqrt" in text for text in texts)


def test_lines_show_the_numbers_they_were_given():
    given = curves("A", "fixed")
    line = draw([given], "").axes[0].get_lines()[0]
    assert np.array_equal(line.get_ydata(), given.violation.mean)
    assert np.array_equal(line.get_xdata(), given.violation.episodes)


def test_learners_can_be_told_apart_without_colour():
    looks = [(line, marker) for _, line, marker in STYLES]
    assert len(set(looks)) == len(STYLES)
    names = [f"L{i}" for i in range(len(STYLES))]
    lines = draw([curves(name, "fixed") for name in names], "").axes[0].get_lines()[: len(names)]
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == len(names)


def test_where_nobody_can_be_safe_the_figure_says_so_and_draws_the_floor():
    figure = draw([curves("A", "independent", 1.0, regret=False)], "", {"independent": 0.146})
    left, right = figure.axes
    assert any("0.146" in text.get_text() for text in left.get_legend().get_texts())
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
    picture = plt.imread(tmp_path / "figure.png")
    assert picture.shape[0] > 200
    assert np.unique(picture.reshape(-1, picture.shape[2]), axis=0).shape[0] > 20
