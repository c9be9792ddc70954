"""Compile what some runs need before workers start, because each of them would compile the same.

What a learner needs is what it calls: it plays a few episodes of a tiny world, which takes a fraction of a second where
everything is in the cache.  What those episodes do not reach is compiled when it is first called.  Nothing but time
depends on it: a run has the same bits in a process that compiled as in one that did not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import NatureSpec, RunSpec
from omdpd.natures import NATURES
from omdpd.natures.protocol import Nature
from omdpd.play.loop import Progress, first, met_comparator, play, stretches
from omdpd.play.many import Batches
from omdpd.play.scene import Scene, informed
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.problem.strangers import strangers_code
from omdpd.solvers.compiled.announce import ANNOUNCER, Say
from omdpd.solvers.compiled.options import COMPILED

# Enough for a warm start and a second step.
EPISODES = 3


def compile_for(runs: Iterable[RunSpec], say: Say) -> None:
    """Let every kind of learner among some runs compile what it calls, and say so if anything is."""
    kinds = {_kind(run): run for run in runs if not run.plugins} if COMPILED else {}
    ANNOUNCER.say = say
    try:
        for run in kinds.values():
            # What is wrong with a run is said when it is played.
            with suppress(InvalidInputError), strangers_code(f"{run.learner.name} raised"):
                _play(run)
    finally:
        ANNOUNCER.end()


def runs_of(registry: Registry, names: Sequence[str]) -> list[RunSpec]:
    """A run of every kind of these learners; one that large problems are kept by a graph for is two kinds."""
    runs = []
    for name in names:
        fields = registry.type("learners", name).__struct_fields__
        for settings in ({}, {"layout": "graph"}) if "layout" in fields else ({},):
            learner = registry.spec("learners", name, settings)
            for nature in ("noisy", "pool"):  # either feedback
                runs.append(msgspec.structs.replace(registry.run("cyclic", nature, name, 3, 0), learner=learner))
    return runs


def _kind(run: RunSpec) -> tuple[str, ...]:
    """What runs that call the same functions have in common."""
    return run.learner.name, run.nature.name, str(run.learner.settings.get("layout"))


def _play(run: RunSpec) -> None:
    cmdp = tiny_world()
    nature = _nature(run.nature, cmdp)
    scene = Scene(cmdp, nature, informed(run.learner.build(), cmdp, nature.feedback), EPISODES, {})
    _play_out(play, scene)
    if Batches.of(scene) is not None:
        _play_out(stretches, scene)


def _play_out(way: Callable[..., Iterable[tuple[Any, Any, Progress]]], scene: Scene) -> None:
    """Episodes, and the comparator that a run ends with."""
    *_, (_, _, end) = way(scene, first(scene), np.random.default_rng(0), lambda k: True)
    met_comparator(scene, end)


def tiny_world() -> CMDP:
    """Two states, two actions, two steps, and room below the budget."""
    reward, cost = np.array([[0.2, 0.9], [0.5, 0.4]]), np.array([[0.0, 0.9], [0.1, 0.2]])
    return CMDP.from_arrays(np.full((2, 2, 2), 0.5), reward, cost, 1.0, horizon=2)


def _nature(spec: NatureSpec, cmdp: CMDP) -> Nature:
    """The run's nature; one that needs a world of its own is stood in for by one with the same feedback."""
    try:
        return spec.build(cmdp, 0)
    except InvalidInputError:
        return NATURES["noisy"](cmdp, 0)
