"""The truth never reaches a learner: every argument of every function that it calls is looked at.

Without the compiler, so that also what happens within a compiled step is seen.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from types import FrameType
from typing import Any

import numpy as np
import pytest

from omdpd import CMDP
from omdpd.beliefs.drift import table_drift
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.natures import NATURES
from omdpd.play.loop import batches, play, start_of_run
from omdpd.play.scene import Scene

# Rooms that are closed to the truth.
CLOSED = ("omdpd.beliefs", "omdpd.learners")
EPISODES = 4


def arrays_in(value: Any, seen: set[int]) -> Iterator[np.ndarray]:
    """All arrays that can be reached from a value."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict | tuple | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from arrays_in(item, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        yield from arrays_in(vars(value), seen)


@contextmanager
def watching(truth: dict[str, np.ndarray]) -> Iterator[tuple[Counter[str], list[str]]]:
    """Calls by module, and every argument that shares memory with the truth, or is a copy of it."""
    calls: Counter[str] = Counter()
    leaks: list[str] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        if event != "call" or not module.startswith(CLOSED):
            return
        calls[module] += 1
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]:
            for array in arrays_in(frame.f_locals.get(name), set()):
                for what, table in truth.items():
                    copied = array.size == table.size and np.array_equal(array.ravel(), table.ravel())
                    if copied or np.may_share_memory(array, table):
                        leaks.append(f"{module}.{code.co_name} is given the {what} as {name}")

    sys.setprofile(look)
    try:
        yield calls, leaks
    finally:
        sys.setprofile(None)


def watch() -> None:
    """Play a few episodes by the verbs and together, with costs that are met and with tables that are revealed."""
    rng, (H, S, A) = np.random.default_rng(0), (3, 3, 2)
    transition = rng.dirichlet(np.ones(S), (H, S, A))
    cmdp = CMDP.from_arrays(transition, rng.random((H, S, A)), rng.random((1, H, S, A)), 0.5 * H)
    # Of mean costs nothing is revealed by a pool either: it has tables of its own.
    truth = {"kernel": cmdp.transition, "reward": cmdp.reward, "cost": cmdp.cost, "excess": cmdp.excess}
    for nature in ("noisy", "pool", "unrevealed", "independent"):
        for learner in (ProximalOMDPD.standard(), ProximalOMDPD.cautious()):
            scene = Scene(cmdp, NATURES[nature](cmdp, 3), learner, EPISODES, {})
            hidden = dict(truth)
            if nature == "unrevealed":
                hidden |= {f"table {k}": table for k, table in enumerate(scene.nature.tables)}
            for way in (play, batches):
                with watching(hidden) as (calls, leaks):
                    list(islice(way(scene, start_of_run(scene), np.random.default_rng(1), bool), EPISODES))
                assert not leaks, leaks[:5]
                assert {name.split(".")[1] for name in calls} == {"beliefs", "learners"}, "they were looked at"
                compiled = "omdpd.learners.standard.learn" in calls
                assert compiled == (learner == ProximalOMDPD.standard()), "also within the compiled step"
    # And a leak would be seen: the thing itself, a view of a part of it, and a copy.
    for table in (cmdp.transition, cmdp.transition[1:2], cmdp.transition.copy()):
        with watching(truth) as (_, leaks):
            table_drift(table.reshape(-1, S), np.zeros((table.size // S, S)), len(table))
        assert leaks[0] == "omdpd.beliefs.drift.table_drift is given the kernel as p"


def test_no_function_of_a_learner_is_ever_given_the_truth() -> None:
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    program = "from tests.play import test_truth; test_truth.watch()"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(done.stderr)
