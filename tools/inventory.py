"""Every file of the package and what it says of itself: ``python -m tools.inventory``; the site shows it as a page.

Sentences are the first ones of the files' docstrings, so that the list is right whenever files move.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "omdpd"
PLACE = "<!-- files -->"


def first_sentence(file: Path) -> str:
    """The first sentence of a file's docstring, on one line; empty where there is none."""
    text = " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.?!]) +(?=[A-Z`])", text, maxsplit=1)[0]


def files(package: Path = PACKAGE) -> Iterator[tuple[str, Path]]:
    """Every file with the name of its room, rooms and files by name; files beside the rooms come first."""
    for file in sorted(package.rglob("*.py"), key=lambda file: (len(file.relative_to(package).parts) > 1, file)):
        room, *inside = file.relative_to(package).parts
        yield room if inside else "", file


def inventory(package: Path = PACKAGE) -> str:
    """The list as Markdown: a heading for each room, a line for each file."""
    lines: list[str] = []
    before = ""
    for room, file in files(package):
        if room != before:
            lines += ["", f"## {room}", ""]
            before = room
        lines.append(f"- `{file.relative_to(package).as_posix()}`: {first_sentence(file)}")
    return "\n".join(lines).strip() + "\n"


if __name__ == "__main__":
    print(inventory())
