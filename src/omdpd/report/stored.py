"""A stored run as everything that reads results reads it: `ls`, tables, figures, pages, `load_runs`, `verify`.

Every file is checked before anything of it is believed.  A run that is damaged, or says what no run can say, is in the
state "damaged" with a sentence that names the file: whoever shows several runs shows it so, and `sound` refuses it.
Rows, policies and arrays are read when they are asked for, from files alone, whatever the learner was.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from omdpd.experiments.one_run import measures_of
from omdpd.experiments.spec import RunSpec
from omdpd.play.judging import telling_exponent
from omdpd.play.policy import Policy
from omdpd.play.rows import SUMMARY
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.problem.markup import facts_html
from omdpd.report.checks import StoredProgress, check_summary, checked_policies, checked_rows, progress_of
from omdpd.report.columns import Columns
from omdpd.report.labels import KEYS, RunLabel, read_label, spelled_order, told_apart
from omdpd.storage.atomic import RecordError, is_half_written
from omdpd.storage.npz import Arrays
from omdpd.storage.provenance import contents_text
from omdpd.storage.run_folder import READING_TRIES, CheckedRecords, RunFolder
from omdpd.storage.sealed import SEALED
from omdpd.theory.monitor import Monitor, monitor_stored

# What a notebook shows of a summary.
SHOWN = tuple(name for name, column in SUMMARY.items() if column.narrow)
# What a summary says of the user's units.
MEASURES = ("budget", "cost_scale", "reward_range")
# A state larger than this is not opened for a picture of its visits.
MAX_STATE_BYTES = 2**25
# An unfinished run that committed this recently counts as running, in seconds.
RECENT = 30.0
# How folders of runs are named: something else of such a name stands where a run should.
RUN_NAME = re.compile("[0-9a-f]{20}")

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class StoredRun:
    """One run: what it is, how far it is, and its numbers; `refresh` reads what has changed.

    `fault` is why it failed or, of a damaged one, what is damaged.  A damaged run has no scores and no columns: nothing
    of it goes into a mean.
    """

    path: Path
    run: str
    asked: RunLabel | None = None
    state: str = "waiting"
    episodes: int = 0
    summary: dict[str, Any] | None = None
    fault: Mapping[str, Any] | None = None
    plugins: dict[str, str] = field(default_factory=dict)
    committed: float | None = None
    sealed: bool = True
    kept: StoredProgress = field(default_factory=StoredProgress)
    columns: dict[str, Floats] = field(default_factory=dict)
    stamp: Any = None
    known: set[Any] = field(default_factory=set)

    @property
    def id(self) -> str:
        """The name of the run's folder."""
        return self.path.name

    @property
    def folder(self) -> RunFolder:
        """The run's files, which must name it."""
        return RunFolder(self.path, self.run)

    @property
    def labels(self) -> tuple[str, str, str]:
        """World, nature and learner; question marks where no spec says them."""
        return ("?", "?", "?") if self.asked is None else self.asked.group

    @property
    def label(self) -> RunLabel:
        """What a run that can be named was asked to do."""
        assert self.asked is not None, "a run without a spec has no name, and no rows"
        return self.asked

    @property
    def spec(self) -> RunSpec | None:
        """The run as it can be played; None where nothing here knows a name of its spec."""
        return None if self.asked is None else self.asked.spec

    def be_called(self, label: RunLabel) -> None:
        """From now on the run has this label."""
        self.asked = label
        if self.summary is not None:
            self.summary = self.summary | {"learner": label.learner}

    def recent(self) -> bool:
        """Whether the run is not finished and committed a moment ago."""
        return self.state == "unfinished" and self.committed is not None and time.time() - self.committed < RECENT

    def refresh(self) -> bool:
        """Look at the run's files; whether anything changed since the last look.  Rows are read by `read_columns`."""
        for left in reversed(range(READING_TRIES)):
            now = self._stamps()
            if now == self.stamp:
                return False
            try:
                self._refuse_other()
                self._take(self.folder.check(self.known))
            except (InvalidInputError, OSError) as error:
                if left and now != self._stamps():
                    continue  # files were replaced while they were read
                self.damage(error)
            break
        self.stamp = now
        return True

    def sound(self) -> StoredRun:
        """This run; refused if it is damaged."""
        if self.state == "damaged":
            raise RecordError(self.told)
        return self

    @property
    def told(self) -> str:
        """The sentence of a run that is damaged or failed."""
        return " ".join(str((self.fault or {}).get("error", "")).split())

    def damage(self, error: Exception) -> None:
        """From now on the run counts as damaged."""
        text = str(error)
        self.state, self.summary, self.columns, self.kept = "damaged", None, {}, StoredProgress()
        self.fault = {"error": text if str(self.path) in text else f"{self.path} is damaged: {text}"}
        if self.asked is None:
            with suppress(InvalidInputError, OSError):
                self.asked = read_label(self.path / "spec.toml", self.folder.spec())

    def tried(self, read: Callable[[], T]) -> T | None:
        """What is read of the run; None, and the run is damaged, where that is not possible."""
        if self.state == "damaged":
            return None
        try:
            return read()
        except (InvalidInputError, OSError) as error:
            if self.stamp == self._stamps():  # else it is looked at again
                self.damage(error)
            return None

    def committed_rows(self) -> Columns | None:
        """All committed rows, held against the values of all episodes and the summary; None if there are none."""
        return self.folder.settled(self._rows)

    def read_columns(self) -> dict[str, Floats]:
        """The committed rows as arrays, read once."""
        if not self.columns and (rows := self.committed_rows()) is not None:
            self.columns = {name: column.astype(np.float64) for name, column in rows.items()}
        return self.columns

    def snapshots(self) -> Arrays:
        """What the run kept on the way: policies and numbers on a grid of episodes; empty if it kept nothing."""
        kept = self.folder.settled(self.folder.policies)
        return {} if kept is None else checked_policies(self.path, kept, self.folder.episodes)

    def arrays(self, most: int = MAX_STATE_BYTES) -> Arrays:
        """The arrays of the stored state; none where it is too large to open for a picture."""
        manifest = self.folder.manifest()
        if manifest is None or manifest.state.size > most:
            return {}
        last = self.folder.settled(self.folder.last_commit)
        return {} if last is None else last.arrays

    def whole(self, most: int = MAX_STATE_BYTES) -> StoredRun:
        """This run, with every part of it read to its end; refused where one is not what runs have."""
        self.read_columns()
        self.snapshots()
        self.arrays(most)
        return self

    @property
    def rows(self) -> Columns:
        """The recorded episodes; refused if there are none yet."""
        rows = self.committed_rows()
        if rows is None:
            raise RecordError(f"{self.path} holds no rows yet")
        return rows

    @property
    def policies(self) -> dict[int, Policy]:
        """The policies that were kept on the way, by the episodes played before; the last one is `policy`.

        They are kept in single precision, and their rows are scaled to sum to one.
        """
        kept = self.snapshots()
        if not kept:
            raise InvalidInputError(f'{self.path} kept no policies: run it with policies = "log"')
        cmdp = self.cmdp()
        labels = Labels() if cmdp is None else cmdp.labels
        tables = kept["policies"].astype(np.float64)
        tables /= tables.sum(axis=-1, keepdims=True)
        return {int(k): Policy(table, labels) for k, table in zip(kept["episodes"], tables, strict=True)}

    @property
    def policy(self) -> Policy:
        """The last policy that was kept: after the last episode of a finished run."""
        kept = self.policies
        return kept[max(kept)]

    def monitor(self) -> Monitor:
        """The run played again beside the truth; ``omdpd lab monitor`` also says whether it came out as recorded."""
        if self.spec is None:
            raise InvalidInputError(f"{self.path} names a part that nothing here knows: it cannot be played")
        return monitor_stored(self.spec, self.folder).monitor

    def __repr__(self) -> str:
        world, nature, learner = self.labels
        return f"StoredRun({learner}, {world}, {nature}, seed {self._seed}, {self.state}: {self._progress})"

    def _repr_html_(self) -> str:
        """The run in a notebook."""
        world, nature, learner = self.labels
        numbers = {name: f"{value:.4g}" for name in SHOWN if (value := self._shown(name)) is not None}
        facts = {"world": world, "nature": nature, "seed": self._seed, "episodes": self._progress} | numbers
        return facts_html(f"{learner} ({self.state})", facts)

    @property
    def _seed(self) -> int | None:
        return None if self.asked is None else self.asked.seed

    @property
    def _progress(self) -> str:
        return f"{self.episodes} of {self.asked.episodes if self.asked else '?'} episodes"

    def _shown(self, name: str) -> float | None:
        """A number of the summary; of exponents those that tell something."""
        value = (self.summary or {}).get(name)
        return telling_exponent(value, self.episodes) if name.endswith("_exponent") else value

    def cmdp(self) -> CMDP | None:
        """The world that it is played in; None where that cannot be built here."""
        if self.asked is None or self.asked.world_spec is None:
            return None
        try:
            return self.asked.world_spec.build(np.random.default_rng(self.asked.stream(0)))
        except Exception:  # a stranger's world may raise anything
            return None

    def measures(self) -> dict[str, Any]:
        """Budget, scales of costs and range of rewards, as a summary has them.

        Before there is one the world is built for it, unless nothing was played or the run failed, perhaps because of
        its world: then nothing.
        """
        if self.summary is not None:
            return {key: self.summary[key] for key in MEASURES if key in self.summary}
        cmdp = self.cmdp() if self.state == "unfinished" else None
        return {} if cmdp is None else measures_of(cmdp)

    def _refuse_other(self) -> None:
        """Refuse what is no folder; and links, because results never hold any."""
        if self.path.is_symlink():
            raise RecordError(f"{self.path} is a link, and links are not followed")
        if not self.path.is_dir():
            raise RecordError(f"{self.path} is not the folder of a run")

    def _take(self, checked: CheckedRecords) -> None:
        """Believe what the records say."""
        manifest, summary, file = checked.manifest, checked.summary, self.path / "commit.json"
        asked = None if checked.spec_text is None else read_label(self.path / "spec.toml", checked.spec)
        if asked is None and (manifest is not None or summary is not None):
            raise RecordError(f"{self.path / 'spec.toml'} is missing")
        if summary is not None:
            check_summary(self.path / "summary.json", summary, self.run)
            if manifest is None:
                raise RecordError(f"{self.path / 'summary.json'} sums up a run without rows")
            summary = summary if asked is None or asked.spec is None else summary | asked.spec.labels
        self.kept = StoredProgress() if manifest is None else progress_of(file, manifest)
        self.episodes = 0 if manifest is None else manifest.episodes
        self.committed = None if manifest is None else file.stat().st_mtime
        self.sealed = manifest is None or manifest.format >= SEALED
        self.asked, self.summary, self.fault, self.columns = asked or self.asked, summary, checked.error, {}
        if asked is not None and asked.spec is None:
            self.asked = asked.called(_called(summary, checked.provenance))
        plugins = (checked.provenance or {}).get("plugins")
        self.plugins = {str(k): str(v) for k, v in plugins.items()} if isinstance(plugins, dict) else {}
        begun = "started" if asked is not None else "waiting"
        unfinished = "failed" if checked.error is not None else "unfinished" if self.episodes else begun
        self.state = "finished" if summary is not None else unfinished

    def _rows(self) -> Columns | None:
        rows = self.folder.rows()
        if rows is None and self.summary is not None:
            raise RecordError(f"{self.path / 'summary.json'} sums up a run without rows")
        return None if rows is None else Columns(checked_rows(self.path, rows, self.folder.values(), self.summary))

    def _stamps(self) -> Any:
        """What changes when a file of the run is replaced or written to."""
        try:
            with os.scandir(self.path) as found:
                files = [f for f in found if f.name != "lock" and not is_half_written(f.name)]
            known = [(f.name, f.stat(follow_symlinks=False)) for f in files]
        except OSError as error:
            return error.errno
        return sorted((name, each.st_mtime_ns, each.st_ino, each.st_size) for name, each in known)


def _called(summary: Mapping[str, Any] | None, provenance: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Labels of world, nature and learner, as the process that played the run wrote them; none in folders of 0.2."""
    said = [summary.get(key) for key in KEYS] if summary is not None else (provenance or {}).get("labels")
    return tuple(said) if isinstance(said, list) and all(isinstance(name, str) for name in said) else ()


def read_run(path: Path, run: str | None = None) -> StoredRun:
    """The run of one folder, damaged or not; its files must name `run`, by default as the folder is named."""
    found = StoredRun(path, path.absolute().name if run is None else run)
    found.refresh()
    return found


def run_paths(folder: Path) -> list[Path]:
    """Where a folder of results has runs, or something else in their place."""
    runs = folder / "runs"
    if not runs.is_dir():
        return []
    return sorted(p for p in runs.iterdir() if p.is_dir() or p.is_symlink() or RUN_NAME.fullmatch(p.name))


def all_runs(folder: Path) -> list[StoredRun]:
    """The runs under a folder of results, damaged ones too: in the order of its experiment's file, then by name."""
    if not (folder / "runs").is_dir():
        raise InvalidInputError(f"{folder} holds no results: there is no folder {folder / 'runs'}")
    found = [run for run in map(read_run, run_paths(folder)) if run.state != "waiting"]
    tell_apart(found)
    place = spelled_order(folder)
    return sorted(
        found, key=lambda run: (place(run.asked), run.labels, -1 if run.asked is None else run.asked.seed, run.id)
    )


def tell_apart(runs: Iterable[StoredRun]) -> None:
    """Let no label of these runs be of two things."""
    named = [(run, run.asked) for run in runs if run.asked is not None]
    for (run, _), label in zip(named, told_apart([asked for _, asked in named]), strict=True):
        run.be_called(label)


def stored_runs(folder: Path) -> list[StoredRun]:
    """The runs under a folder of results; refused if one of them is damaged."""
    return [run.sound() for run in all_runs(folder)]


def mixed_code(runs: Iterable[StoredRun]) -> list[str]:
    """A sentence for every learner whose runs were played with different contents of a plugin file: no mean is of both.

    In one world and nature all its runs are by the same contents; a file of one name has the same content everywhere.
    """
    found: dict[tuple[str, Any], dict[tuple[str, ...], list[StoredRun]]] = {}
    for run in runs:
        learner, contents = run.labels[2], tuple(sorted(run.plugins.values()))
        found.setdefault((learner, run.labels), {}).setdefault(contents, []).append(run)
        for name, digest in run.plugins.items():
            found.setdefault((learner, name), {}).setdefault((digest,), []).append(run)
    told: dict[str, str] = {}
    for (learner, _), versions in found.items():
        if len(most := sorted(versions.values(), key=len, reverse=True)) > 1:
            each = ", ".join(f"{len(same)} with {contents_text(same[0].plugins)}" for same in most)
            told.setdefault(learner, each)
    return [
        f"the runs of {learner} are by different code ({each}), so a mean over them is of no algorithm: "
        f"play them again with --fresh {learner.split('(')[0]}, or in a new folder if a setting was added"
        for learner, each in told.items()
    ]


def load_run(folder: str | Path) -> StoredRun:
    """One run: its own folder (``results/NAME/runs/ID``), or a folder of results that holds a single run."""
    path = Path(folder)
    if (path / "runs").is_dir():
        runs = stored_runs(path)
        if len(runs) != 1:
            example = f", for example {runs[0].path}" if runs else ""
            raise InvalidInputError(f"{path} holds {len(runs)} runs: name one of them{example}")
        return runs[0]
    if not (path / "spec.toml").is_file():
        raise InvalidInputError(f"{path} holds no run: there is neither a spec.toml nor a folder runs in it")
    return read_run(path).sound()
