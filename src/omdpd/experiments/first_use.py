"""Compile what some runs need before workers start, because each of them would compile the same.

What a learner needs is what it calls: it plays a few episodes of a tiny world, which takes a fraction of a second where
everything is in the cache.  What those episodes do not reach is compiled when it is first called.  Nothing but time
depends on it: a run has the same bits in a process that compiled as in one that did not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import NatureSpec, RunSpec
from omdpd.jit.announce import ANNOUNCER, Say
from omdpd.jit.cache import kernel_folder
from omdpd.jit.decorators import COMPILED
from omdpd.jit.shipped import shipped_code
from omdpd.natures import NATURES
from omdpd.natures.protocol import Nature
from omdpd.play.loop import Progress, batches, met_comparator, play, start_of_run
from omdpd.play.many import Batches
from omdpd.play.scene import Scene, with_known_facts
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.problem.strangers import strangers_code

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
        fields = registry.spec_type("learners", name).__struct_fields__
        for settings in ({}, {"layout": "graph"}) if "layout" in fields else ({},):
            learner = registry.spec("learners", name, settings)
            for nature in ("noisy", "pool"):  # either feedback
                runs.append(msgspec.structs.replace(registry.run("cyclic", nature, name, 3, 0), learner=learner))
    return runs


def compile_all(registry: Registry, say: Say) -> None:
    """Compile what any learner needs; where nothing was compiled yet and there are two cores, half of it elsewhere."""
    names, folder = list(registry.complete("learners")), kernel_folder()
    new = folder is not None and shipped_code() is None and not any(folder.rglob("*.nbi"))
    half = len(names) // 2 if new and (os.cpu_count() or 1) > 1 else len(names)
    helper = _elsewhere(names[half:]) if half < len(names) else None
    try:
        compile_for(runs_of(registry, names[:half]), say)
    finally:
        helped = helper is None or helper.wait() == 0
    if not helped:
        compile_for(runs_of(registry, names[half:]), say)


def _elsewhere(names: Sequence[str]) -> subprocess.Popen[bytes]:
    """Another process that compiles what some learners need."""
    # -P: what lies in the current folder is nobody's module.
    command = [sys.executable, "-P", "-m", "omdpd", "warm-up", "--learners", ",".join(names)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"OMDPD_QUIET": "1"})


def _kind(run: RunSpec) -> tuple[str, ...]:
    """What runs that call the same functions have in common."""
    return run.learner.name, run.nature.name, str(run.learner.settings.get("layout"))


def _play(run: RunSpec) -> None:
    cmdp = tiny_world()
    nature = _nature(run.nature, cmdp)
    scene = Scene(cmdp, nature, with_known_facts(run.learner.build(), cmdp, nature.feedback), EPISODES, {})
    _play_out(play, scene)
    if Batches.of(scene) is not None:
        _play_out(batches, scene)


def _play_out(way: Callable[..., Iterable[tuple[Any, Any, Progress]]], scene: Scene) -> None:
    """Episodes, and the comparator that a run ends with."""
    *_, (_, _, end) = way(scene, start_of_run(scene), np.random.default_rng(0), lambda k: True)
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
