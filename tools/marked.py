"""Places in a Markdown page that a program fills: the prose is ours, what stands between markers is made by a command.

A place begins with a line ``<!-- numbers: NAME -->`` and ends with a line ``<!-- end -->``.  Names differ on a page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

PLACE = re.compile(r"^(<!-- numbers: (.+?) -->\n)(.*?)^(<!-- end -->)$", re.DOTALL | re.MULTILINE)
MARKER = re.compile(r"^<!-- (?:numbers: .+?|end) -->$", re.MULTILINE)


def places(text: str) -> dict[str, str]:
    """What stands between the markers of a page, without blank lines around it, by the places' names."""
    found = [(match[2], match[3]) for match in PLACE.finditer(text)]
    if 2 * len(found) != len(MARKER.findall(text)):
        raise ValueError("a marker <!-- numbers: NAME --> without its <!-- end -->, or an end too many")
    if len({name for name, _ in found}) < len(found):
        raise ValueError(f"two places of one name among {', '.join(name for name, _ in found)}")
    return {name: body.strip("\n") for name, body in found}


def filled(text: str, contents: Mapping[str, str] | Callable[[str], str]) -> str:
    """A page with new contents: of the places that a mapping names, or of all of them where a function is given."""
    known = places(text)
    if not callable(contents):
        for name in contents:
            if name not in known:
                raise KeyError(f"the page has no place <!-- numbers: {name} -->")
        contents = {**known, **contents}.__getitem__
    # One blank line inside each marker, without which Markdown takes a table for part of the comment.
    return PLACE.sub(lambda place: f"{place[1]}\n{contents(place[2]).strip(chr(10))}\n\n{place[4]}", text)


def fill(page: Path, contents: Mapping[str, str] | Callable[[str], str]) -> int:
    """Rewrite a page in place if anything on it changed; the number of its places."""
    before = page.read_text()
    after = filled(before, contents)
    if after != before:
        page.write_text(after)
    return len(places(after))
