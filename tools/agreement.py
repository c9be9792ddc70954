"""Whether two Markdown tables agree: the same words, and numbers within a tolerance."""

from __future__ import annotations

import re
from collections.abc import Sequence

MINUS = "\N{MINUS SIGN}"
NUMBER = re.compile(rf"[-{MINUS}+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def rows(table: str) -> dict[str, dict[str, str]]:
    r"""The cells of a table by row and column: a row is called by its first cell, and " (2)" if there was one before.

    >>> rows("| a | b |\n|---|---|\n| x | 1 |\n| x | 2 |")
    {'x': {'b': '1'}, 'x (2)': {'b': '2'}}
    """
    lines = [line for line in table.splitlines() if line.startswith("|")]
    head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    firsts = [cells[0] for cells in body]
    seen = [firsts[: i + 1].count(first) for i, first in enumerate(firsts)]
    names = [first if n == 1 else f"{first} ({n})" for first, n in zip(firsts, seen, strict=True)]
    return {name: dict(zip(head[1:], cells[1:], strict=True)) for name, cells in zip(names, body, strict=True)}


def disagreements(
    kept: str,
    found: str,
    tolerance: float,
    columns: Sequence[str] = (),
    chosen: Sequence[str] = (),
    whole: bool = False,
) -> list[str]:
    """A sentence for every cell of `found` that is not what the same row and column of `kept` says.

    Cells of the named columns and of the chosen rows are compared, all where none is named; rows that `kept` lacks are
    always named, and those that `found` lacks if it should be the `whole` table.
    """
    before, now = rows(kept), rows(found)
    if not now:
        return ["there is no row"]
    sentences = [f"there is no row {row!r}" for row in now if row not in before]
    sentences += [f"the row {row!r} is lost" for row in (*(before if whole else ()), *chosen) if row not in now]
    for row in (row for row in now if row in before and (not chosen or row in chosen)):
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
