"""Of tables of times, tests compare what was solved: optima and iterations."""

from agreement import rows
from reduced_tables import WHICH


def test_planners_are_shown_with_the_optimum_that_each_finds():
    ways = [("S5", "exact", 3.5), ("S5", "program", 3.5), ("S20", "exact", 7.25)]
    found = {"planning": [{"size": size, "planner": planner, "value": value} for size, planner, value in ways]}
    assert rows(WHICH["planning"](found)) == {
        "exact": {"S5": "3.500000", "S20": "7.250000"},
        "program": {"S5": "3.500000", "S20": ""},
    }


def test_sizes_are_shown_with_the_iterations_of_both_solvers():
    found = {"growth": [{"varied": "S", "size": 5, "box_iterations": 9.333, "kernel_iterations": 3.0}]}
    assert rows(WHICH["scaling"](found)) == {"S = 5": {"iterations over a box": "9.3", "over one kernel": "3.0"}}
