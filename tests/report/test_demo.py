"""The page on strong and weak violation, in a real browser: presets, sliders and sums."""

import pytest
from typer.testing import CliRunner

from omdpd.cli.main import app
from omdpd.problem.arrays import InvalidInputError
from tests.references.browser import Tab


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("demo") / "demo.html"
    result = CliRunner().invoke(app, ["demo", "-o", str(file)])
    assert result.exit_code == 0, result.output
    assert "open it in a browser" in result.output
    other = file.with_name("other.html")
    assert CliRunner().invoke(app, ["demo", str(other)]).exit_code == 0
    assert other.read_bytes() == file.read_bytes()
    return file


def test_two_names_are_refused_and_nothing_is_written(tmp_path):
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    result = CliRunner().invoke(app, ["demo", "-o", str(first), str(second)])
    assert isinstance(result.exception, InvalidInputError)
    assert str(first) in str(result.exception)
    assert str(second) in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_the_page_is_one_file_that_asks_for_nothing(page_file):
    text = page_file.read_text()
    assert "src=" not in text
    assert "default-src 'none'" in text


# Words of the first picture that lie over a bar, or are small.
CLEAR = """() => [...document.querySelectorAll("#bars text")].filter(text => {
  const a = text.getBoundingClientRect();
  return a.height < 10.6 || [...document.querySelectorAll("#bars rect")].some(bar => {
    const b = bar.getBoundingClientRect();
    return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  });
}).map(text => text.textContent)"""


REFERENCE = "#sums polyline:last-child"


def heights(page):
    """The weak sum of every day, read off its line: day 200 of the strong one that never settles is at 300."""
    lines = [page.get_attribute(f"#sums polyline >> nth={which}", "points") for which in (0, 1)]
    zero, top = (float(page.get_attribute(f"#sums line >> nth={level}", "y1")) for level in (0, 1))
    assert len(lines[0].split()) == 200
    return [300.0 * (zero - float(point.split(",")[1])) / (zero - top) for point in lines[1].split()]


def numbers(page):
    return [page.text_content(f"#{name}") for name in ("strong", "weak", "over", "worst")]


@pytest.mark.whole
def test_presets_and_sliders_move_bars_and_sums(page_file, browser):
    tab = Tab(browser, viewport={"width": 390, "height": 800})
    page = tab.page
    page.goto(page_file.as_uri())
    # It opens on nothing that solves a question: twenty days of +3 and twenty of -1.
    assert numbers(page) == ["60.0", "40.0", "20 of 40", "3.00"]
    assert "hide 33 %" in page.text_content("#said")
    assert page.locator("#bars rect").count() == 40
    assert page.locator("#sums polyline").count() == 3  # and the reference
    # No number and no word of a picture lies over a bar, and none is smaller than 8 pt.
    assert page.evaluate(CLEAR) == []
    page.get_by_role("button", name="alternating").click()
    assert numbers(page) == ["100.0", "0.0", "20 of 40", "5.00"]
    assert page.text_content("#said") == "Weak violation is zero, although 20 days are over budget."
    page.get_by_role("button", name="at the budget").click()
    assert numbers(page) == ["0.0", "0.0", "0 of 40", "0.00"]
    page.get_by_role("button", name="one bad day in ten").click()
    assert numbers(page) == ["45.0", "0.0", "10 of 100", "4.50"]
    page.locator("input[name=good]").fill("0")
    assert numbers(page)[:2] == ["45.0", "45.0"]
    # Two learners that swing: strong violation tells them apart, on one scale; the weak one moves and ends small.
    page.get_by_role("button", name="a learner that settles").click()
    strong = 3.0 * sum(day**-0.5 for day in range(1, 201, 2))
    weak = strong - 3.0 * sum(day**-0.5 for day in range(2, 201, 2))
    assert numbers(page)[:2] == [f"{strong:.1f}", f"{weak:.1f}"] == ["41.1", "1.7"]
    top, dotted = page.text_content("#sums text:nth-of-type(2)"), page.get_attribute(REFERENCE, "points")
    settled = heights(page)
    page.get_by_role("button", name="a learner that never settles").click()
    assert numbers(page)[:2] == ["300.0", "0.0"]
    assert page.text_content("#sums text:nth-of-type(2)") == top == "300"
    assert page.get_attribute(REFERENCE, "points") == dotted
    swinging = heights(page)
    assert swinging[::2] == pytest.approx([3.0] * 100)
    assert swinging[1::2] == pytest.approx([0.0] * 100)
    assert 1.0 < min(settled[::2]) <= max(settled) == pytest.approx(3.0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not tab.faults
    assert tab.asked == [page_file.as_uri()]
    tab.context.close()


@pytest.mark.whole
def test_a_projector_shows_sliders_in_one_row_and_the_numbers_with_both_pictures(page_file, browser):
    tab = Tab(browser, viewport={"width": 1280, "height": 900})
    tab.page.goto(page_file.as_uri())
    sliders = [dial.bounding_box() for dial in tab.page.locator("input").all()]
    assert len({round(box["y"]) for box in sliders}) == 1
    ends = [tab.page.locator(f"#{name}").bounding_box() for name in ("strong", "worst", "said", "bars", "sums")]
    assert [box["y"] for box in ends] == sorted(box["y"] for box in ends)
    assert all(box["y"] + box["height"] <= 900 for box in ends)
    tab.context.close()
