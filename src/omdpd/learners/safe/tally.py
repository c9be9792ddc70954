"""Sparse counts of episodes in eight folds, so that they can be split in halves.

Row (h, s, a), or (s, a) where the steps are pooled, has a number; state S stands for "the episode is over".  Only moves
that happened are kept, so that the size goes with what was met and not with S^2.  Of eight episodes that follow one
another each belongs to another fold, in an order that is drawn anew for every eight: what repeats itself in the logs
does not end up in one half.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.setting import BanditFeedback, Setting

FOLDS = 8


class Walks(NamedTuple):
    """Episodes one after another: where each begins (K + 1,), what was met (N,), costs (I, N); if short ones ended.

    An episode with fewer steps than the horizon is over, or its end was not seen.
    """

    starts: Integers
    states: Integers
    actions: Integers
    rewards: Floats
    costs: Floats
    over: bool = False

    @staticmethod
    def of(*episodes: BanditFeedback) -> Walks:
        """Episodes that were told to a learner."""
        walks = [each.trajectory for each in episodes]
        return Walks(
            np.cumsum([0, *(len(walk.states) for walk in walks)]), np.concatenate([walk.states for walk in walks]),
            np.concatenate([walk.actions for walk in walks]), np.concatenate([each.rewards for each in episodes]),
            np.concatenate([each.costs for each in episodes], axis=1),
        )  # fmt: skip


class Sample(NamedTuple):
    """Counts of some episodes: moves as (row, next state, times), and by row visits and sums.

    `sums` (2 + 2 I, R): of rewards, their squares, of costs, their squares.
    """

    rows: Integers
    following: Integers
    times: Floats
    visits: Floats
    sums: Floats

    def filled(self, whole: Sample) -> Sample:
        """The same, with rows that it lacks taken from other counts."""
        left = np.bincount(self.rows, self.times, len(self.visits))
        lacks = (self.visits == 0.0) | ((left == 0.0) & (np.bincount(whole.rows, minlength=len(left)) > 0))
        kept, added = ~lacks[self.rows], lacks[whole.rows]
        order = np.argsort(np.r_[self.rows[kept], whole.rows[added]], kind="stable")
        rows, following, times = (
            np.r_[own[kept], other[added]][order] for own, other in zip(self[:3], whole[:3], strict=True)
        )
        visits, sums = np.where(lacks, whole.visits, self.visits), np.where(lacks, whole.sums, self.sums)
        return Sample(rows, following, times, visits, sums)


@dataclass(frozen=True, eq=False)
class Tally:
    """What a number of episodes left behind, by fold.

    Attributes
    ----------
    keys, times : (M,)
        Moves that happened, as (fold R + row) (S + 1) + next state, ascending; and how often.
    sums : (3 + 2 I, FOLDS, R)
        Visits, and the sums of `Sample`.
    totals : (2, 1 + I)
        Sums of what whole episodes earned and cost, and of the squares.
    episodes
        How many there were.
    horizon, n_states, n_actions, n_steps
        Sizes; `n_steps` is 1 where steps are pooled, else the horizon.
    """

    keys: Integers
    times: Floats
    sums: Floats
    totals: Floats
    episodes: int
    horizon: int
    n_states: int
    n_actions: int
    n_steps: int

    @staticmethod
    def empty(setting: Setting, stationary: bool) -> Tally:
        """No episode yet."""
        H, S, A = setting.shape
        n, n_constraints = 1 if stationary else H, setting.n_constraints
        return Tally(
            np.zeros(0, np.int64), np.zeros(0), np.zeros((3 + 2 * n_constraints, FOLDS, n * S * A)),
            np.zeros((2, 1 + n_constraints)), 0, H, S, A, n,
        )  # fmt: skip

    @property
    def visits(self) -> Floats:
        """How often every pair was met, (n_steps, S, A)."""
        return self.sums[0].sum(axis=0).reshape(self.n_steps, self.n_states, self.n_actions)

    def add(self, walks: Walks) -> Tally:
        """The tally with more episodes."""
        S, A, R = self.n_states, self.n_actions, self.sums.shape[2]
        lengths = np.diff(walks.starts)
        step = np.arange(len(walks.states)) - np.repeat(walks.starts[:-1], lengths)
        row = (np.minimum(step, self.n_steps - 1) * S + walks.states) * A + walks.actions
        fold = np.repeat(folds_of(self.episodes, len(lengths)), lengths)
        place = fold * R + row
        tables = np.vstack([walks.rewards[None], walks.costs])
        each = [np.ones(len(place)), *(power for met in tables for power in (met, met * met))]
        added = np.array([np.bincount(place, weights, FOLDS * R) for weights in each])
        following, moved = _followers(walks, lengths, self.horizon, S)
        keys, where = np.unique(np.r_[self.keys, (place * (S + 1) + following)[moved]], return_inverse=True)
        times = np.bincount(where, np.r_[self.times, np.ones(np.count_nonzero(moved))], len(keys))
        whole = np.add.reduceat(tables, walks.starts[:-1], axis=1)
        return replace(
            self, keys=keys, times=times.astype(np.float64), episodes=self.episodes + len(lengths),
            sums=self.sums + added.reshape(self.sums.shape),
            totals=self.totals + np.array([whole.sum(axis=1), (whole * whole).sum(axis=1)]),
        )  # fmt: skip

    def sample(self, folds: tuple[int, ...] = tuple(range(FOLDS))) -> Sample:
        """The counts of some folds together."""
        R = self.sums.shape[2]
        place, following = np.divmod(self.keys, self.n_states + 1)
        fold, row = np.divmod(place, R)
        kept = np.isin(fold, folds)
        key, where = np.unique((row * (self.n_states + 1) + following)[kept], return_inverse=True)
        times = np.bincount(where, self.times[kept], len(key)).astype(np.float64)
        total = self.sums[:, list(folds)].sum(axis=1)
        return Sample(*np.divmod(key, self.n_states + 1), times, total[0], total[1:])

    def means_of_episodes(self) -> tuple[Floats, Floats]:
        """What an episode earned and cost on average, and its standard deviation, (1 + I,)."""
        mean = self.totals[0] / max(self.episodes, 1)
        square = np.maximum(self.totals[1] - self.episodes * mean**2, 0.0)
        return mean, np.sqrt(square / max(self.episodes - 1, 1))


def folds_of(first: int, n: int) -> Integers:
    """The folds of n episodes from number `first` on; the same at every time."""
    eights = range(first // FOLDS, (first + n - 1) // FOLDS + 1)
    dealt = np.concatenate([np.random.default_rng(eight).permutation(FOLDS) for eight in eights])
    return np.asarray(dealt[first % FOLDS :][:n], dtype=np.int64)


def _followers(walks: Walks, lengths: Integers, horizon: int, n_states: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """The next state of every step, and whether it is known."""
    following = np.r_[walks.states[1:], 0]
    moved = np.ones(len(following), dtype=bool)
    last = walks.starts[1:] - 1
    following[last] = n_states
    moved[last] = walks.over & (lengths < horizon)
    return following, moved
