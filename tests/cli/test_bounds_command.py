"""`omdpd lab bounds` prints the theorem's terms, and draws them beside results."""

from __future__ import annotations

from typer.testing import CliRunner

from omdpd.cli.main import app


def test_it_prints_every_term_for_both_diameters() -> None:
    result = CliRunner().invoke(app, ["lab", "bounds"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    for name in ("regret, optimisation", "estimation of a table", "~ estimation of the kernel", "violation, sum"):
        assert name in result.output
    assert "1.819e+06" in result.output
    assert "5.067e+06" in result.output


def test_it_draws_a_figure(tmp_path) -> None:
    file = tmp_path / "bounds.png"
    result = CliRunner().invoke(app, ["lab", "bounds", "--episodes", "100", "--out", str(file)])
    assert result.exit_code == 0
    assert file.stat().st_size > 10_000


def test_a_folder_without_results_is_named(tmp_path) -> None:
    result = CliRunner().invoke(app, ["lab", "bounds", "--beside", str(tmp_path)])
    assert result.exit_code != 0
    assert str(tmp_path) in f"{result.exception}"
