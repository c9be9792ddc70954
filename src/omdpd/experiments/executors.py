"""Executors send runs to this process, to several local ones or to a Dask cluster, behind one interface.

Each place is a context manager that gives a `concurrent.futures.Executor`.  Results do not depend on the place.
Between processes Dask moves arguments by pickle and runs what it is sent: use clusters you trust.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import contextmanager, suppress
from typing import Any, Literal, ParamSpec, TypeVar

from omdpd.experiments.interrupts import delaying_interrupts
from omdpd.experiments.local_processes import UNGUARDED, LocalProcesses, end_if_importing, settle
from omdpd.problem.arrays import InvalidInputError, not_installed, positive_integer

P = ParamSpec("P")
T = TypeVar("T")
Backend = Literal["local", "dask"]

# One thread per worker: otherwise more jobs are slower, not faster.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
# How long an answer from a cluster is waited for, in seconds.
CALL_SECONDS = 10.0
# How often it is looked whether a cluster is still there, in seconds.
LOOK_SECONDS = 1.0


class ClusterLostError(RuntimeError):
    """What leads a cluster went away for good."""


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


class ClusterTasks(Executor):
    """Tasks of a cluster, by its own `submit`; they fail once the cluster is `gone`: Dask would wait on."""

    def __init__(self, submit: Callable[..., Future[Any]], gone: Callable[[], bool], leader: str) -> None:
        self._submit, self._gone, self._leader = submit, gone, leader
        self._futures: set[Future[Any]] = set()
        self._over = threading.Event()
        self.lost = False
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` on the cluster."""
        if self.lost:
            raise self._error()
        future: Future[T] = self._submit(fn, *args, **kwargs)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Look no longer whether the cluster is there."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.lost = self.lost or self._gone()
            for future in list(self._futures) if self.lost else ():
                with suppress(InvalidStateError):  # it has ended by itself
                    settle(future, self._error(), None)

    def _error(self) -> ClusterLostError:
        return ClusterLostError(f"{self._leader} does not answer any more")


@contextmanager
def executor(place: Backend, jobs: int, address: str | None = None) -> Iterator[Executor]:
    """The executor of a place; `jobs` processes where it starts them itself, or this one instead of one."""
    jobs = positive_integer("jobs", jobs)
    if place == "local":
        if address is not None:
            raise InvalidInputError("an address goes with --on dask")
        opened = _local(jobs)
    elif place == "dask":
        opened = _dask(jobs, address)
    else:
        raise InvalidInputError(f"there is no place {place!r}; there are local, dask")
    with opened as chosen:
        yield chosen


@contextmanager
def _local(jobs: int) -> Iterator[Executor]:
    if jobs == 1:
        yield InProcess()
        return
    with _environment(ONE_THREAD):
        pool = LocalProcesses(jobs)
        try:
            yield pool
        except BaseException:
            try:
                pool.shutdown(wait=True, cancel_futures=True)
            except KeyboardInterrupt:  # a second Ctrl-C, from somebody who does not want to wait
                pool.kill()
            raise
        pool.shutdown()


@contextmanager
def _dask(jobs: int, address: str | None) -> Iterator[Executor]:
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError:
        raise not_installed("--on dask", "distributed") from None
    with _environment(ONE_THREAD):
        cluster = None
        if address is None:
            end_if_importing()
            try:
                with delaying_interrupts():
                    # Any free port: without an address Dask takes one port, which a second study would find taken.
                    cluster = LocalCluster(
                        n_workers=jobs, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
                        scheduler_kwargs={"dashboard": False}, processes=True, silence_logs=logging.ERROR,
                    )  # fmt: skip
            except RuntimeError as error:
                raise InvalidInputError(
                    f"Dask cannot start workers ({_one_line(error)}); in a script, {UNGUARDED}"
                ) from None
        try:
            client = Client(cluster if cluster is not None else address, timeout=CALL_SECONDS)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise InvalidInputError(f"no Dask scheduler answers at {address}: {_one_line(error)}") from None
        # What Dask says of a lost scheduler, a study says in its own sentence.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        # Every run is idempotent, so one whose worker died may simply be run again.  A client that lost its scheduler
        # closes itself after `CALL_SECONDS`.
        submit = client.get_executor(pure=False, retries=5).submit
        tasks = ClusterTasks(submit, lambda: client.status in ("closing", "closed"), "the Dask scheduler")
        try:
            yield tasks
        finally:
            tasks.shutdown()
            client.close()
            if cluster is not None:
                cluster.close()


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for processes that start inside."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
