"""A study for the eye: everything that a page, a figure or a player shows, computed once, in parts that can be renewed.

    head          title, version, the command that reproduces it, learners and places in their order
    problems      what was asked                         progress      every run: state, episodes, speed, error
    group-<i>     one learner in one place: curves, bursts, health, final points
    policies-<i>  what its runs played                   place-<i>     the best policies of a world and nature
    comparison    paired differences

A part is a value of plain JSON.  Reading needs no learner's code.
"""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from omdpd.experiments.files import stored_experiment
from omdpd.play.units import Units, in_user_units
from omdpd.problem.arrays import InvalidInputError, suggestion
from omdpd.problem.markup import facts_html, table_html
from omdpd.report.comparison import FEW_SEEDS, compared
from omdpd.report.groups import RunCurves, group_value, run_curves
from omdpd.report.html import write_page
from omdpd.report.labels import RunLabel, spelled_order, told_apart
from omdpd.report.policies import affordable_runs, optimum, run_policies, snapshot_series
from omdpd.report.stored import StoredRun, mixed_code, run_paths
from omdpd.report.truth import Truths, problem_values
from omdpd.solvers.programs import Plan
from omdpd.storage.atomic import RecordError, read_bounded
from omdpd.storage.sealed import MAX_TOML_BYTES

# Points of a curve: as many as a wide screen shows, fewer where there are many curves.
MAX_POINTS, MIN_POINTS, ALL_POINTS = 320, 120, 120_000
KNOWN_AT_THE_END = "The best policy safe in every episode is known when the run ends."
NOT_SAFE = "No policy is safe in every episode, so there is nothing to regret against."

# Seeds of a world and nature whose best policies are shown.
MAX_BEST = 10
# Less time than this no run takes.
LEAST_SECONDS = 1e-6

Part = dict[str, Any]
GroupKey = tuple[str, str, str]


@dataclass(repr=False)
class Study:
    """The runs of a folder, and the parts made of them."""

    folder: Path
    views: dict[str, StoredRun] = field(default_factory=dict)
    truths: Truths = field(default_factory=Truths)
    planned: dict[str, RunLabel] = field(default_factory=dict)
    live: bool = False
    fault: str | None = None
    spelled: Callable[[RunLabel | None], tuple[int, ...]] = lambda asked: ()

    def refresh(self) -> list[StoredRun]:
        """Look for new runs and new commits; the runs that changed."""
        self._read_experiment()
        known = self.views
        self.views = {
            path.name: known.get(path.name) or StoredRun(path, path.name, self.planned.get(path.name))
            for path in run_paths(self.folder)
        }
        changed = [view for view in self.views.values() if view.refresh()]
        asked = self.planned | {name: view.asked for name, view in self.views.items() if view.asked is not None}
        for name, label in zip(asked, told_apart([*asked.values()]), strict=True):
            if name in self.planned:
                self.planned[name] = label
            if name in self.views:
                self.views[name].be_called(label)
        return changed

    def damaged(self) -> list[str]:
        """A sentence for everything that is not what was written, or that no run can say."""
        told = [view.told for view in self.views.values() if view.state == "damaged"]
        return told if self.fault is None else [self.fault, *told]

    def mixed(self) -> list[str]:
        """A sentence for every learner whose runs are by different code."""
        return mixed_code(self.ordered())

    def parts(self) -> dict[str, Part]:
        """All parts; every run is read whole first, and they are made anew if one turns out to be damaged meanwhile."""
        for view in self.views.values():
            view.tried(view.whole)
        while True:
            before = self.damaged()
            parts = self._parts()
            if self.damaged() == before:
                return parts

    def _parts(self) -> dict[str, Part]:
        parts = {"head": self.head(), "progress": self.progress(), "problems": self.problems()}
        for i in range(len(self.groups())):
            parts[f"group-{i}"] = self.group(i)
        for i in range(len(self.places())):
            parts[f"place-{i}"] = self.place(i)
        chosen = self.shown_policies()
        for i in range(len(self.groups())):
            parts[f"policies-{i}"] = self.policies(i, chosen)
        return parts | {"comparison": self.comparison()}

    def write(self, out: Path | None = None) -> Path:
        """Write the page: one file, by default report.html in the folder of results."""
        return write_page(self.parts(), f"{self.folder.resolve().name}: omdpd", out or self.folder / "report.html")

    def __repr__(self) -> str:
        return f"Study({self.folder}: {self._states()})"

    def _states(self) -> str:
        """How many runs are finished, and so on, in words."""
        states = Counter(row["state"] for row in self.progress()["runs"])
        return ", ".join(f"{n} {state}" for state, n in states.items()) or "no runs"

    def _repr_html_(self) -> str:
        """The study in a notebook: its runs and the final numbers of every group."""
        rows = []
        for i, key in enumerate(self.groups()):
            value = self.group(i)
            cells = ((value.get("end") or {}).get(name) for name in ("violation", "regret"))
            finished = f"{value.get('n_finished', 0)} of {value['n_runs']}"
            rows.append((*key, finished, *("-" if c is None else f"{c[0]:.4g}" + _half(c[1]) for c in cells)))
        head = ("world", "nature", "learner", "runs", "strong violation", "regret")
        return facts_html(f"study {self.folder.name}", {"runs": self._states()}, table_html(head, rows))

    def ordered(self) -> list[StoredRun]:
        """The runs that can be named, in the order of the experiment."""
        order = {name: i for i, name in enumerate(self.planned)}
        named = [view for view in self.views.values() if view.asked is not None]
        return sorted(named, key=lambda view: (order.get(view.id, len(order)), self.spelled(view.asked), view.id))

    def groups(self) -> dict[GroupKey, list[StoredRun]]:
        """Runs by world, nature and learner; those that only wait to be run are named too."""
        groups: dict[GroupKey, list[StoredRun]] = {asked.group: [] for asked in self.planned.values()}
        for view in self.ordered():
            groups.setdefault(view.label.group, []).append(view)
        return groups

    def places(self) -> list[tuple[str, str]]:
        """The pairs of world and nature."""
        return list(dict.fromkeys(key[:2] for key in self.groups()))

    def head(self) -> Part:
        """What the page is about."""
        from omdpd import __version__

        groups = list(self.groups())
        places = self.places()
        several = len({world for world, _ in places}) > 1
        return {
            "title": self.folder.resolve().name, "folder": str(self.folder), "version": __version__,
            "written": round(time.time()), "live": self.live, "few": FEW_SEEDS,
            "learners": list(dict.fromkeys(key[2] for key in groups)),
            "places": [
                {"world": world, "nature": nature, "label": f"{world}, {nature}" if several else nature}
                for world, nature in places
            ],
            "groups": [{"place": places.index(key[:2]), "learner": key[2]} for key in groups],
            "commands": self._commands(), "specs": self._specs(),
        }  # fmt: skip

    def problems(self) -> Part:
        """The cards of the worlds."""
        return {"worlds": problem_values(self._asked(), self.truths)}

    def progress(self) -> Part:
        """How far every run is."""
        now = time.time()
        rows = [_progress_row(view, view.asked, now) for view in self.ordered()]
        rows += [
            _progress_row(None, asked, now, name) for name, asked in self.planned.items() if name not in self.views
        ]
        nameless = [view for view in self.views.values() if view.asked is None and view.state != "waiting"]
        rows += [_progress_row(view, None, now) for view in nameless]
        return {"runs": rows, "now": now, "fault": self.fault, "mixed": self.mixed()}

    def group(self, i: int) -> Part:
        """Curves of one learner in one place."""
        key, views = list(self.groups().items())[i]
        curves = [c for view in views if (c := self.curves(view)) is not None]
        lacking = [c for c in curves if c.regret is None]
        why = ""
        if lacking:
            why = NOT_SAFE if all(_unsafe(c) for c in lacking) else KNOWN_AT_THE_END
        K = max((view.label.episodes for view in views), default=0)
        names = dict(zip(("world", "nature", "learner"), key, strict=True))
        provisional = any(c.view.state != "finished" and c.regret is not None for c in curves)
        planned = sum(asked.group == key for asked in self.planned.values())
        damaged = [view.id for view in views if view.state == "damaged"]
        value = {**names, "K": K, "n_runs": max(len(views), planned), "provisional": provisional, "damaged": damaged}
        if curves:
            value |= group_value(curves, K, self._points(), why)
            value["kept"] = self._kept(curves)
        return value

    def place(self, i: int) -> Part:
        """The best policies of a world and nature, by seed."""
        views = [view for key, group in self.groups().items() if key[:2] == self.places()[i] for view in group]
        best: dict[str, Any] = {}
        for view in views:
            seed, there = str(view.label.seed), view.episodes and view.state != "damaged"
            if there and seed not in best and len(best) < MAX_BEST and (plan := self._plan(view)) is not None:
                best[seed] = optimum(plan)
        return {"best": best}

    def shown_policies(self) -> set[str]:
        """The runs whose policies fit on the page."""
        return {view.id for view in affordable_runs(self.ordered(), self.truths)}

    def policies(self, i: int, chosen: set[str]) -> Part:
        """What the runs of a group played."""
        views = [view for view in list(self.groups().values())[i] if view.id in chosen]
        made = []
        for view in views:
            cmdp = self.truths.of(view.label).cmdp
            value = None if cmdp is None else view.tried(partial(run_policies, view, cmdp))
            if value is not None:
                made.append(value | {"seed": view.label.seed})
        return {"runs": made}

    def comparison(self) -> Part:
        """Paired differences between learners, of finished runs."""
        records = [in_user_units(view.summary) for view in self.ordered() if view.summary is not None]
        return {"families": compared(records)}

    def curves(self, view: StoredRun) -> RunCurves | None:
        """The curves of a run that has rows and is not damaged."""
        return run_curves(view, self._best(view), self.units(view)) if view.tried(view.read_columns) else None

    def units(self, view: StoredRun) -> Units:
        """What rewards and costs of a run are to the user: as it says at its end, until then as its world says."""
        if view.summary is not None:
            return Units.of_record(view.summary)
        cmdp = self.truths.of(view.label).cmdp
        return Units.of_record({}) if cmdp is None else Units.of(cmdp)

    def _best(self, view: StoredRun) -> float | None:
        """The value of a run's comparator: of a finished one as it found it, else over what it has met so far."""
        if view.summary is not None:
            best = view.summary.get("comparator_value")
            return None if best is None else float(best)
        plan = self._plan(view) if view.episodes else None
        return plan.value if plan is not None and plan.feasible else None

    def _plan(self, view: StoredRun) -> Plan | None:
        """The best policy safe for what a run has met; of an unfinished one only where tables come again.

        Elsewhere it changes with every episode, and is worked out once the run has ended.
        """
        nature = self.truths.of(view.label).nature
        if nature is None or (view.summary is None and not nature.repeats):
            return None
        return view.tried(lambda: self.truths.plan(view.label, view.kept.keys, view.episodes))

    def _kept(self, curves: Sequence[RunCurves]) -> Any:
        """Numbers at the kept episodes of the group's first run that kept any."""
        for run in curves:
            view, best = run.view, self._best(run.view)
            value = view.tried(partial(snapshot_series, view, best, run.units))
            if value is not None:
                return value | {"seed": run.seed}
        return None

    def _points(self) -> int:
        """Points per curve: fewer where there are many curves, so that the page stays small."""
        return int(min(max(ALL_POINTS / max(len(self.views), 1) / 3.0, MIN_POINTS), MAX_POINTS))

    def _asked(self) -> list[RunLabel]:
        return list(dict.fromkeys([*self.planned.values(), *(view.label for view in self.ordered())]))

    def _read_experiment(self) -> None:
        file = self.folder / "experiment.toml"
        if not self.planned and os.path.lexists(file):
            self.spelled = spelled_order(self.folder)  # for runs whose names nothing here knows
            try:
                experiment, self.fault = stored_experiment(file), None
            except RecordError as error:
                self.fault = str(error)
                return
            except InvalidInputError:  # of another version: its runs remain
                return
            if experiment is not None:
                self.planned = {spec.id: RunLabel.of(spec) for spec in experiment.runs()}

    def _commands(self) -> list[str]:
        file = self.folder / "experiment.toml"
        if not file.exists():
            return []
        plugins = dict.fromkeys(name for view in self.ordered() for name in view.plugins)
        words = ["omdpd", "run", str(file), "--out", f"{self.folder}-again"]
        return [shlex.join([*words, *(word for name in plugins for word in ("--plugin", name))])]

    def _specs(self) -> str:
        with suppress(RecordError, ValueError):
            return read_bounded(self.folder / "experiment.toml", MAX_TOML_BYTES).decode()[:20_000]
        return ""


def load_study(folder: str | Path) -> Study:
    """Load the study of a folder of results; a folder without results is refused."""
    study = Study(Path(folder))
    refuse_no_results(study.folder)
    study.refresh()
    return study


def refuse_no_results(folder: Path, hint: str = "") -> None:
    """Refuse a folder without results, with the name that may have been meant."""
    if not (folder / "runs").is_dir() and not os.path.lexists(folder / "experiment.toml"):
        beside = [other.parent.name for other in folder.absolute().parent.glob("*/runs")]
        meant = suggestion(folder.name, beside)
        if (folder / "session.json").exists():
            raise InvalidInputError(f"{folder} holds a session, not results: omdpd session {folder} --live shows it")
        raise InvalidInputError(f"{folder} holds no results: there is no folder {folder / 'runs'}{meant}{hint}")


def write_report(folder: Path) -> Path:
    """Write the page of a folder of results: one file, report.html in that folder."""
    return load_study(folder).write()


def _half(half: float | None) -> str:
    return "" if half is None else f" ± {half:.2g}"


def _unsafe(curves: RunCurves) -> bool:
    return curves.view.summary is not None and not curves.view.summary.get("comparator_exists", True)


def _progress_row(view: StoredRun | None, asked: RunLabel | None, now: float, name: str = "") -> dict[str, Any]:
    """One run's line; without a view it has not begun."""
    row: dict[str, Any] = {
        "run": name if view is None else view.id, "state": "waiting", "k": 0, "K": 0, "seed": None, "world": "",
        "nature": "", "learner": "", "rate": None, "to_go": None, "error": None, "traceback": None, "age": None,
    }  # fmt: skip
    if asked is not None:
        row |= dict(zip(("world", "nature", "learner"), asked.group, strict=True))
        row |= {"K": asked.episodes, "seed": asked.seed}
    if view is None:
        return row
    row |= {"state": view.state, "k": view.episodes}
    if view.kept.seconds > LEAST_SECONDS and view.episodes:
        row["rate"] = float(f"{view.episodes / view.kept.seconds:.4g}")
        row["to_go"] = float(f"{(row['K'] - view.episodes) / row['rate']:.4g}")
    if view.committed is not None:
        row["age"] = round(max(now - view.committed, 0.0), 1)
    if view.recent():
        row["state"] = "running"
    if view.fault is not None:
        row["error"] = str(view.fault.get("error", ""))
        row["traceback"] = None if view.fault.get("traceback") is None else str(view.fault["traceback"])[:20_000]
    return row
