"""A learner that knows the model: is regret bounded whatever K is, with which constant, and what ends that?

The paper's remark promises 2 (1 + sqrt L) SAH for fixed rewards; docs/departures.md, 9 says what that leaves out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omdpd.experiments.spec import RunSpec
from omdpd.problem.setting import Setting
from omdpd.theory.bounds import theorem_terms

from .cells import markdown, mean_cell, number
from .drawing import over_episodes
from .study import Size, Study, Summary, learner, nature, runs_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROXIMAL = learner("ProximalOMDPD.optimistic", known_model=True)
THEORY = learner("OMDPD.theory", known_model=True)
PRACTICAL = learner("OMDPD.theory", known_model=True, alpha=0.1, w0=1.0, beta_root=10.0)
# The paper's size, for the bound.
PAPER_SIZE = Setting(5, 5, 3)
SIDES = ("regret", "violation")


def runs(size: Size) -> list[RunSpec]:
    """Ours for every K where tables repeat; where an episode takes several times as long, up to fewer."""
    fixed, pool = nature("fixed"), nature("pool")
    return [
        *runs_of([fixed, pool], [THEORY, PRACTICAL], size, size.episodes[:3]),
        *runs_of([nature("anchored")], [PROXIMAL], size, size.episodes[:3]),
        *runs_of([fixed, pool], [PROXIMAL], size),
    ]


def numbers(summary: Summary) -> str:
    """Regret and violation at every K, beside the bound of the remark."""
    rows = [
        [
            line.nature, f"`{line.learner}`", str(line.episodes), *(mean_cell(line.values(key)) for key in SIDES),
            number(line.mean("late_violation")), number(bound(line.episodes)),
        ]
        for nature_name in summary.natures
        for name in summary.learners(nature_name)
        for line in summary.along(nature_name, name)
    ]  # fmt: skip
    head = ["costs", "learner", "K", "regret", "strong violation", "violation of a late episode", "2 (1 + √L) SAH"]
    return markdown(head, rows, 2)


def bound(episodes: int) -> float:
    """The remark's bound on regret at the paper's size."""
    terms = {term.name: term.value for term in theorem_terms(replace(PAPER_SIZE, n_episodes=episodes))}
    return terms["regret, optimisation, known model"]


def draw(summary: Summary) -> Figure:
    """Regret and violation over the episodes of the longest runs."""
    return over_episodes(summary, SIDES, 0.1)


KNOWN_MODEL = Study(
    "known-model",
    "Is regret bounded whatever K is when the model is known, and what ends that?",
    "Every learner here knows transitions and rewards; with `fixed` costs it knows these too, in `pool` a few tables "
    "are switched at random and revealed after each episode, in `anchored` no table ever comes twice. A late episode "
    "is one of the last tenth of the run. The last column is the bound of the paper's remark at that K.",
    Size((1000, 10_000, 100_000, 1_000_000), 3, (10_000, 1)),
    Size((10, 20, 40, 80), 1),
    runs,
    {"numbers": numbers},
    draw,
    curves=True,
)  # fmt: skip
