"""Learning without an end: a learner's episodes are windows of one long run, each of which begins where the last ended.

    window k    H steps, from the state after the last step of window k - 1; its budget is H times that of a step

A learner is told that episodes begin anywhere (the uniform law), so that it has a plan for every state; or where each
begins.  Learners of averages (`learners.AVERAGE_LEARNERS`) play one table (S, A) in a window, wherever it begins.

Proved, where policies have one closed class and g* is the optimum per step: no plan for H steps that meets its budgets
earns more than H g* + the span of the bias of r - sum_i y_i (c_i - b_i), y the long run's prices; and the best
stationary policy, from any state, earns at least H g* - the span of its own bias, and exceeds a budget by at most the
span of that cost's bias.  So a step's share of what windows lose falls as 1 / H.

Not proved: a learner's own bounds.  They are about episodes that begin by the law it was told, and windows do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from omdpd.natures import fixed
from omdpd.play.guards import as_learner
from omdpd.play.policy import Policy
from omdpd.play.scene import with_known_facts
from omdpd.play.simulate import play_episode
from omdpd.play.start import with_next_start
from omdpd.problem.arrays import Floats, InvalidInputError, over_steps, positive_integer, whole_number
from omdpd.problem.cmdp import CMDP, Noise
from omdpd.problem.laws import DenseLaws
from omdpd.problem.tables import limit_name
from omdpd.worlds.card import natural_value


@dataclass(frozen=True, eq=False)
class Windows:
    """What was met: mean reward (n,) and mean costs (n, I) of a step, by window, in the user's units.

    They are means of the tables at what was visited, without noise.  `policy` is the last one, for a window.
    """

    cmdp: CMDP
    rewards: Floats
    costs: Floats
    policy: Policy

    @cached_property
    def best(self) -> float | None:
        """What the best policy that meets the budgets earns per step in the long run."""
        return self.cmdp.solve().value

    def after(self, share: float = 0.5) -> tuple[float, Floats]:
        """Mean reward and costs of a step over the last windows, this share of them."""
        n = max(round(share * len(self.rewards)), 1)
        return float(self.rewards[-n:].mean()), np.asarray(self.costs[-n:].mean(axis=0))

    def __str__(self) -> str:
        reward, costs = self.after()
        first = self.costs[: max(len(self.costs) // 2, 1)].mean(axis=0)
        spent = ", ".join(
            f"{c:.6g} of {limit_name(b)} ({'over budget; ' if c > b else ''}first half {x:.6g})"
            for c, b, x in zip(costs, self.cmdp.limits, first, strict=True)
        )
        best = "no policy meets the budgets" if self.best is None else f"the best earns {self.best:.6g}"
        return f"second half of {len(self.rewards)} windows, per step: earns {reward:.6g} ({best}), costs {spent}"


def window_problem(cmdp: CMDP, horizon: int) -> CMDP:
    """Make the problem of one window of a problem of averages: `horizon` steps and budgets, from any state."""
    H = positive_integer("horizon", horizon)
    if cmdp.discount != 1.0:
        raise InvalidInputError('windows are of a problem without an end: build it with criterion="average"')
    _, S, A = cmdp.shape
    laws = cmdp.laws
    longer = DenseLaws(H, laws.table) if isinstance(laws, DenseLaws) else replace(laws, shape=(H, S, A))
    return replace(
        cmdp, laws=longer, initial=np.full(S, 1.0 / S), reward=over_steps(cmdp.reward, H, 0),
        cost=over_steps(cmdp.cost, H, 1), budget=H * cmdp.budget, discount=None, _divided=None,
    )  # fmt: skip


def learn_windows(
    cmdp: CMDP,
    learner: Any,
    horizon: int,
    n_windows: int,
    seed: int = 0,
    noise: Noise = "two-point",
    *,
    told_start: bool = False,
) -> Windows:
    """Let a learner play windows of `horizon` steps of a problem of averages, one after the other.

    Rewards and costs are observed through `noise` (see the nature `noisy`).  With `told_start` it is told in which
    state the next window begins, and plans for that; otherwise that windows begin anywhere.
    """
    window, K = window_problem(cmdp, horizon), positive_integer("n_windows", n_windows)
    rng = np.random.default_rng(whole_number("seed", seed, 0))
    player = with_known_facts(as_learner(learner), window, "bandit")
    state = player.init(replace(window.setting(K, "bandit"), seed=seed, windows=True))
    round_ = fixed.make_noisy(window, seed, noise=noise).draw(0, np.zeros(0))
    start, steps = int(rng.choice(len(cmdp.initial), p=cmdp.initial)), np.arange(horizon)
    rewards, costs = np.empty(K), np.empty((K, cmdp.n_constraints))
    for k in range(K):
        here = replace(window, initial=np.eye(1, len(cmdp.initial), start)[0])
        feedback = play_episode(here, round_, player.policy(state), "bandit", rng)
        s, a = feedback.trajectory.states, feedback.trajectory.actions
        rewards[k] = natural_value(cmdp, float(window.reward[steps, s, a].mean()))
        costs[k] = window.cost[:, steps, s, a].mean(axis=1) * cmdp.cost_scale
        following, chances = window.laws.law(0, int(s[-1]), int(a[-1]))
        start = int(rng.choice(following, p=chances))
        told = with_next_start(player, state, np.eye(1, len(cmdp.initial), start)[0]) if told_start else state
        state = player.update(told, feedback)
    return Windows(cmdp, rewards, costs, Policy(player.policy(state), cmdp.labels))
