"""Many episodes of a run in one compiled call, for learners whose update is compiled.

An episode by the verbs spends part of its time between them.  Where a learner has a compiled step (`Learner.compiled`)
and a nature says ahead which rounds come (`Nature.ahead`), episodes are played together, by the same machine code and
with the same random numbers: the same rows and states, bit for bit.  Everything else is played by the verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from omdpd.learners.protocol import Compiled, Told
from omdpd.natures.protocol import changes_of, rounds_ahead
from omdpd.play.guards import VERBS
from omdpd.play.judging import Totals
from omdpd.play.rows import Rows
from omdpd.play.scene import Scene
from omdpd.play.simulate import has_tables
from omdpd.problem.arrays import ROW_SUM_TOLERANCE, Floats, Integers
from omdpd.problem.cmdp import Round
from omdpd.solvers.compiled.box_step.storage import BLAS_STATES
from omdpd.solvers.threads import one_thread

# Entries of cost tables that are stacked for one call (32 MB).
MAX_ENTRIES = 2**22


class Together(NamedTuple):
    """Episodes played together: the true value of each, the rows that were wanted, and where they lead.

    `met` has keys of tables that they met, and the sum of the factors with which they did.
    """

    values: Sequence[float]
    rows: Rows
    state: Any
    totals: Totals
    met: Sequence[tuple[int, float]]


@dataclass(eq=False)
class Batches:
    """A scene whose episodes can be played together; the tables of its rounds are kept while the rounds stay."""

    scene: Scene
    rounds: Sequence[Round] = ()
    tables: Floats = field(default_factory=lambda: np.zeros(0))

    @staticmethod
    def of(scene: Scene) -> Batches | None:
        """None if the episodes of a scene have to be played one by one."""
        can = _has_own_step(scene.learner) and not scene.metrics and not hasattr(scene.nature, "world")
        if not can or set(changes_of(scene.nature)) - {"cost"} or rounds_ahead(scene.nature, 0, 0) is None:
            return None
        return Batches(scene)

    def play(
        self, state: Any, totals: Totals, rng: np.random.Generator, recorded: Callable[[int], bool], most: int
    ) -> Together | None:
        """Play at most `most` episodes; None if the verbs have to play the next one."""
        learner: Any = self.scene.learner
        step: Compiled | None = learner.compiled(state)
        n = max(1, min(most, MAX_ENTRIES // max(self.scene.cmdp.excess.size, 1)))
        ahead = rounds_ahead(self.scene.nature, totals.episodes, n)
        if step is None or ahead is None or not self._stacked(ahead[0]):
            return None
        choices, before = ahead[1], rng.bit_generator.state
        uniforms = rng.random((n, (3 + self.scene.cmdp.n_constraints) * self.scene.cmdp.shape[0]))
        columns = _columns(totals, n, max(step.told) + 1)
        played = 0
        try:
            played = self._call(step, choices, uniforms, columns)
        finally:
            if played < n:  # the others have not been played: their random numbers are given back
                rng.bit_generator.state = before
                rng.random((played, uniforms.shape[1]))
        if played == 0:
            return None
        wanted = [b for b in range(played) if recorded(totals.episodes + b + 1)]
        told = not changes_of(self.scene.nature)
        return Together(
            columns.value[:played].tolist(), _rows(totals.episodes, wanted, step.told, columns, told), step.state,
            totals.along(
                columns.value_sum[1 : played + 1], columns.violation_sum[1 : played + 1], columns.excess_sum,
                columns.occupancy_sum, self.scene.episodes, totals.rewards,
            ),
            self._met(choices[:played]),
        )  # fmt: skip

    def _met(self, played: Integers) -> list[tuple[int, float]]:
        """The tables of some episodes: in their order, unless they are those of a pool, which are counted."""
        if len(self.rounds) < len(played) and all(each.factor == 1.0 for each in self.rounds):
            found, times = np.unique(played, return_counts=True)
            return [(self.rounds[i].key, float(n)) for i, n in zip(found, times, strict=True)]
        return [(self.rounds[i].key, self.rounds[i].factor) for i in played]

    def _stacked(self, rounds: Sequence[Round]) -> bool:
        """Stack the tables of rounds, unless they are the last ones; whether they are such that compiled code reads."""
        rounds = tuple(rounds)  # of a list, its owner may make another
        if rounds is self.rounds:
            return True
        first = rounds[0]
        if not all(_plain(each, first, self.scene) for each in rounds):
            return False
        self.rounds, self.tables = rounds, np.array([each.cost for each in rounds])
        return True

    def _call(self, step: Compiled, choices: Integers, uniforms: Floats, columns: Any) -> int:
        from omdpd.play.compiled.many import Truth, play_many  # compiled when it is declared: only where it is wanted

        cmdp, first = self.scene.cmdp, self.rounds[0]
        revealed = self.scene.nature.feedback == "full"
        truth = Truth(
            _own(cmdp.transition), _own(cmdp.initial), _own(first.reward), self.tables,
            _own(cmdp.excess[:0] if revealed else cmdp.excess),
            first.reward_noise == "two-point", first.cost_noise == "two-point", revealed, ROW_SUM_TOLERANCE,
        )  # fmt: skip
        with one_thread() if cmdp.shape[1] >= BLAS_STATES else nullcontext():
            return int(
                play_many(step.step, step.dials, step.at, step.vector, step.places, truth, choices, uniforms, columns)
            )


def _has_own_step(learner: object) -> bool:
    """Whether a learner has a compiled step, and it is that of its verbs: a subclass may have verbs of its own."""
    for each in type(learner).__mro__:
        if "compiled" in vars(each):
            return True
        if any(verb in vars(each) for verb in VERBS):
            return False
    return False


def _plain(each: Round, first: Round, scene: Scene) -> bool:
    """Whether a round is one that compiled code can play, and differs from the first in its costs alone."""
    noise = each.reward_noise, each.cost_noise
    alike = each.reward is scene.cmdp.reward and noise == (first.reward_noise, first.cost_noise)
    exact = each.cost.dtype == each.reward.dtype == np.float64 and each.cost.shape == scene.cmdp.excess.shape
    return alike and exact and set(noise) <= {"exact", "two-point"} and has_tables(scene.cmdp, each)


def _own(array: Floats) -> Floats:
    return np.require(array, requirements=("C", "W"))


def _columns(totals: Totals, n: int, n_told: int) -> Any:
    from omdpd.play.compiled.many import BatchColumns

    value_sum, violation_sum = np.empty(n + 1), np.empty(n + 1)
    value_sum[0], violation_sum[0] = totals.value, totals.violation
    return BatchColumns(
        np.empty(n), np.empty((n, len(totals.excess))), np.empty((n, n_told)), np.empty(n, np.bool_), value_sum,
        violation_sum, totals.excess.copy(), totals.occupancy.copy(),
    )  # fmt: skip


def _rows(k: int, wanted: list[int], told: Told, columns: Any, stays: bool) -> Rows:
    """The rows of some of the episodes after k; what is not a number is untold, and so are promises if costs change."""
    c, at, nothing = columns, np.array(wanted, np.int64), [None] * len(wanted)
    said = {name: c.told[at, place] for name, place in told._asdict().items()}
    promised = 0.0 * said["planned_violation_sum"] if stays else np.nan  # both sums are told, or none is
    for name in ("planned_value_sum", "planned_violation_sum"):
        said[name] = said[name] + promised
    return Rows.of(
        episode=(at + (k + 1)).tolist(), value=c.value[at].tolist(), excess=list(map(tuple, c.excess[at].tolist())),
        value_sum=c.value_sum[at + 1].tolist(), violation_sum=c.violation_sum[at + 1].tolist(), good_event=nothing,
        metrics=[()] * len(wanted), optimism=c.optimism[at].tolist() if stays else nothing,
        **{name: _or_none(numbers) for name, numbers in said.items()},
    )  # fmt: skip


def _or_none(numbers: Floats) -> list[float | None]:
    """List the numbers, with None in place of nan."""
    found: list[float | None] = numbers.tolist()
    return [None if x != x else x for x in found] if np.isnan(numbers).any() else found
