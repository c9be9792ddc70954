"""What README and the pages of docs/ name is there: files, folders, modules and what is in them."""

import importlib
import re
from pathlib import Path

import pytest

import omdpd

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "studies").glob("*.md"))]
ROOMS = {path.parent.name for path in (ROOT / "src" / "omdpd").glob("*/__init__.py")}
# Where a path may begin.
STARTS = (ROOT, ROOT / "src", ROOT / "src" / "omdpd")
FOLDERS = ROOMS | {"src", "omdpd", "tests", "benchmarks", "examples", "docs"}


def paths(text):
    """Python files anywhere on a page, and folders of the repository in code."""
    yield from re.findall(r"(?<![\w/*<>.-])(?:\w+/)+\w+\.py\b", text)
    for code in re.findall(r"`([\w/]+/)`", text):
        if code.split("/")[0] in FOLDERS:
            yield code


def names(text):
    """Dotted names: from `omdpd`, from a room, or from a class that `omdpd` exports."""
    yield from re.findall(r"(?<![\w/.-])omdpd(?:\.\w+)+", text)
    for code in re.findall(r"`(\w+(?:\.\w+)+)(?:\([^`]*)?`", text):
        start = code.split(".")[0]
        if start in ROOMS or start in omdpd.__all__:
            yield f"omdpd.{code}"


def found(name):
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            if not hasattr(thing, part):
                return part in getattr(thing, "__annotations__", {})
            thing = getattr(thing, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_folder_that_a_page_names_exists(page):
    missing = {path for path in paths(page.read_text()) if not any((start / path).exists() for start in STARTS)}
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_function_and_class_that_a_page_names_exists(page):
    assert not {name for name in names(page.read_text()) if not found(name)}


def test_every_dotted_name_of_the_map_of_the_paper_exists():
    dotted = re.findall(r"`(\w+(?:\.\w+)+)`", (ROOT / "docs" / "paper-map.md").read_text())
    assert len(dotted) > 20
    assert not [name for name in dotted if not found(f"omdpd.{name}")]


def test_the_search_finds_what_it_should():
    text = "`learners/omdpd.py` and src/omdpd/no.py in `gym/`, `play.loop.play`, `OMDPD.update`, omdpd.nothing, `a.b`"
    assert list(paths(text)) == ["learners/omdpd.py", "src/omdpd/no.py", "gym/"]
    assert list(names(text)) == ["omdpd.nothing", "omdpd.play.loop.play", "omdpd.OMDPD.update"]
    assert [found(name) for name in names(text)] == [False, True, True]
