"""`omdpd monitor`: a stored run played again, with the inequalities of its analysis."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from omdpd.cli.playing import Plugins, registry_of
from omdpd.cli.screen import Screen
from omdpd.experiments.monitoring import monitor_stored
from omdpd.experiments.registry import run_of
from omdpd.play.monitor import HEAD, Monitor
from omdpd.report.loaded import load_run

# What may be folded in a narrow terminal; numbers never are, because a number that is cut says something else.
WORDS = ("inequality", "in", "verdict")


def monitor(
    folder: Annotated[Path, typer.Argument(help="The folder of a run (results/NAME/runs/ID), finished or not.")],
    out: Annotated[Path | None, typer.Option(help="Where a figure goes (png, svg, pdf).")] = None,
    plugin: Plugins = None,
) -> None:
    """Play a stored run again beside the truth, and say which inequality of the analysis held.

    Sums are shown as they ended, single episodes at their worst.  Ends with 2 if the run came out otherwise than it was
    recorded.
    """
    record = load_run(folder).stored.folder
    replay = monitor_stored(run_of(record.spec(), registry_of(plugin)), record)
    console = Screen()
    _show(console, replay.monitor)
    console.print(str(replay), highlight=False, soft_wrap=True)
    if out is not None:
        from omdpd.report.figures import plot

        plot(replay.monitor, out)
        console.print(f"figure: {out}", highlight=False, soft_wrap=True)
    if replay.differs is not None:
        raise typer.Exit(2)


def _show(console: Console, found: Monitor) -> None:
    """The table, the notes below it, each once, and the split of the losses."""
    columns = [
        Column(title, no_wrap=title not in WORDS, justify="left" if title in WORDS else "right")
        for title in (*HEAD, "note")
    ]
    table = Table(*columns, box=None)
    notes: list[str] = []
    for line, each in zip(found.table, found, strict=True):
        text = each.note or each.reason or ""
        if text and text not in notes:
            notes.append(text)
        table.add_row(*line, f"({notes.index(text) + 1})" if text else "")
    console.print(f"{found!r}", highlight=False, soft_wrap=True)
    console.print(table)
    for number, text in enumerate(notes, 1):
        console.print(f"({number}) {text}", highlight=False, soft_wrap=True)
    console.print(f"{found.losses!r}", highlight=False, soft_wrap=True)
