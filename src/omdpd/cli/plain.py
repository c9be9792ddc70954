"""Plain ASCII where a terminal or a file cannot show more."""

from __future__ import annotations

import codecs
import sys

HANDLER = "omdpd.ascii"
# What stands for a character that cannot be shown; "?" for all others.
PLAIN = {"±": "+-", "…": "...", "─": "-", "━": "-", "╸": "-", "╺": "-", "│": "|"}


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
