"""`make bench`: the solvers side by side, on problems from real loops."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.kept import keep
from benchmarks.solvers import scaling, timing
from benchmarks.solvers.problems import KINDS, Kind, Size, size_named
from omdpd.experiments.first_use import compile_for, runs_of
from omdpd.experiments.registry import Registry
from omdpd.problem.arrays import InvalidInputError
from omdpd.solvers.threads import one_thread

# What can be measured: mirror steps, planners, growth of an iteration with S, A and H, a whole run.
PARTS = ("steps", "planning", "scaling", "loop")


def bench(
    sizes: Annotated[
        str, typer.Option(help="Comma-separated: S5, S20, S50, S100 (ours alone, single kernel).")
    ] = "S5,S20",
    seeds: Annotated[str, typer.Option(help="Instances, FIRST:COUNT; held out from any tuning.")] = "7500:3",
    problems: Annotated[int, typer.Option(help="Problems recorded per instance (fewer at large sizes).")] = 20,
    parts: Annotated[
        str, typer.Option(help=f"Comma-separated: {', '.join(PARTS)}; all if empty, scaling only with --plot.")
    ] = "",
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Also measure and draw growth with S, A, H.")] = None,
    largest: Annotated[int | None, typer.Option(help="Of scaling, no size beyond this one.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the numbers here.")] = None,
    first_use: Annotated[bool, typer.Option("--first-use", help="Also compile everything, into a new cache.")] = False,
    ours: Annotated[bool, typer.Option("--ours", help="Of mirror steps, our solvers alone.")] = False,
) -> None:
    """Time the mirror step and planning against general solvers, in one run."""
    wanted = parts.split(",") if parts else [part for part in PARTS if part != "scaling" or plot_file is not None]
    if unknown := set(wanted) - set(PARTS):
        raise InvalidInputError(f"--parts names {min(unknown)!r}, but must be of {', '.join(PARTS)}")
    for package in () if ours or "steps" not in wanted else ("piqp", "clarabel", "osqp", "cvxpy"):
        if find_spec(package) is None:
            raise InvalidInputError(f"{package} is not installed: pip install 'omdpd[bench]'")
    start, _, count = seeds.partition(":")
    if not (start.isdecimal() and count.isdecimal() and int(count) > 0):
        raise InvalidInputError(f"--seeds is {seeds!r}, but must be FIRST:COUNT, for example 7500:3")
    console = Console()
    compile_for(
        runs_of(Registry.installed(), ["OMDPD.tuned", "ProximalOMDPD.standard"]), lambda line: console.print(line)
    )
    chosen = [size_named(part.strip()) for part in sizes.split(",") if part.strip()]
    instances = range(int(start), int(start) + int(count))
    with one_thread():
        found: dict[str, Any] = {"steps": [], "planning": []}
        for size in chosen:
            if "steps" in wanted:
                _measure_steps(console, found, size, instances, problems, ours)
            if "planning" in wanted and not _large(size):
                _measure_planning(console, found, size, instances)
        if "scaling" in wanted:
            _measure_scaling(console, found, instances[0], plot_file, largest)
        if "loop" in wanted:
            _measure_loop(console, found, instances[0])
        if first_use:
            found["compile_cold"], found["compile_cached"] = timing.time_compilation()
            console.print(
                f"first use: {found['compile_cold']:.1f} s to compile, {found['compile_cached']:.1f} s from the cache",
                highlight=False,
            )
    keep(json_file, found)


def _large(size: Size) -> bool:
    """Whether a size is for our solver over a kernel alone."""
    return size.S >= 100


def _measure_steps(
    console: Console, found: dict[str, Any], size: Size, instances: Sequence[int], problems: int, ours: bool
) -> None:
    """Mirror steps at one size, printed as they come."""
    n = problems if size.S <= 5 else max(2, problems // (5 if size.S <= 20 else 10))
    for kind in (Kind("kernel", 1),) if _large(size) else KINDS:
        rows = timing.time_kind(size, kind, instances if size.S <= 20 else instances[:1], n, _large(size) or ours)
        found["steps"] += [asdict(row) for row in rows]
        _print_steps(console, f"{size}, {kind}, late in the run, {rows[0].problems} problems", rows)


def _measure_planning(console: Console, found: dict[str, Any], size: Size, instances: Sequence[int]) -> None:
    """Planners at one size."""
    planning = timing.time_planning(size, instances if size.S <= 5 else instances[:1])
    found["planning"] += [asdict(row) for row in planning]
    _print_planning(console, planning)


def _measure_scaling(
    console: Console, found: dict[str, Any], instance: int, plot_file: Path | None, largest: int | None
) -> None:
    """How an iteration grows; powers and a figure where all sizes are measured."""
    growth = scaling.measure_growth(instance, largest)
    found["growth"] = [asdict(row) for row in growth]
    if largest is None:
        found["exponents"] = [asdict(row) for row in scaling.exponents(growth)]
        powers = ", ".join(f"{row['varied']}^{row['box']:.2f}" for row in found["exponents"])
        console.print(f"an iteration over a box grows like {powers}", highlight=False)
    if plot_file is not None:
        scaling.draw_growth(growth, plot_file)
        console.print(f"growth is drawn in {plot_file}", highlight=False)


def _measure_loop(console: Console, found: dict[str, Any], instance: int) -> None:
    """A whole run, and memory."""
    loop = timing.time_paper_loop(instance)
    found["loop"] = asdict(loop)
    console.print(
        f"paper loop, K = {loop.episodes}: {loop.seconds:.2f} s; its {loop.n_steps} mirror steps, taken again one "
        f"after another: {loop.steps:.2f} s (ratio {loop.seconds / loop.steps:.2f})",
        highlight=False,
    )
    found["peak_mb"] = timing.peak_memory()
    console.print(f"peak memory of this process {found['peak_mb']:.0f} MB", highlight=False)


def _print_steps(console: Console, title: str, rows: Any) -> None:
    shown = Table(title=title, box=box.SIMPLE_HEAD)
    for name in ("solver", "ms", "iterations", "median |dq|", "x ours cold", "x ours warm"):
        shown.add_column(
            name, justify="left" if name == "solver" else "right", min_width=27 if name == "solver" else None
        )
    for row in rows:
        shown.add_row(
            row.solver, f"{row.milliseconds:.3f}", f"{row.iterations:.1f}", f"{row.difference:.0e}", f"{row.ratio:.3g}",
            f"{row.ratio_warm:.3g}",
        )  # fmt: skip
    console.print(shown)


def _print_planning(console: Console, rows: Any) -> None:
    shown = Table(title=f"planning, {rows[0].size}", box=box.SIMPLE_HEAD)
    for name in ("planner", "ms", "rel. difference"):
        shown.add_column(name, justify="left" if name == "planner" else "right")
    for row in rows:
        shown.add_row(row.planner, f"{row.milliseconds:.3f}", f"{row.difference:.0e}")
    console.print(shown)


if __name__ == "__main__":
    try:
        typer.run(bench)
    except InvalidInputError as error:
        sys.exit(f"bench: {error}")
