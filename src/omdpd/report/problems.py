"""What was asked, as values for a page: the card of every world, seed by seed where seeds are worlds of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omdpd.report.stored import Asked
from omdpd.report.thinning import written
from omdpd.report.truth import Truth, Truths
from omdpd.worlds.card import ConstraintCard, ProblemCard

# Names of states on a page; a larger world shows numbers.
MAX_NAMES = 200
# Smaller numbers are what linear programs leave of zero.
ROUNDING = 1e-12
# Cards are worked out for at most this many seeds.
MAX_SEEDS = 30


def problem_values(asked: Sequence[Asked], truths: Truths) -> list[dict[str, Any]]:
    """One value per world, with one card per seed and one sentence per nature."""
    values = []
    for world in dict.fromkeys(each.world for each in asked):
        here = [each for each in asked if each.world == world]
        by_seed = {each.seed: truths.of(each) for each in reversed(here)}
        seeds = sorted(by_seed)
        first = by_seed[seeds[0]]
        value: dict[str, Any] = {"world": world, "fault": first.fault, "n_seeds": len(seeds)}
        if first.cmdp is not None and first.card is not None:
            value |= _card(first, first.card)
            cards = [(seed, by_seed[seed].card) for seed in seeds[:MAX_SEEDS]]
            value["seeds"] = [_seed(seed, card) for seed, card in cards if card is not None]
            # Seeds are worlds of their own where their optima differ.
            value["varies"] = len({(s["value"], s["free_value"]) for s in value["seeds"]}) > 1
        natures = {each.nature: truths.of(each) for each in reversed(here)}
        value["natures"] = [_nature(nature, truth) for nature, truth in reversed(natures.items())]
        values.append(value)
    return values


def _card(truth: Truth, card: ProblemCard) -> dict[str, Any]:
    """The card of one drawn world, in the user's units."""
    cmdp = truth.cmdp
    assert cmdp is not None
    H, S, A = card.shape
    few = S <= MAX_NAMES
    return {
        "name": card.name, "H": H, "S": S, "A": A, "stationary": card.stationary, "feasible": card.feasible,
        "value": _number(card.value), "free_value": _number(card.free_value), "slater_gap": _number(card.slater_gap),
        "excess": _number(card.plan.violation), "constraints": [_constraint(c) for c in card.constraints],
        "scenarios": list(card.scenarios), "scenario_value": _number(card.scenario_value),
        "states": list(cmdp.labels.states) if few else [], "actions": list(cmdp.labels.actions),
        "layout": list(cmdp.labels.layout),
    }  # fmt: skip


def _constraint(card: ConstraintCard) -> dict[str, Any]:
    less = None if card.multiplier_high is None else _number(card.multiplier_high * card.unit)
    return {
        "name": card.name, "budget": _number(card.budget), "scale": _number(card.scale), "cost": _number(card.cost),
        "least": _number(card.least_cost), "free": _number(card.free_cost), "binds": card.binds,
        "price": _number(card.multiplier * card.unit), "price_less": less,
    }  # fmt: skip


def _seed(seed: int, card: ProblemCard) -> dict[str, Any]:
    return {
        "seed": seed, "value": _number(card.value), "free_value": _number(card.free_value),
        "slater_gap": _number(card.slater_gap), "prices": written([c.multiplier * c.unit for c in card.constraints]),
        "budgets": written([c.budget for c in card.constraints]),
    }  # fmt: skip


def _nature(label: str, truth: Truth) -> dict[str, Any]:
    if truth.nature is None or truth.safety is None:
        return {"nature": label, "feedback": None, "safe": None, "why": truth.fault}
    return {"nature": label, "feedback": truth.nature.feedback, "safe": truth.safety.exists, "why": truth.safety.why}


def _number(value: float | None) -> float | None:
    if value is None:
        return None
    return 0.0 if abs(value) < ROUNDING else float(f"{value:.6g}")
