"""Renew a learner's column in the table of docs/suite.md: ``python tools/suite_column.py results/suite [LEARNER]``.

A cell has regret / violation; the exponent of violation and its mean in the last tenth as a share of H, bold where
one of the suite's bars is missed.  Rows are found by their first cell, the column by the learner's name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.report.results import grouped, growth_of, summaries
from tables import pair

PAGE = Path(__file__).parents[1] / "docs" / "suite.md"
LEARNER = "ProximalOMDPD.standard"
# The bars: an exponent from here on, unless the last tenth violates by less than this share of H; and that share alone.
MAX_EXPONENT, TINY, MAX_SHARE = 0.75, 0.001, 0.02


def cell(group: Sequence[Mapping[str, Any]]) -> str:
    """The numbers of one world and nature, from the summaries of its runs."""
    exponent, share = growth(group)
    late = f"{exponent:.2f}, {100.0 * share:.1f} %"
    return f"{pair(group)}; " + (f"**{late}**" if misses(exponent, share) else late)


def growth(group: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The exponent of the mean violation (0 where it has none), and the share of H that the last tenth violates by."""
    found = growth_of(group, "violation")
    exponent = 0.0 if found is None or found.exponent is None else found.exponent
    return exponent, float(np.mean([run["late_violation"] / run["horizon"] for run in group]))


def misses(exponent: float, share: float) -> bool:
    """Whether a bar is missed."""
    return (exponent >= MAX_EXPONENT and share >= TINY) or share >= MAX_SHARE


def with_column(text: str, head: str, cells: Mapping[tuple[str, str], str]) -> str:
    """A page whose table has new cells in the column `head`; KeyError if a cell finds no row."""
    lines, left, at = [], dict(cells), None
    for line in text.split("\n"):
        parts = [part.strip() for part in line.strip().strip("|").split("|")]
        if parts[0] == "world, nature" and head in parts:
            at = parts.index(head)
        elif not line.startswith("|"):
            at = None
        elif at is not None:
            world, _, nature = parts[0].partition(", ")
            parts[at] = left.pop((world.strip("`"), nature), parts[at])
            line = "| " + " | ".join(parts) + " |" if not set(line) <= set("|-") else line
        lines.append(line)
    if left:
        raise KeyError(f"the column {head!r} has no row for {', '.join(map(str, left))}")
    return "\n".join(lines)


def main() -> None:
    """Rewrite the page, and say what was missed."""
    folder, learner = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else LEARNER
    groups = {key[:2]: group for key, group in grouped(summaries(folder)).items() if key[2] == learner}
    cells = {key: cell(group) for key, group in groups.items()}
    PAGE.write_text(with_column(PAGE.read_text(), learner.rpartition(".")[2], cells))
    missed = [key for key, group in groups.items() if misses(*growth(group))]
    runs, failures = (
        sum(count) for count in zip(*((1, run["failures"]) for g in groups.values() for run in g), strict=True)
    )
    print(f"{len(groups)} combinations, {runs} runs, {failures} failed solves; missed: {missed}")


if __name__ == "__main__":
    main()
