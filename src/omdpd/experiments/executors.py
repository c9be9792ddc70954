"""Where runs go: this process, several local ones, a Dask cluster or a Ray cluster.  One interface.

Each place is a context manager that gives a `concurrent.futures.Executor`.  Results do not depend on the place.
Between processes Dask and Ray move arguments by pickle and run what they are sent: use clusters you trust.
"""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.reduction
import os
import pickle
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any, Literal, ParamSpec, TypeVar

from omdpd.experiments.interrupts import heard, held_back, ignore
from omdpd.problem.arrays import InvalidInputError, positive_integer

P = ParamSpec("P")
T = TypeVar("T")
Place = Literal["local", "dask", "ray"]

# One thread per worker: otherwise more jobs are slower, not faster.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
# Workers that may die in a row, with nothing finished in between, before that is taken for the work's own fault.
MOST_DEATHS = 5
# How long an answer from a cluster is waited for, in seconds.
CALL_SECONDS = 10.0


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


class LocalProcesses(Executor):
    """Fresh local processes with one thread each.

    A process that dies (killed, out of memory) does not end the others' work: new ones are started, and what was not
    finished is submitted again.  Ctrl-C reaches the processes that are busy; none outlives this one.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._context = multiprocessing.get_context("spawn")
        # Read by workers before they begin something.  No lock: one that was killed would hold it for ever.
        self._stop = self._context.RawValue("b", 0)
        self._guard = threading.RLock()
        self._deaths = 0
        self._closed = False
        self._pool = self._new_pool()
        # Not in the broken pool's own thread, which holds locks that starting again needs.
        self._restart = ThreadPoolExecutor(1, thread_name_prefix="omdpd-restart")

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in one of the processes."""
        try:
            multiprocessing.reduction.ForkingPickler.dumps((fn, args, kwargs))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InvalidInputError(f"other processes can only be given what they can import: {error}") from None
        future: Future[T] = Future()
        self._send(future, fn, args, kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; with `cancel_futures` those that are busy are told to stop as by Ctrl-C."""
        with self._guard:
            self._closed = True
            pool = self._pool
        if cancel_futures:
            self._stop.value = 1
            for process in list((pool._processes or {}).values()):
                if process.pid is not None:
                    with suppress(OSError):
                        os.kill(process.pid, signal.SIGINT)
        pool.shutdown(wait, cancel_futures=cancel_futures)
        self._restart.shutdown(wait)

    def kill(self) -> None:
        """End the processes at once; what they had not committed is lost."""
        for process in list((self._pool._processes or {}).values()):
            process.kill()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._jobs, mp_context=self._context, initializer=_begin_worker, initargs=(self._stop,)
        )

    def _send(self, future: Future[T], fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with self._guard:
            try:
                with held_back():
                    inner = self._pool.submit(_interruptible, fn, args, kwargs)
            except (BrokenProcessPool, RuntimeError) as error:
                if self._closed or not isinstance(error, BrokenProcessPool):
                    future.cancel()
                    return
                self._renew(self._pool)
                self._send(future, fn, args, kwargs)
                return
            pool = self._pool

        def settle(done: Future[T]) -> None:
            if done.cancelled():
                future.cancel()
                return
            error = done.exception()
            if isinstance(error, BrokenProcessPool) and not self._closed:
                self._restart.submit(again, error)
                return
            self._deaths = 0
            _settle(future, error, None if error is not None else done.result())

        def again(error: BrokenProcessPool) -> None:
            if self._renew(pool):
                self._send(future, fn, args, kwargs)
            else:
                _settle(future, error, None)

        inner.add_done_callback(settle)

    def _renew(self, broken: ProcessPoolExecutor) -> bool:
        """Start new processes in place of broken ones; False after too many deaths in a row, or at the end."""
        with self._guard:
            if self._closed or self._deaths >= MOST_DEATHS:
                return False
            if self._pool is broken:
                self._deaths += 1
                self._pool = self._new_pool()
            return True


class RayTasks(Executor):
    """Ray tasks behind the same interface; a task whose worker dies is tried again."""

    def __init__(self) -> None:
        import ray

        self._ray = ray
        self._refs: set[Any] = set()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` on the cluster."""
        remote = self._ray.remote(fn).options(num_cpus=1, max_retries=MOST_DEATHS)
        ref = remote.remote(*args, **kwargs)
        self._refs.add(ref)
        future = _unwrapped(ref.future())
        future.add_done_callback(lambda done: self._refs.discard(ref))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel what is still to come, if asked."""
        if cancel_futures:
            for ref in list(self._refs):
                self._ray.cancel(ref, force=True)


@contextmanager
def executor(place: Place, jobs: int, address: str | None = None) -> Iterator[Executor]:
    """The executor of a place; `jobs` processes where it starts them itself."""
    jobs = positive_integer("jobs", jobs)
    if place == "local":
        if address is not None:
            raise InvalidInputError("an address goes with --on dask or --on ray")
        opened = _local(jobs)
    elif place == "dask":
        opened = _dask(jobs, address)
    elif place == "ray":
        opened = _ray(jobs, address)
    else:
        raise InvalidInputError(f"there is no place {place!r}; there are local, dask, ray")
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
        raise InvalidInputError("Dask is not installed: pip install 'omdpd[dask]'") from None
    with _environment(ONE_THREAD):
        cluster = None
        if address is None:
            with held_back():
                cluster = LocalCluster(
                    n_workers=jobs, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, processes=True,
                    silence_logs=logging.ERROR,
                )  # fmt: skip
        try:
            client = Client(cluster if cluster is not None else address, timeout=CALL_SECONDS)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise InvalidInputError(f"no Dask scheduler answers at {address}: {_one_line(error)}") from None
        try:
            # Every run is idempotent, so one whose worker died may simply be run again.
            yield client.get_executor(pure=False, retries=5)
        finally:
            client.close()
            if cluster is not None:
                cluster.close()


@contextmanager
def _ray(jobs: int, address: str | None) -> Iterator[Executor]:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise InvalidInputError("Ray is not installed: pip install 'omdpd[ray]'") from None
    try:
        with held_back():
            if address is None:
                ray.init(num_cpus=jobs, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
            else:
                _call(address)
                ray.init(address=address, log_to_driver=False)
    except (OSError, OverflowError, RuntimeError, ValueError, AssertionError, ImportError) as error:
        where = "" if address is None else f" at {address}"
        raise InvalidInputError(f"no Ray cluster answers{where}: {_one_line(error)}") from None
    tasks = RayTasks()
    try:
        yield tasks
    except BaseException:
        tasks.shutdown(cancel_futures=True)
        raise
    finally:
        ray.shutdown()


def _call(address: str) -> None:
    """See that somebody listens at host:port, because Ray itself tries for minutes; other forms are left to Ray."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), CALL_SECONDS).close()


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


# In a worker: whether its parent was told to stop.
_STOP: list[Any] = []


def _begin_worker(stop: Any) -> None:
    """A worker is deaf to Ctrl-C while it is idle, and does not outlive its parent."""
    ignore()
    _STOP[:] = [stop]
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _interruptible(fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    """Call `fn` so that Ctrl-C stops it, and then be deaf to Ctrl-C again."""
    with heard():
        # After Ctrl-C is heard: the parent makes its note before it sends the signal, so that one of them is seen.
        if any(stop.value for stop in _STOP):
            raise InterruptedError("stopped")
        return fn(*args, **kwargs)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _settle(future: Future[Any], error: BaseException | None, result: Any) -> None:
    """Give a future what it waits for, unless nobody waits any more."""
    if not future.set_running_or_notify_cancel():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def _unwrapped(future: Future[T]) -> Future[T]:
    """A future that raises what the task raised, not Ray's wrapping of it."""
    plain: Future[T] = Future()

    def settle(done: Future[T]) -> None:
        if done.cancelled():
            plain.cancel()
            return
        error = done.exception()
        _settle(plain, getattr(error, "cause", None) or error, None if error is not None else done.result())

    future.add_done_callback(settle)
    return plain
