"""A world that moves: kernel and rewards go from the world's own to another one and back, in pieces, by a budget.

    p_k = (1 - x_k) p + x_k p',   r_k = (1 - x_k) r + x_k r',     x_k = step * (k // piece), turning at `reach` and at 0

p' has the rows of p in another order of next states, r' is uniform.  The largest change of a row of p or an entry of r
between two pieces is at most `step`, so that the variation of K episodes is about step K / piece.  Mean costs stay.

No policy can be the best one throughout, so regret is dynamic: an episode's comparator is the best policy that is safe
in its own world, one linear program per place of the turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from omdpd.natures.protocol import Safety
from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer
from omdpd.problem.cmdp import CMDP, Noise, Round
from omdpd.problem.laws import DenseLaws
from omdpd.problem.setting import FeedbackKind
from omdpd.solvers.compiled.flow import value_of_policy
from omdpd.solvers.planning import best_plan, safest_plan

PIECE, STEP, REACH = 250, 0.1, 0.5


@dataclass(frozen=True, eq=False)
class Moving:
    """A turn of worlds; `n_places` of them differ."""

    cmdp: CMDP
    other_transition: Floats
    other_reward: Floats
    piece: int = PIECE
    step: float = STEP
    reach: float = REACH
    reward_noise: Noise = "two-point"
    cost_noise: Noise = "two-point"
    feedback: FeedbackKind = "bandit"
    repeats: bool = True
    changes: tuple[str, ...] = ("kernel", "reward")

    @property
    def n_places(self) -> int:
        """How many different worlds there are between the two ends."""
        return round(self.reach / self.step) + 1

    @cached_property
    def worlds(self) -> tuple[CMDP, ...]:
        """The worlds of the turn, from the own one to the farthest."""
        found = []
        for place in range(self.n_places):
            x = place * self.step
            p = (1.0 - x) * self.cmdp.transition + x * self.other_transition
            r = (1.0 - x) * self.cmdp.reward + x * self.other_reward
            found.append(replace(self.cmdp, laws=DenseLaws(len(p), p), reward=r))
        return tuple(found)

    @cached_property
    def optima(self) -> tuple[float | None, ...]:
        """The best value of a policy that is safe, in each world of the turn; None where there is none."""
        plans = [best_plan(world.laws, world.initial, world.reward, world.excess) for world in self.worlds]
        return tuple(plan.value if plan.feasible else None for plan in plans)

    def place(self, k: int) -> int:
        """Where on the turn episode k is: up to the farthest world and back."""
        there = (k // self.piece) % max(2 * (self.n_places - 1), 1)
        return min(there, 2 * (self.n_places - 1) - there) if self.n_places > 1 else 0

    def world(self, k: int) -> CMDP:
        """The world of episode k."""
        return self.worlds[self.place(k)]

    def dynamic_optimum(self, n_episodes: int) -> float | None:
        """The mean over episodes of the best value of a policy that is safe in that episode."""
        values = [self.optima[self.place(k)] for k in range(n_episodes)]
        return None if None in values else float(np.mean(np.array(values, dtype=np.float64)))

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The rewards of the episode's world, the costs of the own one."""
        return Round(self.world(k).reward, self.cmdp.excess, 0, self.reward_noise, self.cost_noise)

    def table(self, key: int) -> Floats:
        """d."""
        return self.cmdp.excess

    def safety(self) -> Safety:
        """Whether some policy is safe in each world of the turn, and whether one was found that is safe in all."""
        if None in self.optima:
            return Safety(False, "in some world of the turn no policy is safe")
        tried = [safest_plan(world.laws, world.initial, world.excess) for world in self.worlds]
        for policy in tried:
            costs = [value_of_policy(policy, w.transition, w.initial, d) for w in self.worlds for d in w.excess]
            if max(costs) <= 0.0:
                return Safety(True, "the safest policy of one world of the turn is safe in all of them")
        return Safety(True, "in each world some policy is safe, but none was found that is safe in all of them")


def make(cmdp: CMDP, seed: int, piece: int = PIECE, step: float = STEP, reach: float = REACH) -> Moving:
    """Kernel and rewards that move by `step` every `piece` episodes, there and back; regret is dynamic."""
    positive_integer("piece", piece)
    if not 0.0 < step <= reach <= 1.0:
        raise InvalidInputError(f"step is {step} and reach {reach}, but 0 < step <= reach <= 1 is asked for")
    rng = np.random.default_rng((seed, 2**32 + 2))  # apart from every episode's stream and from the other tables
    order = rng.permutation(cmdp.shape[1])
    other = cmdp.copied(rng.uniform(0.0, 1.0, cmdp.shape))
    return Moving(cmdp, cmdp.transition[..., order], other, piece, step, reach)
