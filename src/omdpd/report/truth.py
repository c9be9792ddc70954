"""The truth behind runs is worked out once for each world, nature and seed: what they are measured against.

A world is built from its spec; where that is not possible here (a file that is gone, a package that is not installed)
the reason is kept instead, and the page says it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omdpd.natures.protocol import Nature, Safety, changes_of
from omdpd.play.loop import KeyRanges, seed_of
from omdpd.problem.cmdp import CMDP
from omdpd.report.labels import RunLabel
from omdpd.report.thinning import rounded_for_json
from omdpd.solvers.planning import best_plan_against
from omdpd.solvers.programs import Plan
from omdpd.storage.atomic import RecordError
from omdpd.worlds.card import ConstraintCard, ProblemCard, problem_card

# A comparator over more table entries than this is left to the run itself, which finds it when it ends.
MAX_MET = 2**22
# Plans that are remembered; a study that is watched for days asks for new ones all the time.
MAX_PLANS = 1000
# Tables are handed to the program this many at a time.
CHUNK = 500
# Names of states on a page; a larger world shows numbers.
MAX_NAMES = 200
# Smaller numbers are what linear programs leave of zero.
ROUNDING = 1e-12
# Cards are worked out for at most this many seeds.
MAX_SEEDS = 30


@dataclass(frozen=True, eq=False)
class BuiltTruth:
    """A world with its nature and its card; or, where they cannot be built here, only `fault` says why."""

    cmdp: CMDP | None = None
    nature: Nature | None = None
    card: ProblemCard | None = None
    safety: Safety | None = None
    fault: str = ""

    def best_plan(self, keys: KeyRanges, n_episodes: int) -> Plan | None:
        """The best policy that is safe for every table met so far; None where it is not worked out here."""
        if self.cmdp is None or self.nature is None or {"reward", "kernel"} & set(changes_of(self.nature)):
            return None
        drawn = [range(*each) for each in keys] if self.nature.repeats else [range(n_episodes)]
        # (A forged range may be longer than any memory: it is counted before it is gone through.)
        if not 0 < sum(max(each.stop - each.start, 0) for each in drawn) * self.cmdp.excess.size <= MAX_MET:
            return None
        try:
            tables = [self.nature.table(key) for each in drawn for key in each]
        except IndexError:
            raise RecordError("its commit names tables that its nature does not have") from None
        chunks = [np.concatenate(tables[i : i + CHUNK]) for i in range(0, len(tables), CHUNK)]
        return best_plan_against(self.cmdp.laws, self.cmdp.initial, self.cmdp.reward, lambda: chunks).plan


@dataclass
class Truths:
    """The truths of a study, each worked out when it is first asked for."""

    known: dict[Any, BuiltTruth] = field(default_factory=dict)
    plans: dict[Any, Plan | None] = field(default_factory=dict)

    def of(self, asked: RunLabel) -> BuiltTruth:
        """The truth that a run is measured against."""
        key = (asked.world_spec or asked.world, asked.nature_spec or asked.nature, asked.seed)
        if key not in self.known:
            self.known[key] = _built(asked)
        return self.known[key]

    def plan(self, asked: RunLabel, keys: KeyRanges, n_episodes: int) -> Plan | None:
        """The best policy that is safe for every table that a run met in its first `n_episodes`."""
        truth = self.of(asked)
        if truth.nature is None:
            return None
        key = (asked.world_spec, asked.nature_spec, asked.seed, keys if truth.nature.repeats else n_episodes)
        if key not in self.plans:
            if len(self.plans) >= MAX_PLANS:
                self.plans.clear()
            self.plans[key] = truth.best_plan(keys, n_episodes)
        return self.plans[key]


def _built(asked: RunLabel) -> BuiltTruth:
    """Build a world and its nature, and solve it."""
    for name, spec in ((asked.world, asked.world_spec), (asked.nature, asked.nature_spec)):
        if spec is None:
            return BuiltTruth(fault=f"nobody here knows the name {name}")
    assert asked.world_spec is not None
    assert asked.nature_spec is not None
    try:
        cmdp = asked.world_spec.build(np.random.default_rng(asked.stream(0)))
        nature = asked.nature_spec.build(cmdp, seed_of(asked.stream(1)))
        return BuiltTruth(cmdp, nature, problem_card(cmdp), nature.safety())
    except Exception as error:  # a stranger's world may raise anything, and a report is drawn without it
        return BuiltTruth(fault=f"{type(error).__name__}: {error}")


def problem_values(asked: Sequence[RunLabel], truths: Truths) -> list[dict[str, Any]]:
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


def _card(truth: BuiltTruth, card: ProblemCard) -> dict[str, Any]:
    """The card of one drawn world, in the user's units."""
    cmdp = truth.cmdp
    assert cmdp is not None
    H, S, A = card.shape
    few = S <= MAX_NAMES
    return {
        "name": card.name, "H": H, "S": S, "A": A, "stationary": card.stationary, "feasible": card.feasible,
        "value": _number(card.value), "free_value": _number(card.free_value), "slater_gap": _number(card.slater_gap),
        "excess": _number(card.study.violation), "constraints": [_constraint(c) for c in card.constraints],
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
        "slater_gap": _number(card.slater_gap),
        "prices": rounded_for_json([c.multiplier * c.unit for c in card.constraints]),
        "budgets": rounded_for_json([c.budget for c in card.constraints]),
    }  # fmt: skip


def _nature(label: str, truth: BuiltTruth) -> dict[str, Any]:
    if truth.nature is None or truth.safety is None:
        return {"nature": label, "feedback": None, "safe": None, "why": truth.fault}
    return {"nature": label, "feedback": truth.nature.feedback, "safe": truth.safety.exists, "why": truth.safety.why}


def _number(value: float | None) -> float | None:
    """A number as a page keeps it; none where there is no limit."""
    if value is None or value == np.inf:
        return None
    return 0.0 if abs(value) < ROUNDING else float(f"{value:.6g}")
