"""AlwaysSafe where nothing is factored: the model of the costs is given, and the reward is learned.

    max r~.q  subject to  d_i.q <= 0,   q an occupancy of p                 r~ = r_hat + bonus, and 1 where never seen

The paper is given an abstract model: classes of states, kernel and cost of the classes.  It plans over the box with the
abstract flow as further equations, so that the cost of a plan is known, and plays the plan where its worst cost is
within the budget, else its abstract part.  Where no two states may be taken for one, the only exact abstraction is the
identity: its kernel is the whole kernel, every plan is its own abstract part, and no episode violates.  That case is
built, since the worlds here are tables without features.  It shows what remains if only rewards must be learned.

Certain, from the authors' released code: the program, the abstract model that is given, the tests, plans that are kept
until a count has doubled.  Ours: the identity, the library's bonus on the reward with its scale (the released one is
1/n), a plan in every episode.
Source: Simao, Jansen, Spaan (AAMAS 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omdpd.beliefs.confidence import DELTA, REWARD_SCALE, BoxEstimator
from omdpd.learners.factors import reward_width
from omdpd.learners.needs import ModelToBeGiven
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Program, Replanned, State, unplanned
from omdpd.learners.settings import Settings, given, nonnegative, share
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Box


@dataclass(frozen=True)
class AlwaysSafe(Settings, Replanned[State]):
    """Linear program under a kernel and costs that are given; it learns the reward (AlwaysSafe, nothing factored)."""

    reward_scale: float = nonnegative(REWARD_SCALE)
    stationary: bool = False
    delta: float = share(DELTA)
    estimator: Any = given(ModelToBeGiven())

    card = Card(
        "linear program under the given kernel and costs, optimistic about the reward",
        ("bandit",),
        "no violation; no rate is stated",
        "Simao, Jansen, Spaan (AAMAS 2021)",
        "the abstract model of the costs is given; with nothing factored that is the whole kernel and all costs",
    )
    factors = (reward_width(),)

    def start(self, setting: Setting) -> State:
        """No data; the model must have been given."""
        self.estimator.check(setting)
        return unplanned(self, setting)

    def program(self, state: State) -> Program:
        """max r~.q subject to d.q <= 0 under p; of what was given the reward is not read."""
        known = self.estimator
        learned = BoxEstimator.practical(self.reward_scale, 0.0, 0.0, self.stationary, delta=self.delta)
        box = Box(known.transition, known.transition)
        reward = learned.estimate_with(box, state.setting, state.counts, state.k).reward
        return Program(box, reward, known.cost)
