"""Inputs that strangers may give, all of them listed: specs, settings, plugins, environments, and what is no file.

Each case is a name and a call.  The call may end well or be refused with one sentence; anything else is a failure.
`cases(folder)` lists them in the same order every time; files that they need are made in the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """A call with an input that may be wrong."""

    name: str
    call: Callable[[], object]


def cases(folder: Path) -> Iterator[Case]:
    """Every case there is."""
    from benchmarks.strange_inputs import environments, named_files, plugins, specs, tables

    for module in (specs, plugins, named_files, environments, tables):
        place = folder / module.__name__.rpartition(".")[2]
        place.mkdir()
        yield from module.cases(place)


# What may stand after the equals sign of a TOML file or of --set.
VALUES = (
    "", "nan", "-inf", "-1", "0", "1e400", "-0.0", "1.5", "1", "99999999999999999999", "9" * 4400, "0x" + "f" * 4400,
    "-0x" + "f" * 4400, "1_0", "0b1", "true", '"x"', "''", '"a\\u0000b"', '"\\u001b[2J"', "'\u202e'",
    '"' + "x" * 5000 + '"', "word", "[]", "[[]]", "[1, 'a']", "[" * 3000, "[[[[[1]]]]]", "{}", "{a = 1}",
    "{a = " * 2000, "[{name = 'x'}]", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", '"""a', "1 # x", "= 3",
    "\x00", "\x1b[2J", "1\nseeds = 3", "1\rseeds = 3", "'../../etc/passwd'", "'/dev/zero'",
)  # fmt: skip
