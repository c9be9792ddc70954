"""How Numba keeps and finds the machine code of our functions: one process writes at a time, what was shipped is first.

Numba adds an entry to the index of a function by reading it, choosing the next number and writing it back, then writes
the code under that number.  Two processes that compile two signatures at once would choose the same number, and one
signature would get the other's code; so whoever writes holds a lock.  What cannot be read or written is no reason to
stop: the function is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator

from omdpd.jit.cache import PACKAGE, fingerprint, kernel_folder
from omdpd.jit.shipped import shipped_code

try:
    import fcntl
except ImportError:  # a system without: there Numba's own way has to do
    fcntl = None  # type: ignore[assignment]


class OwnLocator(_CacheLocator):
    """Tells Numba where the code of a function of ours is kept; a folder that is never made where it is not."""

    def __init__(self, py_func: Any) -> None:
        inside = Path(py_func.__code__.co_filename).parent.relative_to(PACKAGE)
        self._line = py_func.__code__.co_firstlineno
        self._folder = (kernel_folder() or PACKAGE / "nowhere") / inside

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
    def from_function(cls, py_func: Any, py_file: str) -> OwnLocator:
        """The locator of a function."""
        return cls(py_func)


class OwnFiles(CompileResultCacheImpl):
    """What Numba keeps of a function of ours: in our place, wherever it was told to keep others'."""

    _locator_classes: Any = (OwnLocator,)

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        self._locator = OwnLocator(py_func)


class OwnCache(FunctionCache):
    """The cache of one function of ours; `decorators` gives it to the function."""

    _impl_class: Any = OwnFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code of a signature, or None."""
        for load in (self._load_shipped, super().load_overload):
            # Whatever is wrong with a file is no reason to stop: the function is compiled.
            with suppress(Exception):
                found = load(sig, target_context)
                if found is not None:
                    return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code of a signature, where it can be kept."""
        if kernel_folder() is None:
            return
        with suppress(OSError):
            self._impl.locator.ensure_cache_path()
            with _alone_in(Path(self.cache_path)):
                try:
                    super().save_overload(sig, data)
                except OSError:
                    raise
                except Exception:  # an index that cannot be read
                    self.flush()
                    super().save_overload(sig, data)

    def _load_shipped(self, sig: Any, target_context: Any) -> Any:
        code, base = shipped_code(), self._impl.filename_base
        inside = Path(self._py_func.__code__.co_filename).parent.relative_to(PACKAGE)
        if code is None or not self._enabled or not code.whole((inside / base).as_posix()):
            return None
        target_context.refresh()
        files = IndexDataCacheFile(str(code.folder / inside), base, fingerprint())
        data = files.load(self._index_key(sig, code))
        return None if data is None else self._impl.rebuild(target_context, data)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """While no other process writes into the folder; where files cannot be locked, without that promise."""
    with (folder / "lock").open("wb") as file:
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield
