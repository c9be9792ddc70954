"""`omdpd learners`, `warm-up`: what every learner sees, assumes and promises; and what they need, compiled ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from omdpd.cli.playing import Plugins, names_of, registry_of
from omdpd.cli.screen import Screen
from omdpd.experiments.first_use import compile_all, compile_for, runs_of
from omdpd.experiments.registry import Registry
from omdpd.jit.cache import kernel_folder, where_kept
from omdpd.jit.shipped import shipped_code
from omdpd.learners import AVERAGE_LEARNERS, family_of
from omdpd.learners.protocol import Card
from omdpd.problem.arrays import InvalidInputError

# Terminals narrower than this get the feedback under the name and the assumptions under the guarantee.
WIDE = 130
MEANING = (
    "bandit: rewards and costs are observed on the way; full: the cost tables are revealed after every episode. "
    "Strong violation adds up every episode's excess, weak violation lets safe episodes make up for it. A learner "
    "refuses a setting that does not meet what it assumes. Guarantees of methods by others are those of their papers, "
    "with the constants there; defaults here are mostly smaller. "
    f"{' and '.join(AVERAGE_LEARNERS)} learn averages per step, with omdpd.play.windows.learn_windows."
)


def learners(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="Only learners whose kind or line has these words: primal-dual, full, DOPE."),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """List the learners and what they guarantee.

    With the feedback they take, what they assume, and their source.
    """
    console = Screen()
    wide = console.width >= WIDE
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_lines=False)
    columns = (
        ("learner", "feedback", "assumptions", "guarantee", "source") if wide else ("learner", "guarantee", "source")
    )
    for name in columns:
        shown.add_column(name, no_wrap=name in ("learner", "feedback"))
    registry = registry_of(plugin)
    cards = {name: registry.spec("learners", name).build().card for name in registry.complete("learners")}
    cards |= {name: factory().card for name, factory in AVERAGE_LEARNERS.items()}
    for name, card in cards.items():
        said = " ".join((family_of(name), card.summary, *_wide(name, card))).lower()
        if all(word.lower() in said for word in words or ()):
            shown.add_row(*(_wide(name, card) if wide else _narrow(name, card)))
    if not shown.row_count:
        raise InvalidInputError(f"no learner has the words {' '.join(words or ())}: omdpd list names all, by kind")
    console.print(shown)
    console.say(MEANING)


def _wide(name: str, card: Card) -> tuple[str, ...]:
    return name, ", ".join(card.feedback), card.assumptions, card.guarantee, card.source


def _narrow(name: str, card: Card) -> tuple[str, ...]:
    assumed = "" if card.assumptions == "none" else f"\n[dim]assumes {card.assumptions}[/dim]"
    return f"{name}\n[dim]{', '.join(card.feedback)}[/dim]", card.guarantee + assumed, card.source


def warm_up(
    learners: Annotated[str, typer.Option(help="Comma-separated learners; everything there is if empty.")] = "",
) -> None:
    """Compile the solvers ahead.

    Once per user and version: compiled code is kept in the user's cache folder.
    """
    console, registry = Screen(), Registry.installed()
    names = names_of(learners)
    if names:
        compile_for(runs_of(registry, names), console.say)
    else:
        compile_all(registry, console.say)
    console.say(f"Compiled code ({_megabytes(kernel_folder()):.0f} MB) is {where_kept()}.")
    brought = shipped_code()
    if brought is not None:
        console.say(f"{_megabytes(brought.folder):.0f} MB came with the package and need not be compiled.")


def _megabytes(folder: Path | None) -> float:
    files = [] if folder is None else [file for file in folder.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6
