"""What is no plain file of a bounded size, wherever a user names a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.strange_inputs import Case
from benchmarks.strange_inputs.specs import command
from omdpd import Policy, load_problem
from omdpd.experiments.files import load_experiment
from omdpd.experiments.plugins import read_plugin
from omdpd.gym import Learned
from omdpd.worlds.files import file_digest

READERS = (load_experiment, read_plugin, load_problem, file_digest, Policy.load, Learned.load)
COMMANDS = (["check"], ["solve"], ["show"], ["run"], ["list", "--plugin"], ["suite", "--plugin"])


def cases(folder: Path) -> Iterator[Case]:
    """Every reader with every kind of thing."""
    names = [
        "none",
        "folder",
        "pipe.npz",
        "loop.npz",
        "empty.npz",
        "huge.npz",
        "dangling.npz",
        "x" * 300,
        "a\0b",
        "b\udcff",
    ]
    os.mkfifo(folder / "pipe.npz")
    (folder / "folder").mkdir()
    (folder / "loop.npz").symlink_to("loop.npz")
    (folder / "dangling.npz").symlink_to("nowhere")
    (folder / "pipe.toml").symlink_to("pipe.npz")
    (folder / "empty.npz").write_bytes(b"")
    with open(folder / "huge.npz", "wb") as stream:
        stream.truncate(2**40)
    things = [*(folder / name for name in names), Path("/dev/zero"), Path("/dev/null"), Path("/proc/self/mem"), Path()]
    for thing in things:
        for reader in READERS:
            yield Case(f"{reader.__qualname__} of {str(thing)[-30:]!r}", lambda r=reader, t=thing: _read(r, t))
        if "\0" not in str(thing):
            for words in COMMANDS:
                yield Case(f"omdpd {words[0]} {str(thing)[-30:]!r}", lambda w=words, t=thing: _run([*w, str(t)]))


def _read(reader: object, thing: Path) -> None:
    assert callable(reader)
    try:
        reader(thing)
    except OSError as error:  # as the command line says it, in one sentence
        if not error.strerror:
            raise


def _run(words: list[str]) -> None:
    try:
        command(words)
    except OSError as error:
        if not error.strerror:
            raise
