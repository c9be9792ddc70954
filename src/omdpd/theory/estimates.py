"""Measures hold estimates to what an analysis assumes: Appendix B's good event, and how losses split (Section 5.2).

The event is about the data alone, with the theorem's own widths whatever the learner's are; it is asked before every
episode, with the counts of those before it.
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs.confidence import COST_WIDTH, DELTA, log_term, log_term_transition, radius
from omdpd.beliefs.counts import Counts
from omdpd.play.ledger import ROUNDING, visit_bounds
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.products import dots
from omdpd.solvers.regions import Region
from omdpd.theory.inequalities import NO_COMPARATOR, HeldAgainst, Inequality, SeenEpisode, Track, outside

# The equations of the event: with costs that are estimated, and with revealed ones.
EVENT = {"bandit": "Lemma 5.6, Eq. 27", "full": "Lemma 5.6, Eq. 28"}
REVEALED = "costs are revealed: none is estimated"


class GoodEvent:
    """F^p, F^r, F^d and both sums of F^N: the largest error as a share of its width, the sums beside their bounds."""

    def __init__(self, truth: HeldAgainst) -> None:
        self.truth, self._sums, where = truth, np.zeros(2), EVENT[truth.setting.feedback]
        self._reward = Track("good event, rewards (F^r)", where, "max |r - r_hat| / sqrt(L/n) <= 1", single=True)
        self._cost = Track("good event, costs (F^d)", where, "max |d - d_hat| / sqrt(2L/n) <= 1", single=True)
        self._kernel = Track("good event, transitions (F^p)", where, "max |p - p_hat| / radius <= 1", single=True)
        self._inverse = Track(
            "good event, visits (F^N)", where, "sum_k <q^pi_k, 1/n> <= 4HSA + 2HSA ln k + 4 ln(2Hk/delta')"
        )
        self._root = Track(
            "good event, roots of visits (F^N)", where,
            "sum_k <q^pi_k, 1/sqrt n> <= 6HSA + 2H sqrt(SAk) + 2HSA ln k + 5 ln(2Hk/delta')",
        )  # fmt: skip

    def see(self, episode: SeenEpisode) -> None:
        """One more episode."""
        counts, cmdp, setting = episode.before.counts, self.truth.cmdp, self.truth.setting
        self._reward.add(_share(*reward_errors(counts, cmdp, setting)), 1.0)
        if setting.feedback == "bandit":
            self._cost.add(_share(*cost_errors(counts, cmdp, setting)), 1.0)
        if setting.horizon > 1:
            self._kernel.add(_share(*transition_errors(counts, cmdp, setting)), 1.0)
        n = np.maximum(counts.visits, 1.0)
        self._sums += (episode.occupancy / n).sum(), (episode.occupancy / np.sqrt(n)).sum()
        first, second = visit_bounds(setting, episode.k)
        self._inverse.add(self._sums[0], first)
        self._root.add(self._sums[1], second)

    def done(self) -> list[Inequality]:
        """The parts of the event."""
        kernel = self._kernel.done("episodes have one step: nothing is left to be reached")
        return [self._reward.done(), self._cost.done(REVEALED), kernel, self._inverse.done(), self._root.done()]


def _share(error: Floats, width: Floats) -> float:
    """The largest error as a share of its width."""
    return float((error / (width + ROUNDING)).max())


class OptimismChecks:
    """Whether beliefs are optimistic with the learner's own widths, and whether q* is in Q_k and believed safe.

    `covers` is whether the region is meant to hold the true kernel; one estimated kernel is not.
    """

    def __init__(self, truth: HeldAgainst, covers: bool) -> None:
        self.truth, self.covers = truth, covers
        self._reward = Track("optimistic rewards", "Eq. 15", "max (r - r~_k) <= 0", single=True)
        self._cost = Track("optimistic costs", "Eq. 16", "max (d~_{k,i} - d_i) <= 0", single=True)
        self._kernel = Track("true kernel in B_k", "Eq. 17", "max distance of p outside B_k <= 0", single=True)
        self._inside = Track(
            "comparator in Q_k", "Lemma 5.7", "max distance of p outside B_k, where q* > 0, <= 0", single=True
        )
        self._safe = Track("comparator believed safe", "Lemma 5.7", "max_i d~_{k,i}.q* <= 0", single=True)

    def see(self, reward: Floats, cost: Floats, region: Region) -> None:
        """One more episode with r~_k, d~_k (or the revealed tables) and the region Q_k."""
        cmdp, best = self.truth.cmdp, self.truth.occupancy
        self._reward.add(float((cmdp.reward - reward).max()), 0.0)
        if self.truth.setting.feedback == "bandit":
            self._cost.add(float((cost - cmdp.excess).max()), 0.0)
        if not self.covers:
            return
        self._kernel.add(outside(region, cmdp.transition), 0.0)
        if best is not None:
            self._inside.add(outside(region, cmdp.transition, best), 0.0)
            self._safe.add(float(dots(cost, best).max()), 0.0)

    def done(self) -> list[Inequality]:
        """The five, with the reasons of those that say nothing."""
        one = "the learner plans under one estimated kernel, which is never the true one"
        missing = NO_COMPARATOR if self.covers else one
        return [
            self._reward.done(), self._cost.done(REVEALED), *(
                track.done(missing) for track in (self._kernel, self._inside, self._safe)
            ),
        ]  # fmt: skip


class Split:
    """Eq. 25, an equation in the paper, holds as an inequality: [x]^+ <= [x - y]^+ + [y]^+."""

    def __init__(self) -> None:
        self._track = Track(
            "violation split", "Eq. 25", "violation <= sum_k max_i [V(d_i) - d~_i.q_k]^+ + sum_k max_i [d~_i.q_k]^+"
        )
        self._violation = self._bound = 0.0

    def see(self, episode: SeenEpisode, planned: Floats, q: Floats) -> None:
        """One more episode, planned with cost tables `planned` (I, H, S, A) and the learner's occupancy q."""
        true, believed = dots(episode.cost, episode.occupancy), dots(planned, q)
        self._violation += max(float(true.max()), 0.0)
        self._bound += max(float((true - believed).max()), 0.0) + max(float(believed.max()), 0.0)
        self._track.add(self._violation, self._bound)

    def done(self) -> list[Inequality]:
        """The inequality."""
        return [self._track.done()]


def reward_errors(counts: Counts, cmdp: CMDP, setting: Setting) -> tuple[Floats, Floats]:
    """|r - r_hat| (H, S, A), and the width sqrt(L/n) that F^r holds it against."""
    return np.abs(cmdp.reward - counts.reward_mean()), _width(counts, setting)


def cost_errors(counts: Counts, cmdp: CMDP, setting: Setting) -> tuple[Floats, Floats]:
    """|d - d_hat| (I, H, S, A), and the width sqrt(2L/n) that F^d holds it against."""
    return np.abs(cmdp.excess - counts.cost_mean()), COST_WIDTH * _width(counts, setting)


def transition_errors(counts: Counts, cmdp: CMDP, setting: Setting) -> tuple[Floats, Floats]:
    """|p - p_hat| (H-1, S, A, S), and the radius that F^p holds it against; the last step leads nowhere.

    (The paper's radius is above one where nothing was seen.)
    """
    n, p_hat = counts.departures[:-1, ..., None], counts.transition_mean()[:-1]
    return np.abs(cmdp.transition[:-1] - p_hat), radius(p_hat, n, 1.0, log_term_transition(setting, 0, DELTA))


def _width(counts: Counts, setting: Setting) -> Floats:
    width: Floats = np.sqrt(log_term(setting, 0, DELTA) / np.maximum(counts.visits, 1.0))
    return width
