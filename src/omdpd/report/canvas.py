"""Figures made without pyplot, which still show themselves in a notebook."""

from __future__ import annotations

import functools
import importlib.util
import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from omdpd.problem.arrays import InvalidInputError, not_installed
from omdpd.problem.markup import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Figure
else:  # to import them takes half a second
    Axes = Axis = Figure = Any

# Dots per inch of what a notebook shows; files have their own.
NOTEBOOK_DPI = 96
# Ticks between powers of ten, on both sides of zero.
DECADE = [-50.0, -20.0, -10.0, -5.0, 0.0, 5.0, 10.0, 20.0, 50.0]


def can_draw() -> bool:
    """Whether Matplotlib is installed; what needs it refuses with `no_figures` where it is not."""
    return importlib.util.find_spec("matplotlib") is not None


def no_figures() -> InvalidInputError:
    """The error for drawing without Matplotlib."""
    return not_installed("a figure", "matplotlib", "pillow")


def looking(style: Any) -> AbstractContextManager[None]:
    """Draw with these settings of Matplotlib for a while; refused where that is not installed."""
    if not can_draw():
        raise no_figures()
    from matplotlib import rc_context

    return rc_context(style)


def new_figure(width: float, height: float, layout: str | None = "constrained") -> Figure:
    """An empty figure of this size in inches, laid out by constraints unless told otherwise."""
    figure: Figure = _shown()(figsize=(width, height), layout=layout)
    return figure


def new_panels(n: int, most: int, size: Callable[[int, int], tuple[float, float]]) -> tuple[Figure, list[Axes]]:
    """Make a figure of n panels, at most `most` beside one another; `size` gives its size by rows and columns."""
    columns = min(n, most)
    rows = -(-n // columns)
    figure = new_figure(*size(rows, columns))
    panels = [*figure.subplots(rows, columns, squeeze=False).flat]
    for axes in panels[n:]:
        axes.set_axis_off()
    return figure, panels[:n]


def plain_ticks(*axes: Axis) -> None:
    """Give every symmetric logarithmic axis that shows fewer than two powers of ten ordinary numbers for ticks.

    Powers of ten alone would leave it with one label or none, and below its linear part with its two ends, unrounded.
    """
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, ScalarFormatter

    for axis in axes:
        limit = max(abs(end) for end in axis.get_view_interval())
        if limit < 100.0:
            # Even steps would crowd the logarithmic part.
            even = limit <= 15.0
            axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]) if even else FixedLocator(DECADE))
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_locator(NullLocator())


@functools.cache
def _shown() -> Any:
    """The class, made when the first figure is: matplotlib takes half a second to import."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure whose picture is its representation."""

        def _repr_png_(self) -> bytes:
            return content_of(self, format="png", dpi=NOTEBOOK_DPI)

    return ShownFigure


def content_of(figure: Figure, **how: Any) -> bytes:
    """Draw a figure as the content of a file, as Matplotlib's ``savefig`` is told."""
    buffer = io.BytesIO()
    figure.savefig(buffer, **how)
    return buffer.getvalue()


def drawn(name: str) -> str:
    r"""A name as figures take it: it may be a stranger's, with what no font has, or dollars that begin mathematics.

    >>> drawn("a$b\x1b")
    'a\\$b?'
    """
    return printable(name).replace("$", r"\$")
