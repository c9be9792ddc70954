"""A process that dies at any of its calls to the file system loses nothing acknowledged; see `crash_points`."""

import pytest

from benchmarks.crash_points import run_points, session_points

pytestmark = pytest.mark.whole


def test_a_session_that_dies_at_any_call_has_every_acknowledged_update(tmp_path):
    assert session_points(tmp_path, updates=4) > 70


def test_a_run_that_dies_at_a_call_ends_with_the_same_rows_and_scores(tmp_path):
    assert run_points(tmp_path, episodes=3, step=9) > 10
