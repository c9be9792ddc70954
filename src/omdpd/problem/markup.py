"""Text of names that may be a stranger's: small HTML for notebooks (escaped), and what a screen may show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from omdpd.problem.arrays import Floats

# Size of a small curve in pixels, and its points.
WIDTH, HEIGHT, POINTS = 260, 70, 120
LINES = ("#D55E00", "#0072B2")


def facts_html(title: str, facts: Mapping[str, object], below: str = "") -> str:
    """A title, names with values, and further HTML below (which must be escaped already).

    >>> facts_html("<b>", {"S": 3})
    '<div><strong>&lt;b&gt;</strong><table><tr><th>S</th><td>3</td></tr></table></div>'
    """
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in facts.items())
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{below}</div>"


def table_html(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of texts."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def curve_svg(name: str, values: Floats, colour: str = LINES[0]) -> str:
    """A curve with its last value in words; it keeps its ends and its extremes."""
    n = len(values)
    kept = sorted({*range(0, n, max(n // POINTS, 1)), int(values.argmax()), int(values.argmin()), n - 1})
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    across, up = WIDTH / max(n - 1, 1), HEIGHT / max(high - low, 1e-300)
    points = " ".join(f"{i * across:.1f},{HEIGHT - (float(values[i]) - low) * up:.1f}" for i in kept)
    zero = HEIGHT + low * up
    said = f"{name}: {float(values[-1]):.4g} after {n} episodes"
    return (
        f'<figure style="display:inline-block;margin:4px 16px 4px 0"><figcaption>{escape(said)}</figcaption>'
        f'<svg width="{WIDTH}" height="{HEIGHT + 4}" viewBox="0 -2 {WIDTH} {HEIGHT + 4}" role="img" '
        f'aria-label="{escape(said)}"><line x1="0" x2="{WIDTH}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="#999999"/>'
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/></svg></figure>'
    )


def printable(text: str, kept: str = "") -> str:
    r"""Text without what a terminal would obey, except what is kept: results may be a stranger's.

    >>> printable("a\x1b[2Jb")
    'a?[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(symbol if symbol.isprintable() or symbol in kept else "?" for symbol in text)
