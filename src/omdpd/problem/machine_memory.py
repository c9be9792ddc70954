"""The machine says how much memory it grants, so that tables that cannot fit are refused before they are made."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from omdpd.problem.arrays import InvalidInputError

GIGABYTE = 1e9
# Where Linux keeps the limit of a container (cgroup 2, then 1).
LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


class TooLargeError(InvalidInputError):
    """A problem that does not fit into this machine; the message says its size and what to do."""


def machine_bytes() -> int | None:
    """The memory of this machine, or of the container that holds this process; None where the system does not say."""
    known = []
    with suppress(AttributeError, ValueError, OSError):
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in LIMIT_FILES:
        with suppress(OSError, ValueError):  # "max" where there is no limit
            known.append(int(file.read_text()))
    return min(known, default=None)


def refuse_beyond_memory(what: str, n_bytes: float, advice: str) -> None:
    """Refuse what needs more memory than this machine has, with one sentence."""
    most = machine_bytes()
    if most is not None and n_bytes > most:
        raise TooLargeError(
            f"{what} needs about {n_bytes / GIGABYTE:.3g} GB, but this machine has {most / GIGABYTE:.3g} GB: {advice}"
        )
