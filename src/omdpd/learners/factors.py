"""Which settings of a learner a fair comparison may tune, and around which value: one line per learner.

Four roles, at most one setting each, so that nobody has more dials than another:

    reward width        how far a reward estimate may be off, or how strongly an unvisited pair attracts
    transition width    the same for the kernel: the scale of a box, or of a bonus
    cost pessimism      a margin on an estimated cost, for methods that have one
    step                one step size, or what takes its place: a growth rate, a penalty, a tightening of the dual

A setting's default is the value that is multiplied; where the default is zero or unset, `base` is.  A learner that
stands in no line here (a plugin's) is tuned in those of its settings that have a usual name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Role = Literal["reward width", "transition width", "cost pessimism", "step"]
ROLES: tuple[Role, ...] = get_args(Role)
# The margin that is tried around where a method has the place for one and a default of zero.
PESSIMISM = 0.02


@dataclass(frozen=True)
class Factor:
    """A setting that may be tuned: its role, its name, and what is multiplied where the default is no number."""

    role: Role
    setting: str
    base: float | None = None


def _reward(setting: str = "reward_scale") -> Factor:
    return Factor("reward width", setting)


def _kernel(setting: str = "transition_scale") -> Factor:
    return Factor("transition width", setting)


def _margin(setting: str, base: float | None = None) -> Factor:
    return Factor("cost pessimism", setting, base)


def _step(setting: str, base: float | None = None) -> Factor:
    return Factor("step", setting, base)


WIDTHS = (_reward(), _kernel())
USUAL = (*WIDTHS, _margin("cost_scale", PESSIMISM), _margin("kappa", PESSIMISM), _step("step_scale"))

FACTORS: dict[str, tuple[Factor, ...]] = {
    "ProximalOMDPD.standard": (_reward("exploration"), _margin("z"), _step("gamma_scale")),
    "ProximalOMDPD.cautious": (_reward(), _margin("kappa"), _step("gamma_scale")),
    "ProximalOMDPD.balanced": (_reward(), _step("gamma_scale")),
    "ProximalOMDPD.optimistic": (*WIDTHS, _step("gamma_scale")),
    "OMDPD.tuned": (*WIDTHS, _step("beta_root")),
    "OMDPD.theory": (),
    "UCPD": (*WIDTHS, _step("step_scale")),
    "Germano": (*WIDTHS, _step("primal_scale")),
    "BVOPS": (_kernel(), _step("step_scale")),
    "BVOPS.unconstrained": (_kernel(), _step("step_scale")),
    "CVOPS": (_kernel(), _margin("cost_scale"), _step("step_scale")),
    "WCOPS": (_kernel(), _step("step_scale")),
    "SOPS": (_kernel(), _margin("cost_scale"), _step("step_scale")),
    "OptPessLP": (*WIDTHS, _margin("cost_scale")),
    "DOPE": (*WIDTHS, _margin("cost_scale")),
    "DOPEPlus": (*WIDTHS, _margin("cost_scale")),
    "OptPessPrimalDual": (*WIDTHS, _step("tightening_scale")),
    "EpisodeSafe": (*WIDTHS, _margin("cost_scale"), _step("alpha")),
    "GhoshZhouShroff.average": (*WIDTHS, _step("dual_scale")),
    "GhoshZhouShroff.hard": (*WIDTHS, _step("alpha_scale")),
    "PosteriorSampling": (Factor("transition width", "prior"), _margin("kappa")),
    "OPDOP.restarted": (*WIDTHS, _step("primal_scale")),
    "OPDOP": (*WIDTHS, _step("primal_scale")),
    "TripleQ": (_reward(), _margin("tightening_scale", 1e-9)),  # the published tightening is about 1e8 here
    "TripleQ.restarted": (_reward(), _margin("tightening_scale", 1e-9)),
    "Uniform": (),
    "Oracle": (),
    "CautiousLP": (_reward(), _margin("kappa")),
    "PlanLP": (_reward("exploration"), _margin("z")),
    "GreedyLP": (_reward(), _margin("kappa", PESSIMISM)),
    "LinearPotential": (*WIDTHS, _step("dual_scale")),
    "OptCMDP": WIDTHS,
    "OptCMDPBonus": WIDTHS,
    "OptDual": (*WIDTHS, _step("dual_scale")),
    "OptPrimalDual": (*WIDTHS, _step("primal_scale")),
    "OptAug": (*WIDTHS, _step("penalty_scale")),
    "RegularizedPrimalDual": (*WIDTHS, _step("eta_scale")),
    "FlexDOME": (*WIDTHS, _margin("margin_scale"), _step("eta_scale")),
    "UOptRPGPD": (*WIDTHS, _step("eta_scale", 1.0)),
    "UOptRPGPD.published": (*WIDTHS, _step("eta_scale", 1.0)),
    "CPDPO.unconstrained": (_kernel(), _step("eta_scale")),
    "CPDPO": (_kernel(), _margin("cost_scale", PESSIMISM), _step("eta_scale")),
    "SinhaVaze": (*WIDTHS, _step("beta_root")),
    "SinhaVaze.published": WIDTHS,
    "SinhaVaze.anytime": (*WIDTHS, _step("beta_root")),
    "LekeufackJordan": (*WIDTHS, _step("beta_root")),
    "LekeufackJordan.published": WIDTHS,
    "RECOO": (*WIDTHS, _step("alpha_scale")),
}


def factors_of(name: str, settings: Mapping[str, Any]) -> tuple[Factor, ...]:
    """What may be tuned of the learner of this name, whose settings (those with a value) are these.

    >>> [factor.setting for factor in factors_of("a plugin's", {"kappa": 0.1, "memory": 3})]
    ['kappa']
    """
    if name in FACTORS:
        return FACTORS[name]
    found: dict[Role, Factor] = {}
    for factor in USUAL:
        if factor.setting in settings:
            found.setdefault(factor.role, factor)
    return tuple(found.values())
