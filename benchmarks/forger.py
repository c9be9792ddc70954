"""Files of a run that say something else, under right checksums: what `forged_folders.py` forges with."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omdpd.storage.npz import Arrays, arrays_of_npz, npz_of_arrays
from omdpd.storage.sealed import sealed_json, sealed_toml

MARKS = ("sha256", "format", "run", "commit")


@dataclass
class Forger:
    """The files of one run, each of which can be made to say something else under a right checksum."""

    run: Path

    def seal(self, name: str, content: Any) -> None:
        """A record with its checksum, also of numbers that are not written; the summary goes on naming the commit."""
        plain = {key: value for key, value in content.items() if key not in MARKS}
        named = {"run": content["run"]} if "run" in content and name == "summary.json" else {}
        if name == "summary.json":
            plain = {"commit": hashlib.sha256((self.run / "commit.json").read_bytes()).hexdigest(), **plain, **named}
        text = sealed_json(self.run.name, _tame(plain))
        for value, word in ((10**400, str(10**400)), (float("inf"), "1e999")):
            text = text.replace(json.dumps(f"<{value}>").encode(), word.encode())
        (self.run / name).write_bytes(_resealed(text))

    def file(self, name: str) -> Path:
        """A file by its name, or by the beginning of it and a star."""
        return next(iter(self.run.glob(name))) if "*" in name else self.run / name

    def record(self, name: str) -> Any:
        """What a record says."""
        return json.loads((self.run / name).read_text())

    def commit(self, change: Callable[[Any], object]) -> None:
        """Another commit.json, and the summary of it."""
        content = self.record("commit.json")
        change(content)
        self.seal("commit.json", content)
        self.seal("summary.json", self.record("summary.json"))

    def part(self, kind: str, content: bytes) -> None:
        """Another content of the rows, the values, the state or the policies."""
        file = self.file(f"{kind}-*")
        file.write_bytes(content)
        entry = {"file": file.name, "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        self.commit(lambda c: c.update({kind: [entry] if isinstance(c[kind], list) else entry}))

    def content(self, kind: str) -> bytes:
        """What a part holds."""
        return self.file(f"{kind}-*").read_bytes()

    def table(self, kind: str, change: Callable[[Arrays], Arrays]) -> None:
        """Another table."""
        self.part(kind, npz_of_arrays(change(arrays_of_npz(self.content(kind), kind))))

    def arrays(self, kind: str, change: Callable[[Any], object]) -> None:
        """Other arrays."""
        arrays = dict(arrays_of_npz(self.content(kind), kind))
        change(arrays)
        self.part(kind, npz_of_arrays(arrays))

    def summary(self, key: str, *value: Any) -> None:
        """Another entry of the summary, or none."""
        content = self.record("summary.json")
        content.pop(key, None)
        self.seal("summary.json", content | ({key: value[0]} if value else {}))

    def spec(self, before: str, after: str) -> None:
        """Another text in the spec."""
        text = (self.run / "spec.toml").read_text().split("\n", 1)[1]
        assert before in text, (before, text)
        (self.run / "spec.toml").write_bytes(sealed_toml(self.run.name, text.replace(before, after)))

    def fail(self, error: dict[str, Any]) -> None:
        """A run that failed, instead of one that finished."""
        (self.run / "summary.json").unlink()
        self.seal("error.json", {"error": "x", "traceback": "y"} | error)


def put_instead(path: Path, how: str) -> None:
    """Put something else where a file or a folder was."""
    path = path.parent.resolve() / path.name
    elsewhere = path.parent.parent.parent / f"elsewhere-{path.name}"
    shutil.rmtree(elsewhere, ignore_errors=True)
    elsewhere.unlink(missing_ok=True)
    path.rename(elsewhere)
    if how in ("a link", "a dead link"):
        path.symlink_to(elsewhere if how == "a link" else elsewhere / "nowhere")
    elif how == "a pipe":
        os.mkfifo(path)
    elif how == "a folder":
        path.mkdir()
    elif how == "empty" and elsewhere.is_dir():
        path.touch()
    elif how in ("2 GiB", "empty"):
        with open(path, "wb") as stream:
            stream.truncate(2**31 + 1 if how == "2 GiB" else 0)


def _tame(value: Any) -> Any:
    """Numbers that JSON's writer refuses as marked words."""
    if isinstance(value, dict):
        return {key: _tame(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_tame(item) for item in value]
    wild = isinstance(value, float) and value == float("inf")
    return f"<{value}>" if wild or (isinstance(value, int) and value == 10**400) else value


def _resealed(text: bytes) -> bytes:
    start = text.find(b'"sha256": "') + 11
    blank = text[:start] + b"0" * 64 + text[start + 64 :]
    return blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1)
