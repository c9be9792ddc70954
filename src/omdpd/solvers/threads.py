"""One thread for the linear algebra of a solve.

The matrices of a mirror step are small: a second thread gains little on an idle machine, and on a busy one its waiting
costs a hundred times the work.  Runs are what is worth doing side by side.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process; Numba's products go to SciPy's, which has to be loaded to be seen."""
    import scipy.linalg.cython_blas  # noqa: F401

    return ThreadpoolController().select(user_api="blas")


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses the calling thread alone.

    >>> with one_thread():
    ...     [library["num_threads"] for library in _libraries().info() if library["num_threads"] != 1]
    []
    """
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limited
