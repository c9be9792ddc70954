"""Costs whose table is another one in every episode, whatever is played, and revealed after it.

**Scaled**: d_k = c_k d with c_k drawn from seven values of both signs, our reading of the paper's adversarial
simulation.  Being safe in every episode means d.q = 0: such a policy exists when V(d) changes sign; it has no slack.

**Anchored**: a fresh table, shifted so that an anchor is safe.  About half the tables are tight at the anchor, so with
many more episodes than HS(A-1) it is the only policy that satisfies them all, and its value is the comparator's.

**Independent**: every entry drawn afresh from the seven values, the literal reading of the paper's simulation.  No
policy is safe in every episode beyond a few dozen of them, and no learner can know the next table.  So every learner,
the best fixed policy included, pays at least a constant per episode in expectation:

    E [d.q]^+ = 1/2 E |d.q| >= 1/2 E | sum_h mean over (s,a) of d_h(s,a) |

because the left side is convex in q and does not change when the entries of a step are permuted, so that its minimum
over all q with sum_{s,a} q_h(s,a) = 1 is at the flat one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omdpd.natures.anchor import Anchor
from omdpd.natures.protocol import Safety, episode_choice, episode_rng
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP, Noise, Round
from omdpd.problem.setting import FeedbackKind
from omdpd.solvers.planning import best_plan

# The factors and the entries that are drawn; signs of factors by key.
LEVELS, SIGNS = (-1.0, -0.6, -0.2, 0.0, 0.2, 0.6, 1.0), (0.0, 1.0, -1.0)
# Up to this many entries the law of their sum is worked out.
MAX_CONVOLVED = 20_000


@dataclass(frozen=True, eq=False)
class Revealed:
    """The draw of such a nature; its own are `table` and `safety`."""

    cmdp: CMDP
    seed: int
    reward_noise: Noise = "two-point"
    feedback: FeedbackKind = "full"
    repeats: bool = False

    oblivious = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The table of that episode."""
        return Round(self.cmdp.reward, self.table(k), k, self.reward_noise)

    def table(self, key: int) -> Floats:
        """The table (I, H, S, A) of episode `key`."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Scaled(Revealed):
    """The mean cost table times a random factor."""

    repeats: bool = True

    oblivious = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """c_k d."""
        factor = LEVELS[episode_choice(self.seed, k, len(LEVELS))]
        key = SIGNS.index(float(np.sign(factor)))
        size = abs(factor) if factor else 1.0
        return Round(self.cmdp.reward, factor * self.cmdp.excess, key, self.reward_noise, factor=size)

    def table(self, key: int) -> Floats:
        """0, d or -d."""
        return SIGNS[key] * self.cmdp.excess

    def safety(self) -> Safety:
        """d.q <= 0 and -d.q <= 0 at once."""
        cmdp = self.cmdp
        both = np.concatenate([cmdp.excess, -cmdp.excess])
        plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, both)
        if plan.feasible:
            return Safety(True, "some policy meets the budget exactly, which is safe for d and for -d")
        return Safety(False, "no policy meets the budget exactly, so d and -d cannot both be satisfied")


def make_scaled(cmdp: CMDP, seed: int) -> Scaled:
    """The cost table times a random sign and size, revealed."""
    return Scaled(cmdp, seed)


@dataclass(frozen=True, eq=False)
class Anchored(Revealed):
    """Fresh tables around an anchor."""

    @cached_property
    def anchor(self) -> Anchor:
        """The policy that every table leaves safe."""
        return Anchor.of(self.cmdp)

    def table(self, key: int) -> Floats:
        """A fresh table."""
        rng = episode_rng(self.seed, key)
        return np.stack([self.anchor.table(rng) for _ in range(self.cmdp.n_constraints)])

    def safety(self) -> Safety:
        """The anchor."""
        return Safety(True, "every table is shifted until the anchor policy is safe")


def make_anchored(cmdp: CMDP, seed: int) -> Anchored:
    """A fresh table every episode, around a policy that stays safe."""
    return Anchored(cmdp, seed)


@dataclass(frozen=True, eq=False)
class Independent(Revealed):
    """Independent entries."""

    def table(self, key: int) -> Floats:
        """A fresh table."""
        shape = (self.cmdp.n_constraints, *self.cmdp.shape)
        return self.cmdp.copied(np.array(LEVELS)[episode_rng(self.seed, key).integers(len(LEVELS), size=shape)])

    def safety(self) -> Safety:
        """None beyond a few dozen episodes."""
        H, S, A = self.cmdp.shape
        return Safety(
            False,
            f"with independent entries no policy is safe in every episode once there are many more than "
            f"{H * S * (A - 1)} of them; every learner pays at least {violation_floor(H, S, A):.3f} per episode",
        )


def violation_floor(horizon: int, n_states: int, n_actions: int) -> float:
    """1/2 E |sum of HSA independent entries| / (SA): the least expected violation per episode of any learner.

    The law of the sum is found exactly, by convolution of the entries' law on the grid of fifths; that of very many
    entries is normal to five digits.

    >>> round(violation_floor(5, 5, 3), 3)
    0.146
    """
    n = horizon * n_states * n_actions
    if n > MAX_CONVOLVED:
        return float(0.5 * np.sqrt(2.0 / np.pi * n * np.var(LEVELS)) / (n_states * n_actions))
    steps = np.rint(np.array(LEVELS) * 5.0).astype(np.int64)
    one = np.zeros(11)
    one[steps + 5] = 1.0 / len(LEVELS)
    law = np.ones(1)
    for _ in range(n):
        law = np.convolve(law, one)
    grid = (np.arange(law.size) - law.size // 2) / 5.0
    return float(0.5 * law @ np.abs(grid) / (n_states * n_actions))


def make_independent(cmdp: CMDP, seed: int) -> Independent:
    """Every entry drawn afresh: the literal reading of the paper; no learner can be safe."""
    return Independent(cmdp, seed)
