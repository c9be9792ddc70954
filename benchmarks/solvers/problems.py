"""Mirror steps recorded late in real learning loops: early ones are trivial, since no bound is active yet."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from omdpd.learners.omdpd import OMDPD
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.standard.state import HINGES, Learnt
from omdpd.natures import fixed, pool
from omdpd.play.loop import play, start_of_run
from omdpd.play.scene import Scene
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.solvers.mirror import Hinges, Step, mirror_step
from omdpd.solvers.regions import Region
from omdpd.worlds import random_dirichlet


@dataclass(frozen=True)
class Size:
    """S, A, H, and how many episodes are played before steps are recorded."""

    S: int
    A: int
    H: int
    episodes: int

    def __str__(self) -> str:
        return f"S{self.S} A{self.A} H{self.H}"


# Episodes are what the larger sizes can afford; the paper's size is recorded at the end of a paper's run.
SIZES = {
    "S5": Size(5, 3, 5, 3000),
    "S20": Size(20, 5, 10, 300),
    "S50": Size(50, 5, 20, 60),
    "S100": Size(100, 10, 20, 12),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """The arguments of one mirror step, and the step before it in the same loop (for a warm start)."""

    region: Region
    initial: Floats
    reference: Floats
    loss: Floats
    eta: float
    hinges: Hinges
    before: Step | None = None

    def solve(self) -> Step:
        """The step as a learner takes it."""
        return mirror_step(self.region, self.initial, self.reference, self.loss, self.eta, self.hinges)


@dataclass(frozen=True)
class Kind:
    """Which loop is recorded: the region, and how many hinges its steps have."""

    region: str
    hinges: int

    def __str__(self) -> str:
        return f"{self.region}, {self.hinges} hinge{'' if self.hinges == 1 else 's'}"


KINDS = (Kind("box", 0), Kind("box", 1), Kind("box", 8), Kind("kernel", 1), Kind("kernel", 8))


def size_named(name: str) -> Size:
    """A size by its name."""
    if name not in SIZES:
        raise InvalidInputError(f"there is no size {name!r}; there are {', '.join(SIZES)}")
    return SIZES[name]


def recorded(size: Size, kind: Kind, seed: int, n_problems: int) -> list[Problem]:
    """The last `n_problems` mirror steps of a loop of this kind on one random instance."""
    cmdp = random_dirichlet.make(np.random.default_rng(seed), size.S, size.A, size.H, binding=size.S <= 5)
    learner: OMDPD | ProximalOMDPD = OMDPD.tuned() if kind == Kind("box", 0) else ProximalOMDPD.optimistic()
    if kind.region == "kernel":
        learner = ProximalOMDPD.cautious()
    nature: Any = fixed.make_noisy(cmdp, seed) if kind.hinges <= 1 else pool.make(cmdp, seed, size=kind.hinges)
    # One more than is wanted: the first one only gives the next one its warm start.
    steps = steps_of_run(Scene(cmdp, nature, learner, size.episodes, {}), seed, n_problems + 1)
    return [replace(step, before=before.solve()) for before, step in pairwise(steps)]


def steps_of_run(scene: Scene, seed: int, n_steps: int | None = None) -> list[Problem]:
    """The last steps (or all of them) of a run, read off the learner's states, without a step before them."""
    learner = scene.learner
    steps: deque[Problem] = deque(maxlen=n_steps)
    progress = start_of_run(scene)
    for _, _, after in play(scene, progress, np.random.default_rng(seed), lambda k: False):
        steps.extend(steps_between(learner, progress.learner_state, after.learner_state))
        progress = after
    return list(steps)


def steps_between(learner: Any, before: Any, after: Any) -> tuple[Problem, ...]:
    """The mirror steps of one update, from the states around it.

    OMDPD takes two, over the set of the new counts: from q_hat_k, and from q_hat_{k+1} with the last gradient as its
    prediction.  Of ProximalOMDPD's steps it is the one that predicts the next episode.
    """
    setting = after.setting
    if isinstance(learner, OMDPD):
        region = learner.estimator.estimate(setting, after.counts, after.k).region
        none = Hinges.none(setting.shape)
        return (
            Problem(region, setting.mu, before.q_hat, after.grad, before.eta, none),
            Problem(region, setting.mu, after.q_hat, after.grad, after.eta, none),
        )
    if isinstance(after, Learnt):
        p, n, shape = after.parts, int(after.parts.account[HINGES]), setting.shape
        hinges = Hinges(p.tables[:n].reshape(n, *shape), p.hinge_weights[:n], p.start[:n])
        reward, q_hat = p.reward.reshape(shape), p.q_hat.reshape(shape)
        return (Problem(after.believed.region, setting.mu, q_hat, -reward, after.eta, hinges),)
    m = after.predicted
    return (Problem(after.believed.region, setting.mu, after.q_hat, -m.reward, after.eta, m.hinges),)
