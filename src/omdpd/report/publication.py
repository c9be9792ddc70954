"""Figures for a paper: one or two columns wide, one legend, fonts as in LaTeX, and the exponents in a table beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omdpd.report.canvas import Figure, looking, new_figure, plain_ticks
from omdpd.report.curves import Curves
from omdpd.report.figures import Spread, panels, save, styles_by_name
from omdpd.report.tables import formatted
from omdpd.storage.atomic import write_atomically

# Inches of a column and of a page of the usual two-column styles.
ONE_COLUMN, TWO_COLUMNS = 3.25, 6.75
# Small panels side by side, at most.
MAX_BESIDE = 4
# Times, as such styles set it; shipped with Matplotlib, so that the figure is the same everywhere.
LOOK: Any = {
    "font.family": "STIXGeneral", "mathtext.fontset": "stix", "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7, "axes.linewidth": 0.6, "lines.linewidth": 0.9,
    "lines.markersize": 2.4,
    "axes.spines.top": False, "axes.spines.right": False, "axes.formatter.use_mathtext": True,
}  # fmt: skip


def draw_paper(curves: Sequence[Curves], width: float, spread: Spread = "interval") -> Figure:
    """Violation above regret for every nature, `width` inches wide, with one legend below."""
    natures = list(dict.fromkeys(c.nature for c in curves))
    style = styles_by_name(c.learner for c in curves)
    beside = min(len(natures), 2 if width < TWO_COLUMNS else MAX_BESIDE)
    blocks = -(-len(natures) // beside)
    with looking(LOOK):
        figure = new_figure(width, 2.35 * blocks + 0.11 * len(style) + 0.25)
        grid = figure.subplots(2 * blocks, beside, squeeze=False, sharex=True)
        for axes in grid.flat:
            axes.set_visible(False)
        for i, nature in enumerate(natures):
            group = [c for c in curves if c.nature == nature]
            over, under = grid[2 * (i // beside), i % beside], grid[2 * (i // beside) + 1, i % beside]
            over.set_visible(True)
            under.set_visible(True)
            panels(over, under, group, style, spread)
            over.set(title=nature, xlabel="")
            plain_ticks(over.yaxis, under.yaxis)
            if all(c.regret is None for c in group):
                under.text(0.5, 0.5, "nobody is safe", ha="center", va="center", transform=under.transAxes)
                under.set_axis_off()
            if i % beside == 0:
                over.set_ylabel("violation")
                under.set_ylabel("regret")
        handles = {
            line.get_label(): line for axes in grid.flat for line in axes.get_lines() if line.get_label() in style
        }
        columns = 2 if width < TWO_COLUMNS else 4
        figure.legend(
            [handles[name] for name in style], list(style), loc="outside lower center", ncols=columns, frameon=False
        )
    return figure


def write_paper(
    curves: Sequence[Curves], records: Sequence[Mapping[str, Any]], folder: Path, spread: Spread = "interval"
) -> list[Path]:
    """paper-one and paper-two (columns) in all formats, and beside them exponents.tex: the table of ``omdpd table``."""
    files = save(draw_paper(curves, ONE_COLUMN, spread), folder, "paper-one")
    files += save(draw_paper(curves, TWO_COLUMNS, spread), folder, "paper-two")
    table = folder / "exponents.tex"
    write_atomically(table, formatted(records, "latex").encode())
    return [*files, table]
