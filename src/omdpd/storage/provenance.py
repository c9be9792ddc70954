"""Where a result comes from: versions, platform, and the commits of the code that made it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("omdpd", "numpy", "scipy", "numba", "highspy", "piqp", "pyarrow")
# What makes a resume one by another version or another machine.
DECISIVE = ("packages", "python", "platform", "machine", "node", "library_commit")
# Asking for a commit takes milliseconds; a folder where it takes longer goes without.
GIT_SECONDS = 5.0


def provenance(plugins: Mapping[str, str]) -> dict[str, Any]:
    """What a result may depend on beside its spec; `commit` is None outside a Git checkout.

    `plugins` are the files of own code that its parts come from, with their checksums.

    `commit` belongs to the folder that the command was given in, `library_commit` to a checkout of this library; both
    end in ``-dirty`` if there were changes that no commit has.
    """
    return {
        "packages": {name: _version(name) for name in PACKAGES},
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "node": platform.node(),
        "plugins": dict(plugins),
        "commit": commit_of(Path.cwd()),
        "library_commit": commit_of(Path(__file__).resolve().parent),
    }


def with_resume(before: Mapping[str, Any], now: Mapping[str, Any], episodes: int) -> dict[str, Any]:
    """The provenance of a run that goes on: a version or machine other than the last one is added to `resumed`."""
    resumed = list(before.get("resumed", ()))
    last = resumed[-1] if resumed else before
    if all(last.get(key) == now[key] for key in DECISIVE):
        return dict(before)
    return {**before, "resumed": [*resumed, {"episodes": episodes, **now}]}


@lru_cache(maxsize=8)
def commit_of(folder: Path) -> str | None:
    """The Git commit that is checked out in a folder; None if there is none."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=GIT_SECONDS, check=True,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip() or None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
