"""Many runs on any executor: each in a durable folder, whether or not the workers share a disk with it."""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omdpd.experiments.away import files_of_run, play_away, unpack_parcel
from omdpd.experiments.interrupts import interrupts_at_the_end
from omdpd.experiments.one_run import RunCallback, RunFailedError, failure, refuse_failed, run_safely
from omdpd.experiments.registry import from_wire, to_wire
from omdpd.experiments.spec import RunSpec
from omdpd.experiments.trouble import Trouble
from omdpd.experiments.writer import check_metrics, commit_seconds
from omdpd.play.scene import Metric
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.atomic import RecordError, make_folder
from omdpd.storage.locks import Lock
from omdpd.storage.run_folder import RunFolder

# How often runs are looked at, in seconds.
LOOK_EVERY = 0.5
# Without a shared disk a run's files come back this many times more rarely than a run commits on a shared one.
AWAY_FACTOR = 10.0

Watch = Callable[[Sequence[RunSpec]], None]


class OtherCodeError(InvalidInputError):
    """Runs of a folder were played with another content of a plugin file; the message says how to go on."""


def run_all(
    specs: Sequence[RunSpec],
    folder: Path,
    executor: Executor,
    watch: Watch,
    metrics: Mapping[str, Metric] | None = None,
    shared_disk: bool = True,
    callback: RunCallback | None = None,
) -> list[dict[str, Any]]:
    """Every run on the executor; `watch` is told the finished ones now and then; summaries in the order of the specs.

    With a shared disk workers write into `folder`; without one they work in temporary folders and send their files.
    A run that fails keeps its error in its folder and the others go on; at the end the failure is raised.  A run that
    failed before is not tried again until its error is removed.  Nothing is played where a run, finished or not, has
    been played with another content of its plugin files.
    """
    refuse_other_code(specs, folder)
    if shared_disk:
        return _run_all(specs, folder, SharedDisk(folder, executor, metrics, callback), watch)
    make_folder(folder)
    lock = Lock(folder / "lock")
    if not lock.acquire():
        raise RecordError(f"another process is running experiments without a shared disk into {folder}")
    try:
        return _run_all(specs, folder, NoSharedDisk(folder, executor, metrics, callback), watch)
    finally:
        lock.release()


def _run_all(specs: Sequence[RunSpec], folder: Path, delivery: Delivery, watch: Watch) -> list[dict[str, Any]]:
    summaries: dict[str, dict[str, Any]] = {}
    errors: dict[str, BaseException] = {}
    pending: dict[Future[Any], RunSpec] = {}
    ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
    trouble = Trouble()

    def send(spec: RunSpec, error: BaseException | None = None) -> bool:
        future = delivery.send(spec) if error is None else _sent_again(delivery, spec, error)
        with interrupts_at_the_end():
            pending[future] = spec
            future.add_done_callback(ended.put)
            return future.done()

    try:
        with _ticking(watch) as tell:
            for spec in specs:
                if send(spec):
                    tell([spec])
        while pending:
            futures = _some(ended, len(pending))  # a signal is raised here, where no lock of a future is taken
            with interrupts_at_the_end():
                finished: list[RunSpec] = []
                again: list[tuple[RunSpec, BaseException | None]] = []
                for future in futures:
                    spec = pending.pop(future)
                    try:
                        summary = delivery.receive(spec, future.result())
                    except Exception as error:  # whatever a run raises is reported at the end
                        record = RunFolder(folder / spec.id, spec.id)
                        if trouble.is_run_failure(record, error):
                            errors[spec.id] = error
                        elif trouble.send_again(spec.id, error):
                            again.append((spec, error))
                            continue
                        else:
                            raise trouble.stopped(record, error, len(summaries), len(specs)) from None
                    else:
                        if summary is None:
                            again.append((spec, None))
                            continue
                        summaries[spec.id] = summary | spec.labels
                    finished.append(spec)
                watch(finished)
            for spec, before in again:
                send(spec, before)
    except BaseException:
        with interrupts_at_the_end():
            for future in pending:
                future.cancel()
        raise
    if errors:
        raise _failed(errors, len(specs), folder)
    return [summaries[spec.id] for spec in specs]


def refuse_other_code(specs: Sequence[RunSpec], folder: Path) -> None:
    """Refuse runs of which a folder holds what other contents of their plugin files played.

    (Those that failed are spared: they are played anew when they are tried again.  Damaged ones are refused elsewhere.)
    """
    others: dict[str, tuple[str, str]] = {}
    for spec in specs:
        record = RunFolder(folder / spec.id, spec.id)
        with suppress(RecordError):
            if not record.failed and (found := record.other_plugins(spec.checksums)):
                others[spec.id] = spec.learner.name, found
    if others:
        names = ",".join(dict.fromkeys(name for name, _ in others.values()))
        name, first = next(iter(others)), next(iter(others.values()))[1]
        raise OtherCodeError(
            f"{len(others)} of {len(specs)} runs under {folder} are by other code: {name} was played with {first}. "
            f"Play them again with --fresh {names}, give another folder with --out, or put the old content back"
        )


def _some(ended: queue.SimpleQueue[Future[Any]], most: int) -> list[Future[Any]]:
    """The futures that end within `LOOK_EVERY` seconds; at once when `most` have ended."""
    until = time.monotonic() + LOOK_EVERY
    futures: list[Future[Any]] = []
    while len(futures) < most:
        try:
            futures.append(ended.get(timeout=max(until - time.monotonic(), 0.0)))
        except queue.Empty:
            break
    return futures


def play_sent(
    plain: Mapping[str, Any], folder: Path, metrics: Mapping[str, Metric] | None, callback: RunCallback | None
) -> dict[str, Any]:
    """Play a run that was sent as plain data: in a worker, which may lack what it needs and then says so."""
    return run_safely(from_wire(plain), folder, metrics, callback)


@dataclass(frozen=True)
class Delivery(ABC):
    """How runs reach workers and their results come back."""

    folder: Path
    executor: Executor
    metrics: Mapping[str, Metric] | None
    callback: RunCallback | None

    @abstractmethod
    def send(self, spec: RunSpec) -> Future[Any]:
        """Have a run played."""

    @abstractmethod
    def receive(self, spec: RunSpec, result: Any) -> dict[str, Any] | None:
        """The summary of a run; None if it has to be sent again."""


class SharedDisk(Delivery):
    """Workers write into the durable folder themselves."""

    def send(self, spec: RunSpec) -> Future[dict[str, Any]]:
        """Have a worker play a run into the durable folder."""
        folder = (self.folder / spec.id).absolute()
        return self.executor.submit(play_sent, to_wire(spec), folder, self.metrics, self.callback)

    def receive(self, spec: RunSpec, result: dict[str, Any]) -> dict[str, Any]:
        """The summary, which the worker returned."""
        return result


class NoSharedDisk(Delivery):
    """Workers work in temporary folders; the durable folder is written here."""

    def send(self, spec: RunSpec) -> Future[Any]:
        """Have a worker play on for a while from the files that are here."""
        record = RunFolder(self.folder / spec.id, spec.id)
        future: Future[Any] = Future()
        try:
            refuse_failed(record)
            done = record.summary
            check_metrics(record, self.metrics, finished=done is not None)
            if done is None:
                seconds = AWAY_FACTOR * commit_seconds()
                parcel = files_of_run(record)
                return self.executor.submit(play_away, to_wire(spec), parcel, self.metrics, seconds, self.callback)
            future.set_result(None)
        except InvalidInputError as error:
            future.set_exception(error)
        return future

    def receive(self, spec: RunSpec, result: Any) -> dict[str, Any] | None:
        """Write the files that came back; the summary once the run is finished."""
        record = RunFolder(self.folder / spec.id, spec.id)
        if result is None:
            return record.summary
        with record.owned():
            if record.summary is None:
                unpack_parcel(result, record)
            if result.error is not None:
                record.fail(result.error)
                raise RunFailedError(str(result.error["error"]))
        return record.summary


@contextmanager
def _ticking(watch: Watch) -> Iterator[Watch]:
    """Look at the runs from a thread while this one is busy: an executor may play a run when it is submitted."""
    guard, over = threading.Lock(), threading.Event()

    def tell(done: Sequence[RunSpec]) -> None:
        with guard:
            watch(done)

    def tick() -> None:
        while not over.wait(LOOK_EVERY):
            tell([])

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        over.set()
        thread.join()


def _sent_again(delivery: Delivery, spec: RunSpec, error: BaseException) -> Future[Any]:
    """Send a run again; if no worker takes it, its future holds the error from before."""
    try:
        return delivery.send(spec)
    except Exception:
        future: Future[Any] = Future()
        future.set_exception(error)
        return future


def _failed(errors: Mapping[str, BaseException], n_runs: int, folder: Path) -> InvalidInputError:
    """One sentence about the runs that failed."""
    name, error = next(iter(errors.items()))
    if len(errors) == 1 and isinstance(error, RecordError):
        return error
    message = " ".join(failure(error)["error"].split())
    file = folder / name / "error.json"
    where = f" (see {file})" if file.exists() else ""
    return RunFailedError(f"{len(errors)} of {n_runs} runs failed; the first one, {name}, with: {message}{where}")
