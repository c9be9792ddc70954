"""What an episode of every learner costs, at the paper's size: ``python -m benchmarks.learners``.

CPU time of one core, simulation and judging included; a learner takes part under the first of the natures that it
takes.  What it prints is the table of docs/performance.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from benchmarks.episode_worker import seconds
from omdpd.experiments.registry import Registry
from omdpd.play.scene import with_known_facts
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.worlds import random_dirichlet

NATURE_NAMES = ("noisy", "pool")
# The paper's sizes, on an instance that nothing was tuned on.
S, A, H, SEED = 5, 3, 5, 7500
# Methods that only sweep over the tables, by dynamic programming or along the trajectory, may cost this much, in
# milliseconds.
LIMIT = 0.2
SWEEPS, PROGRAM, ONE_KERNEL, NOTHING = "sweeps", "a linear program", "a step over one kernel", "nothing learnt"
# What the others do once or twice.
STEPS = "steps over a box"
KINDS = {
    SWEEPS: (
        "OptPessPrimalDual", "EpisodeSafe", "GhoshZhouShroff.average", "GhoshZhouShroff.hard", "OPDOP",
        "OPDOP.restarted", "TripleQ", "TripleQ.restarted", "OptCMDPBonus", "OptDual", "OptPrimalDual", "OptAug",
        "RegularizedPrimalDual", "FlexDOME", "UOptRPGPD", "UOptRPGPD.published", "CPDPO", "CPDPO.unconstrained",
        "PDBPS",
    ),
    PROGRAM: (
        "OptCMDP", "GreedyLP", "OptPessLP", "DOPE", "DOPEPlus", "PlanLP", "CautiousLP", "PosteriorSampling", "UCCFH",
        "ChenJainLuo", "AlwaysSafe",
    ),
    ONE_KERNEL: ("ProximalOMDPD.standard", "ProximalOMDPD.cautious", "ProximalOMDPD.balanced"),
    NOTHING: ("Oracle", "Uniform"),
}  # fmt: skip


@dataclass(frozen=True)
class Timing:
    """A learner's milliseconds per episode under a nature."""

    learner: str
    nature: str
    milliseconds: float


def kind_of(name: str) -> str:
    """What an episode of a learner is."""
    return next((kind for kind, names in KINDS.items() if name in names), STEPS)


def timing(cmdp: CMDP, name: str, episodes: int, repeats: int) -> Timing | None:
    """The median of some runs; what a run does once is in the short run too and is taken off."""
    registry = Registry.installed()
    for nature in NATURE_NAMES:
        kind = registry.spec("natures", nature).build(cmdp, 0).feedback
        try:
            learner = with_known_facts(registry.spec("learners", name).build(), cmdp, kind)
            seconds(cmdp, learner, nature, 20, 0)  # compiled by now, and not timed
        except InvalidInputError:
            continue
        short, whole = episodes // 10, episodes + episodes // 10
        spent = [
            seconds(cmdp, learner, nature, whole, i) - seconds(cmdp, learner, nature, short, i) for i in range(repeats)
        ]
        return Timing(name, nature, 1e3 * float(np.median(spent)) / (whole - short))
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", default="", help="names, separated by commas; all if empty")
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    cmdp = random_dirichlet.make(np.random.default_rng(SEED), S, A, H)
    names = options.learners.split(",") if options.learners else list(Registry.installed().complete("learners"))
    order = [*KINDS, STEPS]
    print("| learner | an episode is | costs | ms |\n|---|---|---|---:|")
    slow = []
    for name in sorted(names, key=lambda name: order.index(kind_of(name))):
        found = timing(cmdp, name, options.episodes, options.repeats)
        if found is None:
            continue
        print(f"| `{name}` | {kind_of(name)} | {found.nature} | {found.milliseconds:.3f} |", flush=True)
        if kind_of(name) == SWEEPS and found.milliseconds > LIMIT:
            slow.append(f"`{name}`")
    print(f"\nMethods that only sweep, above {LIMIT} ms: {', '.join(slow) or 'none'}.")


if __name__ == "__main__":
    main()
