"""Summaries as tables: for a terminal, and as Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from omdpd.play.rows import SUMMARY
from omdpd.play.units import in_user_units
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.markup import printable
from omdpd.report.results import budget_note, budget_text, divided_text, grouped, growth_of, mean_of, seeds_text
from omdpd.report.statistics import MIN_RUNS, Growth

# The columns of tables, by the names of their numbers.
SHOWN = {name: column for name, column in SUMMARY.items() if column.head}
# Which curve an exponent is of: an exponent is that of the mean curve, never a mean of exponents.
CURVES = {"regret_exponent": "regret", "violation_exponent": "violation"}
STYLES = ("terminal", "markdown", "csv", "latex")
# A terminal that is this wide shows the intervals of exponents too.
WIDE = 120
LATEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    symbol: "\\" + symbol for symbol in "_%&#${}"
}


def print_table(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Means over seeds: one block per world and nature, one row per learner; in the user's units."""
    records = [in_user_units(record) for record in records]
    groups = grouped(records)
    counts = {len(group) for group in groups.values()}
    told = seeds_text(counts) + (" (± 95 %)" if max(counts) >= MIN_RUNS else "")
    shown = Table(title=f"Means over {told}", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("nature, learner", no_wrap=True)
    names = [name for name, column in SHOWN.items() if column.narrow]
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
    console.print(shown)
    solves, failures = (sum(record[key] for record in records) for key in ("solves", "failures"))
    worst = max(record["max_gap"] for record in records)
    summary = f"{solves} solves, {failures} failed; largest relative duality gap {worst:.1e}"
    console.print(summary, highlight=False)


def formatted(records: Sequence[Mapping[str, Any]], style: str) -> str:
    """The same means with every column, as markdown, csv or latex."""
    if style not in STYLES[1:]:
        raise InvalidInputError(f"there is no format {style!r}; there are {', '.join(STYLES)}")
    records = [in_user_units(record) for record in records]
    if style == "csv":
        return _csv(records)
    head = ["world", "nature", "learner", "runs", "budget", *(column.head for column in SHOWN.values())]
    rows = [
        [*keys, str(len(group)), budget_note(group), *(_cell(group, name, True) for name in SHOWN)]
        for keys, group in grouped(records).items()
    ]
    if style == "markdown":
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines) + "\n"
    body = "\n".join(" & ".join(latex_text(cell) for cell in line) + r" \\" for line in rows)
    top = " & ".join(latex_text(cell) for cell in head) + r" \\"
    columns = "lll" + "r" * (len(head) - 3)
    return f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{top}\n\\hline\n{body}\n\\hline\n\\end{{tabular}}\n"


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of plain text with columns below one another, for lists of any length (a laid-out table takes its time).

    >>> aligned(("a", "b"), [("1", "2"), ("333", "4")])
    ['a    b', '---  -', '1    2', '333  4']
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    lines = [head, ["-" * width for width in widths], *cells]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def exponent_cell(growth: Growth | None, none: str = "-") -> str:
    """An exponent with its 95 % interval where it has one."""
    if growth is None or growth.exponent is None:
        return none
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


def _csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Numbers for a program, with the ends of their intervals in columns of their own; empty if undefined.

    A mean has a half-width, an exponent (whose interval is not symmetric) a low and a high end.  Costs are divided by
    something only where every constraint has a scale of its own: which one exceeded most is said in those units.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [f"{key}{end}" for key in SHOWN for end in (("", "_low", "_high") if key in CURVES else ("", "_half"))]
    writer.writerow(["world", "nature", "learner", "runs", "budget", *names, "costs_divided_by"])
    for keys, group in grouped(records).items():
        numbers = [x for key in SHOWN for x in _numbers(group, key)]
        writer.writerow([*keys, len(group), budget_text(group), *numbers, divided_text(group)])
    return text.getvalue()


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
