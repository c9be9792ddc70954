"""`omdpd bounds`: the theorem as numbers, and beside what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from omdpd.beliefs.confidence import DELTA
from omdpd.cli.screen import Screen
from omdpd.learners.bounds import Term, theorem_terms, total
from omdpd.learners.theorem import theorem_numbers
from omdpd.problem.setting import Setting

Size = Annotated[int, typer.Option(min=1)]


def bounds(
    states: Size = 5,
    actions: Size = 3,
    horizon: Size = 5,
    constraints: Size = 1,
    episodes: Annotated[int, typer.Option(min=1, help="K.")] = 3000,
    delta: Annotated[float, typer.Option(help="The probability with which the theorem may fail.")] = DELTA,
    beside: Annotated[Path | None, typer.Option(help="A folder of results, whose curves are drawn with them.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the figure goes (png, svg, pdf).")] = None,
) -> None:
    """Theorem 1 of the paper and its lemmas as numbers, for the paper's C = SAH/2 and for C = H, which is enough."""
    setting = Setting(horizon, states, actions, constraints, n_episodes=episodes)
    loose = theorem_terms(setting, delta, states * actions * horizon / 2.0)
    tight = theorem_terms(setting, delta)
    table = Table(
        Column("term", no_wrap=True), "C = SAH/2", "below HK from K =", "C = H", "below HK from K =", box=None
    )
    for wide, narrow in zip(loose, tight, strict=True):
        table.add_row(_name(wide), f"{wide.value:.4g}", _first(wide), f"{narrow.value:.4g}", _first(narrow))
    for side in ("regret", "violation"):
        table.add_row(f"{side}, sum", f"{total(loose, side):.4g}", "", f"{total(tight, side):.4g}", "")
    console = Screen()
    console.print(table)
    numbers = theorem_numbers(setting, delta)
    console.print(
        f"the trivial bound HK is {numbers.trivial:.4g}; ~ is an order, with constants of one and no logarithms"
    )
    console.print(f"the penalty can reach {numbers.penalty:.3g} if every episode violates by H")
    if out is not None or beside is not None:
        from omdpd.report.bounds import draw_bounds

        file = out or Path("bounds.png")
        draw_bounds(setting, delta, beside, file)
        console.print(f"figure: {file}")


def _name(term: Term) -> str:
    return term.name if term.given else f"~ {term.name}"


def _first(term: Term) -> str:
    return "never" if term.first is None else f"{term.first:.3g}" if term.first > 10**6 else str(term.first)
