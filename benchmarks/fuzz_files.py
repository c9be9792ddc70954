"""Feed the readers files that were spoilt at random, for a bounded time; what is no plain refusal is kept and reported.

    python -m benchmarks.fuzz_files 60        # seconds
    python -m benchmarks.fuzz_files 60 17     # from this seed on

Experiments in TOML, problem files, states (npz), tables (Parquet), run folders and sessions; folders that are forged
with right checksums (`forged_folders.py`), all of them every time.  A good file is taken, and
bytes of it are flipped, cut, doubled, exchanged or replaced by words that readers know.  A reader may take the result
or refuse it with one sentence.  After that come the inputs that `strange_inputs` lists: specs, settings, plugins,
environments, and what is no file.  Anything else (another exception, many seconds, much memory, a run or a session with
changed bytes that is not refused) is a failure: its input goes to ``tests/corpus``, where `make test` reads it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import forged_folders
from benchmarks.strange_inputs import cases
from omdpd import BanditFeedback, ProximalOMDPD, Session, Setting, Trajectory
from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.files import STARTER, load_experiment
from omdpd.problem.arrays import InvalidInputError
from omdpd.report.results import load_runs
from omdpd.report.stored import stored_runs
from omdpd.storage.columns import read_columns
from omdpd.storage.journal import verify_session
from omdpd.storage.npz import arrays_of_npz, npz_of_arrays
from omdpd.worlds.files import load_problem

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "corpus"
# The bars: no input takes longer or makes the process grow by more.
# Seconds by the clock after which a call counts as hanging: long, since the machine may be busy.
HANGS = 240
MAX_SECONDS, MAX_MEGABYTES = 20.0, 1000
WORDS = (
    b"nan", b"inf", b"-1", b"0", b"1e400", b"99999999999999999999", b'"', b"'", b"[", b"]", b"{", b"}", b"=", b"\n",
    b"\0", b"\xff", b"PK\x05\x06", b"PK\x03\x04", b"\x93NUMPY", b"PAR1", b"true", b"null", b"../", b"\xff" * 8,
    b"\0" * 8, b"\x7f\xff\xff\xff", b"name", b"horizon", b"sha256", b"format", b"(1000000000,)", b"'|O'",
)  # fmt: skip
TOML = """\
episodes = 5
seeds = 2
worlds = [{ name = "cyclic" }]
natures = [{ name = "noisy" }]
learners = [{ name = "Uniform" }]
"""


@dataclass(frozen=True)
class Target:
    """A reader: the good contents it starts from, and what reads a spoilt one (strictly: or must refuse it)."""

    name: str
    seeds: tuple[bytes, ...]
    read: Callable[[bytes], None]
    strict: bool = False


def spoilt(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four things done to it."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        n = len(content)
        i, j = sorted((rng.randrange(n + 1), rng.randrange(n + 1)))
        word = rng.choice(WORDS)
        content = rng.choice(
            (
                lambda c=content, i=i: (
                    c[:i] + bytes([(c[i] if i < len(c) else 0) ^ (1 << rng.randrange(8))]) + c[i + 1 :]
                ),
                lambda c=content, i=i: c[:i],
                lambda c=content, i=i, j=j: c[:i] + c[j:],
                lambda c=content, i=i, j=j: c[:j] + c[i : i + 200] + c[j:],
                lambda c=content, i=i, w=word: c[:i] + w + c[i:],
                lambda c=content, i=i, w=word: c[:i] + w + c[i + len(w) :],
                lambda c=content, i=i: c[:i] + rng.randbytes(8) + c[i + 8 :],
            )
        )()
        content = content or b"x"
    return content


def targets(folder: Path) -> list[Target]:
    """Every reader, with good files made in a folder."""
    files = folder / "files"
    files.mkdir()
    return [
        _file_target("experiment", files / "x.toml", (STARTER.encode(), TOML.encode()), load_experiment),
        _file_target("problem", files / "x.npz", _problems(), load_problem),
        Target(
            "npz", (npz_of_arrays({"a0": np.arange(6.0), "a1": np.eye(2)}),), lambda c: _drop(arrays_of_npz(c, "x"))
        ),
        Target("parquet", (_table(),), lambda c: _drop(read_columns(c, "x.parquet", 100))),
        *_run_targets(folder / "out"),
        *_session_targets(folder / "session"),
    ]


def failure(target: Target, content: bytes) -> str | None:
    """What is wrong with how a content is read; None if nothing is."""
    return trouble(lambda: target.read(content), strict=target.strict and content not in target.seeds)


def trouble(call: Callable[[], object], strict: bool = False) -> str | None:
    """What is wrong with how a call ends; None if it ends well (unless it must not) or is refused with a sentence."""
    began = time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    before_alarm = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(HANGS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
        wrong = "it was not refused" if strict else None
    except InvalidInputError as error:
        wrong = None if "\n" not in str(error) and len(str(error)) < 3000 else f"a refusal of many lines: {error}"
    except BaseException as error:
        wrong = f"{type(error).__name__}: {error}"
        if isinstance(error, KeyboardInterrupt):
            raise
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before_alarm)
    if time.process_time() - began > MAX_SECONDS:
        wrong = wrong or "it takes too long"
    if (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 > MAX_MEGABYTES:
        wrong = wrong or "it takes too much memory"
    return wrong


def listed(every: int = 1) -> tuple[int, list[str]]:
    """Every (or every so many-th) listed input of a stranger; how many there were, and a line per failure."""
    n, found = 0, []
    with tempfile.TemporaryDirectory(prefix="omdpd-fuzz-") as folder, contextlib.chdir(folder):
        for i, case in enumerate(cases(Path(folder))):
            if i % every == 0:
                n += 1
                if (wrong := trouble(case.call)) is not None:
                    found.append(f"{case.name}: {wrong}")
    return n, found


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError("it takes too long")


def fuzz(seconds: float, seed: int, most: int | None = None) -> tuple[int, list[str]]:
    """Spoil files for some seconds (or `most` times per reader); the number of inputs, and a line per failure."""
    n, found = 0, []
    with tempfile.TemporaryDirectory(prefix="omdpd-fuzz-") as folder:
        readers = targets(Path(folder))
        rngs = {target.name: random.Random(f"{seed} {target.name}") for target in readers}
        end, rounds = time.monotonic() + seconds, 0
        while time.monotonic() < end and (most is None or rounds < most):
            rounds += 1
            for target in readers:
                rng = rngs[target.name]
                content = spoilt(rng.choice(target.seeds), rng)
                n += 1
                if (wrong := failure(target, content)) is not None:
                    found.append(f"{target.name}: {wrong}: {_keep(target.name, content)}")
    return n, found


def replayed() -> list[str]:
    """What is still wrong with the inputs of the corpus."""
    with tempfile.TemporaryDirectory(prefix="omdpd-fuzz-") as folder:
        readers = {target.name: target for target in targets(Path(folder))}
        kept = sorted(file for file in CORPUS.glob("*/*.bin") if file.parent.name in readers)
        answers = ((file, failure(readers[file.parent.name], file.read_bytes())) for file in kept)
        return [f"{file}: {wrong}" for file, wrong in answers if wrong is not None]


def _file_target(name: str, file: Path, seeds: tuple[bytes, ...], read: Callable[[Path], object]) -> Target:
    def reader(content: bytes) -> None:
        file.write_bytes(content)
        read(file)

    return Target(name, seeds, reader)


def _problems() -> tuple[bytes, ...]:
    tables = {"transition": np.full((2, 2, 2), 0.5), "reward": np.ones((2, 2)), "cost": np.zeros((2, 2))}
    plain, packed = io.BytesIO(), io.BytesIO()
    np.savez(plain, **tables, horizon=3, budget=1.0)
    np.savez_compressed(packed, **tables, horizon=3)
    return plain.getvalue(), packed.getvalue()


def _table() -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"episode": np.arange(20), "value": np.linspace(0.0, 1.0, 20)}), stream)
    return stream.getvalue()


def _run_targets(out: Path) -> list[Target]:
    """A file of a run, spoilt as it is: every reader of results must refuse it."""
    (out.parent / "x.toml").write_text(TOML)
    run_experiment(load_experiment(out.parent / "x.toml"), out, InProcess())
    run = sorted((out / "runs").iterdir())[0]
    names = ["spec.toml", "commit.json", "summary.json", "provenance.json"]
    names += [next(iter(run.glob(f"{kind}-*"))).name for kind in ("rows", "values", "state")]

    def target(file: Path) -> Target:
        good = file.read_bytes()

        def read(content: bytes) -> None:
            file.write_bytes(content)
            try:
                stored_runs(out)
                load_runs(out)
            finally:
                file.write_bytes(good)

        return Target(f"run-{file.name.split('-')[0].replace('.', '-')}", (good,), read, strict=True)

    def resealed(file: Path) -> Target:
        """The same with a right checksum, as somebody writes it who knows how: refused or read, never a crash."""
        good = file.read_bytes()

        def read(content: bytes) -> None:
            zeros = b"0" * 64
            start = content.find(b'"sha256": "') + 11
            blank = content[:start] + zeros + content[start + 64 :]
            file.write_bytes(content[:start] + hashlib.sha256(blank).hexdigest().encode() + content[start + 64 :])
            try:
                stored_runs(out)
                load_runs(out)
            finally:
                file.write_bytes(good)

        return Target(f"resealed-{file.name.replace('.', '-')}", (good,), read)

    return [
        *(target(run / name) for name in names),
        *(resealed(run / name) for name in ("commit.json", "summary.json")),
    ]


def _session_targets(folder: Path) -> list[Target]:
    """A file of a session, spoilt: refused, except that the tail of its log may be cut off."""
    with Session.open(folder, ProximalOMDPD.cautious(), Setting(2, 2, 2), snapshot_every=2) as session:
        for _ in range(3):
            met = Trajectory(np.array([0, 1]), np.array([1, 0]))
            session.update(BanditFeedback(met, np.array([1.0, 0.0]), np.array([[0.2, -0.1]])))

    def target(file: Path, strict: bool) -> Target:
        good = file.read_bytes()

        def read(content: bytes) -> None:
            file.write_bytes(content)
            try:
                verify_session(folder)
            finally:
                file.write_bytes(good)

        return Target(f"session-{file.name.split('-')[0].replace('.', '-')}", (good,), read, strict)

    names = (("session.json", True), ("snapshot.json", True), ("state-000000002.npz", True))
    return [
        *(target(folder / name, strict) for name, strict in names),
        target(folder / "journal-000000002.log", False),
    ]


def _drop(value: object) -> None:
    """What was read is of no use here."""


def _keep(name: str, content: bytes) -> Path:
    file = CORPUS / name / f"{hashlib.sha256(content).hexdigest()[:16]}.bin"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    n, found = fuzz(seconds, seed)
    found += [f"forged {name}: {wrong}" for name, wrong in forged_folders.failures() if wrong is not None]
    print(json.dumps({"seed": seed, "inputs": n, "failures": len(found)}))
    n, wrong = listed()
    print(json.dumps({"listed": n, "failures": len(wrong)}))
    for line in (found + wrong)[:20]:
        print(line[:400])
    if found or wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
