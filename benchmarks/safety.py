"""Do margins mean what they say?  `python -m benchmarks.safety FIRST:COUNT` prints the table of docs/dials.md.

The default plays random worlds, K = 1000, with four kinds of costs.  Every fifty episodes a plan with a price is asked
under the beliefs of the episode after: by how much its true cost is above the believed one, in the standard errors of
which the margin is made, for the table that the plan is closest to exceeding; and whether it is above that budget in
truth.  Standard errors are over worlds, whose plans resemble each other.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.standard import NATURE_NAMES, Job, print_markdown, spec_of
from omdpd.beliefs.rules import margin
from omdpd.learners.standard.learn import beliefs_of
from omdpd.learners.standard.state import HINGES, SHARE, Learnt
from omdpd.play.loop import play, start_of_run
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP
from omdpd.solvers.compiled.flow import occupancy_of_policy

EPISODES, EVERY = 1000, 50
SETTINGS = {"z = 0.5": 0.5, "standard": 1.0, "z = 1.5": 1.5}
# A price below this is a solver's rounding.
NO_PRICE = 1e-4


class Asked(NamedTuple):
    """A plan's error in standard errors, and whether it is above its budget."""

    error: float
    above: bool


def asked(cmdp: CMDP, learner: Any, plan: Learnt, after: Learnt, z: float) -> Asked | None:
    """What is found of a plan that is in play; None if it has no price."""
    shape, known = plan.setting.shape, plan.setting.feedback == "full"
    if plan.parts.multipliers[: int(plan.parts.account[HINGES])].max(initial=0.0) <= NO_PRICE * plan.eta:
        return None
    judged = learner.compiled(after)  # a copy, for which the margin is asked in full, of the plan that was played
    s = judged.state.parts
    s.account[SHARE], s.policy[:] = 1.0, plan.parts.policy
    n = beliefs_of(judged.dials, judged.at, judged.vector, np.zeros(0))
    lifted, chosen = s.tables[:n].reshape(n, *shape), plan.parts.policy.reshape(shape)
    believed_law = s.kernel.reshape(*shape, shape[1])
    there, here = (occupancy_of_policy(chosen, law, plan.setting.mu) for law in (believed_law, cmdp.transition))
    kept = [i * after.room + j for i, held in enumerate(s.tally[:, 0].astype(int)) for j in range(held)]
    believed = (s.kept[kept] if known else s.cost).reshape(n, *shape)
    j = int(np.tensordot(lifted, there, 3).argmax())
    one = margin(z, 1.0, 1.0, shape[0], known)
    cost = float(((believed if known else cmdp.excess)[j] * here).sum())
    error = float((lifted[j] - believed[j]).mean()) / one
    if error <= 0.0:  # tables come that no memory holds
        return None
    return Asked((cost - float((believed[j] * there).sum())) / error, cost > 0.0)


def looks(job: Job, z: float) -> Floats:
    """What is found in a run, (2, n)."""
    scene = job.scene(spec := spec_of(job))
    start = start_of_run(scene)
    before, found = start.learner_state, []
    for _, _, now in play(scene, start, np.random.default_rng(spec.stream(2)), lambda k: False):
        if now.k > EVERY and now.k % EVERY == 1:
            found.append(asked(scene.cmdp, scene.learner, before, now.learner_state, z))
        before = now.learner_state
    return np.array([each for each in found if each is not None], dtype=np.float64).reshape(-1, 2).T


def shown(each: Sequence[Floats], digits: str) -> str:
    """The mean over all plans, and its standard error over worlds."""
    means = [numbers.mean() for numbers in each if numbers.size]
    error = float(np.std(means, ddof=1)) / len(means) ** 0.5
    return f"{np.concatenate(each).mean():{digits}} ± {error:{digits}}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", help="FIRST:COUNT, e.g. 14600:24")
    first, count = (int(part) for part in parser.parse_args().seeds.split(":"))
    heads = ("plans", "mean error", "standard deviation", "above their budget")
    lines: list[tuple[str, ...]] = [("costs", "setting", *heads)]
    for nature in NATURE_NAMES:
        for name, z in SETTINGS.items():
            found = [looks(Job(name, nature, seed, EPISODES), z) for seed in range(first, first + count)]
            error, above = ([each[i] for each in found] for i in range(2))
            every = np.concatenate(error)
            cells = (f"{every.size}", shown(error, ".2f"), f"{every.std():.2f}", shown(above, ".0%"))
            lines.append((f"`{nature}`", name, *cells))
            print(lines[-1], flush=True)
    print_markdown(lines)


if __name__ == "__main__":
    main()
