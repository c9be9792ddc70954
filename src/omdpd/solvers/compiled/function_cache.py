"""How Numba keeps and finds the machine code of our functions: one process writes at a time, what was shipped is first.

Numba adds an entry to the index of a function by reading it, choosing the next number and writing it back, then writes
the code under that number.  Two processes that compile two signatures at once would choose the same number, and one
signature would get the other's code; so whoever writes holds a lock.  What cannot be written is not kept, which is no
reason to stop: the function is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core import dispatcher
from numba.core.caching import FunctionCache, IndexDataCacheFile

from omdpd.solvers.compiled.cache import HERE, fingerprint
from omdpd.solvers.compiled.shipped import shipped_code

try:
    import fcntl
except ImportError:  # a system without: there Numba's own way has to do
    fcntl = None  # type: ignore[assignment]


class PickedCache(FunctionCache):
    """Numba's cache of one function; of a function of ours it is an `OwnCache`."""

    def __new__(cls, py_func: Any) -> PickedCache:
        """The cache that a function gets."""
        ours = cls is PickedCache and Path(py_func.__code__.co_filename).is_relative_to(HERE)
        return object.__new__(OwnCache if ours else cls)


class OwnCache(PickedCache):
    """The cache of a function of ours."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code of a signature, or None."""
        found = None
        # Whatever is wrong with a file is no reason to stop: the function is compiled.
        with suppress(Exception):
            found = self._load_shipped(sig, target_context)
        return super().load_overload(sig, target_context) if found is None else found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code of a signature, where it can be kept."""
        with suppress(OSError):
            self._impl.locator.ensure_cache_path()
            with _alone_in(Path(self.cache_path)):
                super().save_overload(sig, data)

    def _load_shipped(self, sig: Any, target_context: Any) -> Any:
        code, base = shipped_code(), self._impl.filename_base
        inside = Path(self._py_func.__code__.co_filename).parent.relative_to(HERE)
        if code is None or not self._enabled or not code.whole((inside / base).as_posix()):
            return None
        target_context.refresh()
        files = IndexDataCacheFile(str(code.folder / inside), base, fingerprint())
        data = files.load(self._index_key(sig, code))
        return None if data is None else self._impl.rebuild(target_context, data)


def install() -> None:
    """Let functions that are declared from now on have these caches."""
    numbas: Any = dispatcher
    if getattr(numbas, "FunctionCache", None) is FunctionCache:
        numbas.FunctionCache = PickedCache


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """While no other process writes into the folder; where files cannot be locked, without that promise."""
    with (folder / "lock").open("wb") as file:
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield
