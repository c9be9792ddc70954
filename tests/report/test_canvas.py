"""Figures show themselves in notebooks, and leave the user's matplotlib alone."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.studies.drawing import plain_log_ticks
from omdpd.report.canvas import new_figure, plain_ticks


def test_a_figure_is_its_picture() -> None:
    figure = new_figure(2.0, 1.0)
    figure.subplots().plot([0, 1], [0, 1])
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_showing_it_imports_no_pyplot() -> None:
    show = "from omdpd.report.canvas import new_figure; new_figure(1, 1)._repr_png_()"
    code = f"import sys; {show}; print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def ticks(limit: float) -> list[str]:
    """The labels of a symmetric logarithmic axis from 0 to a limit, drawn."""
    figure = new_figure(3.0, 2.0)
    axes = figure.subplots()
    axes.set_yscale("symlog", linthresh=10.0)
    axes.set_ylim(0.0, limit)
    plain_ticks(axes.yaxis)
    figure.canvas.draw()
    labels = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    return [label.get_text() for tick, label in labels if 0.0 <= tick <= limit]


def test_an_axis_of_small_numbers_has_round_ticks() -> None:
    assert ticks(5.97976) == ["0", "1", "2", "3", "4", "5"]
    assert ticks(60.0) == ["0", "5", "10", "20", "50"]


def test_an_axis_of_large_numbers_keeps_its_powers_of_ten() -> None:
    assert any("10^{2}" in label for label in ticks(600.0))


def test_a_logarithmic_axis_of_less_than_a_decade_has_ordinary_numbers():
    figure = new_figure(4.0, 3.0)
    axes = figure.subplots()
    axes.plot([130.0, 260.0], [1.0, 2.0])
    axes.set_xscale("log")
    plain_log_ticks(axes.xaxis)
    figure.canvas.draw()
    shown = [label.get_text() for label in axes.get_xticklabels() if label.get_text()]
    assert len(shown) >= 3
    assert all(text.isdigit() for text in shown)
    assert not [text for label in axes.get_xticklabels(minor=True) if (text := label.get_text())]
    axes.set_xlim(10.0, 1000.0)
    before = axes.xaxis.get_major_locator()
    plain_log_ticks(axes.xaxis)  # two powers of ten are ticks enough
    assert axes.xaxis.get_major_locator() is before
