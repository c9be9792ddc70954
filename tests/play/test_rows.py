"""The table of columns is the only one: rows, stored files, checks, tables and documentation follow it."""

from pathlib import Path

import msgspec
import numpy as np

from omdpd.experiments.writer import TYPES, as_begun, columns_of_rows
from omdpd.play.judging import Scores
from omdpd.play.rows import COLUMNS, COLUMNS_OF, LABELS, SUMMARY, Row, Rows, begun_with
from omdpd.play.units import in_user_units
from omdpd.report.checks import SCORES
from omdpd.report.tables import formatted

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()


def test_rows_have_the_columns_and_metrics():
    assert tuple(COLUMNS) == tuple(name for name in Row._fields if name != "metrics")
    assert not {*COLUMNS} & {*LABELS}
    rows = Rows()
    rows.extend([Row(1, 0.5, (0.25, -1.0), 0.5, 0.25, None, 2.0, None, None, True, (7.0,))])
    table = columns_of_rows(rows, ("mine",))
    assert list(table) == [*COLUMNS, "mine"]
    assert all(table[name].dtype == TYPES[column.kind] for name, column in COLUMNS.items())
    assert table["excess"].tolist() == [[0.25, -1.0]]
    assert np.isnan(table["optimism"]).all()


def test_a_column_of_a_later_format_may_be_missing_and_the_others_may_not():
    fields = {field.name: field for field in msgspec.structs.fields(SCORES)}
    assert {name for name, field in fields.items() if field.required} == {
        name for name, column in SUMMARY.items() if column.since == 2
    }


def test_a_run_keeps_the_columns_that_it_began_with():
    rows = Rows()
    rows.extend([Row(1, 0.5, (0.25,), 0.5, 0.25, None, 2.0, None, None, True, (7.0,), optimism=False)])
    table = columns_of_rows(rows, ("mine",))
    assert as_begun(table, None) is table
    for names in COLUMNS_OF.values():
        stored = [*names, "mine"]
        assert begun_with(stored) == names
        assert list(as_begun(table, stored)) == stored
    assert as_begun(table, [*COLUMNS_OF[2], "mine"])["good_event"].tolist() == [False]  # as it was called then
    assert begun_with(["episode", "mine"]) == tuple(COLUMNS)  # those of no format: nothing is left out silently


def test_every_score_is_a_number_of_a_summary():
    assert {*Scores.__dataclass_fields__} <= {*SUMMARY}


def record(**changed):
    """A summary in which every number is 1."""
    ones = {
        "text": "a",
        "whole": 1,
        "number": 1.0,
        "numbers": [1.0],
        "limits": [1.0],
        "range": [0.0, 1.0],
        "truth": True,
    }
    return {name: ones[column.kind] for name, column in SUMMARY.items()} | changed


def test_numbers_are_shown_in_the_unit_of_their_column():
    shown = in_user_units(record(reward_range=[0.0, 10.0], cost_scale=[8.0]))
    wanted = {"rewards": 10.0, "costs": 8.0, "": 1.0}
    for name, column in SUMMARY.items():
        if column.kind == "number":
            assert shown[name] == wanted[column.unit], name
    assert isinstance(shown["seed"], int)


def test_tables_have_the_headers_of_the_columns():
    head, _, _ = formatted([record()], "markdown").splitlines()
    assert head.rstrip(" |").split(" | ")[5:] == [column.head for column in SUMMARY.values() if column.head]


def test_the_page_on_experiments_has_a_line_for_every_column():
    for name, column in COLUMNS.items():
        assert f"| `{name}` | {column.kind} | {column.meaning} |" in PAGE
        assert column.meaning
