"""What one reads is what runs: the same source gives the same episodes in plain Python."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from tests.references import short_runs

# Run in a process of its own, since Numba decides when it is imported.
WITHOUT_COMPILER = """
import pickle, sys
import numpy as np
from tests.references import short_runs
from omdpd.learners.standard.learn import learn
from omdpd.jit.decorators import COMPILED

assert not COMPILED and not hasattr(learn, "py_func")
with np.errstate(all="ignore"):
    sys.stdout.buffer.write(pickle.dumps(short_runs.every_run()))
"""


@pytest.fixture(scope="module")
def plain():
    """Every run in plain Python."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", WITHOUT_COMPILER], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)  # noqa: S301, our own process


@pytest.mark.parametrize("way", ["by_verbs", "many_at_a_time"])
@pytest.mark.parametrize("name", short_runs.RUNS)
def test_plain_python_plays_the_episodes_of_the_compiled_learner(plain, name, way):
    values, rows, policy = getattr(short_runs, way)(name)
    plain_values, plain_rows, plain_policy = plain[name, way]
    assert len(plain_values) == short_runs.EPISODES
    assert np.ptp(values) > 0.1
    np.testing.assert_allclose(plain_values, values, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(np.array(plain_rows, float), np.array(rows, float), rtol=1e-7)
    np.testing.assert_allclose(plain_policy, policy, rtol=0.0, atol=1e-8)
