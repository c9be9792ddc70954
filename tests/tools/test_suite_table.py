"""The suite's table: a row per world and nature, a cell per learner, bold where a bar is missed."""

from suite_table import cell, misses, table
from tables import number


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


def test_places_are_rows_learners_are_columns_and_solves_are_counted():
    def run(world, learner):
        return {
            **runs(8.0, 0.004, 1)[0], "world": world, "nature": "pool", "learner": learner, "solves": 5, "failures": 1,
            "max_gap": 1e-12,
        }  # fmt: skip

    found = [run("grid", "Uniform"), run("grid", "ProximalOMDPD.standard"), run("lake", "Uniform")]
    head, _, grid, lake, _, line = table(found).split("\n")
    assert head == "| world, nature | standard | Uniform |"
    assert grid == "| `grid`, pool | 120 / 16; 0.50, 0.1 % | 120 / 16 |"
    assert lake == "| `lake`, pool |  | 120 / 16 |"
    assert line == "3 runs, 15 solves, 3 failed; largest relative duality gap 1.0e-12."
