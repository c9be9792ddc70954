"""The classes that a learner's stored state may hold; nothing else comes back from a file."""

from __future__ import annotations

from dataclasses import is_dataclass
from types import ModuleType

from omdpd import confidence, estimates, memory, mirror, potential, problem, programs
from omdpd.learners import (
    bvops,
    cautious_lp,
    cpdpo,
    dope,
    germano,
    greedy_lp,
    lekeufack_jordan,
    linear_potential,
    omdpd,
    opdop,
    optaug,
    optcmdp,
    optcmdp_bonus,
    optdual,
    optpess_lp,
    optpess_primal_dual,
    optprimaldual,
    oracle,
    proximal,
    recoo,
    regularized,
    sinha_vaze,
    sops,
    triple_q,
    ucpd,
    uopt_rpgpd,
)
from omdpd.packing import class_name

PARTS: tuple[type, ...] = (
    problem.Setting, estimates.Counts, confidence.Box, confidence.Kernel, confidence.Estimate, mirror.Hinges,
    mirror.SolveLog, memory.TableMemory, potential.Potential, programs.Basis,
)  # fmt: skip

# Modules of learners whose dataclasses make up their states.
LEARNER_MODULES: tuple[ModuleType, ...] = (
    bvops,
    cautious_lp,
    cpdpo,
    dope,
    germano,
    greedy_lp,
    lekeufack_jordan,
    linear_potential,
    omdpd,
    opdop,
    optaug,
    optcmdp,
    optcmdp_bonus,
    optdual,
    optpess_lp,
    optpess_primal_dual,
    optprimaldual,
    oracle,
    proximal,
    recoo,
    regularized,
    sinha_vaze,
    sops,
    triple_q,
    ucpd,
    uopt_rpgpd,
)


def _own_dataclasses(module: ModuleType) -> list[type]:
    """The dataclasses that a module defines itself."""
    found = [value for value in vars(module).values() if isinstance(value, type) and is_dataclass(value)]
    return [cls for cls in found if cls.__module__ == module.__name__]


STATE_CLASSES: dict[str, type] = {
    class_name(cls): cls for cls in (*PARTS, *(cls for module in LEARNER_MODULES for cls in _own_dataclasses(module)))
}
