"""Figures show themselves in notebooks, and leave the user's matplotlib alone."""

from __future__ import annotations

import subprocess
import sys

from omdpd.report.canvas import new_figure


def test_a_figure_is_its_picture() -> None:
    figure = new_figure(2.0, 1.0)
    figure.subplots().plot([0, 1], [0, 1])
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_showing_it_imports_no_pyplot() -> None:
    show = "from omdpd.report.canvas import new_figure; new_figure(1, 1)._repr_png_()"
    code = f"import sys; {show}; print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
