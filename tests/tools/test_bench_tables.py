"""Tables of timings are made of what benchmarks wrote: ours in units, others as ratios, nothing where nobody ran."""

import pytest

from tools.agreement import rows
from tools.bench_tables import WHICH, digits


def timing(solver, milliseconds, ratio, kind="kernel, 1 hinge"):
    return {
        "size": "S5 A3 H5", "kind": kind, "solver": solver, "milliseconds": milliseconds, "iterations": 2.25,
        "ratio": ratio, "ratio_warm": 1.0, "problems": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.01234, "0.012"), (1.26, "1.3"), (9.96, "10"), (126.0, "130"), (3140.0, "3100"), (0.0, "0"), (None, "")],
)
def test_numbers_have_two_significant_digits(value, shown):
    assert digits(value) == shown


def test_of_general_solvers_the_best_backend_counts_and_one_that_took_no_part_is_blank():
    steps = [
        timing("ours, cold", 0.5, 1.0), timing("ours, warm", 0.25, 0.5), timing("PIQP a", 4.0, 8.0),
        timing("PIQP b", 3.0, 6.0), timing("one Bellman sweep", 0.01, 0.02),
    ]  # fmt: skip
    (cells,) = rows(WHICH["solves"]({"steps": steps})).values()
    assert cells["cold, ms"] == "0.50"
    assert cells["warm, ms"] == "0.25"
    assert cells["iterations"] == "2.2"
    assert cells["PIQP"] == "6.0"
    assert cells["Clarabel"] == ""
    assert cells["sweeps"] == "50"


def test_a_step_over_a_box_has_no_warm_column():
    steps = [timing(name, 1.0, 1.0, "box, 1 hinge") for name in ("ours, cold", "ours, warm", "one Bellman sweep")]
    (cells,) = rows(WHICH["solves"]({"steps": steps})).values()
    assert cells["cold, ms"] == "1.0"
    assert cells["warm, ms"] == ""


def test_planners_are_rows_and_sizes_columns():
    ways = [("S5", "exact", 0.1), ("S5", "program", 2.0), ("S20", "exact", 0.3)]
    found = {
        "planning": [{"size": size, "planner": planner, "milliseconds": ms} for size, planner, ms in ways]
    }  # fmt: skip
    assert rows(WHICH["planning"](found)) == {
        "exact": {"S5": "0.10", "S20": "0.30"},
        "program": {"S5": "2.0", "S20": ""},
    }


def test_growth_says_the_power_from_the_line_before():
    sizes = [(100, 1.0), (1000, 10.0), (4000, 160.0)]
    found = {
        "growth": [
            {"problem": str(n), "rows": n, "entries": n, "iterations": 3, "milliseconds": ms, "sweeps": 20.0}
            for n, ms in sizes
        ]
    }
    powers = [cells["power of the entries"] for cells in rows(WHICH["sparse-growth"](found)).values()]
    assert powers == ["", "1.00", "2.00"]


def test_a_whole_study_adds_up_in_its_last_line():
    runs = [
        {"learner": learner, "seconds": seconds, "solves": 10, "failures": 1, "max_gap": 1e-12}
        for learner, seconds in (("A", 1.0), ("A", 3.0), ("B", 4.0))
    ]
    table = rows(WHICH["whole-run"](runs))
    assert table["`A`"]["a run, s"] == "2.0"
    assert table["`A`"]["share"] == "50%"
    assert table["all"]["runs"] == "3"
    assert table["all"]["solves"] == "30"
    assert table["all"]["failed"] == "3"


def test_of_large_problems_one_table_has_what_is_on_a_graph_and_the_other_everything():
    found = [
        {
            "name": "small",
            "shape": [5, 3, 5],
            "episodes": 4,
            "rows": None,
            "planned": 1.0,
            "each": 0.1,
            "memory": 200.0,
        },
        {"name": "large", "shape": [9, 2, 5], "episodes": 4, "rows": 30, "planned": 1.0, "each": 0.1, "memory": 200.0},
    ]
    assert list(rows(WHICH["sizes"](found))) == ["small", "large"]
    assert rows(WHICH["large-episodes"](found)) == {
        "large": {"after episode": "4", "rows": "30", "of H·S·A": "90", "ms per episode": "0.10", "process, MB": "200"}
    }
