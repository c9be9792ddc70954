"""Every entry of every table drawn afresh from seven values: the literal reading of the paper's simulation.

No policy is safe in every episode beyond a few dozen of them, and no learner can know the next table.  So every
learner, the best fixed policy included, pays at least a constant per episode in expectation:

    E [d.q]^+ = 1/2 E |d.q| >= 1/2 E | sum_h mean over (s,a) of d_h(s,a) |

because the left side is convex in q and does not change when the entries of a step are permuted, so that its minimum
over all q with sum_{s,a} q_h(s,a) = 1 is at the flat one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.natures.protocol import Safety, episode_rng
from omdpd.natures.revealed import Revealed
from omdpd.natures.scaled import LEVELS
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP

# Up to this many entries the law of their sum is worked out.
MAX_CONVOLVED = 20_000


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
    """1/2 E |sum of HSA independent entries| / (SA): the expected violation per episode that nobody can go below.

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


def make(cmdp: CMDP, seed: int) -> Independent:
    """Every entry drawn afresh: the literal reading of the paper; nobody can be safe."""
    return Independent(cmdp, seed)
