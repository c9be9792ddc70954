"""A command that is interrupted while it still imports ends without a word, with the exit code of an interrupt."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from types import TracebackType

INTERRUPTED = 130


def is_command() -> bool:
    """Whether this process is `omdpd` or `python -m omdpd`; another program shows errors as it likes."""
    return os.path.basename("".join(sys.argv[:1])) == "omdpd" or ("-m", "omdpd") in pairwise(sys.orig_argv)


def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an error, unless it is an interrupt."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


if is_command():
    sys.excepthook = end
