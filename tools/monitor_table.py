"""Print what costs, estimation or optimisation: ``python -m tools.monitor_table [EPISODES:SEEDS]`` (3000:3).

Regret and violation of the paper's update and of the default learner in random worlds, split by what was planned
(Section 5.2), as means over instances; every run is played beside the truth.  A table of docs/comparison.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment
from omdpd.report.stored import load_run
from omdpd.theory.monitor import Monitor
from tools.tables import markdown

# The learners, and the inequality whose left side is what the comparator gains over the plans under their own tables.
INEQUALITY_OF = {"OMDPD.tuned": "optimisation, Term 2", "ProximalOMDPD.standard": "certified regret"}
NATURE_NAMES = ("noisy", "pool")
HEAD = (
    "costs, learner", "regret", "= estimation", "+ optimisation", "of it Σ r̃·(q* - q)", "violation", "by estimation",
    "by optimisation",
)  # fmt: skip


def monitored(episodes: int, seeds: int) -> dict[tuple[str, str], list[Monitor]]:
    """Every run beside the truth, by nature and learner."""
    registry = Registry.installed()
    experiment = Experiment(
        (registry.spec("worlds", "random_dirichlet"),),
        tuple(registry.spec("natures", name) for name in NATURE_NAMES),
        tuple(registry.spec("learners", name) for name in INEQUALITY_OF),
        episodes=episodes,
        seeds=seeds,
    )
    found: dict[tuple[str, str], list[Monitor]] = {}
    with TemporaryDirectory() as folder:
        run_experiment(experiment, Path(folder), InProcess())
        for path in sorted((Path(folder) / "runs").iterdir()):
            run = load_run(path)
            found.setdefault(run.labels[1:], []).append(run.monitor())
    return found


def cells(monitors: Sequence[Monitor], inequality: str) -> list[str]:
    """Means over instances, at the end."""
    losses = [monitor.losses for monitor in monitors]
    regret = [
        [loss.regret[-1], loss.estimation_regret[-1], loss.optimisation_regret[-1], monitor[inequality].left[-1]]
        for loss, monitor in zip(losses, monitors, strict=True)
    ]
    violation = [
        [loss.violation[-1], loss.estimation_violation[-1], loss.optimisation_violation[-1]] for loss in losses
    ]
    whole = [f"{mean:.0f}" for mean in np.mean(regret, axis=0)]
    return whole + [f"{mean:.1f}" for mean in np.mean(violation, axis=0)]


def main() -> None:
    """Print the table."""
    episodes, seeds = (int(part) for part in (sys.argv[1] if len(sys.argv) > 1 else "3000:3").split(":"))
    found = monitored(episodes, seeds)
    lines = ((nature, name) for nature in NATURE_NAMES for name in INEQUALITY_OF)
    body = [[f"{nature}, `{name}`", *cells(found[nature, name], INEQUALITY_OF[name])] for nature, name in lines]
    print(markdown(HEAD, body))


if __name__ == "__main__":
    main()
