"""README and the pages are easy to read: short sentences, common words, and not too many of them."""

import importlib
import inspect

import pytest
from typer.main import get_command

import omdpd
from omdpd.cli.main import app
from tools import prose

PAGES = prose.pages()
PUBLIC = ("omdpd", *(f"omdpd.{room}" for room in omdpd._ROOMS))


def single_faults(text):
    """What is wrong with single sentences and words: a short text has no mean."""
    return [fault for fault in prose.faults_of(text) if not fault.startswith("its sentences")]


def documented():
    """Every public class and function with its name, and what is public of each class."""
    for module in map(importlib.import_module, PUBLIC):
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing
                parts = vars(thing).items() if inspect.isclass(thing) else ()
                yield from ((f"{module.__name__}.{name}.{part}", made) for part, made in parts if part[0] != "_")


def helped(command, name="omdpd"):
    """Every command with its help and that of its options."""
    yield name, [command.help, *(getattr(option, "help", None) for option in command.params)]
    for word, each in getattr(command, "commands", {}).items():
        yield from helped(each, f"{name} {word}")


DOCSTRINGS = {name: prose.docstring(inspect.getdoc(thing) or "") for name, thing in documented()}
ERRORS = [text for file in (prose.ROOT / "src").rglob("*.py") for text in prose.errors(file.read_text())]
HELP = {name: [text for text in texts if text] for name, texts in helped(get_command(app))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(prose.ROOT)))
def test_a_page_has_short_sentences_of_common_words(page):
    assert not prose.faults(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(prose.ROOT)))
def test_code_on_a_page_is_not_cut_off(page):
    assert not [line for line in prose.code(page.read_text()) if len(line) > prose.COLUMN]


def test_code_of_a_page_is_what_is_shown_as_code():
    text = "# Title\n\n```python\na = 1\n```\n\nText.\n\n```{code-cell}\nb = 2\nc = 3\n```\n\n```{raw} html\n<p>\n```\n"
    assert prose.code(text) == ["a = 1", "b = 2", "c = 3"]


def test_public_docstrings_have_short_sentences_of_common_words():
    found = {name: single_faults(text) for name, text in DOCSTRINGS.items() if name != "omdpd.Session"}
    assert not {name: faults for name, faults in found.items() if faults}


def test_the_help_of_every_command_has_short_sentences_of_common_words():
    found = {name: [fault for text in texts for fault in single_faults(text)] for name, texts in HELP.items()}
    assert not {name: faults for name, faults in found.items() if faults}


def test_errors_are_short_sentences_of_common_words():
    assert not {text: faults for text in ERRORS if (faults := single_faults(text))}


def test_docstrings_help_and_errors_are_short_on_average():
    for texts in (DOCSTRINGS.values(), [text for each in HELP.values() for text in each], ERRORS):
        found = [len(words) for text in texts for words in prose.prose(text).sentences]
        assert len(found) > 100
        assert sum(found) / len(found) <= prose.MEAN


def test_of_a_docstring_its_sentences_are_read():
    text = """Say one thing.

        x = y + z

    Parameters
    ----------
    first, second
        What the two are.

    >>> 1
    1
    """
    kept = prose.docstring(inspect.cleandoc(text))
    assert [" ".join(words) for words in prose.prose(kept).sentences] == ["Say one thing.", "What the two are."]


def test_of_an_error_its_sentence_is_read():
    assert list(prose.errors('raise ValueError(f"{x} is wrong: " "say y")')) == ["NAME is wrong: say y"]


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
