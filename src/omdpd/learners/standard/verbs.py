"""The three verbs around `learn`: a state is a frozen value, and an update is a copy of its vector, learnt from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from omdpd.beliefs import memory
from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.evidence import Past, count_episode
from omdpd.learners.protocol import Certificate, Compiled, Promise, Report, Told
from omdpd.learners.standard import state as at
from omdpd.learners.standard.believing import Dials
from omdpd.learners.standard.learn import NO_ROOM, learn, met_hinges
from omdpd.learners.standard.state import Learnt, places, sizes_of, views
from omdpd.learners.start import uniform_occupancy
from omdpd.learners.surrogate import Surrogate
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import BanditFeedback, Feedback, Setting
from omdpd.solvers.compiled.box_step.storage import BLAS_STATES
from omdpd.solvers.mirror import Hinges, SolveLog
from omdpd.solvers.threads import one_thread

# Room for tables of one constraint at first; a memory of more grows when it is full.
ROOM = 8
NO_WALK, NO_REWARDS, NOTHING = np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0))
# What an episode is, as compiled code takes it: states, actions, rewards, costs met, tables revealed.
Episode = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def begin(dials: Dials, setting: Setting, eta: float) -> Learnt:
    """V = 0, q_hat_1 = the uniform policy under the uniform kernel; then steps 1-2 for the first episode."""
    room = 1 if dials.bandit else int(min(max(dials.capacity, 1), ROOM))
    sizes = sizes_of(setting, room)
    vector = np.zeros(int(places(sizes)[-1]))
    parts = views(vector, sizes)
    parts.account[at.ETA], parts.account[at.SHARE] = eta, 1.0
    parts.mu[:], parts.q_hat[:] = setting.mu, uniform_occupancy(setting).ravel()
    state = Learnt.of(setting, room, vector)
    _learn(dials, state, (NO_WALK, NO_WALK, NO_REWARDS, NOTHING, NOTHING))
    return state


def after(dials: Dials, state: Learnt, feedback: Feedback) -> Learnt:
    """The state after one more episode."""
    new = state.copy()
    if _learn(dials, new, episode_of(state.setting, feedback)) == NO_ROOM:
        return after(dials, state.with_room(2 * state.room), feedback)
    return new


def counted(state: Learnt, logged: Iterable[Feedback]) -> Learnt:
    """The state with more counts and evidence, and nothing else learnt from these episodes."""
    new = state.copy()
    past, (_, S, A) = Past(*(getattr(new.parts, name) for name in Past._fields)), new.setting.shape
    for feedback in logged:
        count_episode(past, S, A, *episode_of(state.setting, feedback)[:4])
    return new


def report(account: Floats, believed: Estimate[Any]) -> Report:
    """Step size, largest weight, what was ignored as noise, what plans promised, and the certificate if any."""
    a = account.tolist()
    bound, planned, log = a[at.BOUND], a[at.PLANNED], SolveLog.of(account[at.LOG : at.LOG + at.N_LOG])
    return Report(
        log, a[at.ETA], a[at.WEIGHT], saturations=int(a[at.SATURATIONS]), ignored=a[at.IGNORED],
        certificate=None if bound != bound else Certificate(bound, a[at.REGRET], a[at.VIOLATION]),
        believed=believed, promise=None if planned != planned else Promise(a[at.REWARD_SUM], planned),
        loss=None if a[at.LOSS] != a[at.LOSS] else a[at.LOSS],
    )  # fmt: skip


def observed_surrogate(dials: Dials, before: Learnt, after: Learnt) -> Surrogate:
    """f_k: under the beliefs before an episode, with tables and weights after it (weights before, if they lag)."""
    room = max(before.room, after.room)
    known, met = before.with_room(room), after.with_room(room)
    for name in ("V", "kept", "kept_size", "kept_label", "kept_met", "tally"):
        getattr(known.parts, name)[:] = getattr(met.parts, name)
    overflowed = any(memory.overflowed(dials.capacity, n) for n in before.parts.tally[:, memory.LABELS].tolist())
    n = met_hinges(np.array(dials, np.float64), known.at, known.vector, overflowed)
    shape, p = before.setting.shape, known.parts
    return Surrogate(before.believed.reward, Hinges(p.tables[:n].reshape(n, *shape), p.hinge_weights[:n]))


def compiled(dials: Dials, state: Learnt) -> Compiled:
    """The learner for a loop that plays many episodes: the vector is a copy, to be changed in place."""
    new, begins = state.copy(), dict(zip(state.names, state.at[5:].tolist(), strict=False))
    cost = begins["tables"] if dials.bandit else -1
    return Compiled(
        learn, np.array(dials, np.float64), new.at, new.vector,
        np.array([begins["policy"], begins["reward"], begins["kernel"], cost]),
        Told(at.ETA, at.WEIGHT, at.REGRET, at.VIOLATION, at.REWARD_SUM, at.PLANNED, at.LOSS), new,
    )  # fmt: skip


def episode_of(setting: Setting, feedback: Feedback) -> Episode:
    """An episode as compiled code takes it, which trusts its kind and its sizes; read-only arrays are copied."""
    (H, S, A), n, walk = setting.shape, setting.n_constraints, feedback.trajectory
    if isinstance(feedback, BanditFeedback) != (setting.feedback == "bandit"):
        raise InvalidInputError(f"feedback is {type(feedback).__name__}, but the setting says {setting.feedback!r}")
    costs, tables = NOTHING, NOTHING
    if isinstance(feedback, BanditFeedback):
        costs = _plain("costs", feedback.costs, np.float64, (n, H))
    else:
        tables = _plain("cost", feedback.cost, np.float64, (n, H * S * A))
    states = _plain("states", walk.states, np.int64, (H,))
    actions = _plain("actions", walk.actions, np.int64, (H,))
    return states, actions, _plain("rewards", feedback.rewards, np.float64, (H,)), costs, tables


def _learn(dials: Dials, state: Learnt, episode: Episode) -> int:
    """Change the state's vector by an episode; it must be nobody else's."""
    given = np.array(dials, np.float64)
    if state.setting.n_states < BLAS_STATES:
        return int(learn(given, state.at, state.vector, *episode))
    with one_thread():
        return int(learn(given, state.at, state.vector, *episode))


def _plain(name: str, array: np.ndarray, kind: type, shape: tuple[int, ...]) -> np.ndarray:
    """The array as compiled code takes it: of one type, in a row, writeable, of this shape."""
    if array.size != math.prod(shape):
        raise InvalidInputError(f"{name} has shape {array.shape}, but {shape} is asked for")
    plain = array if array.dtype == kind and array.flags.carray else np.array(array, kind, order="C")
    return plain if plain.shape == shape else plain.reshape(shape)
