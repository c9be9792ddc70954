"""Text on its way to the screen: plain where it cannot show more, and nothing in it that a terminal would obey.

Names may be a stranger's.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Column, Table

from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.markup import printable

HANDLER = "omdpd.ascii"
# What stands for a character that cannot be shown; "?" for all others.
PLAIN = {"±": "+-", "…": "...", "─": "-", "━": "-", "╸": "-", "╺": "-", "│": "|"}


class Screen(Console):
    """A console whose own colours and movements pass, and no others; numbers in a text have no colour."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def say(self, line: str) -> None:
        """Print a line that only the terminal breaks."""
        self.print(line, soft_wrap=True)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Pieces of text without what a terminal would obey."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text, "\n"), piece.style)

    def on_broken_pipe(self) -> None:
        """End without a word where the reader has gone, as `head` does."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1)


class PlainStream:
    """The standard output or error: everything that is printed passes here, except what a `Screen` has drawn."""

    def __init__(self, stream: Any) -> None:
        self.rich_proxied_file = stream  # where a console writes, by this name

    def write(self, text: str) -> int:
        """Write text without what a terminal would obey."""
        self.rich_proxied_file.write(printable(text, "\n\t"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def plain_table(title: str, *columns: str) -> Table:
    """A table with these columns, none of which is folded."""
    heads = (Column(name, no_wrap=True) for name in columns)
    return Table(*heads, title=title, box=box.SIMPLE_HEAD, pad_edge=False)


def guard_screen() -> None:
    """Let everything that is printed from now on pass a `PlainStream`."""
    sys.stdout, sys.stderr = (PlainStream(stream) for stream in (sys.stdout, sys.stderr))


def warn(line: str) -> None:
    """Say what is wrong with what a command shows, beside its output."""
    print(f"omdpd: warning: {line}", file=sys.stderr)


def refuse_all(sentences: Sequence[str]) -> None:
    """End with these sentences, if there are any."""
    for line in sentences[:-1]:
        print(f"omdpd: {line}", file=sys.stderr)
    if sentences:
        raise InvalidInputError(sentences[-1])


def plain_where_needed() -> None:
    """Let what is printed be replaced, rather than refused, where the output's encoding does not have it."""
    codecs.register_error(HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(symbol, "?") for symbol in error.object[error.start : error.end]), error.end
