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

from omdpd.problem.arrays import InvalidInputError
from omdpd.report.results import Mean, grouped, mean_of

COLUMNS = (
    ("regret", "regret", 1),
    ("violation", "violation", 1),
    ("weak", "weak_violation", 0),
    ("Lagrangian", "lagrangian_regret", 1),
    ("exp r", "regret_exponent", 2),
    ("exp v", "violation_exponent", 2),
    ("fail", "failures", 0),
    ("s/run", "seconds", 1),
)
LATEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    symbol: "\\" + symbol for symbol in "_%&#${}"
}
NARROW = ("regret", "violation", "weak", "exp r", "exp v", "s/run")


def print_table(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Means over seeds: one block per world and nature, one row per learner."""
    n = max(len(group) for group in grouped(records).values())
    shown = Table(title=f"Means over {n} seeds (± 95 %)", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("nature, learner", no_wrap=True)
    columns = [column for column in COLUMNS if column[0] in NARROW]
    for title, key, digits in columns:
        cells = [_cell(mean_of(group, key), title, digits) for group in grouped(records).values()]
        shown.add_column(title, justify="right", no_wrap=True, min_width=max(len(cell) for cell in [title, *cells]))
    worlds = {record["world"] for record in records}
    last = ""
    for (world, nature, learner), group in grouped(records).items():
        block = nature if len(worlds) == 1 else f"{world}, {nature}"
        if block != last:
            shown.add_row(f"[bold]{escape(block)}[/bold]")
        last = block
        shown.add_row(
            f" {escape(learner)}", *(_cell(mean_of(group, key), title, digits) for title, key, digits in columns)
        )
    console.print(shown)
    solves, failures = (sum(record[key] for record in records) for key in ("solves", "failures"))
    worst = max(record["max_gap"] for record in records)
    summary = f"{solves} solves, {failures} failed; largest relative duality gap {worst:.1e}"
    console.print(summary, highlight=False)


def formatted(records: Sequence[Mapping[str, Any]], style: str) -> str:
    """The same means with every column, as markdown, csv or latex."""
    head = ["world", "nature", "learner", "runs", *(title for title, _, _ in COLUMNS)]
    rows = [
        [*keys, str(len(group)), *(_cell(mean_of(group, key), title, digits) for title, key, digits in COLUMNS)]
        for keys, group in grouped(records).items()
    ]
    if style == "markdown":
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines) + "\n"
    if style == "csv":
        return _csv(records)
    if style == "latex":
        body = "\n".join(" & ".join(latex_text(cell) for cell in line) + r" \\" for line in rows)
        top = " & ".join(latex_text(cell) for cell in head) + r" \\"
        columns = "lll" + "r" * (len(head) - 3)
        return f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{top}\n\\hline\n{body}\n\\hline\n\\end{{tabular}}\n"
    raise InvalidInputError(f"there is no format {style!r}; there are markdown, csv, latex")


def _cell(mean: Mean | None, title: str, digits: int) -> str:
    if mean is None:
        return "-"
    if title in ("regret", "violation", "Lagrangian"):
        return f"{mean.mean:.0f} ± {mean.half:.0f}" if abs(mean.mean) >= 10 else f"{mean.mean:.1f} ± {mean.half:.1f}"
    return f"{mean.mean:.{digits}f}"


def _csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Numbers for a program: a mean and the half-width of its interval in columns of their own; empty if undefined."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [name for _, key, _ in COLUMNS for name in (key, f"{key}_half")]
    writer.writerow(["world", "nature", "learner", "runs", *names])
    for keys, group in grouped(records).items():
        means = [mean_of(group, key) for _, key, _ in COLUMNS]
        numbers = [x for mean in means for x in (("", "") if mean is None else (mean.mean, mean.half))]
        writer.writerow([*keys, len(group), *numbers])
    return text.getvalue()


def latex_text(cell: str) -> str:
    """Text as LaTeX takes it."""
    return "".join(LATEX.get(symbol, symbol) for symbol in cell)
