"""Where compiled code is kept: once per user and version, whichever environment asks for it.

    <cache>/kernels/<fingerprint of these sources>-numba<version>/

Numba would keep machine code beside the sources, so that every environment and every copy compiles anew; and it notices
when a function's own file changed, but not when a function that it calls did.  So it is told another place here, for
the functions of this folder alone: the fingerprint changes with any of these sources, and depends on their content, not
on where they lie or when they were unpacked.  What has not been used for a long time is removed.

What came with a wheel is not compiled at all: see `shipped`.

``OMDPD_CACHE_DIR`` names another place than the user's own cache folder.  Numba's files are pickles, so nobody else may
be able to write into the folder; where that cannot be had, Numba's own places are used, and where there are none
nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, _CacheLocator
from platformdirs import user_cache_path

HERE = Path(__file__).parent
# A folder that is never there, for functions whose code can be kept nowhere.
NOWHERE = HERE / "machine_code" / "nowhere"
# Machine code of other versions is removed when it has not been used for so many seconds (sixty days).
KEPT_FOR = 60 * 24 * 3600.0


def cache_folder() -> Path:
    """The folder of everything that is kept between runs of one user; it may be removed at any time."""
    given = os.environ.get("OMDPD_CACHE_DIR")
    return Path(given) if given else user_cache_path("omdpd", appauthor=False)


@cache
def fingerprint(folder: Path = HERE) -> str:
    """A hash of the names and contents of the sources under a folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:20]


@cache
def kernel_folder() -> Path | None:
    """The folder of this version's machine code, made if need be; None where it cannot be ours alone."""
    folder = cache_folder() / "kernels" / f"{fingerprint()}-numba{numba.__version__}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _ours_alone(folder) or not os.access(folder, os.W_OK):
            return None
        os.utime(folder)
    except OSError:
        return None
    forget_unused(folder)
    return folder


def forget_unused(folder: Path) -> None:
    """Remove the machine code beside a folder that nobody has used for long."""
    for other in folder.parent.iterdir():
        with suppress(OSError):
            if other != folder and time.time() - other.stat().st_mtime > KEPT_FOR:
                shutil.rmtree(other)


class UserLocator(_CacheLocator):
    """Tells Numba where the code of a function of this folder is kept."""

    def __init__(self, py_func: Any, py_file: str, folder: Path) -> None:
        self._py_file = py_file
        self._line = py_func.__code__.co_firstlineno
        self._folder = folder / Path(py_file).parent.relative_to(HERE)

    def get_cache_path(self) -> str:
        """The folder of the function's files."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """What the code was compiled from."""
        return fingerprint()

    def get_disambiguator(self) -> str:
        """Where in its file the function stands."""
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> UserLocator | None:
        """A locator for our own functions; None for anybody else's, which are no concern of ours."""
        if not Path(py_file).is_relative_to(HERE):
            return None
        folder = kernel_folder()
        if folder is None:
            numbas: Any = CompileResultCacheImpl
            others = (other for other in numbas._locator_classes if other is not cls)
            if any(other.from_function(py_func, py_file) is not None for other in others):
                return None
            folder = NOWHERE
        return cls(py_func, py_file, folder)


def install() -> None:
    """Let Numba ask here first."""
    numbas: Any = CompileResultCacheImpl
    if UserLocator not in numbas._locator_classes:
        numbas._locator_classes = [UserLocator, *numbas._locator_classes]
    with suppress(ImportError):  # a Numba of the future, whose own ways are then used
        from omdpd.solvers.compiled import function_cache  # which needs the fingerprint

        function_cache.install()


def _ours_alone(folder: Path) -> bool:
    """Whether a folder belongs to this user and nobody else may write into it (always so where that is not told)."""
    if not hasattr(os, "getuid"):
        return True
    known = folder.stat()
    return known.st_uid == os.getuid() and not known.st_mode & 0o022
