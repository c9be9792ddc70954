"""Folders that only this user and root can change: what lies in them is run as code.

Every folder and link on the way is looked at, from the root of the file system on.  Each belongs to this user or to
root, and nobody else may write into it; where everybody may (``/tmp``) it must be sticky, so that nobody can move what
is ours.  After that the place cannot be exchanged for another one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

try:
    import grp
    import pwd
except ImportError:  # a system without users that could be told apart: nothing is checked there
    grp = pwd = None  # type: ignore[assignment]

# More links than this one after another are a circle.
MAX_LINKS = 40


class SharedPlaceError(OSError):
    """Another user could change what lies in a folder."""


def make_own(folder: Path) -> None:
    """Make a folder and its parents for this user alone; refuse a place that another user could change."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    if missing:
        _check_way(missing[-1].parent)
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    _check_way(folder)
    if grp is not None and folder.stat().st_mode & 0o077:
        raise SharedPlaceError(f"{folder} is open to others")


def _check_way(folder: Path) -> None:
    for where, known in _way(folder) if grp is not None else ():
        if known.st_uid not in (0, os.getuid()):
            raise SharedPlaceError(f"{where} belongs to another user")
        if stat.S_ISDIR(known.st_mode) and _others_may_write(known) and not known.st_mode & stat.S_ISVTX:
            raise SharedPlaceError(f"others may write into {where}")


def _way(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every folder and link from the root to an absolute path, those that links lead through included."""
    here, left, links = os.sep, list(reversed(path.parts)), 0
    while left:
        name = left.pop()
        here = os.path.dirname(here) if name == os.pardir else os.path.join(here, name)
        known = os.lstat(here)
        yield here, known
        if stat.S_ISLNK(known.st_mode):
            links += 1
            if links > MAX_LINKS:
                raise SharedPlaceError(f"{path} leads in a circle")
            left += reversed(Path(os.readlink(here)).parts)
            here = os.path.dirname(here)


def _others_may_write(known: os.stat_result) -> bool:
    """Whether another user may write; a group counts unless this user alone is in it."""
    if not known.st_mode & 0o020:
        return bool(known.st_mode & 0o002)
    try:
        me, group = pwd.getpwuid(os.getuid()), grp.getgrgid(known.st_gid)
    except KeyError:
        return True
    own = group.gr_name == me.pw_name and group.gr_gid == me.pw_gid and set(group.gr_mem) <= {me.pw_name}
    return bool(known.st_mode & 0o002) or not own
