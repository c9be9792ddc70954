"""Print the table of docs/suite.md from what `omdpd suite` left: ``python tools/suite_table.py results/suite``.

A cell has regret / violation; the exponent of violation and its mean in the last tenth as a share of H, bold where
one of the suite's bars is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.report.results import grouped, growth_of, summaries
from tables import markdown, pair

ORDER = tuple(f"ProximalOMDPD.{preset}" for preset in ("standard", "cautious", "balanced", "optimistic"))
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


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Worlds and natures down, learners across, and a line on the solves; whoever learns nothing has no growth."""
    groups = grouped(runs)
    learners = sorted({name for _, _, name in groups}, key=_order)
    body = []
    for place in dict.fromkeys(key[:2] for key in groups):
        cells = [groups.get((*place, learner), []) for learner in learners]
        body.append(["`{}`, {}".format(*place), *map(_shown, cells)])
    solved, failed = (sum(run[key] for run in runs) for key in ("solves", "failures"))
    gap = max(run["max_gap"] for run in runs)
    line = f"{len(runs)} runs, {solved} solves, {failed} failed; largest relative duality gap {gap:.1e}."
    return markdown(["world, nature", *(name.rpartition(".")[2] for name in learners)], body) + f"\n\n{line}"


def _order(learner: str) -> tuple[int, str]:
    """Ours from the most careful on, then the others."""
    return (ORDER.index(learner) if learner in ORDER else len(ORDER), learner)


def _shown(group: Sequence[Mapping[str, Any]]) -> str:
    if not group:
        return ""
    return pair(group) if group[0]["learner"] == "Uniform" else cell(group)


if __name__ == "__main__":
    print(table(summaries(Path(sys.argv[1]))))
