"""Say that functions are being compiled, wherever they are first called from: the first call takes a while.

One line when it begins, and how far it is on a terminal; nothing where everything is in the cache.  ``OMDPD_QUIET=1``
silences it.  Functions of others that Numba compiles are no concern of ours.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from numba.core import event

from omdpd.jit.cache import where_kept

Say = Callable[[str], None]
OWN = "omdpd."
# How often a terminal is told how far it is, in seconds.
EVERY = 0.5


class Announcer(event.Listener):
    """Counts the functions of ours that are compiled, and says so."""

    def __init__(self, say: Say | None = None) -> None:
        self.say = say
        self.depth = self.n_done = 0
        self.collected = True
        self.announced = self.counting = False
        self.began = self.counted = 0.0

    def begin(self, line: str) -> None:
        """Say a line, and count seconds from now on."""
        self.announced = True
        self.began = self.counted = time.monotonic()
        self._tell(line)

    def end(self) -> None:
        """Stop announcing, and end the line that counts."""
        self.say = None
        if self.counting:
            self.counting = False
            sys.stderr.write("\n")

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled."""
        if not _ours(event):
            return
        if not self.announced:
            self.begin(f"omdpd: compiling what this run needs, once per user and version ({where_kept()})")
        if not self.depth:
            # The compiler makes millions of objects that live as long as it does: looking for garbage is a tenth of
            # its time.
            self.collected = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """A function was compiled."""
        if not _ours(event):
            return
        self.depth -= 1
        self.n_done += 1
        if not self.depth and self.collected:
            gc.enable()
        if not _quiet() and sys.stderr.isatty() and time.monotonic() - self.counted > EVERY:
            self.counting, self.counted = True, time.monotonic()
            sys.stderr.write(f"\romdpd: {self.n_done} functions compiled in {self.counted - self.began:.0f} s ")
            sys.stderr.flush()

    def _tell(self, line: str) -> None:
        if self.say is not None:
            self.say(line)
        elif not _quiet():
            print(line, file=sys.stderr, flush=True)


ANNOUNCER = Announcer()


def listen() -> None:
    """Hear of everything that Numba compiles from now on."""
    event.register("numba:compile", ANNOUNCER)


def _ours(event: Any) -> bool:
    return str(getattr(event.data["dispatcher"].py_func, "__module__", "")).startswith(OWN)


def _quiet() -> bool:
    return bool(os.environ.get("OMDPD_QUIET"))
