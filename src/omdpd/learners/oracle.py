"""The oracle: knows the model and plays the best safe policy from the first episode.  A line to compare with.

    max r.q  subject to  d_j.q <= 0 for every table j,  q an occupancy of the true kernel

Nothing is learnt, so what remains is the regret and the violation of the best fixed policy: zero where one is safe.
"""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.laws import DenseLaws, Laws, SparseLaws
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.planning import best_plan


@dataclass(frozen=True, eq=False)
class State:
    """The policy, found once."""

    policy: Floats


@dataclass(frozen=True, eq=False)
class Oracle:
    """Built from the true `transition` (H, S, A, S), mean `reward` (H, S, A) and cost `tables` (n, H, S, A).

    A transition that is too large for a table may be given as `Laws`.
    The tables are all that may come, budgets taken off: the means where costs are stochastic, every table of a pool
    where they are picked.  Where no policy satisfies them all, the one whose largest excess is least is played.
    """

    transition: Floats | Laws | None = None
    reward: Floats | None = None
    tables: Floats | None = None

    card = Card("plays the best safe policy", ("bandit", "full"), "none to learn", "a reference", "the model is known")
    factors = ()

    @staticmethod
    def uninformed() -> Oracle:
        """The best safe policy of the true model, for stochastic costs.

        It refuses to start until it was given the model; a run does so (`omdpd.play.scene.with_known_facts`).
        """
        return Oracle()

    def init(self, setting: Setting) -> State:
        """Solve the program."""
        if self.transition is None or self.reward is None or self.tables is None:
            raise InvalidInputError("Oracle must be given the model: pass transition, reward and tables")
        H, S, A = setting.shape
        given = self.transition
        wanted = (H, S, A) if isinstance(given, SparseLaws | DenseLaws) else (H, S, A, S)
        if (given.shape, self.reward.shape, self.tables.shape[1:]) != (wanted, (H, S, A), (H, S, A)):
            raise InvalidInputError(f"the oracle's tables do not fit a setting of shape {(H, S, A)}")
        laws = given if isinstance(given, SparseLaws | DenseLaws) else DenseLaws(H, given)
        return State(best_plan(laws, setting.mu, self.reward, self.tables).policy)

    def policy(self, state: State) -> Floats:
        """The best safe policy."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """There is nothing to learn."""
        return state

    def report(self, state: State) -> Report:
        """Nothing is solved on the way."""
        return Report()
