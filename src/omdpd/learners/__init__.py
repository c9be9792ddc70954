"""Learners, one module each; none imports another, and a module is imported when its name is first asked for.

`LEARNERS` is what a file, a command and a stored run may name; `AVERAGE_LEARNERS` learn averages without an end, and
`play.windows` alone plays them.  A learner's class is its factory: its fields are the settings
(`learners/settings.py`), and the first line of its docstring is its line in `omdpd list`.  A name with a dot is a
preset.  Positional settings are part of the name of every run that was ever stored: a new one is keyword-only, and its
default is what was done before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omdpd.beliefs.counts import Counts
    from omdpd.learners.always_safe import AlwaysSafe
    from omdpd.learners.average.triple_qa import TripleQA
    from omdpd.learners.average.ucrl_cmdp import UCRLCMDP
    from omdpd.learners.bvops import BVOPS
    from omdpd.learners.cautious_lp import CautiousLP
    from omdpd.learners.chen_jain_luo import ChenJainLuo
    from omdpd.learners.cpdpo import CPDPO
    from omdpd.learners.cvops import CVOPS
    from omdpd.learners.dope import DOPE
    from omdpd.learners.dope_plus import DOPEPlus
    from omdpd.learners.episode_safe import EpisodeSafe
    from omdpd.learners.factors import Factor
    from omdpd.learners.flexdome import FlexDOME
    from omdpd.learners.germano import Germano
    from omdpd.learners.ghosh import GhoshZhouShroff
    from omdpd.learners.greedy_lp import GreedyLP
    from omdpd.learners.informed import Informed
    from omdpd.learners.lekeufack_jordan import LekeufackJordan
    from omdpd.learners.linear_potential import LinearPotential
    from omdpd.learners.masked import Masked
    from omdpd.learners.needs import SafePolicy
    from omdpd.learners.omdpd import OMDPD
    from omdpd.learners.opdop import OPDOP
    from omdpd.learners.optaug import OptAug
    from omdpd.learners.optcmdp import OptCMDP
    from omdpd.learners.optcmdp_bonus import OptCMDPBonus
    from omdpd.learners.optdual import OptDual
    from omdpd.learners.optpess_lp import OptPessLP
    from omdpd.learners.optpess_primal_dual import OptPessPrimalDual
    from omdpd.learners.optprimaldual import OptPrimalDual
    from omdpd.learners.oracle import Oracle
    from omdpd.learners.pdbps import PDBPS
    from omdpd.learners.plan_lp import PlanLP
    from omdpd.learners.protocol import Card, Learner, Report
    from omdpd.learners.proximal import ProximalOMDPD
    from omdpd.learners.psrl import PosteriorSampling
    from omdpd.learners.recoo import RECOO
    from omdpd.learners.regularized import RegularizedPrimalDual
    from omdpd.learners.safe_start import SafeStart
    from omdpd.learners.settings import Settings, positive
    from omdpd.learners.sinha_vaze import SinhaVaze
    from omdpd.learners.sops import SOPS
    from omdpd.learners.triple_q import TripleQ
    from omdpd.learners.uccfh import UCCFH
    from omdpd.learners.ucpd import UCPD
    from omdpd.learners.uniform import Uniform
    from omdpd.learners.uopt_rpgpd import UOptRPGPD
    from omdpd.learners.wcops import WCOPS
    from omdpd.solvers.compiled.flow import greedy_policy, value_of_policy

__all__ = [
    "AVERAGE_LEARNERS", "BVOPS", "CPDPO", "CVOPS", "DOPE", "LEARNERS", "NON_LEARNERS", "OMDPD", "OPDOP", "PDBPS",
    "RECOO", "SOPS", "UCCFH", "UCPD", "UCRLCMDP", "WCOPS", "AlwaysSafe", "Card", "CautiousLP", "ChenJainLuo",
    "Counts", "DOPEPlus", "EpisodeSafe", "Factor", "FlexDOME", "Germano", "GhoshZhouShroff", "GreedyLP", "Informed",
    "Learner", "LekeufackJordan", "LinearPotential", "Masked", "OptAug", "OptCMDP", "OptCMDPBonus", "OptDual",
    "OptPessLP", "OptPessPrimalDual", "OptPrimalDual", "Oracle", "PlanLP", "PosteriorSampling", "ProximalOMDPD",
    "RegularizedPrimalDual", "Report", "SafePolicy", "SafeStart", "Settings", "SinhaVaze", "TripleQ", "TripleQA",
    "UOptRPGPD", "Uniform", "greedy_policy", "positive", "value_of_policy",
]  # fmt: skip

# Where each class is written, and what a learner of your own is made of.
MODULES = {
    "AlwaysSafe": "always_safe", "BVOPS": "bvops", "ChenJainLuo": "chen_jain_luo", "PDBPS": "pdbps", "UCCFH": "uccfh",
    "CautiousLP": "cautious_lp", "CPDPO": "cpdpo", "CVOPS": "cvops", "DOPE": "dope",
    "DOPEPlus": "dope_plus", "EpisodeSafe": "episode_safe", "FlexDOME": "flexdome", "Germano": "germano",
    "GhoshZhouShroff": "ghosh", "GreedyLP": "greedy_lp", "LekeufackJordan": "lekeufack_jordan",
    "LinearPotential": "linear_potential",
    "Informed": "informed", "Masked": "masked", "SafePolicy": "needs", "OMDPD": "omdpd",
    "OPDOP": "opdop", "OptAug": "optaug", "OptCMDP": "optcmdp", "OptCMDPBonus": "optcmdp_bonus", "OptDual": "optdual",
    "OptPessLP": "optpess_lp", "OptPessPrimalDual": "optpess_primal_dual", "OptPrimalDual": "optprimaldual",
    "Oracle": "oracle", "PlanLP": "plan_lp", "Learner": "protocol", "ProximalOMDPD": "proximal",
    "PosteriorSampling": "psrl", "RECOO": "recoo", "RegularizedPrimalDual": "regularized",
    "SafeStart": "safe_start", "SinhaVaze": "sinha_vaze", "SOPS": "sops", "TripleQ": "triple_q", "UCPD": "ucpd",
    "Uniform": "uniform", "UOptRPGPD": "uopt_rpgpd", "WCOPS": "wcops",
    "TripleQA": "average.triple_qa", "UCRLCMDP": "average.ucrl_cmdp",
    "Card": "protocol", "Counts": ".beliefs.counts", "Factor": "factors", "Report": "protocol", "Settings": "settings",
    "positive": "settings", "greedy_policy": ".solvers.compiled.flow", "value_of_policy": ".solvers.compiled.flow",
}  # fmt: skip

# The names of the table, and those whose factory is not what they say.
NAMES = (
    "ProximalOMDPD.standard", "ProximalOMDPD.settling", "ProximalOMDPD.cautious", "ProximalOMDPD.balanced",
    "ProximalOMDPD.optimistic", "OMDPD.tuned", "OMDPD.theory", "UCPD", "Germano", "BVOPS", "BVOPS.unconstrained",
    "SOPS", "CVOPS", "WCOPS",
    "OptPessLP", "DOPE", "DOPEPlus", "OptPessPrimalDual", "EpisodeSafe", "SafeStart", "GhoshZhouShroff.average",
    "GhoshZhouShroff.hard", "PosteriorSampling", "OPDOP", "OPDOP.restarted", "TripleQ", "TripleQ.restarted",
    "Uniform", "Oracle", "Informed", "CautiousLP", "PlanLP", "GreedyLP", "LinearPotential", "OptCMDP", "OptCMDPBonus",
    "OptDual", "OptPrimalDual", "OptAug", "RegularizedPrimalDual", "FlexDOME", "UOptRPGPD", "UOptRPGPD.published",
    "CPDPO", "CPDPO.unconstrained", "SinhaVaze", "SinhaVaze.published", "SinhaVaze.anytime", "LekeufackJordan",
    "LekeufackJordan.published", "RECOO", "UCCFH", "ChenJainLuo", "AlwaysSafe", "PDBPS",
)  # fmt: skip
FACTORIES = {
    "Informed": "Informed.uninformed",
    "Oracle": "Oracle.uninformed",
    "SafeStart": "SafeStart.practical",
    "UOptRPGPD": "UOptRPGPD.practical",
}

# Kinds of learners, by class: how `omdpd list` groups them.
FAMILIES = {
    "This project's": ("ProximalOMDPD", "OMDPD"),
    "Primal-dual: a price on every budget, moved by what was exceeded": (
        "LinearPotential", "OptDual", "OptPrimalDual", "OptAug", "OptPessPrimalDual", "RegularizedPrimalDual",
        "FlexDOME", "UOptRPGPD", "CPDPO", "PDBPS", "OPDOP", "TripleQ", "GhoshZhouShroff", "Germano", "UCPD",
    ),
    "Penalties: a weight that grows with every episode over budget": ("SinhaVaze", "LekeufackJordan", "RECOO"),
    "Plans: a linear program under what is believed": (
        "OptCMDP", "OptCMDPBonus", "CautiousLP", "PlanLP", "GreedyLP", "PosteriorSampling", "UCCFH", "ChenJainLuo",
    ),
    "Projections on a safe set": ("BVOPS", "WCOPS"),
    "Safe while learning, from a safe policy or known costs": (
        "SafeStart", "SOPS", "CVOPS", "OptPessLP", "DOPE", "DOPEPlus", "EpisodeSafe", "AlwaysSafe",
    ),
    "Averages per step, in windows (`learn_windows`)": ("UCRLCMDP", "TripleQA"),
    "References that do not learn": ("Uniform", "Oracle", "Informed"),
}  # fmt: skip

# And of all that are not written here.
OTHERS = "From plugins and packages"

# Played beside learners to show what learning is worth: they learn nothing, or were told, and none of them wins.
NON_LEARNERS = ("Informed", "Oracle", "Uniform")


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class Named(Mapping[str, "Callable[..., Learner[Any]]"]):
    """Factories by name, each found when it is asked for."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __getitem__(self, name: str) -> Callable[..., Learner[Any]]:
        if name not in self.names:
            raise KeyError(name)
        owner, _, preset = FACTORIES.get(name, name).partition(".")
        found = __getattr__(owner)
        factory: Callable[..., Learner[Any]] = getattr(found, preset) if preset else found
        return factory

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


LEARNERS, AVERAGE_LEARNERS = Named(NAMES), Named(("UCRLCMDP", "TripleQA"))


def family_of(name: str) -> str:
    """The kind of a learner, by its name in `LEARNERS`; one of a plugin or package is of another."""
    owner = name.partition(".")[0]
    return next((family for family, owners in FAMILIES.items() if owner in owners), OTHERS)
