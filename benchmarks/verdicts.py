"""How often the intervals of a verdict hold the truth: many policies, worlds and logs.

    python -m benchmarks.verdicts --worlds inventory,queue --draws 6 --first 9000 --logs 60 --policies 20

A line per world and estimator: the share of intervals that hold the true value and the true costs (90 % is meant), over
the policies that were not refused.  Policies are mixtures of the one that was logged with random ones, and every second
one weighs its actions anew.  Policies of one log err together: many draws of a few policies say more than the reverse.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace

import numpy as np

from benchmarks.first_weeks import NAMED, same_at_every_step, world
from omdpd import CMDP, Log, Policy, verdict_from_logs
from omdpd.play.scene import logging_policy
from omdpd.play.simulate import play_episode
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import Round

ESTIMATORS = ("by_model", "by_resampling", "by_weights", "doubly_robust")
# The largest share of a random policy in one that is judged.
MOST_RANDOM = 0.5


def logged(cmdp: CMDP, noise: str, policy: Floats, n: int, rng: np.random.Generator) -> Log:
    """Episodes of a policy, with the chances of its actions."""
    round_ = Round(cmdp.reward, cmdp.excess, 0, noise, noise)
    log = Log.from_episodes([play_episode(cmdp, round_, policy, "bandit", rng) for _ in range(n)])
    steps = np.tile(np.arange(cmdp.shape[0]), n)
    return replace(log, propensities=policy[steps, log.states, log.actions])


def truth(cmdp: CMDP, policy: Floats) -> Floats:
    """Value and costs (1 + I,) as a learner sees them."""
    true, (low, high) = Policy(policy).evaluate(cmdp), cmdp.reward_range
    return np.r_[(true.value - cmdp.shape[0] * low) / (high - low), true.excess / cmdp.cost_scale]


def main() -> None:
    """Draw, judge, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", default=",".join((*NAMED, "garnet")))
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--first", type=int, default=9000)
    parser.add_argument("--logs", type=int, default=60)
    parser.add_argument("--policies", type=int, default=20)
    parser.add_argument("--resamples", type=int, default=50, help="0 leaves out resampling, the slow one")
    asked = parser.parse_args()
    for name in asked.worlds.split(","):
        hits, refused = defaultdict(list), 0
        for seed in range(asked.first, asked.first + asked.draws):
            cmdp, rng = world(name, seed), np.random.default_rng([seed, asked.logs, 1])
            behaviour, setting = logging_policy(cmdp), cmdp.setting(None, "bandit")
            log = logged(cmdp, "beta" if name == "garnet" else "exact", behaviour, asked.logs, rng)
            for i in range(asked.policies):
                other, share = rng.dirichlet(np.ones(cmdp.shape[2]), cmdp.shape[1]), rng.uniform(0.0, MOST_RANDOM)
                if i % 2:
                    other = behaviour * other / (behaviour * other).sum(axis=2, keepdims=True)
                policy = (1.0 - share) * behaviour + share * other
                pooled = same_at_every_step(cmdp)
                found = verdict_from_logs(setting, log, policy, stationary=pooled, resamples=asked.resamples)
                refused += bool(found.refusal)
                for estimator in ESTIMATORS:
                    if (each := getattr(found, estimator)) is not None:
                        true = truth(cmdp, policy)
                        hits[estimator].append((each.low - 1e-9 <= true) & (true <= each.high + 1e-9))
        if not hits:
            print(f"{name:<12} all {refused} policies refused")
        for estimator, held in hits.items():
            value, *costs = 100.0 * np.mean(held, axis=0)
            print(
                f"{name:<12} {asked.logs:>4} logs {estimator:<14} {len(held):>4} policies ({refused} refused): "
                f"value {value:.0f} %, costs {', '.join(f'{x:.0f} %' for x in costs)}"
            )


if __name__ == "__main__":
    main()
