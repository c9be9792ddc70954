"""Print a table of docs/performance.md or docs/sizes.md: `python -m tools.bench_tables WHICH FILE`.

FILE is what a benchmark wrote with `--json` (for `whole-run` a folder of runs).  WHICH is

    solves          mirror steps over a box and over one kernel, beside general solvers
    planning        planners by size
    scaling         how an iteration grows with S, A and H
    loop            a whole run of the paper's size beside its mirror steps
    sparse          steps on layered graphs, beside general solvers
    sparse-growth   how they grow with the graph
    sparse-hinges   how they grow with the hinges
    episodes        whole episodes and their mirror steps
    whole-run       what `omdpd paper` cost, learner by learner
    large-episodes  episodes on the graph of what was visited
    sizes           the same for somebody who asks what can be solved
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.report.results import summaries
from tools.tables import markdown

Row = Mapping[str, Any]
TIMES = "\N{MULTIPLICATION SIGN}"
GENERAL = ("PIQP", "Clarabel", "OSQP", "HiGHS", "cvxpy")


def digits(value: float | None, n: int = 2) -> str:
    """A number with so many significant digits and without powers of ten; nothing for None."""
    if value is None:
        return ""
    rounded = float(f"{value:.{n - 1}e}")
    places = n - 1 - int(np.floor(np.log10(abs(rounded)))) if rounded else 0
    return f"{rounded:.{max(places, 0)}f}"


def by(rows: Sequence[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows in groups, in the order in which the groups come."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def solves(found: Any) -> str:
    """Ours in milliseconds; the others, and one Bellman sweep's worth of our cold solve, as ratios."""
    head = ["problem", "problems", "cold, ms", "iterations", "warm, ms", "warm iterations", *GENERAL, "sweeps"]
    body = []
    for (size, kind), rows in by(found["steps"], "size", "kind").items():
        cold, warm = (_solver(rows, name) for name in ("ours, cold", "ours, warm"))
        hot = [digits(warm["milliseconds"]), f"{warm['iterations']:.1f}"] if kind.startswith("kernel") else ["", ""]
        ratios = [digits(_least(rows, name)) for name in GENERAL]
        sweeps = cold["milliseconds"] / _solver(rows, "one Bellman sweep")["milliseconds"]
        ours = [digits(cold["milliseconds"]), f"{cold['iterations']:.1f}", *hot]
        body.append([f"{size}, {kind}", str(cold["problems"]), *ours, *ratios, digits(sweeps)])
    return markdown(head, body)


def _solver(rows: Sequence[Row], name: str) -> Row:
    return next(row for row in rows if row["solver"] == name)


def _least(rows: Sequence[Row], name: str) -> float | None:
    """The ratio of a solver, or of the best of its backends; None if it took no part."""
    return min((row["ratio"] for row in rows if row["solver"].startswith(name)), default=None)


def planning(found: Any) -> str:
    """Milliseconds: planners down, sizes across."""
    sizes = list(by(found["planning"], "size"))
    body = []
    for (planner,), rows in by(found["planning"], "planner").items():
        times = {(row["size"],): digits(row["milliseconds"]) for row in rows}
        body.append([planner, *(times.get(size, "") for size in sizes)])
    return markdown(["planner, ms", *(size for (size,) in sizes)], body)


def scaling(found: Any) -> str:
    """Powers of an iteration's time."""
    body = [
        [row["varied"], f"{row['low']} to {row['high']}", *(f"{row[key]:.2f}" for key in ("box", "kernel"))]
        for row in found["exponents"]
    ]
    return markdown(["an iteration grows with", "from", "over a box, like its power", "over one kernel"], body)


def loop(found: Any) -> str:
    """One line."""
    run = found["loop"]
    times = [f"{run['seconds']:.2f}", f"{run['steps']:.2f}", f"{run['seconds'] / run['steps']:.2f}"]
    head = ["episodes of `OMDPD.tuned`", "mirror steps", "the run, s", "its mirror steps again, s", "ratio"]
    return markdown(head, [[str(run["episodes"]), str(run["n_steps"]), *times]])


def sparse(found: Any) -> str:
    """Ours in milliseconds, the others as ratios to our warm solve."""
    head = ["problem", "rows", "entries", "Newton steps, warm", "cold", "warm, ms", "cold, ms", "sweeps", *GENERAL[:4]]
    body = []
    for (problem, n_rows, entries), rows in by(found["race"], "problem", "rows", "entries").items():
        warm, cold = (_solver(rows, f"ours, {start}") for start in ("warm", "cold"))
        steps = [str(warm["iterations"]), str(cold["iterations"])]
        times = [digits(warm["milliseconds"]), digits(cold["milliseconds"]), digits(warm["sweeps"])]
        ratios = [digits(_least(rows, name)) for name in GENERAL[:4]]
        body.append([problem, str(n_rows), str(entries), *steps, *times, *ratios])
    return markdown(head, body)


def sparse_growth(found: Any) -> str:
    """Every size, and the power of the entries from the one before."""
    body, before = [], None
    for row in found["growth"]:
        power = "" if before is None else f"{_power(before, row, 'entries'):.2f}"
        before = row
        body.append([row["problem"], str(row["rows"]), str(row["entries"]), str(row["iterations"]), *_cost(row), power])
    head = ["problem", "rows", "entries", "Newton steps", "solve, ms", "sweeps", "power of the entries"]
    return markdown(head, body)


def sparse_hinges(found: Any) -> str:
    """Every number of hinges, and how many times the price of one."""
    body = [[row["problem"], str(row["iterations"]), *_cost(row), f"{row['ratio']:.1f}"] for row in found["hinges"]]
    return markdown(["problem", "free multipliers", "solve, ms", "sweeps", "times one hinge"], body)


def _cost(row: Row) -> list[str]:
    return [digits(row["milliseconds"]), digits(row["sweeps"])]


def _power(before: Row, after: Row, key: str) -> float:
    """The power of `key` with which the time grows from one row to another."""
    return float(np.log(after["milliseconds"] / before["milliseconds"]) / np.log(after[key] / before[key]))


def episodes(found: Any) -> str:
    """Microseconds of processor time."""
    head = ["learner, costs", "episode, µs", "mirror steps", "their µs", "ratio"]
    body = []
    for row in found:
        each = "" if row["steps_each"] is None else f"{row['steps_each']:.0f}"
        steps = [each, *(digits(row[key], 3) for key in ("steps", "times_steps"))]
        body.append([f"`{row['learner']}`, {row['nature']}", digits(row["microseconds"], 3), *steps])
    return markdown(head, body)


def whole_run(runs: Sequence[Row]) -> str:
    """Time, and what the certificates of all mirror steps say."""
    total = sum(run["seconds"] for run in runs)
    head = ["learner", "runs", "a run, s", "together, s", "share", "solves", "failed", "largest relative gap"]
    body = [_cost_of(f"`{name}`", group, total) for (name,), group in by(runs, "learner").items()]
    return markdown(head, [*body, _cost_of("all", runs, total)])


def _cost_of(name: str, runs: Sequence[Row], total: float) -> list[str]:
    solved, failed = (str(sum(run[key] for run in runs)) for key in ("solves", "failures"))
    seconds = [run["seconds"] for run in runs]
    shown = [digits(float(np.median(seconds))), f"{sum(seconds):.0f}", f"{sum(seconds) / total:.0%}"]
    return [name, str(len(runs)), *shown, solved, failed, f"{max(run['max_gap'] for run in runs):.0e}"]


def large_episodes(found: Any) -> str:
    """Where an episode's price is a graph's."""
    head = ["problem", "after episode", "rows", "of H·S·A", "ms per episode", "process, MB"]
    body = []
    for row in (row for row in found if row["rows"] is not None):
        counts = [str(row["episodes"]), str(row["rows"]), str(int(np.prod(row["shape"])))]
        body.append([row["name"], *counts, digits(row["each"]), digits(row["memory"], 3)])
    return markdown(head, body)


def sizes(found: Any) -> str:
    """What planning and an episode take."""
    head = [
        "problem",
        f"states {TIMES} actions {TIMES} steps",
        "plan, ms",
        "an episode, ms",
        "after episode",
        "process, MB",
    ]
    body = []
    for row in found:
        shape = f" {TIMES} ".join(map(str, row["shape"]))
        times = [digits(row["planned"]), digits(row["each"]), str(row["episodes"])]
        body.append([row["name"], shape, *times, digits(row["memory"], 3)])
    return markdown(head, body)


WHICH: dict[str, Callable[[Any], str]] = {
    "solves": solves, "planning": planning, "scaling": scaling, "loop": loop, "sparse": sparse,
    "sparse-growth": sparse_growth, "sparse-hinges": sparse_hinges, "episodes": episodes, "whole-run": whole_run,
    "large-episodes": large_episodes, "sizes": sizes,
}  # fmt: skip

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in WHICH:
        sys.exit(__doc__)
    path = Path(sys.argv[2])
    print(WHICH[sys.argv[1]](summaries(path) if path.is_dir() else json.loads(path.read_text())))
