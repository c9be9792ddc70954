"""What every test runs under: floating-point trouble is an error, and hypothesis draws the same examples every time."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from omdpd.experiments.first_use import compile_for, runs_of
from omdpd.experiments.registry import Registry
from tests.references.browser import browser, new_tab, tab  # noqa: F401  # fixtures

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, max_examples=40)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items):
    """Whatever opens a browser or starts a cluster is of `make test-all`; other tests of it say so themselves."""
    for item in items:
        if "browser" in item.fixturenames or "clusters" in item.path.parts:
            item.add_marker(pytest.mark.whole)


def pytest_sessionstart(session):
    """Compile the solvers once, before several workers, and the processes that tests start, would each do it.

    One process alone compiles what its tests call, so that a single test file starts at once.
    """
    if not session.config.getoption("numprocesses", None):
        return
    compile_for(runs_of(Registry.installed(), ["OMDPD.tuned", "ProximalOMDPD.standard"]), print)


@pytest.fixture(autouse=True)
def floating_point_trouble_is_an_error():
    """Division by zero, overflow and invalid operations raise; a product that underflows to zero is harmless."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        yield


@pytest.fixture(scope="session")
def workshop():
    """The example of a first week, as a module."""
    file = Path(__file__).parents[1] / "examples" / "first_week.py"
    spec = importlib.util.spec_from_file_location("first_week", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
