"""Every snippet of Python on the pages runs as it stands, from the top of its page to the bottom, with fewer episodes.

README and docs/library.md have tests of their own; pages of code cells run when the site is built.
"""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
OWN_TESTS = {"README.md", "library.md"}
PAGES = [
    page for page in [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))] if page.name not in OWN_TESTS
]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def shorter(code):
    """The same code with a handful of episodes."""
    return re.sub(r"n_episodes=\d+", "n_episodes=4", code)


# What a page says the reader has: tables of two states, names of own code.
GIVEN = {
    "worlds.md": {
        "transition": np.full((2, 2, 2), 0.5), "reward": np.array([[0.0, 1.0], [0.5, 0.2]]),
        "cost": np.array([[0.0, 3.0], [1.0, 0.0]]),
    },
    "CONTRIBUTING.md": {"DualAscent": object, "two_doors": object, "loud": object},
}  # fmt: skip


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_every_snippet_of_a_page_runs_after_those_before_it(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    whole = [text for text in blocks(page, "toml") if "episodes" in text]
    if whole:  # the experiment that the page shows is the one its snippets run
        (tmp_path / "sweep.toml").write_text(re.sub(r"(episodes|seeds) = \d+", r"\1 = 2", whole[0]))
    names = {"__name__": "__main__"} | GIVEN.get(page.name, {})
    for number, code in enumerate(blocks(page, "python")):
        exec(compile(shorter(code), f"{page.name}, snippet {number}", "exec"), names)


# Pages that only lead to others.
LISTS = {"files.md", "learn.md", "howto.md", "science.md", "reference.md"}


@pytest.mark.parametrize(
    "page",
    [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in LISTS],
    ids=lambda page: page.name,
)
def test_every_page_has_an_example_that_runs(page):
    assert blocks(page, "python") or "```{code-cell}" in page.read_text()
