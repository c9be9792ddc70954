"""Where runs go: this process, or several local ones.  One interface, `concurrent.futures`."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# One thread per worker: otherwise more jobs are slower, not faster.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class InProcess(Executor):
    """Runs everything at once, here: for one job, for debugging, and for tests."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` now; its result or its exception is in the future."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # whatever a run raises belongs to its future
            future.set_exception(error)
        return future


@contextmanager
def local_executor(jobs: int) -> Iterator[Executor]:
    """One process for one job, else a pool of fresh processes that each use one thread."""
    if jobs == 1:
        yield InProcess()
        return
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            yield pool
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
