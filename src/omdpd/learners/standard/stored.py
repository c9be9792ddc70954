"""States that are kept as tables and records, as the vector that `learn` works on.

Version 0.2 stored states so: a run or a session that it began goes on.  `PlanLP` keeps its own so, and asks for the
same beliefs.
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.evidence import Evidence
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.memory import TableMemory
from omdpd.beliefs.standard import Prices
from omdpd.learners.proximal_state import State, account_of
from omdpd.learners.standard import state as at
from omdpd.learners.standard.believing import Dials
from omdpd.learners.standard.learn import beliefs_of, describe
from omdpd.learners.standard.state import Learnt, by_name, places, sizes_of
from omdpd.learners.standard.verbs import ROOM
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Kernel


def from_stored(dials: Dials, old: State) -> Learnt:
    """The state that version 0.2 kept; what it did not know yet is not a number."""
    counts, evidence, caution = old.counts, old.evidence, old.caution
    if not isinstance(counts, Counts) or not isinstance(evidence, Evidence) or caution is None:
        raise TypeError("its tables are not those of the standard learner")
    hinges, account = old.predicted.hinges, account_of(old)
    account[at.STARTED] = caution.plan is not None
    tables = {
        "V": old.V, "weights": old.weights, "q": old.q, "q_hat": old.q_hat, "reward": old.believed.reward,
        "cost": old.believed.counted_cost, **vars(counts), **vars(evidence),
    }  # fmt: skip
    state = _filled(dials, old.setting, caution, old.memory, hinges.tables, account, tables)
    n = len(old.multipliers)
    state.parts.hinge_weights[:n], state.parts.multipliers[:n] = hinges.weights, old.multipliers
    describe(np.array(dials, np.float64), state.at, state.vector)
    return state


def believed_by(
    dials: Dials, setting: Setting, counts: Counts, evidence: Evidence, caution: Caution,
    memory: tuple[TableMemory, ...], policy: Floats, prices: Prices,
) -> tuple[Estimate[Kernel], Floats]:  # fmt: skip
    """What the standard learner would believe, and its cost tables with their margins (n, H, S, A)."""
    account = np.zeros(at.N_ACCOUNT)
    account[at.ETA], account[at.SHARE], account[at.NOVELTY] = 1.0, caution.share, caution.novelty
    account[at.HINGES], account[at.STARTED] = len(prices.tables), caution.plan is not None
    tables = {"policy": policy, **vars(counts), **vars(evidence)}
    state = _filled(dials, setting, caution, memory, prices.tables, account, tables)
    n = beliefs_of(np.array(dials, np.float64), state.at, state.vector, prices.each)
    return state.believed, state.parts.tables[:n].reshape(n, *setting.shape).copy()


def _filled(
    dials: Dials, setting: Setting, caution: Caution, memory: tuple[TableMemory, ...], hinges: Floats, account: Floats,
    tables: dict[str, Floats],
) -> Learnt:  # fmt: skip
    """A state of these parts; the others are zero."""
    room = 1 if dials.bandit else max(ROOM, *(len(kept.tables) for kept in memory))
    sizes = sizes_of(setting, room)
    state = Learnt.of(setting, room, np.zeros(int(places(sizes)[-1])))
    p, plan, n = state.parts, caution.plan, len(hinges)
    p.account[:] = account
    given = tables | {"mu": setting.mu} | ({} if plan is None else {"plan": plan})
    held = by_name(state.vector, sizes)
    for name, table in given.items():
        held[name].reshape(-1)[:] = np.ravel(table)
    p.tables[:n] = hinges.reshape(n, p.tables.shape[1])
    for i, kept in enumerate(memory):
        p.tally[i] = len(kept.tables), kept.n_labels, room
        for j, place in enumerate(np.argsort(kept.labels)):
            here = i * room + j
            p.kept[here], p.kept_size[here] = kept.tables[place].ravel(), np.abs(kept.tables[place]).max()
            p.kept_label[here], p.kept_met[here] = kept.labels[place], place
    return state
