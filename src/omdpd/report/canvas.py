"""A figure that shows itself in a notebook, although nobody imported pyplot."""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING, Any

from omdpd.problem.markup import printable

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Dots per inch of what a notebook shows; files have their own.
NOTEBOOK_DPI = 96
# Ticks between powers of ten, on both sides of zero.
DECADE = [-50.0, -20.0, -10.0, -5.0, 0.0, 5.0, 10.0, 20.0, 50.0]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, laid out by constraints."""
    figure: Figure = _shown()(figsize=(width, height), layout="constrained")
    return figure


def plain_ticks(axis: Axis) -> None:
    """Give a symmetric logarithmic axis that shows fewer than two powers of ten ordinary numbers for ticks.

    Powers of ten alone would leave it with one label or none, and below its linear part with its two ends, unrounded.
    """
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, ScalarFormatter

    limit = max(abs(end) for end in axis.get_view_interval())
    if limit >= 100.0:
        return
    # Even steps would crowd the logarithmic part.
    even = limit <= 15.0
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]) if even else FixedLocator(DECADE))
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_locator(NullLocator())


def plain_log_ticks(axis: Axis) -> None:
    """Give a logarithmic axis that shows less than a power of ten ordinary numbers for ticks, which do not collide."""
    from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter

    low, high = axis.get_view_interval()
    if low <= 0.0 or high >= 10.0 * low:
        return
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_formatter(NullFormatter())


@functools.cache
def _shown() -> Any:
    """The class, made when the first figure is: matplotlib takes half a second to import."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure whose picture is its representation."""

        def _repr_png_(self) -> bytes:
            drawn = io.BytesIO()
            self.savefig(drawn, format="png", dpi=NOTEBOOK_DPI)
            return drawn.getvalue()

    return ShownFigure


def drawn(name: str) -> str:
    r"""A name as figures take it: it may be a stranger's, with what no font has, or dollars that begin mathematics.

    >>> drawn("a$b\x1b")
    'a\\$b?'
    """
    return printable(name).replace("$", r"\$")
