"""A figure that shows itself in a notebook, although nobody imported pyplot."""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Dots per inch of what a notebook shows; files have their own.
NOTEBOOK_DPI = 96


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, laid out by constraints."""
    figure: Figure = _shown()(figsize=(width, height), layout="constrained")
    return figure


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
