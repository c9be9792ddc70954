"""Counts of what was visited, and of nothing else: sorted keys, whatever the number of states.

A row of the table (h, s, a) and a move (h, s, a, s') are whole numbers.  Their order is the estimator's choice:

    "step"      (h, s, a)  and  (h, s, a, s')       every step has counts of its own
    "pooled"    (s, a)     and  (s, a, s')          all steps share theirs: a stationary world
    "pair"      (s, a, h)  and  (s, a, s', h)       counts by step, those of one pair beside each other

One more episode joins at most H keys to each list: 16 bytes per distinct move and 8 (4 + 2 I) per row, where the tables
of `counts` have H S A S entries.  Joining copies the lists, which is less than one sweep of the graph made from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from omdpd.beliefs.counts import Counts
from omdpd.beliefs.keys import bounds, distinct, joined
from omdpd.beliefs.rules import units_of_cost
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.setting import BanditFeedback, Feedback, Setting

Order = Literal["step", "pooled", "pair"]


@dataclass(frozen=True, eq=False)
class Visits:
    """Sums by row and by move, each in the order of its sorted keys.

    `shape` is (H, S, A); `rows` (n,), `visits` (n,), `reward_sum` and `reward_squares` (n,), `cost_sum` (I, n) of d and
    `cost_squares` (I, n) of (d+1)/2, zero unless costs are met on the way; `moves` (e,) and `move_counts` (e,), none
    from the last step.
    """

    order: Order
    shape: tuple[int, int, int]
    rows: Integers
    visits: Floats
    reward_sum: Floats
    reward_squares: Floats
    cost_sum: Floats
    cost_squares: Floats
    moves: Integers
    move_counts: Floats

    @staticmethod
    def empty(setting: Setting, order: Order) -> Visits:
        """No visit yet."""
        none, costs, keys = np.zeros(0), np.zeros((setting.n_constraints, 0)), np.zeros(0, np.int64)
        return Visits(order, setting.shape, keys, none, none, none, costs, costs, keys, none)

    def add(self, feedback: Feedback) -> Visits:
        """The visits with one more episode; costs are summed under bandit feedback only."""
        row_keys, move_keys = self._keys(feedback)
        rows, place, at = joined(self.rows, row_keys)
        moves, old_moves, new_moves = joined(self.moves, move_keys)
        costs = np.zeros((len(self.cost_sum), row_keys.size))
        squares = costs
        if isinstance(feedback, BanditFeedback):
            costs, squares = feedback.costs, units_of_cost(feedback.costs, 1.0) ** 2
        return Visits(
            self.order, self.shape, rows,
            _summed(self.visits, np.ones(row_keys.size), rows.size, place, at),
            _summed(self.reward_sum, feedback.rewards, rows.size, place, at),
            _summed(self.reward_squares, feedback.rewards**2, rows.size, place, at),
            _summed(self.cost_sum, costs, rows.size, place, at),
            _summed(self.cost_squares, squares, rows.size, place, at),
            moves, _summed(self.move_counts, np.ones(move_keys.size), moves.size, old_moves, new_moves),
        )  # fmt: skip

    def seen(self) -> Seen:
        """The pairs seen in each layer, and where each led."""
        H, S, A = self.shape
        if self.order == "step":
            ends = bounds(self.rows, S * A, np.arange(H))
            return Seen(self.rows % (S * A), ends[:-1], ends[1:], bounds(self.moves, S, self.rows), self.moves % S)
        if self.order == "pooled":
            pairs, followed = self.rows, self.moves
        else:
            pairs, followed = distinct(self.rows, H), distinct(self.moves, H)
        first, last = np.zeros(H, np.int64), np.full(H, pairs.size)
        return Seen(pairs, first, last, bounds(followed, S, pairs), followed % S)

    def counts(self) -> Counts:
        """The same counts in tables; those that all steps share are put at the first one."""
        H, S, A = self.shape
        steps, pairs = self._places(self.rows, S * A)
        at, moves = self._places(self.moves, S * A * S)
        visits, led, rewards = np.zeros((H, S * A)), np.zeros((H, S * A * S)), np.zeros((H, S * A))
        costs = np.zeros((len(self.cost_sum), H, S * A))
        visits[steps, pairs], rewards[steps, pairs] = self.visits, self.reward_sum
        costs[:, steps, pairs], led[at, moves] = self.cost_sum, self.move_counts
        return Counts(
            visits.reshape(H, S, A), led.reshape(H, S, A, S), rewards.reshape(H, S, A), costs.reshape(-1, H, S, A)
        )

    def squares(self) -> tuple[Floats, Floats]:
        """The sums of squares of rewards (H, S, A) and of costs (I, H, S, A), in tables."""
        H, S, A = self.shape
        steps, pairs = self._places(self.rows, S * A)
        rewards, costs = np.zeros((H, S * A)), np.zeros((len(self.cost_squares), H, S * A))
        rewards[steps, pairs], costs[:, steps, pairs] = self.reward_squares, self.cost_squares
        return rewards.reshape(H, S, A), costs.reshape(-1, H, S, A)

    def _places(self, keys: Integers, n: int) -> tuple[Integers, Integers]:
        """Step and place in a layer of n of every key."""
        if self.order == "pair":
            return keys % self.shape[0], keys // self.shape[0]
        return keys // n, keys % n  # the keys of a stationary world are below n

    def _keys(self, feedback: Feedback) -> tuple[Integers, Integers]:
        """The rows and the moves of one episode."""
        H, S, A = self.shape
        states, steps = feedback.trajectory.states, np.arange(H)
        pairs = states * A + feedback.trajectory.actions
        if self.order == "step":
            rows = steps * (S * A) + pairs
            return rows, rows[:-1] * S + states[1:]
        moves = pairs[:-1] * S + states[1:]
        return (pairs, moves) if self.order == "pooled" else (pairs * H + steps, moves * H + steps[:-1])


@dataclass(frozen=True, eq=False)
class Seen:
    """The pairs s A + a seen in layer h, ``pairs[first[h]:last[h]]``, and the states that followed each of them.

    Pair i was followed by ``following[ends[i]:ends[i + 1]]``.
    """

    pairs: Integers
    first: Integers
    last: Integers
    ends: Integers
    following: Integers


def _summed(old: Floats, new: Floats, n: int, place: Integers, at: Integers) -> Floats:
    """Sums in a longer list: those that were there, and what one episode adds (twice where it came twice)."""
    sums = np.zeros((*old.shape[:-1], n))
    sums[..., place] = old
    np.add.at(sums.T, at, new.T)
    return sums
