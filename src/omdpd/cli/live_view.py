"""Live lines show on a terminal how runs go, and plain lines show it elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from omdpd.cli.screen import Screen
from omdpd.experiments.spec import RunSpec
from omdpd.storage.atomic import RecordError
from omdpd.storage.run_folder import RunFolder

# Where the output is no terminal: a line this often, in seconds.
PLAIN_EVERY = 10.0
# The time to go is said from one in so many episodes on: the first ones compile.
ENOUGH = 20
# Live lines for at most this many runs at a time.
MAX_LINES = 16


class LiveView:
    """One live line per active run plus the total with its time to go, from what the runs have committed."""

    def __init__(self, console: Screen, specs: Sequence[RunSpec], folder: Path) -> None:
        self.console, self.folder = console, folder
        self.open = {spec.id: spec for spec in specs if not RunFolder(folder / spec.id).finished}
        self.reused = len(specs) - len(self.open)
        self.n_runs, self.n_done = len(specs), self.reused
        # What earlier calls left does not count as work of this one: the time to go is about what is left.
        self.before = {name: self._committed(name) for name in self.open}
        self.episodes = sum(spec.episodes - self.before[name] for name, spec in self.open.items())
        self.finished_episodes = 0
        self.started = time.time()
        self.began = self.printed = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
        self.progress = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True)
        self.total = self.progress.add_task(self._title(), total=max(self.episodes, 1))
        self.lines: dict[str, TaskID] = {}

    def __enter__(self) -> LiveView:
        if self.reused:
            self.console.print(f"{self.reused} of {self.n_runs} runs are finished already")
        if going := sorted(k + 1 for k in self.before.values() if k):
            several = f"s go on, at episodes {going[0]} to {going[-1]}"
            self.console.print(
                f"{len(going)} begun run{several if len(going) > 1 else f' goes on at episode {going[0]}'}"
            )
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def __call__(self, done: Sequence[RunSpec]) -> None:
        """Take note of runs that ended and of how far the others are."""
        for spec in done:
            if self.open.pop(spec.id, None) is not None:
                self.n_done += 1
                self.finished_episodes += spec.episodes - self.before[spec.id]
            line = self.lines.pop(spec.id, None)
            if line is not None:
                self.progress.remove_task(line)
        active = {name: self._committed(name) for name in self.open if self._active(name)}
        if self.console.is_terminal:
            self._show(active)
        elif time.monotonic() - self.printed > PLAIN_EVERY:
            self.printed = time.monotonic()
            self._say(self._completed(active))

    def _show(self, active: dict[str, int]) -> None:
        for name, episodes in active.items():
            if name not in self.lines and len(self.lines) < MAX_LINES:
                spec = self.open[name]
                title = f"  {spec.learner.label}, {spec.nature.label}, seed {spec.seed}"
                self.lines[name] = self.progress.add_task(title, total=spec.episodes)
            if name in self.lines:
                self.progress.update(self.lines[name], completed=episodes)
        self.progress.update(self.total, completed=self._completed(active), description=self._title())

    def _completed(self, active: dict[str, int]) -> int:
        return self.finished_episodes + sum(episodes - self.before[name] for name, episodes in active.items())

    def _active(self, name: str) -> bool:
        """Whether a run has committed something since this call began."""
        try:
            return (self.folder / name / "commit.json").stat().st_mtime >= self.started - 1.0
        except OSError:
            return False

    def _say(self, completed: int) -> None:
        spent = time.monotonic() - self.began
        enough = completed * ENOUGH >= self.episodes > 0
        to_go = f", about {spent * (self.episodes - completed) / completed:.0f} s to go" if enough else ""
        self.console.print(f"{self._title()}, {completed} of {self.episodes} episodes{to_go}")

    def _title(self) -> str:
        return f"{self.n_done} of {self.n_runs} runs done"

    def _committed(self, name: str) -> int:
        try:
            return RunFolder(self.folder / name, name).episodes
        except RecordError:  # replaced while it was read
            return 0
