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


def test_the_map_has_a_line_for_each_of_the_39_references_of_the_paper():
    page = (ROOT / "docs" / "paper-map.md").read_text()
    cited = page[page.index("## What the paper cites") : page.index("## What it does not cite")]
    rows = [line.split("|")[1:-1] for line in cited.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 39
    assert all(len(row) == 3 and row[2].strip() for row in rows)


def test_the_search_finds_what_it_should():
    text = "`learners/omdpd.py` and src/omdpd/no.py in `gym/`, `play.loop.play`, `OMDPD.update`, omdpd.nothing, `a.b`"
    assert list(paths(text)) == ["learners/omdpd.py", "src/omdpd/no.py", "gym/"]
    assert list(names(text)) == ["omdpd.nothing", "omdpd.play.loop.play", "omdpd.OMDPD.update"]
    assert [found(name) for name in names(text)] == [False, True, True]


def test_every_column_of_a_table_is_explained():
    from omdpd.report.tables import SHOWN

    page = (ROOT / "docs" / "model.md").read_text()
    legend = page[page.index("## Columns of tables") : page.index("## Who picks the costs")]
    assert not [column.head for column in SHOWN.values() if f"`{column.head}`" not in legend]


def test_every_role_of_a_factor_is_explained_with_its_range():
    from omdpd.experiments.tuning import RANGES
    from omdpd.learners.factors import ROLES

    page = (ROOT / "docs" / "own-learner.md").read_text()
    for role in ROLES:
        low, high = RANGES[role]
        row = next(line for line in page.splitlines() if line.startswith(f'| `"{role}"` |'))
        assert row.endswith(f"| 1/{round(1 / low)} to {high:g} |")


def test_the_standard_rivals_that_a_page_names_are_there():
    from omdpd.learners import LEARNERS

    page = (ROOT / "docs" / "choosing.md").read_text()
    rivals = page[page.index("## Which rivals") : page.index("## What is proved")]
    named = re.findall(r"`([A-Z][\w.]+)`", rivals)
    assert len(named) > 15
    assert not [name for name in named if name not in LEARNERS]


def test_lemmas_and_theorems_are_numbered_once():
    page = (ROOT / "docs" / "theory.md").read_text()
    found = re.findall(r"\*\*((?:Lemma|Theorem|Proposition) [^ .*(]+)", page)
    assert len(found) == len({*found})


def test_what_the_pages_say_that_a_seed_changes_is_so():
    from omdpd.experiments.registry import Registry

    registry = Registry.installed()
    page = (ROOT / "docs" / "experiments.md").read_text()
    said = re.search(r"\*\*What a seed changes\.\*\* (.*?) are drawn", page).group(1)
    drawn = [name for name, kind in registry.types("worlds") if kind.drawn]
    assert re.findall(r"`(\w+)`", said) == drawn
