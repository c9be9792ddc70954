"""A user on a fresh machine, who waits for the first result."""

import os
import subprocess
import sys

import pytest

FIRST_BLOCK = """
import numpy as np
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__module__)
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
from omdpd import CMDP, ProximalOMDPD, run
rng = np.random.default_rng(0)
transition = rng.dirichlet(np.ones(4), (4, 2))
cmdp = CMDP.from_arrays(transition, rng.random((4, 2)), rng.random((4, 2)), budget=2.5, horizon=6)
run(cmdp, ProximalOMDPD.standard(), n_episodes=1000, seed=1)
print(*compiled)
"""


@pytest.mark.slow
def test_the_first_run_compiles_little_that_is_not_its_own(tmp_path):
    """Seconds depend on the machine; what they are spent on does not: 126 functions of ours, since rules of a line or
    two are copied into their callers, and under 60 of Numba's (allocations and maxima, once per kind of argument).

    A slice that is assigned to, `x[:] = y`, brings Numba's message for shapes that do not fit, and its strings.
    """
    fresh = os.environ | {"OMDPD_CACHE_DIR": str(tmp_path), "OMDPD_QUIET": "1"}
    done = subprocess.run([sys.executable, "-c", FIRST_BLOCK], env=fresh, capture_output=True, text=True, check=True)
    compiled = done.stdout.split()
    assert len(compiled) < 190
    assert len([name for name in compiled if not name.startswith("omdpd.")]) < 60
    assert not [name for name in compiled if "unicode" in name or name == "numba.np.arraymath"]
