"""Summaries as tables: for a terminal, and as Markdown, CSV or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from omdpd.play.rows import SUMMARY
from omdpd.play.units import in_user_units
from omdpd.problem.arrays import InvalidInputError, named
from omdpd.problem.markup import printable
from omdpd.report.labels import KEYS
from omdpd.report.results import budget_note, budget_text, divided_text, grouped, growth_of, mean_of, seeds_text
from omdpd.report.statistics import MIN_RUNS, Growth
from omdpd.storage.atomic import csv_text

# The columns of tables, by the names of their numbers.
SHOWN = {name: column for name, column in SUMMARY.items() if column.head}
# Which curve an exponent is of: an exponent is that of the mean curve, never a mean of exponents.
CURVES = {"regret_exponent": "regret", "violation_exponent": "violation"}
# What a paper's table has where nothing else is asked for, and how many of the first columns rows may share.
PAPER = ("regret", "regret_exponent", "violation", "violation_exponent")
SHARED = 5
# What a narrow terminal goes without, in this order.
SPARED = ("seconds", "weak_violation", "regret_exponent", "violation_exponent")
# No table is wider.
MAX_WIDTH = 10_000
STYLES = ("terminal", "markdown", "csv", "latex")
# A terminal that is this wide shows the intervals of exponents too.
WIDE = 120
LATEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    symbol: "\\" + symbol for symbol in "_%&#${}"
}


def print_table(console: Console, records: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Means over seeds: one block per world and nature, one row per learner; in the user's units.

    `columns` are the names of those that are wanted.  Of the usual ones a narrow terminal shows as many as fit, and it
    is said which are left out: a number is never cut.
    """
    records = [in_user_units(record) for record in records]
    names = list(columns) or [name for name, column in SHOWN.items() if column.narrow]
    left_out: list[str] = []
    shown, width = _laid_out(console, records, names)
    while console.is_terminal and not columns and width > console.width and len(left_out) < len(SPARED):
        left_out.append(SPARED[len(left_out)])
        shown, width = _laid_out(console, records, [name for name in names if name not in left_out])
    before, console.width = console.width, console.width if console.is_terminal else max(width, console.width)
    console.print(shown)
    console.width = before
    if left_out:
        heads = ", ".join(SHOWN[name].head for name in left_out)
        console.print(f"left out for want of room: {heads} (omdpd table DIR --columns NAMES)", highlight=False)
    solves, failures = (sum(record[key] for record in records) for key in ("solves", "failures"))
    worst = max(record["max_gap"] for record in records)
    summary = f"{solves} solves, {failures} failed; largest relative duality gap {worst:.1e}"
    console.print(summary, highlight=False)


def _laid_out(console: Console, records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[Table, int]:
    """The table with these columns, and how wide it is where nothing is folded."""
    groups = grouped(records)
    counts = {len(group) for group in groups.values()}
    told = seeds_text(counts) + (" (± 95 %)" if max(counts) >= MIN_RUNS else "")
    shown = Table(title=f"Means over {told}", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("nature, learner", overflow="fold")
    wide = console.width >= WIDE
    cells = {key: [_cell(group, name, wide) for name in names] for key, group in groups.items()}
    for i, title in enumerate(SHOWN[name].head for name in names):
        width = max(len(text) for text in [title, *(line[i] for line in cells.values())])
        shown.add_column(title, justify="right", no_wrap=True, min_width=width)
    worlds = {record["world"] for record in records}
    last = ""
    for (world, nature, learner), group in groups.items():
        block = nature if len(worlds) == 1 else f"{world}, {nature}"
        if block != last:
            shown.add_row(f"[bold]{escape(block)}[/bold]{_budget_note(group)}")
        last = block
        own = "" if len(counts) == 1 else f" [dim]({seeds_text([len(group)])})[/dim]"
        shown.add_row(f" {escape(learner)}{own}", *cells[world, nature, learner])
    return shown, console.measure(shown, options=console.options.update(max_width=MAX_WIDTH)).maximum


def columns_named(text: str) -> list[str]:
    """The columns of a list with commas between: by their headers, or by their names in summary.csv.

    >>> columns_named("violation, exp v,weak_violation")
    ['violation', 'violation_exponent', 'weak_violation']
    """
    known = {column.head: name for name, column in SHOWN.items()} | {name: name for name in SHOWN}
    return [named(known, word.strip(), "column") for word in text.split(",") if word.strip()]


def formatted(records: Sequence[Mapping[str, Any]], style: str, columns: Sequence[str] = ()) -> str:
    """The same means as markdown, csv or latex: with these columns, by default every one, in LaTeX those of `PAPER`."""
    if style not in STYLES[1:]:
        raise InvalidInputError(f"there is no format {style!r}; there are {', '.join(STYLES)}")
    records = [in_user_units(record) for record in records]
    names = list(columns) or list(PAPER if style == "latex" else SHOWN)
    if style == "csv":
        return _csv(records, names)
    groups = grouped(records)
    heads = [*KEYS, "runs", "budget", *(SHOWN[name].head for name in names)]
    rows = [
        [*keys, str(len(group)), budget_note(group), *(_cell(group, name, True) for name in names)]
        for keys, group in groups.items()
    ]
    if any("settings" in record for record in records):
        heads.append("settings")
        rows = [[*row, group[0].get("settings", "")] for row, group in zip(rows, groups.values(), strict=True)]
    if style == "latex":
        return _latex(heads, rows, records, names)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines) + "\n"


def _latex(
    heads: Sequence[str], rows: Sequence[Sequence[str]], records: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> str:
    """A table with its caption, as a paper takes it: what all rows share is said once, in the caption."""
    said = {head: rows[0][i] for i, head in enumerate(heads[:SHARED]) if len({row[i] for row in rows}) == 1}
    said.pop("learner", None)
    kept = [i for i, head in enumerate(heads) if head not in said]
    lines = [
        " & ".join(latex_text(line[i]) if line is heads else _latex_cell(line[i]) for i in kept) + r" \\"
        for line in (heads, *rows)
    ]
    layout = "".join("l" if heads[i] in (*KEYS, "settings") else "r" for i in kept)
    return "\n".join([
        r"\begin{table}", r"\centering", rf"\caption{{{latex_text(_caption(said, records, names))}}}",
        rf"\begin{{tabular}}{{{layout}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", r"\end{tabular}",
        r"\end{table}", "",
    ])  # fmt: skip


def _caption(said: Mapping[str, str], records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """What stands above a table in a paper: what its rows share, and what its numbers are."""
    counts = [len(group) for group in grouped(records).values()]
    lengths = sorted({str(record["episodes"]) for record in records}, key=int)
    place = ", ".join(said[key] for key in ("world", "nature") if key in said)
    budget = f", budget {said['budget']}" if said.get("budget") else ""
    half = " ± half of Student's 95 % interval" if max(counts) >= MIN_RUNS else ""
    words = [f"{place}: means" if place else "Means", f"over {seeds_text(counts)}{half}"]
    told = f"{' '.join(words)}, after {' or '.join(lengths)} episodes{budget}."
    chosen = [f"{SHOWN[name].head}: {SHOWN[name].meaning}" for name in names if name not in ("regret", "seconds")]
    brackets = " In brackets: a 95 % bootstrap interval over seeds." if {*names} & {*CURVES} else ""
    return f"{told} Regret is against the best policy that is safe in every episode; {'; '.join(chosen)}.{brackets}"


def _latex_cell(cell: str) -> str:
    """A number or a name as LaTeX takes it: with a minus for a hyphen before a digit, and a dash for no number."""
    return "--" if cell == "-" else re.sub(r"(?<![\w.])-(?=\d)", "$-$", latex_text(cell))


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of plain text with columns below one another, for lists of any length (a laid-out table takes its time).

    >>> aligned(("a", "b"), [("1", "2"), ("333", "4")])
    ['a    b', '---  -', '1    2', '333  4']
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    lines = [head, ["-" * width for width in widths], *cells]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def exponent_cell(growth: Growth | None) -> str:
    """An exponent with its 95 % interval where it has one."""
    if growth is None or growth.exponent is None:
        return "-"
    interval = growth.interval
    return f"{growth.exponent:.2f}" + ("" if interval is None else f" [{interval[0]:.2f}, {interval[1]:.2f}]")


def _cell(group: Sequence[Mapping[str, Any]], key: str, wide: bool) -> str:
    """A mean with its interval; an exponent's interval only where there is room for it."""
    column = SHOWN[key]
    if key in CURVES:
        growth = growth_of(group, CURVES[key])
        exponent = None if growth is None else growth.exponent
        return exponent_cell(growth) if wide or exponent is None else f"{exponent:.{column.digits}f}"
    mean = mean_of(group, key)
    if mean is None:
        return "-"
    if not (column.unit and column.digits):
        return f"{mean.mean:.{column.digits}f}"
    few = int(abs(mean.mean) < 10)
    return f"{mean.mean:.{few}f}" + ("" if mean.half is None else f" ± {mean.half:.{few}f}")


def _budget_note(group: Sequence[Mapping[str, Any]]) -> str:
    budget = budget_note(group)
    return "" if not budget else f" [dim](budget {budget})[/dim]"


def _csv(records: Sequence[Mapping[str, Any]], shown: Sequence[str]) -> str:
    """Numbers for a program, with the ends of their intervals in columns of their own; empty if undefined.

    A mean has a half-width, an exponent (whose interval is not symmetric) a low and a high end.  Costs are divided by
    something only where every constraint has a scale of its own: which one exceeded most is said in those units.
    """
    names = [f"{key}{end}" for key in shown for end in (("", "_low", "_high") if key in CURVES else ("", "_half"))]
    rows: list[list[Any]] = [["world", "nature", "learner", "runs", "budget", *names, "costs_divided_by"]]
    for keys, group in grouped(records).items():
        numbers = [x for key in shown for x in _numbers(group, key)]
        rows.append([*keys, len(group), budget_text(group), *numbers, divided_text(group)])
    return csv_text(rows)


def _numbers(group: Sequence[Mapping[str, Any]], key: str) -> tuple[float | None, ...]:
    """A number with its interval; csv writes None as nothing."""
    if key in CURVES:
        growth = growth_of(group, CURVES[key])
        ends = (None if growth is None else growth.interval) or (None, None)
        return (None if growth is None else growth.exponent, *ends)
    mean = mean_of(group, key)
    return (None, None) if mean is None else (mean.mean, mean.half)


def latex_text(cell: str) -> str:
    """Text as LaTeX takes it."""
    return "".join(LATEX.get(symbol, symbol) for symbol in cell)
