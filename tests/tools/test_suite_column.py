"""A learner's column of the suite's table is renewed, and nothing else on the page."""

import pytest

from suite_column import cell, misses, with_column
from tables import number

PAGE = """# Title

| world, nature | standard | cautious |
|---|---|---|
| `grid`, pool | old | kept |
| `grid`, noisy | old too | kept too |

| world, nature | why |
|---|---|
| `grid`, pool | early |
"""


def runs(early, late, n=2):
    """Runs of 1000 episodes with 8 steps that had violated by `early` after 250."""
    return [
        {
            "regret": 120.0 + seed, "violation": 16.0, "late_violation": late, "horizon": 8, "episodes": 1000,
            "early_episode": 250, "early_violation": early, "early_regret": 60.0,
        }
        for seed in range(n)
    ]  # fmt: skip


def test_a_cell_has_regret_violation_exponent_and_the_last_tenth():
    assert cell(runs(8.0, 0.004)) == "120 / 16; 0.50, 0.1 %"


def test_a_missed_bar_is_bold():
    # From 4 to 16 between K/4 and K is linear growth; .08 of 8 steps is one per cent.
    assert cell(runs(4.0, 0.08)) == "120 / 16; **1.00, 1.0 %**"


def test_fast_growth_of_almost_nothing_is_no_miss_and_two_per_cent_always_is():
    assert not misses(1.0, 0.0009)
    assert misses(0.75, 0.001)
    assert misses(0.0, 0.02)
    assert not misses(0.74, 0.0199)


def test_small_numbers_keep_a_decimal():
    assert [number(x) for x in (-3.25, 0.0, 9.94, 9.96, 10.4)] == ["-3.2", "0.0", "9.9", "10", "10"]


def test_only_the_column_of_the_learner_changes():
    found = with_column(PAGE, "standard", {("grid", "pool"): "new"})
    assert found == PAGE.replace("| old |", "| new |")


def test_a_cell_without_a_row_is_refused():
    with pytest.raises(KeyError, match="no row for"):
        with_column(PAGE, "standard", {("lake", "pool"): "new"})
