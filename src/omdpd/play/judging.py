"""The truth judges a run: exact values under the true model, against the best policy that is safe in every episode.

    Regret(K)      = sum_k V*(r) - V^{pi_k}(r)
    Violation(K)   = sum_k max_i [V^{pi_k}(d_{k,i})]^+                    strong: nothing cancels
    Weak violation = max_i [sum_k V^{pi_k}(d_{k,i})]^+
    Lagrangian regret = Regret(K) + sum_j mult_j sum_k V^{pi_k}(d_j)      j over the rows of the comparator's program

Never from returns, never from a learner's own occupancy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.natures.protocol import Nature
from omdpd.play.compiled.episode import add_judgement, at_least
from omdpd.play.rows import regret_curve
from omdpd.problem.arrays import Floats, expected, inner
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.records import fast_init
from omdpd.solvers.graph import Graph
from omdpd.solvers.planning import best_plan_against
from omdpd.solvers.programs import least_total_violation, written_out
from omdpd.solvers.regions import Region

# An exponent is shown from this many episodes on, K = 4 x 250: before episode 250 or so learners explore, and between
# 50 and 200 episodes one sees how a curve starts, not how it grows.
MIN_TELLING = 1000
# And up to this: an episode adds at most a constant, so that no curve grows faster than K^1 for long.  A slope above 2
# says that not a sixteenth of the sum was there at K/4; it is the logarithm of almost nothing.
MAX_TELLING = 2.0
# Where an exponent starts to be measured: the slope is taken between K / 4 and K.
EXPONENT_START = 4
# The last tenth of a run says what the learner has come to.
LATE_SHARE = 10
# Up to this many table entries (32 MB) are kept in memory while the comparator is found; beyond, they are made anew.
MAX_NUMBERS = 2**22
# Up to this many table entries the best policy in hindsight is found, by a program with a row per table.
MAX_HINDSIGHT = 2**21


@fast_init
@dataclass(frozen=True, eq=False)
class Assessment:
    """One episode: the policy's true value, and its true excess cost per constraint (I,)."""

    value: float
    excess: Floats


@fast_init
@dataclass(frozen=True, eq=False)
class Totals:
    """What a run amounts to after `episodes`: sums over its episodes.

    `quarter` holds the sums of value and violation at episode K/4 (None before it), from which exponents are measured;
    `late` the sum of violation where the last tenth begins; `rewards` the sum of the reward tables that were met, where
    they change.
    """

    episodes: int
    value: float
    violation: float
    excess: Floats
    occupancy: Floats
    quarter: tuple[int, float, float] | None = None
    late: tuple[int, float] | None = None
    rewards: Floats | None = None

    @staticmethod
    def none(cmdp: CMDP) -> Totals:
        """Before the first episode."""
        return Totals(0, 0.0, 0.0, np.zeros(cmdp.n_constraints), np.zeros(cmdp.shape))

    def after(self, judged: Assessment, occupancy: Floats, n_episodes: int, reward: Floats | None = None) -> Totals:
        """The sums with one more episode of a run of `n_episodes`; `reward` is its table where they change."""
        met = self.rewards
        if reward is not None:
            met = reward if met is None else met + reward
        excess, visited = self.excess.copy(), self.occupancy.copy()
        violation = self.violation + add_judgement(judged.excess, excess, occupancy, visited)
        return self.along([self.value + judged.value], [violation], excess, visited, n_episodes, met)

    def along(
        self, values: Sequence[float] | Floats, violations: Sequence[float] | Floats, excess: Floats,
        occupancy: Floats, n_episodes: int, rewards: Floats | None,
    ) -> Totals:  # fmt: skip
        """The sums after some episodes more, of which `values` and `violations` are the sums after each of them."""
        k, n = self.episodes, len(values)
        at, late_at = n_episodes // EXPONENT_START - k, n_episodes - n_episodes // LATE_SHARE - k
        quarter, late = self.quarter, self.late
        if 0 < at <= n:
            quarter = (k + at, float(values[at - 1]), float(violations[at - 1]))
        if 0 < late_at <= n:
            late = (k + late_at, float(violations[late_at - 1]))
        return Totals(k + n, float(values[-1]), float(violations[-1]), excess, occupancy, quarter, late, rewards)


@dataclass(frozen=True, eq=False)
class Comparator:
    """The best policy that is safe in every episode of a run; `exists` is False where no policy is.

    `rows` (n, H, S, A) are the tables with a positive shadow price, `multipliers` (n,) the prices.  Without a
    comparator `value` is None, and `hindsight_violation` is the least Violation(K) of a fixed policy against the tables
    of the run's episodes (None if there are too many tables to find out, how often each was met is not known, or the
    world moves).  `policy` (H, S, A) is the policy itself, None also where the world moves and every episode has its
    own.
    """

    exists: bool
    value: float | None
    rows: Floats
    multipliers: Floats
    hindsight_violation: float | None
    policy: Floats | None = None


@dataclass(frozen=True)
class Scores:
    """The numbers of a whole run; what is undefined is None.

    `late_violation` is the mean strong violation of an episode in the last tenth of the run.
    """

    regret: float | None
    regret_positive: float | None
    lagrangian_regret: float | None
    violation: float
    weak_violation: float
    regret_exponent: float | None
    violation_exponent: float | None
    late_violation: float


def assess(round_: Round, occupancy: Floats) -> Assessment:
    """The exact value and excess costs of a policy, from its true occupancy."""
    return Assessment(expected(round_.reward, occupancy), inner(round_.cost, occupancy))


def comparator(
    cmdp: CMDP, nature: Nature, keys: Sequence[int], reward: Floats | None = None, weights: Floats | None = None
) -> Comparator:
    """The comparator over the distinct tables that were drawn (by key), for the mean reward that was met if given.

    `weights` (n,) are the sums of the factors with which each was met; None if they are not known.
    """
    size = len(keys) * cmdp.excess.size
    kept = list(_chunks(cmdp, nature, keys)) if size <= MAX_NUMBERS else None
    chunks = (lambda: iter(kept)) if kept is not None else (lambda: _chunks(cmdp, nature, keys))
    earned = cmdp.reward if reward is None else cmdp.copied(reward)
    against = best_plan_against(cmdp.laws, cmdp.initial, earned, chunks)
    plan, rows = against.plan, against.rows
    if not plan.feasible:
        paid = None
        if weights is not None and kept is not None and size <= MAX_HINDSIGHT and written_out(cmdp.shape):
            tables = np.concatenate(kept).reshape(len(keys), *cmdp.excess.shape)
            paid = least_total_violation(cmdp.transition, cmdp.initial, tables, weights)
        return Comparator(False, None, rows[:0], np.zeros(0), paid)
    priced = plan.multipliers > 0.0
    policy = plan.policy if cmdp.mask is None else cmdp.mask.played(plan.policy)
    return Comparator(True, plan.value, rows[priced], plan.multipliers[priced], 0.0, policy)


def dynamic_comparator(cmdp: CMDP, value: float | None) -> Comparator:
    """The comparator of a world that moves: the mean of the episodes' own best safe values, without shadow prices."""
    nothing = np.zeros((0, *cmdp.shape))
    return Comparator(value is not None, value, nothing, np.zeros(0), 0.0 if value is not None else None)


def scores(values: Floats, totals: Totals, best: Comparator) -> Scores:
    """Regret and violation of a run from its per-episode true values (K,) and its sums."""
    k4, value4, violation4 = totals.quarter or (0, 0.0, 0.0)
    K, violation = totals.episodes, totals.violation
    weak = float(np.maximum(totals.excess, 0.0).max())
    k_late, violation_late = totals.late or (0, 0.0)
    late = (violation - violation_late) / max(K - k_late, 1)
    violation_exponent = growth_exponent(k4, violation4, K, violation)
    if best.value is None:
        return Scores(None, None, None, violation, weak, None, violation_exponent, late)
    regret: float = regret_curve(best.value, K, totals.value)
    gaps = best.value - values
    positive = float(np.maximum(gaps, 0.0, out=gaps).sum())  # in place: a run may have a million of them
    if totals.rewards is not None:
        positive = max(regret, 0.0)  # where rewards change an episode has no comparator of its own
    lagrangian = regret + float(best.multipliers @ inner(best.rows, totals.occupancy))
    # The mean reward of the run says nothing about its first quarter where rewards change.
    exponent = (
        None if totals.rewards is not None else growth_exponent(k4, regret_curve(best.value, k4, value4), K, regret)
    )
    return Scores(regret, positive, lagrangian, violation, weak, exponent, violation_exponent, late)


def early_sums(totals: Totals, best: Comparator) -> dict[str, float | None]:
    """Regret and violation where exponents start to be measured, so that the exponent of a mean over runs is known."""
    if totals.quarter is None:
        return {"early_episode": None, "early_regret": None, "early_violation": None}
    k, value, violation = totals.quarter
    regret = regret_curve(best.value, k, value)
    return {"early_episode": k, "early_regret": regret, "early_violation": violation}


def growth_exponent(k_early: int, early: float, k_late: int, late: float) -> float | None:
    """Slope of log cumulative value between two episodes; None unless it is positive at both.

    >>> growth_exponent(100, 10.0, 400, 20.0)
    0.5
    """
    if k_early < 1 or k_late <= k_early or early <= 0.0 or late <= 0.0:
        return None
    return float(np.log(late / early) / np.log(k_late / k_early))


def telling_exponent(slope: float | None, episodes: int) -> float | None:
    """Give the slope if there are episodes enough for it to say how a curve grows, else None.

    >>> telling_exponent(0.5, 3000), telling_exponent(0.5, 200), telling_exponent(3.13, 3000)
    (0.5, None, None)
    """
    return None if slope is None or episodes < MIN_TELLING or slope > MAX_TELLING else slope


def optimism_holds(believed: Estimate[Region], cmdp: CMDP, cost: Floats | None) -> bool:
    """Whether a belief is optimistic about the truth: the kernel is in the region, r~ >= r, d~ <= d if estimated."""
    if isinstance(believed.region, Graph):
        return False  # one estimated kernel, and never the true one, which may be too large for a table
    # The region first: one estimated kernel is not the truth at its first entry already.
    if not believed.region.contains(cmdp.transition) or not at_least(believed.reward, cmdp.reward):
        return False
    return cost is None or at_least(cost, believed.cost)


def _chunks(cmdp: CMDP, nature: Nature, keys: Sequence[int]) -> Iterator[Floats]:
    """The tables of the keys, a thousand episodes at a time, (n, H, S, A)."""
    for start in range(0, len(keys), 1000):
        tables = [cmdp.copied(nature.table(key)) for key in keys[start : start + 1000]]
        yield tables[0] if len(tables) == 1 else np.concatenate(tables)
