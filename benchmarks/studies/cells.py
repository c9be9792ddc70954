"""Numbers of studies as cells of Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

from omdpd.problem.arrays import Floats
from omdpd.report.statistics import half_width


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], n_words: int = 1) -> str:
    """A table whose first `n_words` columns are words and whose others are numbers.

    >>> print(markdown(["learner", "regret"], [["a", "1"]]), end="")
    | learner | regret |
    |---|---:|
    | a | 1 |
    """
    marks = "|" + "|".join("---" if i < n_words else "---:" for i in range(len(head))) + "|"
    lines = ["| " + " | ".join(head) + " |", marks, *("| " + " | ".join(row) + " |" for row in rows)]
    return "\n".join(lines) + "\n"


def number(value: float | None) -> str:
    """A number for people: whole from ten on, two digits below; a dash where there is none.

    >>> [number(x) for x in (1234.5, 3.14159, 0.00123, -0.00000001, 0.0, None)]
    ['1234', '3.1', '0.0012', '0', '0', '-']
    """
    if value is None:
        return "-"
    if abs(value) < 1e-6:
        return "0"
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"


def mean_cell(values: Floats | None) -> str:
    """A mean over seeds with half of its 95 % interval, from three seeds on."""
    if values is None:
        return "-"
    half = half_width(values)
    return number(float(values.mean())) + ("" if half is None else f" ± {number(float(half))}")


def difference_cell(values: Floats | None, base: Floats | None) -> str:
    """The mean of paired differences with its 95 % interval; starred where that does not hold zero.

    >>> import numpy as np
    >>> difference_cell(np.array([1510.0, 1520.0, 1518.0]), np.zeros(3)), difference_cell(np.ones(1), np.zeros(1))
    ('+1516 ± 13 *', '+1')
    """
    if values is None or base is None:
        return "-"
    apart = values - base
    half, mean = half_width(apart), float(apart.mean())
    signed = f"{mean:+.0f}" if abs(mean) >= 100 else f"{mean:+.3g}"
    if half is None:
        return signed
    star = " *" if abs(mean) > float(half) else ""
    return f"{signed} ± {number(float(half))}{star}"
