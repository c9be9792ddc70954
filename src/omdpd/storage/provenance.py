"""Provenance says where a result comes from: versions, platform, and the commits of the code that made it."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from omdpd.storage.atomic import RecordError, read_bounded

PACKAGES = ("omdpd", "numpy", "scipy", "numba", "highspy", "pyarrow")
# What makes a resume one by another version or another machine.
DECISIVE = ("packages", "sources", "python", "platform", "machine", "node", "library_commit")
# A commit, and the name of a reference; a file of Git's that is larger than this is not read.
COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
REFERENCE = re.compile(r"refs/[\w./+@-]+")
MAX_GIT_BYTES = 2**24


def provenance(plugins: Mapping[str, str], sources: str | None = None, labels: Sequence[str] = ()) -> dict[str, Any]:
    """What a result may depend on beside its spec; `commit` is None outside a Git checkout.

    `plugins` are the files of own code that its parts come from, with their checksums; `sources` is a hash of the
    sources of this library, which are what ran, whatever version they say they are.  `labels` are how its world, nature
    and learner are called: who reads a run without its plugin does not know the defaults that a label leaves out.

    `commit` belongs to the folder that the command was given in, `library_commit` to a checkout of this library.  They
    say nothing of changes that were not committed.
    """
    return {
        "packages": {name: running_version(name) for name in PACKAGES},
        "sources": sources,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "node": platform.node(),
        "plugins": dict(plugins),
        "labels": list(labels),
        "commit": commit_of(Path.cwd()),
        "library_commit": commit_of(Path(__file__).resolve().parent),
    }


def contents_text(plugins: Mapping[str, str]) -> str:
    """Plugin files with the first digits of their contents' checksums.

    >>> contents_text({"mine.py": "8d2f03a1" + 56 * "0"}), contents_text({})
    ('mine.py (8d2f03a1)', 'no plugin')
    """
    return ", ".join(f"{name} ({str(digest)[:8]})" for name, digest in sorted(plugins.items())) or "no plugin"


def with_resume(before: Mapping[str, Any], now: Mapping[str, Any], episodes: int) -> dict[str, Any]:
    """The provenance of a run that goes on: a version or machine other than the last one is added to `resumed`."""
    resumed = list(before.get("resumed", ()))
    last = resumed[-1] if resumed else before
    if all(last.get(key) == now[key] for key in DECISIVE):
        return dict(before)
    return {**before, "resumed": [*resumed, {"episodes": episodes, **now}]}


def commit_of(folder: Path) -> str | None:
    """The Git commit that is checked out in a folder or above it; None if there is none.

    Git itself is not asked: it would run what the folder's configuration names (`core.fsmonitor`, filters), and the
    folder may be a stranger's.
    """
    for place in (folder, *folder.parents):
        mark = place / ".git"
        if os.path.lexists(mark):
            return _head(_git_folder(mark))
    return None


def _git_folder(mark: Path) -> Path:
    """The folder that ``.git`` is, or that it names (a worktree, a submodule)."""
    named = _line(mark) if mark.is_file() else ""
    return mark.parent / named.removeprefix("gitdir:").strip() if named.startswith("gitdir:") else mark


def _head(git: Path) -> str | None:
    """What HEAD names, by way of the references as Git keeps them: one file each, or all in ``packed-refs``."""
    head = _line(git / "HEAD")
    if not head.startswith("ref:"):
        return head if COMMIT.fullmatch(head) else None
    name = head.removeprefix("ref:").strip()
    common = git / (_line(git / "commondir") or ".")
    if not REFERENCE.fullmatch(name) or ".." in name:
        return None
    for loose in (_line(git / name), _line(common / name)):
        if COMMIT.fullmatch(loose):
            return loose
    packed = (line.split() for line in _text(common / "packed-refs").splitlines())
    return next((words[0] for words in packed if words[1:] == [name] and COMMIT.fullmatch(words[0])), None)


def _line(file: Path) -> str:
    return (_text(file).splitlines() or [""])[0].strip()


def _text(file: Path) -> str:
    """A small text file; nothing if it cannot be read."""
    try:
        return read_bounded(file, MAX_GIT_BYTES).decode()
    except (RecordError, OSError, ValueError):
        return ""


def running_version(name: str) -> str | None:
    """The version that a package says itself, if it was imported: it may lie beside the one that was installed."""
    told = getattr(sys.modules.get(name), "__version__", None)
    return told if isinstance(told, str) else _installed_version(name)


@cache
def _installed_version(name: str) -> str | None:
    """The version of an installed package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
