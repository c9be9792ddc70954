"""README and the pages are easy to read: short sentences, common words, and not too many of them."""

import pytest

from tools import prose

# Pages that are still to be rewritten.
HARD = {"docs/architecture.md", "docs/dials.md", "docs/production.md", "docs/theory.md"}
PAGES = prose.pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(prose.ROOT)))
def test_a_page_has_short_sentences_of_common_words(page):
    if str(page.relative_to(prose.ROOT)) not in HARD:
        assert not prose.faults(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(prose.ROOT)))
def test_code_on_a_page_is_not_cut_off(page):
    if str(page.relative_to(prose.ROOT)) not in HARD | {"docs/known-models.md"}:
        wide = [line for line in prose.code(page.read_text()) if len(line) > prose.COLUMN]
        assert not wide


def test_code_of_a_page_is_what_is_shown_as_code():
    text = "# Title\n\n```python\na = 1\n```\n\nText.\n\n```{code-cell}\nb = 2\nc = 3\n```\n\n```{raw} html\n<p>\n```\n"
    assert prose.code(text) == ["a = 1", "b = 2", "c = 3"]


def test_all_pages_together_are_not_too_long():
    assert sum(prose.prose(page.read_text()).words for page in PAGES) <= prose.IN_ALL


def test_what_is_no_prose_is_left_out():
    text = """---
kernelspec: {name: python3}
---
# A heading of no sentence

One `a b c` two, $x + y$ three. Then [four words in a link](x.md#y)!

| a | table |
> a quotation

```python
code = 1
```

- An item, e.g. this one
- another of 3.5 words
"""
    assert [len(words) for words in prose.prose(text).sentences] == [5, 6, 5, 4]


def test_long_sentences_and_words_to_avoid_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(" ".join(["word"] * 41) + ". That is dear.\n")
    first, second, third = prose.faults(page)
    assert "22.0 words" in first
    assert first.startswith("its sentences")
    assert second.startswith("41 words")
    assert third == "'dear': say expensive"
