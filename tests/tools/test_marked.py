"""What stands between markers of a page is found and replaced, and nothing else."""

import pytest

from tools.marked import fill, filled, places

PAGE = """# Title

<!-- numbers: first -->

| a |
|---|

<!-- end -->

Prose with <!-- a comment -->.

<!-- numbers: second one -->
old
<!-- end -->
"""


def test_the_places_of_a_page_are_found_with_what_they_hold():
    assert places(PAGE) == {"first": "| a |\n|---|", "second one": "old"}
    assert places("no markers") == {}


def test_a_named_place_is_replaced_and_the_others_stay():
    text = filled(PAGE, {"second one": "new\n"})
    assert places(text) == {"first": "| a |\n|---|", "second one": "new"}
    assert text.startswith("# Title\n")
    assert "Prose with <!-- a comment -->." in text


def test_filling_twice_is_filling_once(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert fill(page, lambda name: f"numbers of {name}") == 2
    once = page.read_text()
    fill(page, places(once))
    assert page.read_text() == once


def test_a_place_that_is_not_there_cannot_be_filled():
    with pytest.raises(KeyError, match="third"):
        filled(PAGE, {"third": "x"})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<!-- numbers: a -->\nx\n", "without its"),
        ("<!-- numbers: a -->\nx\n<!-- end -->\n<!-- end -->\n", "without its"),
        ("<!-- numbers: a -->\nx\n<!-- end -->\n<!-- numbers: a -->\n<!-- end -->\n", "two places of one name"),
    ],
)
def test_markers_that_do_not_fit_together_are_refused(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        places(text)
