"""Experiments with one entry replaced, in their file and by --set, and files that are none; a few by the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from benchmarks.strange_inputs import VALUES, Case
from omdpd.cli.main import app
from omdpd.experiments.files import load_experiment
from omdpd.problem.arrays import InvalidInputError

GOOD = {
    "episodes": "5", "seeds": "2", "first_seed": "0", "record": '"all"', "policies": '"none"', "episodes_known": "true",
    "worlds": '[{ name = "inventory" }]', "natures": '[{ name = "pool" }]', "learners": '[{ name = "Uniform" }]',
}  # fmt: skip
# Settings of parts: what stands in the file, with a place for the value.
PARTS = {
    "worlds.name": ("worlds", "[{{ name = {} }}]"),
    "worlds.horizon": ("worlds", '[{{ name = "random_dirichlet", horizon = {} }}]'),
    "worlds.n_states": ("worlds", '[{{ name = "random_dirichlet", n_states = {} }}]'),
    "worlds.path": ("worlds", '[{{ name = "file", path = {} }}]'),
    "natures.size": ("natures", '[{{ name = "pool", size = {} }}]'),
    "learners.z": ("learners", '[{{ name = "ProximalOMDPD.standard", z = {} }}]'),
    "learners.name": ("learners", "[{{ name = {} }}]"),
}
WHOLE = (
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbfepisodes = 1", b"episodes = 1\r", b"[" * 5000, b"a." * 5000 + b"b = 1",
    b"episodes = 1\nepisodes = 2", b"[[worlds]]\n" * 20000, b"#" * 2**21, b"\x1b]0;x\x07 = 1", b"x = '\xff'", b"{}",
    b"[worlds]\nname = 'cyclic'", b"worlds = 1", b"import os", b"PK\x03\x04", b"= 1", b"'' = 1", b'"\\u0000" = 1',
)  # fmt: skip
KEYS = (
    "", ".", "a.b.c", "episodes.", ".episodes", "worlds[0]", "worlds[-1].name", "worlds[x].name", "worlds[].name",
    "worlds[99999999999].name", "worlds[" + "1" * 5000 + "].horizon", "worlds", "learners", "__class__", "épisodes",
    "natures.name.x", "worlds.plugin", "worlds.__init__", "worlds[0].sha256", "\x1b[2J", "a" * 10000, "episodes\n",
)  # fmt: skip


def cases(folder: Path) -> Iterator[Case]:
    """Files, settings beside a good file, and some of both through the command."""
    good = folder / "good.toml"
    good.write_text(_spelled({}))
    for key, (kind, pattern) in {**{key: (key, "{}") for key in GOOD}, **PARTS}.items():
        for i, value in enumerate(VALUES):
            content = _spelled({kind: pattern.format(value)}).encode()
            yield Case(f"file: {key} = {value[:40]!r}", lambda c=content: load_experiment(_written(folder, c)))
            settings = [f"{key}={value}"]
            yield Case(f"--set {settings[0][:60]!r}", lambda s=settings: load_experiment(good, (), s))
            if i % 8 == 0:
                words = ["run", str(good), "--dry-run", "--set", settings[0]]
                yield Case(f"omdpd run --set {settings[0][:60]!r}", lambda w=words: command(w))
    for i, content in enumerate(WHOLE):
        yield Case(f"file {content[:40]!r}", lambda c=content: load_experiment(_written(folder, c)))
        if i % 4 == 0:
            yield Case(f"omdpd run {content[:40]!r}", lambda c=content: command(["run", str(_written(folder, c))]))
    for key in KEYS:
        yield Case(f"--set key {key[:40]!r}", lambda k=key: load_experiment(good, (), [f"{k}=1"]))
    for text in ("", "/", "0/0", "1/0", "9/3", "-1/3", "1/" + "9" * 5000, "a/b", "1/2/3", "\uff11/\uff12"):
        yield Case(f"--shard {text[:40]!r}", lambda t=text: command(["run", str(good), "--dry-run", "--shard", t]))


def command(words: list[str]) -> None:
    """`omdpd words` in this process; a refusal is raised, and an exit that is no refusal must be a usage error."""
    done = CliRunner().invoke(app, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code not in (0, 2):
        raise AssertionError(f"exit code {done.exit_code}: {done.output[-200:]}")
    if "Traceback" in done.output:
        raise InvalidInputError("a traceback\nwas printed")


def _spelled(changed: dict[str, str]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in {**GOOD, **changed}.items())


def _written(folder: Path, content: bytes) -> Path:
    file = folder / "spoilt.toml"
    file.write_bytes(content)
    return file
