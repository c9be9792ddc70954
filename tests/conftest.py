"""What every test runs under: floating-point trouble is an error, and hypothesis draws the same examples every time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

from omdpd.experiments.first_use import compile_for, runs_of
from omdpd.experiments.registry import Registry

# Conftests hold no doctests, and as modules of one name they could not be collected side by side.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, max_examples=40)
settings.load_profile("repeatable")


def pytest_sessionstart(session):
    """Compile the solvers once, before tests start processes that would each do it (or be killed while they do)."""
    compile_for(runs_of(Registry.installed(), ["OMDPD.tuned", "ProximalOMDPD.standard"]), print)


@pytest.fixture(autouse=True)
def floating_point_trouble_is_an_error():
    """Division by zero, overflow and invalid operations raise; a product that underflows to zero is harmless."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        yield
