"""One episode of a policy against the truth, in one pass: what was met, what is seen of it, and how it is judged.

`omdpd.play.simulate.play_episode` and `omdpd.play.judging.assess` are the readable version; tests hold this one to it.
"""

from __future__ import annotations

from omdpd.jit.decorators import entry, short_rule
from omdpd.play.compiled.rollout import index_of_uniform
from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.boxes import BELIEF_ROUNDING
from omdpd.solvers.compiled.products import dot


@entry
def play_judge(
    policy: Floats,
    occupancy: Floats,
    transition: Floats,
    initial: Floats,
    reward: Floats,
    cost: Floats,
    uniforms: Floats,
    drawn_rewards: bool,
    drawn_costs: bool,
    states: Integers,
    actions: Integers,
    rewards: Floats,
    costs: Floats,
    excess: Floats,
) -> float:
    """The value of a policy; one episode of it, what is observed, and its excess costs are written.

    Parameters
    ----------
    policy, occupancy : (H, S, A)
        What is played, and its true occupancy, by which it is judged.
    transition, initial : (H, S, A, S), (S,)
    reward, cost : (H, S, A), (I, H, S, A)
        The round's mean tables.
    uniforms : (2 H + (1 + I) H,)
        State and action of every step in turn; then one number per observation, rewards first.
    drawn_rewards, drawn_costs : bool
        Whether an observation is an end of its range, [0, 1] or [-1, 1], with the right mean, or the mean itself.
    states, actions, rewards, costs, excess : (H,), (H,), (H,), (I, H), (I,)
        Written; the caller has just made them (an array that is returned costs ten times one that is handed in).
    """
    H, n = policy.shape[0], cost.shape[0]
    law = initial
    for h in range(H):
        s = index_of_uniform(law, uniforms[2 * h])
        a = index_of_uniform(policy[h, s], uniforms[2 * h + 1])
        states[h], actions[h] = s, a
        law = transition[h, s, a]
        rewards[h] = observed(reward[h, s, a], uniforms[2 * H + h], 0.0, 1.0, drawn_rewards)
        for i in range(n):
            costs[i, h] = observed(cost[i, h, s, a], uniforms[(3 + i) * H + h], -1.0, 1.0, drawn_costs)
    for i in range(n):
        excess[i] = dot(cost[i], occupancy)
    return dot(reward, occupancy)


@short_rule
def observed(mean: float, uniform: float, low: float, high: float, drawn: bool) -> float:
    """The mean, or an end of [low, high] that is drawn with this mean."""
    if not drawn:
        return mean
    share = min(max((mean - low) / (high - low), 0.0), 1.0)
    return high if uniform < share else low


@entry
def are_laws(table: Floats, tolerance: float) -> bool:
    """Whether every row along the last axis is a law, its sum up to `tolerance`; stops at the first that is not."""
    H, S, A = table.shape
    for h in range(H):
        for s in range(S):
            total = 0.0
            for a in range(A):
                p = table[h, s, a]
                if not p >= 0.0:
                    return False
                total += p
            if not abs(total - 1.0) <= tolerance:
                return False
    return True


@entry
def at_least(tables: Floats, bound: Floats) -> bool:
    """Whether tables >= bound everywhere, up to rounding; stops at the first entry that is not."""
    x, y = tables.ravel(), bound.ravel()
    for i in range(x.size):
        if not x[i] >= y[i] - BELIEF_ROUNDING:
            return False
    return True


@entry
def add_judgement(excess: Floats, excess_sum: Floats, occupancy: Floats, occupancy_sum: Floats) -> float:
    """Add an episode's excess costs and its occupancy to their sums; its strong violation max_i [excess_i]^+."""
    H, S, A = occupancy.shape
    worst = 0.0
    for i in range(excess.size):
        worst = max(worst, excess[i])
        excess_sum[i] += excess[i]
    for h in range(H):
        for s in range(S):
            for a in range(A):
                occupancy_sum[h, s, a] += occupancy[h, s, a]
    return worst
