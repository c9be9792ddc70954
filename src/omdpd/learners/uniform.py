"""The uniform policy: a line to compare with."""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_policy
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting


@dataclass(frozen=True)
class Uniform:
    """The uniform policy."""

    card = Card("every action alike; learns nothing", ("bandit", "full"), "none", "a reference")
    factors = ()

    def init(self, setting: Setting) -> Setting:
        """Nothing but the sizes is kept."""
        return setting

    def policy(self, state: Setting) -> Floats:
        """1 / A."""
        return uniform_policy(state)

    def update(self, state: Setting, feedback: Feedback) -> Setting:
        """Nothing is learnt."""
        return state

    def report(self, state: Setting) -> Report:
        """Nothing is solved."""
        return Report()
