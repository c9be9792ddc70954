"""Local processes that outlast the death of one of them, and work that always comes to an end.

A pool of processes is served by a thread of its own; another thread waits for the end of that one and sees to the work
that it left.  So whatever happens to processes and threads, every future gets a result, an error or a cancellation.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.reduction
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, TypeVar

from omdpd.experiments.interrupts import delaying_interrupts, ignore_interrupts, parent_stopped, raising_interrupts
from omdpd.problem.arrays import InvalidInputError

P = ParamSpec("P")
T = TypeVar("T")

# Workers that may die in a row, with nothing finished in between, before that is taken for the work's own fault.
MAX_DEATHS = 5
# How a worker ends whose script would start workers while it is imported; any code that nothing else ends with.
UNGUARDED_EXIT = 97
UNGUARDED = (
    "workers import the script that starts them, so what starts them must not run on import: "
    'put it under `if __name__ == "__main__":`'
)


class WorkersError(InvalidInputError):
    """Workers cannot be started; that is not the fault of the work they were to do."""


@dataclass(frozen=True, eq=False)
class Work:
    """A call for one of the processes, and the future that waits for it."""

    future: Future[Any]
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(eq=False)
class Workers:
    """Processes of one pool, whether one of them ever began, and the work that they have not finished."""

    pool: ProcessPoolExecutor
    began: Any
    waiting: set[Work] = field(default_factory=set)
    server: Any = None  # the pool's own thread

    @property
    def processes(self) -> list[Any]:
        """The processes that were started, as long as the pool is open."""
        return list((self.pool._processes or {}).values())


class LocalProcesses(Executor):
    """Fresh local processes with one thread each.

    A process that dies (killed, out of memory) does not end the others' work: new ones are started, and what was not
    finished is submitted again.  Ctrl-C reaches the processes that are busy; none outlives this one.
    """

    def __init__(self, jobs: int) -> None:
        end_if_importing()
        self._jobs = jobs
        self._context = multiprocessing.get_context("spawn")
        # Read by workers before they begin something.  No lock: one that was killed would hold it for ever.
        self._stop = self._context.RawValue("b", 0)
        self._guard = threading.RLock()
        self._deaths = 0
        self._closed = False
        self._workers: Workers | None = None

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in one of the processes."""
        try:
            multiprocessing.reduction.ForkingPickler.dumps((fn, args, kwargs))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InvalidInputError(f"other processes can only be given what they can import: {error}") from None
        future: Future[T] = Future()
        self._send(Work(future, fn, args, kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; with `cancel_futures` those that are busy are told to stop as by Ctrl-C."""
        with self._guard:
            self._closed = True
            workers = self._workers
        if workers is None:
            return
        if cancel_futures:
            self._stop.value = 1
            for process in workers.processes:
                if process.pid is not None:
                    with suppress(OSError):
                        os.kill(process.pid, signal.SIGINT)
        workers.pool.shutdown(wait, cancel_futures=cancel_futures)

    def kill(self) -> None:
        """End the processes at once; what they had not committed is lost."""
        if self._workers is not None:
            for process in self._workers.processes:
                process.kill()

    def _send(self, work: Work) -> None:
        """Give work to the processes; raises what keeps it from being done."""
        with self._guard:
            if self._closed:
                raise RuntimeError("no work can be given to processes after shutdown")
            workers = self._workers = self._workers or self._new_workers()
            workers.waiting.add(work)
            try:
                with delaying_interrupts():
                    call = workers.pool.submit(_interruptible, work.fn, work.args, work.kwargs)
                    self._attend(workers)
                    call.add_done_callback(partial(self._answer, workers, work))
            except BrokenProcessPool:
                workers.waiting.discard(work)
                self._replace(workers)
                self._send(work)
                return
            except (RuntimeError, OSError) as error:
                workers.waiting.discard(work)
                self._abandon(workers)
                raise _no_room(error) from None

    def _new_workers(self) -> Workers:
        began = self._context.RawValue("b", 0)
        given = (self._stop, began)
        try:
            pool = ProcessPoolExecutor(self._jobs, self._context, initializer=_begin_worker, initargs=given)
        except OSError as error:
            raise _no_room(error) from None
        return Workers(pool, began)

    def _attend(self, workers: Workers) -> None:
        """Have a thread wait for the end of these processes, if none does yet."""
        if workers.server is None:
            threading.Thread(target=self._see_to_the_rest, args=(workers,), daemon=True).start()
            workers.server = workers.pool._executor_manager_thread

    def _abandon(self, workers: Workers) -> None:
        """Forget processes of a pool that cannot be served; others go on with what they have."""
        if workers.server is None:
            for process in workers.processes:
                process.kill()
            self._workers = None

    def _answer(self, workers: Workers, work: Work, call: Future[Any]) -> None:
        """Pass on how a call ended; one whose worker died stays in `waiting`."""
        if call.cancelled():
            workers.waiting.discard(work)
            settle_cancelled(work.future)
        elif not isinstance(error := call.exception(), BrokenProcessPool):
            self._deaths = 0
            workers.waiting.discard(work)
            settle(work.future, error, None if error is not None else call.result())

    def _see_to_the_rest(self, workers: Workers) -> None:
        """Once these processes have ended: send again what they did not finish, or say why not."""
        with self._guard:  # until the first work is on its way
            server = workers.server
        if server is not None:
            server.join()
        with self._guard:
            for work in list(workers.waiting):
                try:
                    self._replace(workers)
                    self._send(work)
                except BaseException as error:  # whatever it is, it belongs to the one who waits
                    settle(work.future, error, None)

    def _replace(self, workers: Workers) -> None:
        """Make room for new processes in place of broken ones; raises where new ones would end alike."""
        if self._workers is not workers:
            return
        processes = workers.processes
        if workers.server is not None:
            workers.server.join()
        for process in processes:  # most have ended, but not if that thread failed
            process.kill()
        codes = [process.exitcode for process in processes if (process.exitcode or 0) > 0]
        if codes and not workers.began.value:
            raise _unable(max(codes, key=lambda code: code == UNGUARDED_EXIT))
        if self._closed or self._deaths >= MAX_DEATHS:
            in_a_row = f"{self._deaths + 1} in a row, with nothing finished in between"
            raise BrokenProcessPool(f"a worker was terminated abruptly ({in_a_row})")
        self._deaths += 1
        self._workers = None


def end_if_importing() -> None:
    """End this process if it is a worker that still imports its parent's script, where no process can be started."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(UNGUARDED_EXIT)  # without a traceback: the parent knows what to say


def settle(future: Future[Any], error: BaseException | None, result: Any) -> None:
    """Give a future what it waits for, unless it was cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def settle_cancelled(future: Future[Any]) -> None:
    """Cancel a future for good: without the second call `concurrent.futures.wait` waits for it for ever."""
    future.cancel()
    future.set_running_or_notify_cancel()


def _no_room(error: BaseException) -> WorkersError:
    return WorkersError(f"no worker can be started here ({error}): use fewer jobs, or raise the limits of this machine")


def _unable(code: int) -> WorkersError:
    if code == UNGUARDED_EXIT:
        return WorkersError(UNGUARDED)
    return WorkersError(f"a worker ended with exit code {code} before it could begin; what it printed says why")


def _begin_worker(stop: Any, began: Any) -> None:
    """A worker is deaf to Ctrl-C while it is idle, and does not outlive its parent."""
    ignore_interrupts(stop)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    began.value = 1


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _interruptible(fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    """Call `fn` so that Ctrl-C stops it, and then be deaf to Ctrl-C again."""
    with raising_interrupts():
        # After Ctrl-C is heard: the parent makes its note before it sends the signal, so that one of them is seen.
        if parent_stopped():
            raise InterruptedError("stopped")
        return fn(*args, **kwargs)
