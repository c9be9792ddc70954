"""A reference that is given the kernel and the costs, and the prior of the rewards: what learning rewards alone costs.

    m = (1 + sum r) / (2 + n),     index = m + sd sqrt(1 + ln+(k / (HSA n))),     sd = sqrt(m (1 - m) / (n + 3))
    play the best policy of   max index.q  subject to  d.q <= 0   under the true kernel

m and sd are those of a reward in [0, 1] that was drawn evenly and is met as a coin, as in random worlds.  Where tables
are revealed it remembers them.  Nobody who has to learn kernel and costs as well is expected below it; it is a
reference, and not proved to be the least.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.memory import TableMemory
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Program, Remembering, Replanned, remembered
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.regions import Box

# Tables that are remembered of each constraint where they are revealed.
MEMORY = 8


@dataclass(frozen=True, eq=False)
class Informed(Replanned[Remembering]):
    """Built from the true `transition` (H, S, A, S) and the mean cost `tables` (I, H, S, A), budgets taken off.

    Without them it refuses to start; a run hands them over (`omdpd.play.scene.with_known_facts`).
    """

    transition: Floats | None = None
    tables: Floats | None = None

    card = Card(
        "kernel and costs given, rewards by an index that knows their prior", ("bandit", "full"), "none proved",
        "a reference", "kernel, costs and prior are known",
    )  # fmt: skip
    factors = ()

    @staticmethod
    def uninformed() -> Informed:
        """The reference before it was given kernel and costs, which a run does."""
        return Informed()

    def start(self, setting: Setting) -> Remembering:
        """No rewards yet."""
        if self.transition is None or self.tables is None:
            raise InvalidInputError("Informed must be given the model: pass transition and tables")
        if self.transition.shape != (*setting.shape, setting.n_states) or self.tables.shape[1:] != setting.shape:
            raise InvalidInputError(f"the tables of Informed do not fit a setting of shape {setting.shape}")
        first = Remembering(**Remembering.first(setting))
        return replace(first, memory=(TableMemory(MEMORY),) * setting.n_constraints)

    def met(self, state: Remembering, feedback: Feedback) -> Remembering:
        """The state with the tables that an episode revealed."""
        return remembered(state, feedback)

    def program(self, state: Remembering) -> Program:
        """The best policy for the index."""
        assert self.transition is not None
        assert self.tables is not None
        kept = [table for each in state.memory for table in each.tables]
        cost = np.array(kept) if kept else self.tables
        n, k = state.counts.visits, max(state.k, 1)
        m = (1.0 + state.counts.reward_sum) / (2.0 + n)
        due = np.log(np.maximum(k / (n.size * np.maximum(n, 0.5)), 1.0))
        index = m + np.sqrt(m * (1.0 - m) / (n + 3.0) * (1.0 + due))
        return Program(Box(self.transition, self.transition), index, cost)
