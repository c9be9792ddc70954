"""Where text goes to the screen: names may be a stranger's, so nothing in them is left that a terminal would obey."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.markup import printable


class Screen(Console):
    """A console whose own colours and movements pass, and no others."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Pieces of text without what a terminal would obey."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text, "\n"), piece.style)


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


def guard_screen() -> None:
    """Let everything that is printed from now on pass a `PlainStream`."""
    sys.stdout, sys.stderr = (PlainStream(stream) for stream in (sys.stdout, sys.stderr))


def refuse_all(sentences: Sequence[str]) -> None:
    """End with these sentences, if there are any."""
    for line in sentences[:-1]:
        print(f"omdpd: {line}", file=sys.stderr)
    if sentences:
        raise InvalidInputError(sentences[-1])
