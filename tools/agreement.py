"""Whether two Markdown tables agree: the same words, and numbers within a tolerance."""

from __future__ import annotations

import re
from collections.abc import Sequence

MINUS = "\N{MINUS SIGN}"
NUMBER = re.compile(rf"[-{MINUS}+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def rows(table: str) -> dict[str, dict[str, str]]:
    """The cells of a table by row (its first cell) and column."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {cells[0]: dict(zip(head[1:], cells[1:], strict=True)) for cells in body}


def disagreements(kept: str, found: str, tolerance: float, columns: Sequence[str] = ()) -> list[str]:
    """A sentence for every cell of `found` that is not what the same row and column of `kept` says."""
    before, now = rows(kept), rows(found)
    if not now:
        return ["there is no row"]
    sentences = [f"there is no row {row!r}" for row in now if row not in before]
    for row in now.keys() & before.keys():
        for column in columns or now[row]:
            left, right = before[row][column], now[row][column]
            if not agree(left, right, tolerance):
                sentences.append(f"{row}, {column}: {left!r} was kept, {right!r} found")
    return sentences


def agree(left: str, right: str, tolerance: float) -> bool:
    """Whether two cells have the same words, and numbers that differ by no more than tolerance and rounding.

    >>> agree("1.05 (3)", "1.06 (3)", 0.01), agree("1.05", "1.15", 0.01), agree("a 1", "b 1", 0.01)
    (True, False, False)
    """
    if NUMBER.sub("#", left) != NUMBER.sub("#", right):
        return False
    pairs = zip(NUMBER.findall(left), NUMBER.findall(right), strict=True)
    return all(abs(_value(a) - _value(b)) <= tolerance * abs(_value(a)) + _unit(a) for a, b in pairs)


def _value(text: str) -> float:
    return float(text.replace(MINUS, "-"))


def _unit(text: str) -> float:
    """One unit of the last digit that is printed: what rounding may move two equal numbers apart."""
    mantissa, _, power = text.partition("e")
    return 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2])) * (1.0 + 1e-9)
