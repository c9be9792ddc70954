"""Recorded episodes as columns, and what is said where Arrow, pandas or Matplotlib are not installed."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from omdpd import InvalidInputError, load_runs
from omdpd.cli.main import app
from omdpd.report.columns import Columns, stacked
from omdpd.storage.atomic import RecordError
from omdpd.storage.columns import joined_columns, read_columns
from tests.references.mutations import parquet_of

STORED = Path(__file__).parents[1] / "recorded" / "stored"
ONE = Columns(run=np.array(["a", "a"], dtype=object), excess=np.array([[1.0], [2.0]]), optimism=np.array([1.0, np.nan]))
TWO = Columns(run=np.array(["b"], dtype=object), excess=np.array([[3.0, 4.0]]), mine=np.array([5.0]))


def without(monkeypatch, *packages):
    """As if these were not installed."""
    for name in packages:
        for loaded in [known for known in sys.modules if known.split(".")[0] == name]:
            monkeypatch.delitem(sys.modules, loaded)
        monkeypatch.setitem(sys.modules, name, None)


def test_tables_are_stacked_and_what_one_lacks_is_nan():
    both = stacked([ONE, TWO])
    assert list(both) == ["run", "excess", "optimism", "mine"]
    assert both.n_rows == 3
    assert np.array_equal(both["excess"], [[1.0, np.nan], [2.0, np.nan], [3.0, 4.0]], equal_nan=True)
    assert np.array_equal(both["optimism"], [1.0, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(both["mine"], [np.nan, np.nan, 5.0], equal_nan=True)
    assert both.where(run="b")["mine"].tolist() == [5.0]
    for other in ("c", 3):
        with pytest.raises(InvalidInputError, match=f"there is no run '{other}'; there are a, b"):
            both.where(run=other)
    with pytest.raises(InvalidInputError, match="there is no column 'seeds'; there are run, excess"):
        both.where(seeds=3)


def test_arrow_gets_nulls_truths_and_lists():
    pytest.importorskip("pyarrow")
    table = stacked([ONE, TWO]).to_arrow()
    assert table["excess"].to_pylist() == [[1.0], [2.0], [3.0, 4.0]]
    assert table["optimism"].to_pylist() == [True, None, None]
    assert table["mine"].to_pylist() == [None, None, 5.0]
    assert table["run"].to_pylist() == ["a", "a", "b"]


def test_pandas_gets_the_columns(monkeypatch):
    made = type("pandas", (), {"DataFrame": dict})
    monkeypatch.setitem(sys.modules, "pandas", made)
    frame = ONE.to_frame()
    assert [entry.tolist() for entry in frame["excess"]] == [[1.0], [2.0]]
    assert frame["run"] is ONE["run"]


@pytest.mark.parametrize(("call", "package"), [("to_arrow", "pyarrow"), ("to_frame", "pandas")])
def test_what_is_not_installed_is_named(monkeypatch, call, package):
    without(monkeypatch, package)
    with pytest.raises(InvalidInputError, match=f"{call} needs {package}, which is not installed here: pip install"):
        getattr(ONE, call)()


def test_a_table_of_an_earlier_version_needs_arrow(monkeypatch):
    pytest.importorskip("pyarrow")
    found = read_columns(parquet_of(rows=3), "rows-000001.parquet", 3)
    assert found["episode"].tolist() == [0, 1, 2]
    assert found["value"].tolist() == [0.0, 0.5, 1.0]
    without(monkeypatch, "pyarrow")
    with pytest.raises(InvalidInputError, match=r"rows-000001.parquet, which an earlier version wrote, needs pyarrow"):
        read_columns(parquet_of(rows=3), "rows-000001.parquet", 3)


def test_a_run_of_an_earlier_version_is_not_called_damaged_for_want_of_arrow(monkeypatch, tmp_path):
    stored = STORED / "cautious"
    folder = tmp_path / "runs" / "0123456789abcdef0123"
    shutil.copytree(stored, folder)
    without(monkeypatch, "pyarrow")
    with pytest.raises(InvalidInputError, match="needs pyarrow, which is not installed here: pip install pyarrow"):
        load_runs(tmp_path)


def test_parts_that_do_not_fit_together_are_refused():
    whole = {"episode": np.array([1]), "value": np.array([0.5])}
    for other in ({"episode": np.array([2])}, whole | {"value": np.array([1])}, whole | {"value": np.array([[0.5]])}):
        with pytest.raises(RecordError, match="its parts do not have the same columns"):
            joined_columns([whole, other], "a run")


def test_a_run_without_matplotlib_ends_with_its_numbers_and_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr("omdpd.cli.playing.can_draw", lambda: False)
    monkeypatch.setattr("omdpd.report.canvas.can_draw", lambda: False)
    words = ["paper", "--quick", "--episodes", "6", "--seeds", "1", "--learners", "Uniform", "--jobs", "1"]
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path)], env={"COLUMNS": "300"})
    assert result.exit_code == 0
    assert "No figure: a figure needs matplotlib and pillow, which are not installed here" in result.output
    assert (tmp_path / "summary.csv").exists()
    assert not list(tmp_path.glob("figure.*"))
    refused = CliRunner().invoke(app, ["plot", str(tmp_path)], env={"COLUMNS": "300"})
    assert isinstance(refused.exception, InvalidInputError | SystemExit)
