"""The page on strong and weak violation, in a real browser: presets, sliders and sums."""

import pytest
from typer.testing import CliRunner

from omdpd.cli.main import app
from tests.references.browser import Tab


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("demo") / "demo.html"
    result = CliRunner().invoke(app, ["demo", "-o", str(file)])
    assert result.exit_code == 0, result.output
    assert "open it in a browser" in result.output
    return file


def test_the_page_is_one_file_that_asks_for_nothing(page_file):
    text = page_file.read_text()
    assert "src=" not in text
    assert "default-src 'none'" in text


def numbers(page):
    return [page.text_content(f"#{name}") for name in ("strong", "weak", "over", "worst")]


@pytest.mark.whole
def test_presets_and_sliders_move_bars_and_sums(page_file, browser):
    tab = Tab(browser, viewport={"width": 390, "height": 800})
    page = tab.page
    page.goto(page_file.as_uri())
    # Alternating, 40 days: twenty days of +5 and twenty of -5.
    assert numbers(page) == ["100.0", "0.0", "20 of 40", "5.00"]
    assert page.locator("#bars rect").count() == 40
    assert page.locator("#sums polyline").count() == 2
    page.get_by_role("button", name="at the budget").click()
    assert numbers(page) == ["0.0", "0.0", "0 of 40", "0.00"]
    page.get_by_role("button", name="one bad day in ten").click()
    assert numbers(page) == ["45.0", "0.0", "10 of 100", "4.50"]
    page.locator("input[name=good]").fill("0")
    assert numbers(page)[:2] == ["45.0", "45.0"]
    page.get_by_role("button", name="a learner", exact=True).click()
    strong = 3.0 * sum(1.0 / day for day in range(1, 201))
    assert numbers(page)[0] == f"{strong:.1f}"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not tab.faults
    assert tab.asked == [page_file.as_uri()]
    tab.context.close()
