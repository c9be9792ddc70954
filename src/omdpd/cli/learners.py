"""`omdpd learners`: every learner with what it sees, what it assumes, what it promises and where it is from."""

from __future__ import annotations

from rich import box
from rich.table import Table

from omdpd.cli.playing import Plugins, registry_of
from omdpd.cli.screen import Screen
from omdpd.learners.protocol import Card

# Terminals narrower than this get the feedback under the name and the assumptions under the guarantee.
WIDE = 130
MEANING = (
    "bandit: rewards and costs are met along the trajectory; full: the cost tables are revealed after every episode. "
    "Strong violation adds up every episode's excess, weak violation lets safe episodes make up for it. A learner "
    "refuses a setting that does not meet what it assumes. Guarantees of methods by others are those of their papers, "
    "with the constants there; defaults here are mostly smaller."
)


def learners(plugin: Plugins = None) -> None:
    """List the learners: the feedback they take, what they assume, what they guarantee, and their source."""
    console = Screen()
    wide = console.width >= WIDE
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_lines=False)
    columns = (
        ("learner", "feedback", "assumptions", "guarantee", "source") if wide else ("learner", "guarantee", "source")
    )
    for name in columns:
        shown.add_column(name, no_wrap=name in ("learner", "feedback"))
    registry = registry_of(plugin)
    for name in registry.complete("learners"):
        card: Card = registry.spec("learners", name).build().card
        shown.add_row(*(_wide(name, card) if wide else _narrow(name, card)))
    console.print(shown)
    console.print(MEANING, highlight=False, soft_wrap=True)


def _wide(name: str, card: Card) -> tuple[str, ...]:
    return name, ", ".join(card.feedback), card.assumptions, card.guarantee, card.source


def _narrow(name: str, card: Card) -> tuple[str, ...]:
    assumed = "" if card.assumptions == "none" else f"\n[dim]assumes {card.assumptions}[/dim]"
    return f"{name}\n[dim]{', '.join(card.feedback)}[/dim]", card.guarantee + assumed, card.source
