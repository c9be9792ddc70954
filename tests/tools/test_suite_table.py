"""The suite's table: a row per world and nature, a cell per learner, bold where a bar is missed."""

import pytest

from omdpd.report.results import grouped
from tools.agreement import rows
from tools.suite_table import Late, beside, cell, counts, growth, late_of, main, whole
from tools.tables import number


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
    assert not Late(1.0, 0.0009).missed
    assert Late(0.75, 0.001).missed
    assert Late(0.0, 0.02).missed
    assert not Late(0.74, 0.0199).missed


def test_without_the_allowance_fast_growth_of_almost_nothing_counts():
    assert Late(0.75, 0.0).missed_without_allowance
    assert Late(0.0, 0.02).missed_without_allowance
    assert not Late(0.74, 0.0199).missed_without_allowance


def test_small_numbers_keep_a_decimal():
    assert [number(x) for x in (-3.25, 0.0, 9.94, 9.96, 10.4)] == ["-3.2", "0.0", "9.9", "10", "10"]


def played(world, preset, early=8.0, late=0.004, **numbers):
    """One run of a preset under the nature `pool`."""
    learner = preset if preset == "Uniform" else f"ProximalOMDPD.{preset}"
    names = {"world": world, "nature": "pool", "learner": learner, "solves": 5, "failures": 1, "max_gap": 1e-12}
    return {**runs(early, late, 1)[0], **names, **numbers}


def test_places_are_rows_learners_are_columns_and_solves_are_counted():
    found = [played("grid", "Uniform"), played("grid", "standard"), played("lake", "Uniform")]
    head, _, grid, lake, _, line = whole(found).split("\n")
    assert head == "| world, nature | standard | Uniform |"
    assert grid == "| `grid`, pool | 120 / 16; 0.50, 0.1 % | 120 / 16 |"
    assert lake == "| `lake`, pool |  | 120 / 16 |"
    assert line == "3 runs, 15 solves, 3 failed; largest relative duality gap 1.0e-12."


def test_presets_are_counted_by_the_bars_and_beside_the_cautious_one():
    found = [
        played("a", "standard", regret=1.0, violation=1.0, early_violation=1.0),  # less of both
        played("b", "standard", regret=1.0, violation=17.0, early_violation=4.25, late_violation=0.0),  # grows, tiny
        played("c", "standard", regret=121.0, violation=17.0, early_violation=17.0, late_violation=0.2),  # more of both
        played("d", "standard"),  # nothing to count it against
        *(played(world, "cautious") for world in "abc"),
        played("a", "Uniform"),
    ]
    table = rows(counts(found))
    assert list(table) == ["`standard`", "`cautious`"]
    assert list(table["`standard`"].values()) == ["4", "3", "2", "2", "1", "1", "1"]
    assert list(table["`cautious`"].values()) == ["3", "3", "3", "", "", "", ""]


def test_one_preset_beside_another_has_a_row_where_it_has_more_of_both_and_where_it_is_asked_for():
    found = [
        played("a", "standard", regret=131.0, violation=17.0),  # a tenth more regret, not of violation
        played("b", "standard", regret=140.0, violation=20.0),  # more of both by more than a tenth
        played("c", "standard", regret=140.0, violation=15.0),
        played("d", "standard", regret=90.0, violation=1.0),
        *(played(world, "settling", regret=100.0, violation=16.0) for world in "abc"),
        played("d", "settling", regret=100.0, violation=2.0),
    ]
    table = beside(found, "standard", "settling", ["d,pool"])
    assert list(rows(table)) == ["`a`, pool", "`b`, pool", "`d`, pool"]
    assert list(rows(table)["`b`, pool"].values()) == ["140", "100", "20", "16"]
    assert table.endswith("\n\nOf 4 combinations 2 have more of both, 1 by more than a tenth.")


def test_a_negative_regret_is_more_by_a_share_of_its_size():
    found = [played("a", "standard", regret=-95.0, violation=20.0), played("a", "settling", regret=-100.0)]
    assert beside(found, "standard", "settling").endswith("1 have more of both, 0 by more than a tenth.")


def test_a_suite_without_the_cautious_preset_counts_nothing_against_it():
    assert list(rows(counts([played("a", "standard")]))["`standard`"].values()) == ["1", "1", "1", "", "", "", ""]


def test_what_still_grows_or_is_large_at_the_end_is_listed_the_largest_first_and_missed_bars_are_bold():
    found = [
        played("calm", "cautious"),
        played("tiny", "cautious", 4.0, 0.004),
        played("fast", "cautious", 4.0, 0.016),
        played("large", "cautious", 16.0, 0.2),
        played("other", "standard", 16.0, 0.2),
    ]
    table = rows(late_of(found, "cautious"))
    assert list(table) == ["`large`, pool", "`fast`, pool", "`tiny`, pool"]
    assert list(table["`large`, pool"].values()) == ["1000", "120", "16", "16", "0.00", "**2.50 %**"]
    assert list(table["`fast`, pool"].values()) == ["1000", "120", "4.0", "16", "**1.00**", "0.20 %"]
    assert list(table["`tiny`, pool"].values()) == ["1000", "120", "4.0", "16", "1.00", "0.05 %"]


def test_where_no_bar_is_missed_the_table_says_so():
    assert list(rows(late_of([played("calm", "cautious")], "cautious"))) == ["(none)"]


def test_growth_is_shown_for_every_place_with_its_number_of_episodes():
    table = rows(growth(grouped([played("calm", "cautious"), played("fast", "cautious", 4.0, 0.016)])))
    assert list(table) == ["`calm`, pool", "`fast`, pool"]
    assert table["`calm`, pool"]["exponent"] == "0.50"


def test_words_that_name_no_table_are_answered_with_those_that_do():
    with pytest.raises(SystemExit, match="FOLDER counts"):
        main(["results/suite", "bogus"])
