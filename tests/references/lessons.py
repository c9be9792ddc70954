"""Episodes that a learner plays in one small random problem, beside what a plain loop knows of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tests.references.instances import bandit, forward, random_cmdp, revealed
from tests.references.plain_loop import PlainCounts, optimistic_tables

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50
UNIFORM = np.full((H, S, A), 1 / A)


class Lesson(NamedTuple):
    """One episode: the states before and after it, what was met, counts with it, and the law of the first state."""

    before: Any
    after: Any
    met: Any
    counts: PlainCounts
    mu: Any

    @property
    def believed(self):
        """Optimistic rewards and costs (those revealed, if they are), and the region of kernels."""
        r, d, _, _, region = optimistic_tables(self.counts, K)
        return r, getattr(self.met, "cost", d), region


def problem():
    """Costs that have to be kept down."""
    return random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.8)


def first_occupancy():
    """That of the uniform policy where nothing is known."""
    return forward(UNIFORM, np.full((H, S, A, S), 1 / S), problem().initial)


def lessons(learner, n, kind="bandit", highest=1.0):
    """The first n episodes; costs that are revealed are new in each, at most `highest`."""
    cmdp, rng, counts = problem(), np.random.default_rng(1), PlainCounts(H, S, A, I)
    before = learner.init(cmdp.setting(K, kind))
    for table in np.random.default_rng(2).uniform(-0.7, highest, (n, I, H, S, A)):
        policy = learner.policy(before)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, table)
        counts.add(met)
        after = learner.update(before, met)
        yield Lesson(before, after, met, counts, cmdp.initial)
        before = after
