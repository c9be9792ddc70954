"""How Numba finds the machine code that came with the package (`shipped`).

Numba's private names are used only where code came along that was made, and tried, with this very version of Numba.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import dispatcher
from numba.core.caching import FunctionCache, IndexDataCacheFile

from omdpd.solvers.compiled.cache import HERE, fingerprint
from omdpd.solvers.compiled.shipped import shipped_code


class ShippedCache(FunctionCache):
    """Numba's cache of one function of ours, which looks among what came along first."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code of a signature, or None."""
        found = None
        # Whatever is wrong with a file is no reason to stop: the function is compiled.
        with suppress(Exception):
            found = self._load_shipped(sig, target_context)
        return super().load_overload(sig, target_context) if found is None else found

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
    """Let functions of this folder look among what came along."""
    numbas: Any = dispatcher
    if getattr(numbas, "FunctionCache", None) is FunctionCache:
        numbas.FunctionCache = _cache_of


def _cache_of(py_func: Any) -> FunctionCache:
    ours = Path(py_func.__code__.co_filename).is_relative_to(HERE)
    return (ShippedCache if ours else FunctionCache)(py_func)
