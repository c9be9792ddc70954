"""Where runs go: this process, several local ones, a Dask cluster or a Ray cluster.  One interface.

Each place is a context manager that gives a `concurrent.futures.Executor`.  Results do not depend on the place.
Between processes Dask and Ray move arguments by pickle and run what they are sent: use clusters you trust.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal, ParamSpec, TypeVar

from omdpd.arrays import InvalidInputError, positive_integer

P = ParamSpec("P")
T = TypeVar("T")
Place = Literal["local", "dask", "ray"]

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


class LocalProcesses(Executor):
    """Fresh local processes with one thread each; an interrupt reaches only those that are busy."""

    def __init__(self, jobs: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_ignore_interrupts)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in one of the processes."""
        return self._pool.submit(_interruptible, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


class RayTasks(Executor):
    """Ray tasks behind the same interface; a task whose worker dies is tried again."""

    def __init__(self) -> None:
        import ray

        self._ray = ray
        self._refs: list[Any] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` on the cluster."""
        remote = self._ray.remote(fn).options(num_cpus=1, max_retries=5, runtime_env={"env_vars": ONE_THREAD})
        ref = remote.remote(*args, **kwargs)
        self._refs.append(ref)
        return _unwrapped(ref.future())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel what is still to come, if asked."""
        if cancel_futures:
            for ref in self._refs:
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
            pool.shutdown(wait=True, cancel_futures=True)
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
            cluster = LocalCluster(
                n_workers=jobs, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, processes=True
            )
        try:
            client = Client(cluster if cluster is not None else address, timeout="10s")
        except (OSError, TimeoutError) as error:
            raise InvalidInputError(f"no Dask scheduler answers at {address}: {error}") from None
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
        if address is None:
            ray.init(num_cpus=jobs, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
        else:
            ray.init(address=address, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InvalidInputError(f"no Ray cluster answers at {address}: {error}") from None
    tasks = RayTasks()
    try:
        yield tasks
    except BaseException:
        tasks.shutdown(cancel_futures=True)
        raise
    finally:
        ray.shutdown()


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


def _ignore_interrupts() -> None:
    """An idle worker does not care for Ctrl-C: its parent ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interruptible(fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    """Call `fn` so that Ctrl-C stops it, and then be deaf to Ctrl-C again."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return fn(*args, **kwargs)
    except KeyboardInterrupt:
        raise InterruptedError("stopped") from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _unwrapped(future: Future[T]) -> Future[T]:
    """A future that raises what the task raised, not Ray's wrapping of it."""
    plain: Future[T] = Future()

    def settle(done: Future[T]) -> None:
        error = done.exception()
        if error is not None:
            plain.set_exception(getattr(error, "cause", None) or error)
        else:
            plain.set_result(done.result())

    future.add_done_callback(settle)
    return plain
