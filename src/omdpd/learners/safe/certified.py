"""Plans whose costs are certified from logs, corrected for what choosing the best plan flatters itself.

    max_q  r.q - t_0 se_0(q)    subject to    c_i.q + (t_i + z) se_i(q) <= b_i,    q a flow of supported rows

`se` is the standard error of the plan (`learners/safe/supported.py`).  It is about a policy that was fixed beforehand;
the best of many looks better than it is (the optimiser's curse), here by t standard errors.  t is measured on the logs
themselves: a plan made of one half of the episodes is judged by the other half.

se is convex and homogeneous in q while values-to-go are held, so that its slope at the last plan cuts off plans that
are not certified.  No plan is believed for a cut: each is judged by its own standard error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.learners.safe.supported import Flags, Supported, supported
from omdpd.learners.safe.tally import FOLDS, Tally
from omdpd.problem.arrays import Floats
from omdpd.solvers.columns import Problem, best_mixture

# Rounds that add cuts, and then rounds that only lower budgets by the margin of the last plan (and a little).
ROUNDS, LOWERING, EXTRA = 5, 15, 1.03
# Plans are aimed below their budgets by this share of a standard error, and one that gains a smaller share is no news.
AIM, NEWS = 0.02, 0.02
# How the program is solved: its value need not be known better than its tables are.
ACCURACY = 1e-5
# Halves by fold, each of which has two folds in common with every other.
SPLITS = ((0, 1, 2, 3), (0, 1, 4, 5), (0, 2, 4, 6))
# Flattery that is assumed before any is measured, and of halves in which nothing can be certified; and its bounds.
FIRST, UNPLANNED, MOST = 3.0, 3.5, 8.0


@dataclass(frozen=True, eq=False)
class Margin:
    """How many standard errors a plan is corrected by (`flattery`, (1 + I,)), and held below its budget by (`z`)."""

    flattery: Floats
    z: float


@dataclass(frozen=True, eq=False)
class Judged:
    """A policy (H, S, A) in an empirical model: occupancy, what it earns and costs (1 + I,), with standard errors.

    `low` is the value less its flattery; `upper` bounds the costs (I,); `ok` is whether all budgets hold with them.
    """

    policy: Floats
    occupancy: Floats
    totals: Floats
    errors: Floats
    low: float
    upper: Floats
    ok: bool
    slopes: Floats


def judged(model: Supported, policy: Floats, budget: Floats, margin: Margin, slopes: bool = False) -> Judged:
    """What a policy earns and costs in a model, and whether it is certified."""
    q = model.occupancy(policy)
    totals = model.totals(q)
    errors, slope = model.errors(policy, q, slopes)
    upper = totals[1:] + (margin.flattery[1:] + margin.z) * errors[1:]
    ok = bool((upper <= budget).all())
    low = float(totals[0] - margin.flattery[0] * errors[0])
    return Judged(policy, q, totals, errors, low, upper, ok, slope)


def certified_plan(model: Supported, baseline: Floats, budget: Floats, margin: Margin) -> Judged | None:
    """The best plan that was found to be certified, or the one that comes nearest; None where the model has none.

    `baseline` (H, S, A) is what is played in states that were never seen.
    """
    weights = np.r_[margin.flattery[0], margin.flattery[1:] + margin.z + AIM]
    goal, cuts, level, best = model.tables[0], [*model.tables[1:]], list(budget), None
    for round_ in range(ROUNDS + LOWERING):
        found = _program(model, goal, cuts, level)
        if found is None:  # cuts of plans that were far from the best may leave nothing: go on without them
            if best is None or len(cuts) == len(budget):
                break
            cuts = cuts[: len(budget)]
            level = list(budget - EXTRA * (best.upper - best.totals[1:]))
            continue
        policy = np.where(model.unseen[..., None], baseline, model.out_of_plan(found))
        plan = judged(model, policy, budget, margin, slopes=round_ < ROUNDS)
        if best is None or _better(plan, best, budget):
            news = best is None or not (best.ok and plan.ok) or plan.low - best.low > NEWS * plan.errors[0]
            best = plan
            if not news:
                break
        elif plan.ok:
            break
        if round_ < ROUNDS:
            goal = model.tables[0] - weights[0] * plan.slopes[0]
            for i in range(len(budget)):
                bent = float(np.vdot(plan.slopes[1 + i], plan.occupancy))
                cuts.append(model.tables[1 + i] + weights[1 + i] * plan.slopes[1 + i])
                level.append(budget[i] - weights[1 + i] * (plan.errors[1 + i] - bent))
        elif plan.ok:
            break
        else:
            for i in range(len(budget)):
                level[i] = min(level[i], budget[i] - EXTRA * (plan.upper[i] - plan.totals[1 + i]))
    return best


def _better(plan: Judged, best: Judged, budget: Floats) -> bool:
    """Certified before not; then by value less flattery, or by how far the worst budget is exceeded."""
    if plan.ok != best.ok:
        return plan.ok
    if plan.ok:
        return plan.low > best.low
    worst = [float(((each.upper - budget) / each.errors[1:]).max()) for each in (plan, best)]
    return worst[0] < worst[1]


def _program(model: Supported, goal: Floats, cuts: list[Floats], level: list[float]) -> Floats | None:
    """max goal.q subject to cuts_j.q <= level_j: a policy (H, S + 1, A) in the plan's laws; None where none is."""
    H = model.laws.shape[0]
    tables = []
    for cut, bound in zip(cuts, level, strict=True):
        table = model.in_plan(cut - bound / H)
        tables.append(np.broadcast_to(table / np.abs(table).max(), (H, *table.shape[1:])))
    reward = model.in_plan(goal)
    scale = max(float(np.abs(reward).max()), 1e-300)
    problem = Problem(model.plan_laws, model.initial, np.ascontiguousarray(reward / scale), np.array(tables))
    mixture = best_mixture(problem, ACCURACY)
    return problem.occupancy_and_policy(mixture)[1] if mixture.feasible else None


def flattery(
    tally: Tally, initial: Floats, baseline: Floats, budget: Floats, z: float, least: int, allowed: Flags | None = None
) -> tuple[Floats, float]:
    """By how many standard errors plans flatter themselves (1 + I,), and how much this differs between halves.

    The latter is the root of the mean variance: the largest of several would mostly be luck.  A plan of one half is
    judged in the model of the other; rows that this one lacks are taken from all episodes.
    """
    # Plans of half the episodes are as wide as those of all.
    whole, margin = tally.sample(), Margin(np.full(1 + len(budget), FIRST / np.sqrt(2.0)), z / float(np.sqrt(2.0)))
    met = []
    for half in SPLITS:
        rest = tuple(fold for fold in range(FOLDS) if fold not in half)
        for own, other in ((half, rest), (rest, half)):
            mine = supported(tally, tally.sample(own), initial, max(least // 2, 1), allowed)
            plan = certified_plan(mine, baseline, budget, margin)
            if plan is None:
                met.append(np.full(1 + len(budget), UNPLANNED))
                continue
            theirs = supported(tally, tally.sample(other).filled(whole), initial, 1, allowed)
            gap = theirs.totals(theirs.occupancy(plan.policy)) - plan.totals
            gap[0] = -gap[0]
            pivot = np.clip(gap / plan.errors, -MOST, MOST)
            met.append(pivot if plan.ok else np.maximum(pivot, UNPLANNED))
    pivots = np.array(met)
    return np.maximum(pivots.mean(axis=0), 0.0), float(np.sqrt(pivots.var(axis=0).mean()))
