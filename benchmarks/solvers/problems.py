"""Mirror steps recorded late in real learning loops: early ones are trivial, since no bound is active yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from omdpd.learners import omdpd, proximal
from omdpd.learners.omdpd import OMDPD
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.natures import fixed, pool
from omdpd.play.loop import first, play
from omdpd.play.scene import Scene
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.solvers.mirror import Hinges, Step
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
    before: Step | None


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
    learner: Any = OMDPD.tuned() if kind == Kind("box", 0) else ProximalOMDPD.optimistic()
    if kind.region == "kernel":
        learner = ProximalOMDPD.cautious()
    nature: Any = fixed.make_noisy(cmdp, seed) if kind.hinges <= 1 else pool.make(cmdp, seed, size=kind.hinges)
    scene = Scene(cmdp, nature, learner, size.episodes, {})
    kept: list[Problem] = []
    with _recording(kept, n_problems):
        for _ in play(scene, first(scene), np.random.default_rng(seed), lambda k: False):
            pass
    return kept


@contextmanager
def _recording(kept: list[Problem], most: int) -> Iterator[None]:
    """Keep the last steps that the learners take inside this context."""
    modules = (proximal, omdpd)
    original = vars(proximal)["mirror_step"]
    last: list[Step] = []

    def step(*arguments: Any) -> Step:
        region, initial, reference, loss, eta, hinges = arguments[:6]
        answer: Step = original(*arguments)
        kept.append(Problem(region, initial, reference, loss, eta, hinges, last[0] if last else None))
        del kept[:-most]
        last[:] = [answer]
        return answer

    for module in modules:
        setattr(module, "mirror_step", step)  # noqa: B010
    try:
        yield
    finally:
        for module in modules:
            setattr(module, "mirror_step", original)  # noqa: B010
