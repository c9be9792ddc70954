"""Which command made which numbers of README and docs, whether what made them has changed, and how to renew them.

    python -m tools.page_numbers            # say which numbers were made by other code than this
    python -m tools.page_numbers renew      # make the cheap ones again
    python -m tools.page_numbers renew NAME # make these again, however long it takes (docs/PAGE.md: all of a page)
    python -m tools.page_numbers reduce NAME # keep what its new reduced command prints; the numbers stay
    python -m tools.page_numbers adopt NAME # keep what the page shows: its commands were run just now, one by one
    python -m tools.page_numbers adopt NAME VERSION DATE  # the same for what was made before anything was recorded

`docs/numbers.toml` has an entry per marked place of a page (`tools/marked.py`) or figure: the page, the command, and
the files that its numbers depend on; "@NAME" among them stands for the list NAME of its table `groups`.  For each
NAME the folder `docs/numbers` has what the command printed (NAME.md), when it was made and from which inputs
(NAME.json), and where a reduced command has rows of its own, what that one printed (NAME.reduced.md).  These are
written by this program, never by hand; a test holds the pages to them.  Entries of one command are renewed together.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from tools.agreement import disagreements
from tools.marked import fill, places

ROOT = Path(__file__).resolve().parents[1]
MANIFEST = "docs/numbers.toml"
KEPT = "docs/numbers"


@dataclass(frozen=True)
class Reduced:
    """A cheaper form of a command that tests run, and how far its numbers may be from those that are kept.

    Attributes
    ----------
    command
        What is run; it prints a Markdown table, unless `table` does.
    tolerance
        The largest relative difference of two numbers, beside the rounding of what was printed.
    recorded
        Whether it has rows of its own (fewer episodes, other seeds), kept beside the table; else they are the table's.
    columns
        The columns that are compared; all of them where none is named.
    rows
        The rows that are compared, called by their first cells; all of them where none is named.
    table
        What prints the table once `command` was run.
    results
        A folder under results/reduced in which `command` would go on where it was stopped: removed before it is run.
    """

    command: str
    tolerance: float
    recorded: bool = False
    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    table: str | None = None
    results: str | None = None

    @property
    def promise(self) -> str:
        """What a test that passes says of the numbers that are kept."""
        parts = {"rows": self.rows, "columns": self.columns}
        named = " and ".join(f"its {what} {', '.join(names)}" for what, names in parts.items() if names)
        whole = "what it printed last" if self.recorded else "it"
        return f"agrees with {named or whole} within {100 * self.tolerance:g} %"

    def rerun(self, root: Path = ROOT, ran: dict[str, str] | None = None) -> str:
        """Run it, unless it is among what `ran` before, and give its table."""
        ran = {} if ran is None else ran
        if self.command not in ran:
            if self.results is not None:
                shutil.rmtree(root / self.results, ignore_errors=True)
            ran[self.command] = printed(self.command, root)
        return ran[self.command] if self.table is None else printed(self.table, root)

    def disagreements(self, kept: str, found: str) -> list[str]:
        """A sentence for everything in which a rerun is not what was kept."""
        return disagreements(kept, found, self.tolerance, self.columns, self.rows, self.recorded)


@dataclass(frozen=True)
class Entry:
    """One marked place or figure of a page.

    Attributes
    ----------
    name
        The place's name on its page.
    page
        The page, from the root of the repository.
    command
        What a reader types.  It prints the table, unless `table` does.
    inputs
        Files and folders that the numbers depend on.
    dated
        Whether these are times: what they were on that day, on that machine.  They depend on no file, and nothing runs
        them again.
    table
        What prints the table once `command` was run; of an entry without a place, what fills its page by itself.
    cheap
        Whether `make numbers` runs it without being asked to by name.
    figures
        Pictures that the command writes.
    place
        Whether the page has a place of this name; else the entry is about figures, or about a page that `table` fills.
    results
        The folder in which `command` goes on where it was stopped: what other code left there is not gone on with.
    reduced
        The command that tests run.
    """

    name: str
    page: str
    command: str
    inputs: tuple[str, ...] = ()
    dated: bool = False
    table: str | None = None
    cheap: bool = False
    figures: tuple[str, ...] = ()
    place: bool = True
    results: str | None = None
    reduced: Reduced | None = None

    def file(self, ending: str, root: Path = ROOT) -> Path:
        """A file that is kept about this entry."""
        return root / KEPT / f"{self.name.replace(' ', '-')}{ending}"

    def made(self, root: Path = ROOT) -> dict[str, Any]:
        """Version and date of the numbers, and what their inputs were (None if that was not recorded)."""
        return json.loads(self.file(".json", root).read_text())

    def shown(self, root: Path = ROOT) -> str:
        """What the place on the page holds: the table, and a line that says where it comes from."""
        made = self.made(root)
        line = f"*`{self.command}`, version {made['version']}, {made['date']}.*"
        return f"{self.file('.md', root).read_text().strip(chr(10))}\n\n{line}"

    def changed(self, root: Path = ROOT) -> list[str]:
        """The inputs that are not what they were when the numbers were made; all if that was not recorded."""
        if self.dated:
            return []
        before = self.made(root)["inputs"] or {}
        return [path for path, now in self.prints(root).items() if before.get(path) != now]

    def prints(self, root: Path = ROOT) -> dict[str, str]:
        """The checksums of the inputs as they are."""
        return {path: fingerprint(root / path) for path in self.inputs}


def entries(root: Path = ROOT) -> list[Entry]:
    """What the manifest names."""
    found = []
    manifest = tomllib.loads((root / MANIFEST).read_text())
    groups = manifest.pop("groups", {})
    for name, fields in manifest.items():
        reduced = fields.pop("reduced", None)
        inputs, figures = tuple(spelled(fields.pop("inputs", ()), groups)), tuple(fields.pop("figures", ()))
        if reduced is not None:
            reduced = Reduced(
                **{key: tuple(value) if isinstance(value, list) else value for key, value in reduced.items()}
            )
        found.append(Entry(name=name, reduced=reduced, inputs=inputs, figures=figures, **fields))
    return found


def spelled(inputs: Sequence[str], groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Inputs with the groups among them spelled out, groups of groups too; each path once, the first time."""
    found: dict[str, None] = {}
    for path in inputs:
        if not path.startswith("@"):
            found[path] = None
        elif path[1:] not in groups:
            raise KeyError(f"{MANIFEST} has no group {path[1:]!r}")
        else:
            found |= dict.fromkeys(spelled(groups[path[1:]], groups))
    yield from found


def fingerprint(path: Path) -> str:
    """A checksum of a file, or of all sources in a folder with their names."""
    if not path.exists():
        raise FileNotFoundError(f"{MANIFEST} names {path} as an input, which is not there")
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    total = hashlib.sha256()
    for file in files:
        if "__pycache__" not in file.parts:  # what a compiler left is no source
            total.update(f"{file.relative_to(path).as_posix()}\n".encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:16]


def notices(root: Path = ROOT, page: str | None = None) -> Iterator[tuple[Entry, str]]:
    """A sentence for every entry (of a page) that was never made, or whose inputs have changed since it was."""
    for entry in entries(root):
        if page is not None and entry.page != page:
            continue
        what = "table" if entry.place else "page" if entry.table else "figure"
        if not entry.file(".json", root).exists():
            yield entry, f"this {what} was never made"
        elif changed := entry.changed(root):
            made = entry.made(root)
            when = f"(version {made['version']}, {made['date']})"
            sentence = f"what is in {', '.join(changed)} changed since this {what} was made {when}"
            if not made["inputs"]:
                sentence = f"from which code this {what} was made is not recorded {when}"
            elif entry.reduced is not None:
                sentence += f"; a reduced rerun in the tests {entry.reduced.promise}"
            yield entry, sentence


def printed(command: str, root: Path = ROOT) -> str:
    """What a command prints; `python` and `omdpd` are those of this environment, and so is the rest of PYTHONPATH."""
    words = shlex.split(command)
    environment = os.environ | {"OMDPD_QUIET": "1"}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        more = environment.get(name) if name == "PYTHONPATH" else None
        environment[name] = value if more is None else f"{value}{os.pathsep}{more}"
    known = {"python": [sys.executable], "omdpd": [sys.executable, "-m", "omdpd"]}
    words = [*known.get(words[0], words[:1]), *words[1:]]
    return subprocess.run(words, cwd=root, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout


def renew(entry: Entry, root: Path = ROOT, ran: dict[str, str] | None = None) -> None:
    """Run an entry's commands, keep what they printed, and put it into the page; not what `ran` before already."""
    ran = {} if ran is None else ran
    inputs = entry.prints(root)
    if entry.command not in ran:
        begin(entry, inputs, root)
        ran[entry.command] = printed(entry.command, root)
    table = printed(entry.table, root) if entry.table else ran[entry.command]
    if entry.place:
        keep(entry, table, root)
    keep_reduced(entry, root, ran)
    record(entry, now(), inputs, root)


def begin(entry: Entry, inputs: Mapping[str, str], root: Path = ROOT) -> None:
    """Note in an entry's folder of results which code they are of; what other code has left there is refused."""
    if entry.results is None:
        return
    folder = root / entry.results
    stamp, now = folder / "inputs.json", json.dumps(inputs, indent=1)
    if folder.exists() and any(folder.iterdir()) and not (stamp.exists() and stamp.read_text() == now):
        sys.exit(
            f"{entry.results} has what other code left, and `{entry.command}` would go on with it: remove it first"
        )
    folder.mkdir(parents=True, exist_ok=True)
    stamp.write_text(now)


def keep(entry: Entry, text: str, root: Path = ROOT) -> None:
    """Keep a table beside the page."""
    entry.file(".md", root).parent.mkdir(exist_ok=True)
    entry.file(".md", root).write_text(text.strip("\n") + "\n")


def keep_reduced(entry: Entry, root: Path = ROOT, ran: dict[str, str] | None = None) -> None:
    """Keep what the reduced command prints, if it has rows of its own."""
    if entry.reduced is not None and entry.reduced.recorded:
        entry.file(".reduced.md", root).write_text(entry.reduced.rerun(root, ran).strip("\n") + "\n")


def record(entry: Entry, when: Sequence[str], inputs: dict[str, str] | None, root: Path = ROOT) -> None:
    """Keep when (version, date) numbers were made and from what, and show them on the page."""
    version, day = when
    entry.file(".json", root).parent.mkdir(exist_ok=True)
    made = {"version": version, "date": day, "inputs": inputs}
    entry.file(".json", root).write_text(json.dumps(made, indent=1) + "\n")
    if entry.place:
        fill(root / entry.page, {entry.name: entry.shown(root)})


def now() -> tuple[str, str]:
    """The version of this checkout, and today."""
    (version,) = re.findall(r'__version__ = "(.+)"', (ROOT / "src" / "omdpd" / "__init__.py").read_text())
    return version, date.today().isoformat()


def adopt(entry: Entry, when: Sequence[str] = (), root: Path = ROOT) -> None:
    """Keep what the page shows: made now, or then (version, date) from inputs that are not known."""
    if entry.place:
        keep(entry, places((root / entry.page).read_text())[entry.name].split("\n\n*`")[0], root)
    if when:
        record(entry, when, None, root)
    else:
        record(entry, now(), entry.prints(root), root)


def chosen(found: Sequence[Entry], names: Sequence[str]) -> list[Entry]:
    """The entries of these names or pages and those that their commands make too; without a name the cheap ones."""
    known = {entry.name for entry in found} | {entry.page for entry in found}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"{MANIFEST} has no entry and no page {unknown[0]!r}")
    named = [entry for entry in found if ({entry.name, entry.page} & set(names) if names else entry.cheap)]
    return [entry for entry in found if entry.command in {other.command for other in named}]


def main(words: Sequence[str]) -> int:
    """Say what has changed, or renew, or adopt."""
    known = {entry.name: entry for entry in entries()}
    ran: dict[str, str] = {}
    match words:
        case ["renew", *names]:
            for entry in chosen(list(known.values()), names):
                renew(entry, ran=ran)
                print(f"renewed {entry.name} of {entry.page}", flush=True)
        case ["reduce", *names] if names:
            for name in names:
                keep_reduced(known[name], ran=ran)
        case ["adopt", name, *when] if len(when) in (0, 2):
            adopt(known[name], when)
        case []:
            for entry, sentence in notices():
                print(f"warning: {entry.page}, {entry.name}: {sentence}")
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
