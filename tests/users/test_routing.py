"""Requests routed among three models over HTTP, with a kill in the middle: the example end to end."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the example is not run: pip install uvicorn")
pytestmark = pytest.mark.whole
EXAMPLE = Path(__file__).parents[2] / "examples" / "routing.py"


def test_requests_are_routed_through_a_kill_with_masks_and_late_outcomes(tmp_path):
    spec = importlib.util.spec_from_file_location("routing", EXAMPLE)
    routing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(routing)
    found = routing.main(tmp_path, n=120, seed=1)
    assert (found["ended"], found["open"], found["dropped"]) == (120, 0, 0)
    # Budgets of a period come to at most its share in all, up to the clip of 2 either way.
    budgets = [each["budget"][0] for each in found["recent"]]
    assert all(routing.BUDGET - 2.0 <= budget <= routing.BUDGET + 2.0 for budget in budgets)
    assert any(budget != routing.BUDGET for budget in budgets)
    assert {each["how"] for each in found["recent"]} <= {"whole", "absorbed"}
    masked = [each for each in found["recent"] if 90 <= int(each["id"].split("-")[1]) < 100]
    assert masked
    assert all(each["costs"][0] <= routing.ATTEMPTS * routing.MODELS["medium"] for each in masked)
