"""The state of the standard learner: one vector of numbers, and its named parts.

Tables are vectors over the rows e = (h, s, a), E of them.  A copy of a state is a copy of one vector.  Sizes and order
of the parts stand in `shapes` alone; compiled code finds them by where each begins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.evidence import Past
from omdpd.beliefs.memory import Kept
from omdpd.beliefs.rules import COST_TRUSTS, REWARD_TRUSTS, WEIGHTS
from omdpd.jit.decorators import glue, rule
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.records import fast_init
from omdpd.problem.setting import Setting
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.regions import Kernel

# Numbers of the account, by place.  A row of a run shows some of them.
(
    K, ETA, SHARE, NOVELTY, REWARD_SUM, INEXACTNESS, DRIFT, IGNORED, PLANNED, CAPPED, SATURATIONS, SOLVES, FAILURES,
    ITERATIONS, MAX_GAP, MAX_RESIDUAL, HINGES, STARTED, WEIGHT, BOUND, REGRET, VIOLATION, LOSS,
) = range(23)  # fmt: skip
N_ACCOUNT = 23
# The log of solves begins here (`SolveLog`).
LOG, N_LOG = SOLVES, 5


class Sizes(NamedTuple):
    """H, S, A, I, and for how many tables of one constraint there is room."""

    H: int
    S: int
    A: int
    I: int  # noqa: E741
    C: int


class Parts(NamedTuple):
    """The parts of a state, in their order; those of the past lie one after another.

    Attributes
    ----------
    account, V, weights, mu
        Sums and dials that move; violation and weight of every constraint; the law of the first state.
    policy, q, q_hat, plan : (E,)
        What is played next and its believed occupancy, where the next step starts, and the last plan played.
    past
        Counts, and the evidence beside them.
    reward, cost, kernel, own, common
        Beliefs: r~ with its bonus, d without its margin, p~ (E, S) and the two parts of its error.
    tables, hinge_weights, multipliers, start
        Hinges of the last step, its multipliers, and those that the next one starts from; the first `HINGES` count.
    kept, kept_size, kept_label, kept_met, tally
        Remembered tables, C places a constraint: see `beliefs.memory`.
    """

    account: Floats
    V: Floats
    weights: Floats
    mu: Floats
    policy: Floats
    q: Floats
    q_hat: Floats
    plan: Floats
    past: Past
    reward: Floats
    cost: Floats
    kernel: Floats
    own: Floats
    common: Floats
    tables: Floats
    hinge_weights: Floats
    multipliers: Floats
    start: Floats
    kept: Floats
    kept_size: Floats
    kept_label: Floats
    kept_met: Floats
    tally: Floats


def shapes(z: Sizes) -> dict[str, tuple[int, ...]]:
    """The shape of every part, in their order."""
    E, n, J = z.H * z.S * z.A, z.I, z.I * z.C
    rows, laws, m = (E,), (E, z.S), WEIGHTS.size
    found: dict[str, tuple[int, ...]] = {
        "account": (N_ACCOUNT,), "V": (n,), "weights": (n,), "mu": (z.S,),
        "policy": rows, "q": rows, "q_hat": rows, "plan": rows,
        "visits": rows, "transitions": laws, "reward_sum": rows, "cost_sum": (n, E),
        "reward_squares": rows, "cost_squares": (n, E),
        "kernel_score": (m,), "reward_score": (m, REWARD_TRUSTS.size), "cost_score": (n, m, COST_TRUSTS.size),
        "reward": rows, "cost": (n, E), "kernel": laws, "own": rows, "common": rows,
        "tables": (J, E), "hinge_weights": (J,), "multipliers": (J,), "start": (J,),
        "kept": (J, E), "kept_size": (J,), "kept_label": (J,), "kept_met": (J,), "tally": (n, 3),
    }  # fmt: skip
    return found


NAMES = tuple(shapes(Sizes(1, 1, 1, 1, 1)))
POLICY = NAMES.index("policy")


@lru_cache(maxsize=32)
def places(z: Sizes) -> Integers:
    """H, S, A, I, C, then where every part begins, and where the last one ends."""
    ends = np.cumsum([0, *(math.prod(shape) for shape in shapes(z).values())])
    found = np.concatenate([z, ends]).astype(np.int64)
    return found  # shared by all states of these sizes, and writeable only because Numba tells the two apart


def views(vector: Floats, z: Sizes) -> Parts:
    """The parts of a vector, for Python; they share its memory."""
    found = by_name(vector, z)
    past = Past(*(found.pop(name) for name in Past._fields))
    return Parts(past=past, **found)


def by_name(vector: Floats, z: Sizes) -> dict[str, Floats]:
    """Every array in a vector, in their order; they share its memory."""
    return {name: vector[first:last].reshape(shape) for name, (first, last, shape) in cuts(z).items()}


@lru_cache(maxsize=32)
def cuts(z: Sizes) -> dict[str, tuple[int, int, tuple[int, ...]]]:
    """Where every part begins and ends, and its shape."""
    begins, wanted = places(z)[len(z) :].tolist(), shapes(z)
    every = zip(wanted.items(), begins, begins[1:], strict=False)
    return {name: (first, last, shape) for (name, shape), first, last in every}


@rule
def cut(x: Floats, first: int, last: int) -> Floats:
    """A part as a vector."""
    return x[first:last]


@rule
def cut_rows(x: Floats, first: int, last: int, n: int) -> Floats:
    """A part as a matrix of n rows."""
    return x[first:last].reshape((n, (last - first) // n))


@rule
def parts_of(x: Floats, at: Integers) -> Parts:
    """The parts of a vector: `views`, compiled."""
    E, n, J, b = at[0] * at[1] * at[2], at[3], at[3] * at[4], at[5:]
    return Parts(
        cut(x, b[0], b[1]), cut(x, b[1], b[2]), cut(x, b[2], b[3]), cut(x, b[3], b[4]), cut(x, b[4], b[5]),
        cut(x, b[5], b[6]), cut(x, b[6], b[7]), cut(x, b[7], b[8]),
        Past(
            cut(x, b[8], b[9]), cut_rows(x, b[9], b[10], E), cut(x, b[10], b[11]), cut_rows(x, b[11], b[12], n),
            cut(x, b[12], b[13]), cut_rows(x, b[13], b[14], n), cut(x, b[14], b[15]),
            cut_rows(x, b[15], b[16], WEIGHTS.size),
            cut(x, b[16], b[17]).reshape((n, WEIGHTS.size, COST_TRUSTS.size)),
        ),
        cut(x, b[17], b[18]), cut_rows(x, b[18], b[19], n), cut_rows(x, b[19], b[20], E),
        cut(x, b[20], b[21]), cut(x, b[21], b[22]),
        cut_rows(x, b[22], b[23], J), cut(x, b[23], b[24]), cut(x, b[24], b[25]), cut(x, b[25], b[26]),
        cut_rows(x, b[26], b[27], J), cut(x, b[27], b[28]), cut(x, b[28], b[29]), cut(x, b[29], b[30]),
        cut_rows(x, b[30], b[31], n),
    )  # fmt: skip


@glue
def kept_of(s: Parts, i: int) -> Kept:
    """The remembered tables of constraint i."""
    C = s.kept_size.size // s.V.size
    a, b = i * C, (i + 1) * C
    return Kept(s.kept[a:b], s.kept_size[a:b], s.kept_label[a:b], s.kept_met[a:b], s.tally[i])


@fast_init
@dataclass(frozen=True, eq=False)
class Learnt:
    """A state as a value: never changed once it is somebody's.

    `names` and `ends` say which numbers of the vector are what, so that a state stored by one version can be read by
    another whose parts lie otherwise; `room` is how many tables of one constraint the vector has room for.
    """

    setting: Setting
    room: int
    names: tuple[str, ...]
    ends: tuple[int, ...]
    vector: Floats

    @staticmethod
    def of(setting: Setting, room: int, vector: Floats) -> Learnt:
        """The state that a vector is."""
        ends = places(sizes_of(setting, room))[6:]
        return Learnt(setting, room, NAMES, tuple(ends.tolist()), vector)

    def copy(self) -> Learnt:
        """The same with a vector of its own."""
        new = Learnt(self.setting, self.room, self.names, self.ends, self.vector.copy())
        new.__dict__["at"] = self.at
        return new

    def with_room(self, room: int) -> Learnt:
        """The same with room for more tables."""
        new = Learnt.of(self.setting, room, np.zeros(int(places(sizes_of(self.setting, room))[-1])))
        larger = by_name(new.vector, new.sizes)
        for name, mine in by_name(self.vector, self.sizes).items():
            grown = larger[name]
            if name.startswith("kept"):  # the tables of one constraint lie together
                own = mine.reshape(self.setting.n_constraints, self.room, -1)
                grown.reshape(self.setting.n_constraints, room, -1)[:, : self.room] = own
            else:
                grown[: len(mine)] = mine
        return new

    def with_start(self, initial: Floats) -> Learnt:
        """The same with another law of the next episode's first state."""
        new = replace(self, setting=replace(self.setting, initial=initial), vector=self.vector.copy())
        new.parts.mu[:] = initial
        return new

    def as_now(self) -> Learnt:
        """The same with its parts as they lie in this version."""
        new = Learnt.of(self.setting, self.room, self.vector)
        if (self.names, self.ends) == (new.names, new.ends) and len(self.vector) == self.ends[-1]:
            return self
        begins = (0, *self.ends[:-1])
        held = {
            name: self.vector[a:b] for name, a, b in zip(self.names, begins, self.ends, strict=True)
        }  # fmt: skip
        # What an earlier version did not count is not a number.
        held["account"] = np.append(held["account"], np.full(max(N_ACCOUNT - held["account"].size, 0), np.nan))
        vector = [held[name] for name in new.names]
        if [part.size for part in vector] != np.diff(new.ends, prepend=0).tolist():
            raise ValueError("the parts of the state have other sizes than its setting says")
        return replace(new, vector=np.concatenate(vector))

    @property
    def sizes(self) -> Sizes:
        """H, S, A, I, C."""
        return sizes_of(self.setting, self.room)

    @cached_property
    def at(self) -> Integers:
        """Where everything lies, for compiled code."""
        return places(self.sizes)

    @cached_property
    def parts(self) -> Parts:
        """The named parts, which share memory with the vector: to be read only."""
        return views(self.vector, self.sizes)

    def part(self, name: str) -> Floats:
        """One part alone, where all would take longer: to be read only."""
        first, last, shape = cuts(self.sizes)[name]
        return self.vector[first:last].reshape(shape)

    @property
    def k(self) -> int:
        """Episodes seen."""
        return int(self.parts.account[K])

    @property
    def policy(self) -> Floats:
        """What is played in the next episode, (H, S, A)."""
        first, last = self.ends[POLICY - 1 : POLICY + 1]
        return self.vector[first:last].reshape(self.setting.shape)

    @property
    def q(self) -> Floats:
        """The occupancy that is planned for the next episode, (H, S, A)."""
        return self.parts.q.reshape(self.setting.shape)

    @property
    def V(self) -> Floats:
        """The violation of every constraint, (I,)."""
        return self.parts.V

    @property
    def weights(self) -> Floats:
        """The weight of every constraint, (I,)."""
        return self.parts.weights

    @property
    def eta(self) -> float:
        """The step size."""
        return float(self.parts.account[ETA])

    @property
    def capped(self) -> bool:
        """Whether a weight was ever cut."""
        return bool(self.parts.account[CAPPED])

    @property
    def log(self) -> SolveLog:
        """Solves so far, and the worst of them."""
        return SolveLog.of(self.parts.account[LOG : LOG + N_LOG])

    @property
    def counts(self) -> Counts:
        """What was counted."""
        p, shape = self.parts.past, self.setting.shape
        return Counts(
            p.visits.reshape(shape), p.transitions.reshape(*shape, shape[1]), p.reward_sum.reshape(shape),
            p.cost_sum.reshape(-1, *shape),
        )  # fmt: skip

    @property
    def believed(self) -> Estimate[Kernel]:
        """What the next episode is planned with."""
        shape, n = self.setting.shape, self.setting.n_constraints
        lifted = cost = self.part("cost").reshape(n, *shape)
        if self.setting.feedback == "bandit":
            lifted = self.part("tables").reshape(-1, *shape)[:n]
        kernel = Kernel(self.part("kernel").reshape(*shape, shape[1]))
        return Estimate(self.part("reward").reshape(shape), lifted, cost, np.zeros(shape), kernel)


@lru_cache(maxsize=64)
def _sizes(shape: tuple[int, int, int], n_constraints: int, room: int) -> Sizes:
    return Sizes(*shape, n_constraints, room)


def sizes_of(setting: Setting, room: int) -> Sizes:
    """The sizes of a state."""
    return _sizes(setting.shape, setting.n_constraints, room)
