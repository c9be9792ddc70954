"""What the runs of a study were measured against, worked out once for each world, nature and seed.

A world is built from its spec; where that is not possible here (a file that is gone, a package that is not installed)
the reason is kept instead, and the page says it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omdpd.natures.protocol import Nature, Safety, changes_of
from omdpd.play.loop import KeyRanges, seed_of
from omdpd.problem.cmdp import CMDP
from omdpd.report.stored import Asked
from omdpd.solvers.planning import best_plan_against
from omdpd.solvers.programs import Plan
from omdpd.storage.atomic import RecordError
from omdpd.worlds.card import ProblemCard, problem_card

# A comparator over more table entries than this is left to the run itself, which finds it when it ends.
MAX_ENTRIES = 2**22
# Plans that are remembered; a study that is watched for days asks for new ones all the time.
MAX_PLANS = 1000
# Tables are handed to the program this many at a time.
CHUNK = 500


@dataclass(frozen=True, eq=False)
class Truth:
    """A world with its nature and its card; or, where they cannot be built here, only `fault` says why."""

    cmdp: CMDP | None
    nature: Nature | None
    card: ProblemCard | None
    safety: Safety | None
    fault: str = ""

    def best_plan(self, keys: KeyRanges, n_episodes: int) -> Plan | None:
        """The best policy that is safe for every table met so far; None where it is not worked out here."""
        if self.cmdp is None or self.nature is None or {"reward", "kernel"} & set(changes_of(self.nature)):
            return None
        drawn = [range(*each) for each in keys] if self.nature.repeats else [range(n_episodes)]
        # (A forged range may be longer than any memory: it is counted before it is gone through.)
        if not 0 < sum(max(each.stop - each.start, 0) for each in drawn) * self.cmdp.excess.size <= MAX_ENTRIES:
            return None
        try:
            tables = [self.nature.table(key) for each in drawn for key in each]
        except IndexError:
            raise RecordError("its commit names tables that its nature does not have") from None
        chunks = [np.concatenate(tables[i : i + CHUNK]) for i in range(0, len(tables), CHUNK)]
        return best_plan_against(self.cmdp.laws, self.cmdp.initial, self.cmdp.reward, lambda: chunks).plan


@dataclass
class Truths:
    """The truths of a study, each worked out when it is first asked for."""

    known: dict[Any, Truth] = field(default_factory=dict)
    plans: dict[Any, Plan | None] = field(default_factory=dict)

    def of(self, asked: Asked) -> Truth:
        """The truth that a run is measured against."""
        key = (asked.world_spec or asked.world, asked.nature_spec or asked.nature, asked.seed)
        if key not in self.known:
            self.known[key] = _built(asked)
        return self.known[key]

    def plan(self, asked: Asked, keys: KeyRanges, n_episodes: int) -> Plan | None:
        """The best policy that is safe for every table that a run met in its first `n_episodes`."""
        truth = self.of(asked)
        if truth.nature is None:
            return None
        key = (asked.world_spec, asked.nature_spec, asked.seed, keys if truth.nature.repeats else n_episodes)
        if key not in self.plans:
            if len(self.plans) >= MAX_PLANS:
                self.plans.clear()
            self.plans[key] = truth.best_plan(keys, n_episodes)
        return self.plans[key]


def _built(asked: Asked) -> Truth:
    """Build a world and its nature, and solve it."""
    for name, spec in ((asked.world, asked.world_spec), (asked.nature, asked.nature_spec)):
        if spec is None:
            return Truth(None, None, None, None, f"nobody here knows the name {name}")
    assert asked.world_spec is not None
    assert asked.nature_spec is not None
    try:
        cmdp = asked.world_spec.build(np.random.default_rng(asked.stream(0)))
        nature = asked.nature_spec.build(cmdp, seed_of(asked.stream(1)))
        return Truth(cmdp, nature, problem_card(cmdp), nature.safety())
    except Exception as error:  # a stranger's world may raise anything, and a report is drawn without it
        return Truth(None, None, None, None, f"{type(error).__name__}: {error}")
