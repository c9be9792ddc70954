"""A bar in a terminal or a notebook while work is done, and lines elsewhere, if asked for."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# Work that is done within this many seconds shows no bar; afterwards it moves this often.
PATIENCE, REFRESH = 1.0, 0.1
# Where the output is neither terminal nor notebook: a line this often, in seconds.
PLAIN_EVERY = 10.0

Tell = Callable[[int], None]


@contextmanager
def progress_bar(title: str, total: int, wanted: bool | None) -> Iterator[Tell]:
    """A function to be told how many steps of `total` are done; `wanted` None: a bar only where a person looks."""
    if wanted is False:
        yield lambda done: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter and importlib.util.find_spec("ipywidgets") is None:
        yield lambda done: None  # Rich would print a warning in place of a bar
    elif console.is_terminal or console.is_jupyter:
        with _bar(console, title, total) as tell:
            yield tell
    else:
        yield _lines(console, title, total) if wanted else (lambda done: None)


@contextmanager
def _bar(console: Console, title: str, total: int) -> Iterator[Tell]:
    """Show a bar after a short wait."""
    from rich.progress import Progress

    bar = Progress(console=console, transient=True)
    task = bar.add_task(title, total=total)
    began = moved = time.monotonic()

    def tell(done: int) -> None:
        nonlocal moved
        now = time.monotonic()
        if now - moved < REFRESH or now - began < PATIENCE:
            return
        moved = now
        bar.start()
        bar.update(task, completed=done)

    try:
        yield tell
    finally:
        bar.stop()


def _lines(console: Console, title: str, total: int) -> Tell:
    """A line now and then, and one at the end."""
    printed = time.monotonic()

    def tell(done: int) -> None:
        nonlocal printed
        if done == total or time.monotonic() - printed > PLAIN_EVERY:
            printed = time.monotonic()
            console.print(f"{title}: {done} of {total} episodes", highlight=False, soft_wrap=True)

    return tell
