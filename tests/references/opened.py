"""What a state of ProximalOMDPD holds, by the names of docs/theory.md, whichever of its two forms it has."""

from __future__ import annotations

from types import SimpleNamespace

from omdpd.beliefs.memory import KEPT
from omdpd.learners.standard import state as at
from omdpd.learners.standard.state import Learnt
from omdpd.learners.surrogate import Surrogate
from omdpd.solvers.mirror import Hinges


def opened(state):
    """The parts of a state as tables (H, S, A); `kept` are the remembered tables of every constraint, oldest first."""
    if not isinstance(state, Learnt):
        return state
    p, shape = state.parts, state.setting.shape
    a, n, room = p.account, int(p.account[at.HINGES]), state.room
    hinges = Hinges(p.tables[:n].reshape(n, *shape), p.hinge_weights[:n])
    kept = [p.kept[i * room : i * room + int(tally[KEPT])].reshape(-1, *shape) for i, tally in enumerate(p.tally)]
    return SimpleNamespace(
        k=state.k, q=state.q, q_hat=p.q_hat.reshape(shape), V=p.V, eta=state.eta, weights=p.weights,
        predicted=Surrogate(state.believed.reward, hinges), multipliers=p.multipliers[:n], kept=kept,
        plan=p.plan.reshape(shape) if a[at.STARTED] else None, share=float(a[at.SHARE]), novelty=float(a[at.NOVELTY]),
        drift=float(a[at.DRIFT]), inexactness=float(a[at.INEXACTNESS]), reward_sum=float(a[at.REWARD_SUM]),
        believed=state.believed, counts=state.counts, capped=state.capped, log=state.log, setting=state.setting,
    )  # fmt: skip


def with_number(state, place, number):
    """The same state with another number in its account."""
    new = state.copy()
    new.parts.account[place] = number
    return new
