"""The short version of `make chaos`: a sweep that is killed a few times ends as if nothing had happened."""

import pytest

from benchmarks.chaos import Plan, storm

pytestmark = pytest.mark.whole

N_KILLS = 6


def test_a_sweep_that_is_killed_again_and_again_ends_bit_identical(tmp_path):
    tally = storm(Plan(N_KILLS, episodes=500, seed=7), tmp_path)
    assert tally.total >= N_KILLS
    assert tally.at_work >= 2  # it was not only killed while it started
    assert tally.runs >= 12  # every run of the sweep: three natures, four learners
