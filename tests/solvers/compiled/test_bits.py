"""What is computed does not depend on which process compiled the code, for which processor, or what was in the cache.

The long trial is `benchmarks/cold_cache.py`: whole runs of three learners.
"""

import importlib
import os
import pkgutil
import subprocess
import sys

import pytest
from numba.core.dispatcher import Dispatcher

from omdpd.solvers import compiled

# A function that calls another one, which sums forty numbers.
CODE = """
import numpy as np
from omdpd.solvers.compiled.graph_flow import Arrays, mean_of_layer, values_of_shares
n, rng = 40, np.random.default_rng(3)
lists = np.arange(2 * n + 1)
graph = Arrays(
    np.array([0, n, 2 * n]), lists, np.zeros(2 * n + 1, int), np.zeros(0, int), np.zeros(0), rng.random(2 * n),
    np.ones(2 * n), np.full(n, 1 / n), float(n), np.ones(2 * n),
)
V = values_of_shares(graph, np.ones(2 * n), rng.random(2 * n))
print(sum(values_of_shares.stats.cache_hits.values()), V.tobytes().hex())
"""
# The least that a processor of any kind can do.
LEAST = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def test_no_function_of_ours_may_sum_in_any_order():
    found = 0
    for module in pkgutil.walk_packages(compiled.__path__, f"{compiled.__name__}."):
        for name, function in vars(importlib.import_module(module.name)).items():
            if isinstance(function, Dispatcher):
                found += 1
                assert not function.targetoptions.get("fastmath"), f"{module.name}.{name} is compiled with fastmath"
    assert found > 100


@pytest.mark.whole
def test_compiled_and_loaded_code_compute_the_same_bits(tmp_path):
    def told(*flags, **environment):
        """Whether the function was found, and its bits."""
        env = os.environ | {"OMDPD_CACHE_DIR": str(tmp_path), "OMDPD_QUIET": "1"} | environment
        return subprocess.check_output([sys.executable, *flags, "-c", CODE], env=env, text=True).split()

    compiled_here = told()
    loaded = told()
    for file in tmp_path.rglob("graph_flow.values_of_shares*.nbc"):
        file.unlink()
    halves = told("-OO")  # what it calls is found, and linked into it
    foreign = told(**LEAST)  # nothing that is there is for this processor
    assert [found for found, _ in (compiled_here, loaded, halves, foreign)] == ["0", "1", "0", "0"]
    assert len({bits for _, bits in (compiled_here, loaded, halves, foreign)}) == 1
