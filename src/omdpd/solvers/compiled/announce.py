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

from omdpd.solvers.compiled.cache import kernel_folder

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
        self.began = self.told = 0.0

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled."""
        if not _ours(event):
            return
        if not self.n_done and not self.depth:
            self.began = self.told = time.monotonic()
            where = kernel_folder()
            kept = "not kept" if where is None else f"kept in {where.parent.parent}"
            self._tell(f"omdpd: compiling what this run needs, once per user and version ({kept})")
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
        if self.say is None and not _quiet() and sys.stderr.isatty() and time.monotonic() - self.told > EVERY:
            self.told = time.monotonic()
            sys.stderr.write(f"\romdpd: {self.n_done} functions compiled in {self.told - self.began:.0f} s ")
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
