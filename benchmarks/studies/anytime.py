"""What it costs not to be told the number of episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from omdpd.experiments.spec import RunSpec

from .cells import difference_cell, markdown, mean_cell
from .drawing import against_episodes
from .study import K_UNKNOWN, Size, Study, Summary, learner, nature, runs_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NATURES = ("noisy", "pool")
LEARNERS = ("ProximalOMDPD.standard", "ProximalOMDPD.cautious", "SinhaVaze")
# Who plays without being told, for each of them: the learner itself, or its published answer to an unknown K.
INSTEAD = {"SinhaVaze": "SinhaVaze.anytime"}


def runs(size: Size) -> list[RunSpec]:
    """Every learner told K, and not told."""
    natures = [nature(name) for name in NATURES]
    known = runs_of(natures, [learner(name) for name in LEARNERS], size)
    others = runs_of(natures, [learner(INSTEAD.get(name, name)) for name in LEARNERS], size)
    return [*known, *(msgspec.structs.replace(run, episodes_known=False) for run in others)]


def not_knowing(name: str) -> str:
    """The label of the learner that is not told K."""
    return f"{INSTEAD.get(name, name)}{K_UNKNOWN}"


def numbers(summary: Summary) -> str:
    """Both, and the paired difference."""
    rows = []
    for nature_name in NATURES:
        for name in LEARNERS:
            for line in summary.along(nature_name, name):
                other = summary.line(nature_name, not_knowing(name), line.episodes)
                for side in ("regret", "violation"):
                    known, unknown = line.values(side), other.values(side)
                    cells = [mean_cell(known), mean_cell(unknown), difference_cell(unknown, known)]
                    rows.append([nature_name, f"`{name}`", str(line.episodes), side, *cells])
    return markdown(["costs", "learner", "K", "of", "K known", "K unknown", "difference"], rows, 2)


def draw(summary: Summary) -> Figure:
    """Regret and violation against K, told and not."""
    return against_episodes(summary, ("regret", "violation"))


ANYTIME = Study(
    "anytime",
    "What does it cost not to know K?",
    "A learner that is not told K puts max(k, 256) in its place before episode k (`SinhaVaze` has a published answer "
    "of its own, `SinhaVaze.anytime`). Differences are paired by instance, unknown less known, with 95 % intervals; * "
    "marks intervals without zero. Learners whose constants need K, like `OMDPD`, refuse.",
    Size((500, 2000, 8000), 4),
    Size((20, 40), 3),
    runs,
    {"numbers": numbers},
    draw,
)
