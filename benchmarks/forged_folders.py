"""Folders of results that somebody forged, with right checksums: every reader refuses or reads them, in one sentence.

    python -m benchmarks.forged_folders          # all of them; `make fuzz-files` runs them too
    python -m benchmarks.forged_folders summary  # those whose name begins so

A folder with two learners and two seeds is copied, and one file of one run says something that no run says: columns
missing or of another type, nulls, numbers that are none, names that are none, links and pipes in the place of files.
`verify`, `ls`, `table`, `plot`, `report` and `load_runs` may take it or refuse it with one sentence.  Whatever `verify`
notices, `report` must notice too: in its exit code, and on the page by the name of the run.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from benchmarks.forger import Forger, put_instead
from omdpd.cli import experiments, report
from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.files import load_experiment
from omdpd.play.rows import COLUMNS
from omdpd.problem.arrays import InvalidInputError
from omdpd.report.curves import load_curves
from omdpd.report.results import load_runs, summaries
from omdpd.report.study import load_study
from omdpd.storage.npz import Arrays

TOML = """\
episodes = 6
seeds = 2
worlds = [{ name = "cyclic", n_places = 2 }]
natures = [{ name = "pool" }]
learners = [{ name = "Uniform" }, { name = "ProximalOMDPD.cautious" }]
"""
ESCAPE = "\x1b]0;gotcha\x07\x1b[2J"
HEX = "0x" + "f" * 5000
# Values of JSON that a field does not have; the last two overflow a float, and what Python prints of a number.
ODD: tuple[Any, ...] = (None, "text", [], {}, True, -1, 10**400, float("inf"))


Forge = Callable[[Forger], object]


def cases() -> dict[str, Forge]:
    """Every way to forge, by name."""
    return {**_rows(), **_values(), **_policies(), **_state(), **_commits(), **_summaries(), **_specs(), **_places()}


def _rows() -> dict[str, Forge]:
    found: dict[str, Callable[[Arrays], Arrays]] = {
        "without rows": lambda t: _taken(t, slice(0)),
        "in another order": lambda t: dict(reversed(t.items())),
        "twice": lambda t: {name: np.concatenate([column, column]) for name, column in t.items()},
        "the last gone": lambda t: _taken(t, slice(-1)),
        "backwards": lambda t: _taken(t, slice(None, None, -1)),
        "with text": lambda t: t | {"note": np.full(_length(t), "x")},
        "with a column of ours": lambda t: t | {"regret": np.zeros(_length(t))},
        "with a nameless column": lambda t: t | {"": t["value"]},
        "with a longer column": lambda t: t | {"m": np.zeros(_length(t) + 1)},
        "with a number alone": lambda t: t | {"m": np.zeros(())},
        "with 500 columns": lambda t: t | {f"m{i}": t["value"] for i in range(500)},
        "with nothing else": lambda t: {"episode": t["episode"]},
        "with a metric that is none": lambda t: t | {"m": np.full(_length(t), np.nan)},
    }
    for name in COLUMNS:
        found[f"no {name}"] = lambda t, name=name: {key: column for key, column in t.items() if key != name}
        found[f"{name} none"] = lambda t, name=name: t | {name: np.full(t[name].shape, np.nan)}
        found[f"{name} none once"] = lambda t, name=name: t | {name: _holed(t[name])}
        found[f"{name} text"] = lambda t, name=name: t | {name: np.full(_length(t), "1")}
        found[f"{name} of another size"] = lambda t, name=name: t | {name: np.ones(_length(t), dtype=np.int8)}
        found[f"{name} in another order of bytes"] = lambda t, name=name: (
            t | {name: t[name].astype(t[name].dtype.newbyteorder())}
        )
        found[f"{name} with more axes"] = lambda t, name=name: t | {name: t[name][..., None]}
        if name != "episode":
            for value in (np.nan, np.inf, 1e300):
                found[f"{name} {value}"] = lambda t, name=name, v=value: t | {name: np.full(t[name].shape, v)}
    for word, value in {"zero": 0, "negative": -1, "huge": 2**62}.items():
        found[f"episode {word}"] = lambda t, v=value: t | {"episode": np.full(_length(t), v)}
    for word, n in {"empty": 0, "long": 1000}.items():
        found[f"excess {word}"] = lambda t, n=n: t | {"excess": np.zeros((_length(t), n))}
    return {f"rows {name}": lambda f, c=change: f.table("rows", c) for name, change in found.items()}


def _values() -> dict[str, Forge]:
    found: dict[str, Callable[[Arrays], Arrays]] = {
        "empty": lambda t: _taken(t, slice(0)),
        "one fewer": lambda t: _taken(t, slice(1, None)),
        "of other numbers": lambda t: {"value": np.full(_length(t), 0.123)},
        "text": lambda t: {"value": np.full(_length(t), "1")},
        "holed": lambda t: {"value": _holed(t["value"])},
        "nan": lambda t: {"value": np.full(_length(t), np.nan)},
        "whole": lambda t: {"value": np.ones(_length(t), dtype=np.int64)},
        "named otherwise": lambda t: {"x": t["value"]},
        "with more": lambda t: t | {"x": t["value"]},
        "with more axes": lambda t: {"value": t["value"][:, None]},
        "of no column": lambda t: {},
    }
    return {f"values {name}": lambda f, c=change: f.table("values", c) for name, change in found.items()}


def _taken(table: Arrays, rows: slice) -> Arrays:
    return {name: column[rows] for name, column in table.items()}


def _length(table: Arrays) -> int:
    return len(table["value"])


def _holed(column: Any) -> Any:
    holed = column.astype(np.float64)
    holed[0] = np.nan
    return holed


def _policies() -> dict[str, Forge]:
    found: dict[str, Callable[[Any], object]] = {"gone": lambda a: a.clear(), "more": lambda a: a.update(x=np.ones(1))}
    for name in ("episodes", "policies", "lam", "value", "believed_value", "solves", "max_gap"):
        found[f"no {name}"] = lambda a, n=name: a.pop(n)
        found[f"{name} empty"] = lambda a, n=name: a.update({n: a[n][:0]})
        found[f"{name} text"] = lambda a, n=name: a.update({n: a[n].astype(str)})
        found[f"{name} complex"] = lambda a, n=name: a.update({n: a[n].astype(complex)})
        found[f"{name} deeper"] = lambda a, n=name: a.update({n: a[n][..., None]})
        found[f"{name} one number"] = lambda a, n=name: a.update({n: np.float64(1.0)})
    for word, value in (("nan", np.nan), ("negative", -1.0), ("zero", 0.0), ("huge", 1e30)):
        found[f"policies {word}"] = lambda a, v=value: a["policies"].fill(v)
    found["of another world"] = lambda a: a.update(policies=np.repeat(a["policies"], 2, axis=1))
    found["backwards"] = lambda a: a.update(episodes=a["episodes"][::-1])
    found["later than all"] = lambda a: a.update(episodes=a["episodes"] + 100)
    return {f"policies {name}": lambda f, c=change: f.arrays("policies", c) for name, change in found.items()}


def _state() -> dict[str, Forge]:
    def each(change: Callable[[Any], Any]) -> Callable[[Any], object]:
        return lambda arrays: arrays.update({name: change(array) for name, array in arrays.items()})

    found: dict[str, Callable[[Any], object]] = {
        "gone": lambda a: a.clear(),
        "text": each(lambda x: x.astype(str)),
        "empty": each(lambda x: x[:0]),
        "complex": each(lambda x: x.astype(complex)),
        "nan": each(lambda x: x * np.nan),
        "numbers": each(lambda x: np.float64(1)),
        "deeper": each(lambda x: x[..., None]),
        "negative": each(lambda x: -1e30 * (1.0 + x)),
    }
    return {f"state {name}": lambda f, c=change: f.arrays("state", c) for name, change in found.items()}


def _commits() -> dict[str, Forge]:
    deep: Any = {"fields": {}}
    for _ in range(200):
        deep = {"fields": {"x": deep}}

    def progress(place: int, value: Any) -> Callable[[Any], object]:
        return lambda c: c["tree"]["progress"].__setitem__(place, value)

    found: dict[str, Callable[[Any], object]] = {
        f"{key} {_word(value)}": lambda c, k=key, v=value: c.update({k: v})
        for key in ("episodes", "columns", "number", "tree")
        for value in (0, 3, 10**9, "x", [], {}, None, 10**400)
    }
    for place, name in enumerate(("learner", "totals", "keys", "seconds", "ledger", "weights", "shown")):
        for value in (*ODD, 1.5, 1e-320, [[1]], [["a", "b"]], [[5, 1]], [[0, 10**12]], deep, {"fields": [1]}):
            found[f"{name} {_word(value)}"] = progress(place, value)
    for name in ("solves", "max_gap", "visits", "saturations"):
        for value in (10**300, float("inf"), "x", {"array": 5}, {"array": []}):
            found[f"shown {name} {_word(value)}"] = progress(6, {"class": "X", "fields": {name: value}})
    found["no progress"] = lambda c: c["tree"].pop("progress")
    found["a short progress"] = lambda c: c["tree"].update(progress=[1])
    found["no rows"] = lambda c: c.update(rows=[])
    found["no policies"] = lambda c: c.update(policies=None)
    made: dict[str, Forge] = {f"commit {name}": lambda f, c=change: f.commit(c) for name, change in found.items()}

    def unfinished(forger: Forger, change: Callable[[Any], object]) -> None:
        forger.commit(change)
        (forger.run / "summary.json").unlink()

    return made | {f"{n}, unfinished": lambda f, c=c: unfinished(f, c) for n, c in list(found.items())[32::5]}


def _summaries() -> dict[str, Forge]:
    keys = (
        "learner",
        "nature",
        "world",
        "seed",
        "episodes",
        "budget",
        "cost_scale",
        "reward_range",
        "regret",
        "regret_positive",
        "lagrangian_regret",
        "violation",
        "weak_violation",
        "regret_exponent",
        "violation_exponent",
        "early_episode",
        "early_regret",
        "early_violation",
        "comparator_value",
        "comparator_exists",
        "solves",
        "failures",
        "max_gap",
        "saturations",
        "seconds",
        "run",
    )
    found: dict[str, Forge] = {f"summary without {key}": lambda f, k=key: f.summary(k) for key in keys}
    for key in keys:
        for value in ODD:
            found[f"summary {key} {_word(value)}"] = lambda f, k=key, v=value: f.summary(k, v)
    for key in ("budget", "cost_scale", "reward_range"):
        for value in ([1.0], [1.0, 2.0], ["x"], [1.0] * 1000, [None, 1.0], [5.0, 5.0]):
            found[f"summary {key} {_word(value)}"] = lambda f, k=key, v=value: f.summary(k, v)
    found["summary a name with escapes"] = lambda f: f.summary("learner", ESCAPE)
    found["summary a name with mathematics"] = lambda f: f.summary("learner", r"$\frac$ \foo")
    found["summary a long name"] = lambda f: f.summary("learner", "x" * 10**6)
    found["summary a late start"] = lambda f: f.summary("early_episode", 6)
    found["summary empty"] = lambda f: f.seal("summary.json", {})
    return found


def _specs() -> dict[str, Forge]:
    swaps = {
        "a hexadecimal seed": ("seed = ", f"seed = {HEX} # "),
        "hexadecimal episodes": ("episodes = 6", f"episodes = {HEX}"),
        "a hexadecimal setting": ("n_places = 2", f"n_places = {HEX}"),
        "no episodes": ("episodes = 6", "episodes = 0"),
        "other episodes": ("episodes = 6", "episodes = 7"),
        "negative episodes": ("episodes = 6", "episodes = -6"),
        "many episodes": ("episodes = 6", "episodes = 1000000000000"),
        "text for episodes": ("episodes = 6", 'episodes = "6"'),
        "a negative seed": ("seed = ", "seed = -1 # "),
        "an odd record": ("episodes = 6", 'record = "x"\nepisodes = 6'),
        "an unknown key": ("episodes = 6", "x = 1\nepisodes = 6"),
        "a date": ("episodes = 6", "episodes = 1979-05-27"),
        "a nameless learner": ('name = "ProximalOMDPD.cautious"', ""),
        "a numbered learner": ('"ProximalOMDPD.cautious"', "5"),
        "an unknown learner": ("ProximalOMDPD.cautious", "Nobody"),
        "an empty name": ("ProximalOMDPD.cautious", ""),
        "a name with escapes": ('"ProximalOMDPD.cautious"', json.dumps(ESCAPE)),
        "a long name": ("ProximalOMDPD.cautious", "x" * 100_000),
        "an unknown world": ('"cyclic"', '"nowhere"'),
        "a nameless world": ('name = "cyclic"', "name = []"),
        "an unknown nature": ('"pool"', '"nothing"'),
        "an unknown setting": ('name = "ProximalOMDPD.cautious"', 'name = "ProximalOMDPD.cautious"\nx = 1'),
        "a setting that is none": ("n_places = 2", "n_places = nan"),
        "a deep setting": ("n_places = 2", "n_places = " + "[" * 90 + "]" * 90),
        "a huge world": ("n_places = 2", "n_places = 900000000"),
        "a world without places": ("n_places = 2", "n_places = 0"),
        "an unknown learner with odd settings": (
            'name = "ProximalOMDPD.cautious"',
            'name = "Nobody"\nx = [[1], {y = 1979-05-27}]',
        ),
    }
    found: dict[str, Forge] = {f"spec with {name}": lambda f, s=swap: f.spec(*s) for name, swap in swaps.items()}
    for key in ("plugins", "packages", "commit"):
        for value in (*ODD[:6], {ESCAPE: ESCAPE}, {"x": ["y"]}):
            found[f"provenance {key} {_word(value)}"] = lambda f, k=key, v=value: f.seal(
                "provenance.json", f.record("provenance.json") | {k: v}
            )
    for key in ("error", "traceback"):
        for value in (*ODD[:6], ESCAPE, "x\n" * 10_000):
            found[f"error with {key} {_word(value)}"] = lambda f, k=key, v=value: f.fail({k: v})
    return found


def _places() -> dict[str, Forge]:
    names = (
        "spec.toml",
        "commit.json",
        "summary.json",
        "provenance.json",
        "rows-*",
        "values-*",
        "state-*",
        "policies-*",
        "../../experiment.toml",
    )
    ways = ("gone", "a link", "a pipe", "a folder", "2 GiB", "empty")
    found: dict[str, Forge] = {
        f"{name} is {how}": lambda f, n=name, h=how: put_instead(f.file(n), h) for name in names for how in ways
    }
    return found | {
        f"a run that is {how}": lambda f, h=how: put_instead(f.run, h) for how in (*ways[1:3], "empty", "a dead link")
    }


def failures(only: str = "", most: int | None = None, figures: bool = True) -> Iterator[tuple[str, str | None]]:
    """What is wrong with how each forged folder is read (None: nothing); of `most` of them, evenly chosen.

    Without figures `plot` reads what it draws, and draws nothing: that takes most of the time.
    """
    chosen = {name: forge for name, forge in cases().items() if name.startswith(only)}
    step = 1 if most is None else len(chosen) / most
    names = [list(chosen)[int(i * step)] for i in range(int(len(chosen) / step))]
    with tempfile.TemporaryDirectory(prefix="omdpd-forged-") as folder:
        here = Path(folder)
        (here / "x.toml").write_text(TOML)
        run_experiment(load_experiment(here / "x.toml"), here / "good", InProcess())
        runs = (here / "good" / "runs").iterdir()
        (run, *_) = sorted(path.name for path in runs if b"cautious" in (path / "spec.toml").read_bytes())
        for name in names:
            out = here / "forged"
            shutil.copytree(here / "good", out)
            (out / "summary.json").unlink()  # that of the whole: `verify` alone reads it
            chosen[name](Forger(out / "runs" / run))
            yield name, _read(out, run, figures)
            shutil.rmtree(out)


def _read(out: Path, run: str, figures: bool) -> str | None:
    """What is wrong with how a folder is read."""
    readers = {
        "verify": partial(report.verify, out),
        "ls": partial(experiments.ls, out),
        "table": partial(experiments.table, out, "terminal"),
        "load_runs": partial(load_runs, out),
        "plot": partial(experiments.plot, out, out.parent / "plot", "screen", "interval"),
        "report": partial(report.report, out, out.parent / "report.html"),
    }
    if not figures:
        readers["plot"] = lambda: load_curves(out / "runs", summaries(out))
    noticed = {}
    for name, read in readers.items():
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("error")
                read()
            noticed[name] = False
        except typer.Exit as stop:
            noticed[name] = stop.exit_code == 2
        except InvalidInputError as error:
            noticed[name] = True
            if "\n" in str(error) or len(str(error)) > 2000:
                return f"{name} says too much: {str(error)[:200]}"
        except Exception as error:
            return f"{name} ends in {type(error).__name__}: {str(error)[:200]}"
    if noticed["verify"] and not noticed["report"]:
        return "verify notices it, and report does not"
    if noticed["report"]:
        study = load_study(out)
        rows = {row["run"]: row for row in study.parts()["progress"]["runs"]}
        if study.fault is None and rows[run]["state"] != "damaged":
            return f"the page does not name the run: it is {rows[run]['state']}"
    return None


def _word(value: Any) -> str:
    return "10^400" if value == 10**400 and isinstance(value, int) else repr(value)[:30]


def main() -> None:
    n, wrong = 0, []
    for name, found in failures(" ".join(sys.argv[1:])):
        n += 1
        if found is not None:
            wrong.append(f"{name}: {found}")
    print(json.dumps({"forged folders": n, "failures": len(wrong)}))
    print("\n".join(wrong))
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
