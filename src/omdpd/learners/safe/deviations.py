"""One-step deviations from a plan, to learn of actions that were seldom tried; their extra cost is bounded.

    policy'(a|s) = (1 - sum_b e(s,b)) policy(a|s) + e(s,a)         and the plan again from the next step on

By the performance difference lemma x deviations an episode cost x times their advantage A_i more (to first order in x).
Of an action that was never tried the advantage is taken to be at most

    1 - c_i  +  2 sd(C_{h+1})

the largest cost of a step that the setting declares less what the plan pays there, and a next state that is no worse
than two standard deviations of where the plan itself goes.  This is an assumption; tries replace it by what they show.
The same bound for rewards, an optimistic index, says which few actions are tried next.
"""

from __future__ import annotations

import numpy as np

from omdpd.learners.safe.certified import Judged
from omdpd.learners.safe.supported import Flags, Supported, padded
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.listed import listed_values
from omdpd.solvers.sweeps import lists_of

# Tries after which an action is left to plans, what the assumption counts in tries, and rows that are tried at a time.
TRIES, PRIOR, MOST_ROWS = 10.0, 2.0, 4
# Deviations are tried in states that an episode meets with at least this chance; at a visit with at most this chance.
LEAST_MET, MOST = 0.02, 0.3


def with_deviations(
    model: Supported, plan: Judged, slack: Floats, share: float, allowed: Flags | None = None
) -> tuple[Floats, Floats]:
    """A policy (H, S, A) that deviates as often as the slack (I,) allows, in at most a share of the steps.

    Actions that are not `allowed` (n, S, A) are not tried.

    Beside it, the extra cost (I,) that is allowed for.
    """
    pooled = len(model.visits) == 1
    met = plan.occupancy[:, :-1].sum(axis=2)
    met = met.sum(axis=0, keepdims=True) if pooled else met
    visits, own = model.visits[:, :-1], plan.policy.max(axis=0, keepdims=True) if pooled else plan.policy
    gain, *extra = (_at_most(model, plan, j) for j in range(len(model.tables)))
    wanted = (visits < TRIES) & (met[..., None] >= LEAST_MET) & (own < 0.5) & (gain > 0.0)
    wanted &= True if allowed is None else allowed
    score = np.where(wanted, met[..., None] * gain, 0.0)
    if not wanted.any() or (slack <= 0.0).any():
        return plan.policy, np.zeros(len(slack))
    score = np.where(score >= np.sort(score, axis=None)[-min(MOST_ROWS, score.size)], score, 0.0)
    shares = score / score.sum()
    each = np.array([float((shares * table).sum()) for table in extra])
    allowed = min([share * len(plan.policy), *(slack / np.maximum(each, 1e-12))])
    chance = allowed * shares / np.maximum(met[..., None], LEAST_MET)
    chance *= np.minimum(1.0, MOST / np.maximum(chance.sum(axis=2, keepdims=True), 1e-12))
    policy = plan.policy * (1.0 - chance.sum(axis=2, keepdims=True)) + chance
    return policy / policy.sum(axis=2, keepdims=True), allowed * np.maximum(each, 0.0)


def _at_most(model: Supported, plan: Judged, j: int) -> Floats:
    """How much more of table j a deviation to each row (n, S, A) brings, at most, as the assumption and tries say."""
    H, table, met = len(plan.policy), model.tables[j], plan.occupancy.sum(axis=2)
    policy = padded(plan.policy)
    togo = listed_values(*lists_of(model.laws), policy, np.ascontiguousarray(table))
    after = np.array([model.laws.backward(togo[h + 1], h) for h in range(H)])
    shown = table + after - togo[:-1, :, None]
    mean = (met[1:] * togo[1:-1]).sum(axis=1, keepdims=True)
    wide = np.sqrt((met[1:] * (togo[1:-1] - mean) ** 2).sum(axis=1))
    now = 1.0 - (policy * table).sum(axis=2)  # the largest entry of a learner's tables, less the plan's
    assumed = now[..., None] + 2.0 * np.r_[wide, 0.0][:, None, None]
    each = (model.visits * shown + PRIOR * assumed) / (model.visits + PRIOR)
    if len(model.visits) == 1:  # every step counts as often as the plan is there
        weight = met / np.maximum(met.sum(axis=0), 1e-12)
        each = (each * weight[..., None]).sum(axis=0, keepdims=True)
    return np.asarray(each[:, :-1])
