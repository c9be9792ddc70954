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
from omdpd.solvers.compiled.products import largest_dot
rng = np.random.default_rng(3)
found = largest_dot(rng.random((3, 40)), rng.random(40))
print(sum(largest_dot.stats.cache_hits.values()), found.hex())
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
    for file in tmp_path.rglob("products.largest_dot*.nbc"):
        file.unlink()
    halves = told("-OO")  # what it calls is found, and linked into it
    foreign = told(**LEAST)  # nothing that is there is for this processor
    assert [found for found, _ in (compiled_here, loaded, halves, foreign)] == ["0", "1", "0", "0"]
    assert len({bits for _, bits in (compiled_here, loaded, halves, foreign)}) == 1
