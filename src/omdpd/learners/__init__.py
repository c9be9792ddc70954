"""Learners, one module each; none imports another.

`LEARNERS` is what a file, a command and a stored run may name.  The signature of a factory is the learner's settings,
and the first line of its docstring is its line in `omdpd list`.  Positional parameters are part of the name of every
run that was ever stored: a new setting is keyword-only, and its default is what was done before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omdpd.learners.bvops import BVOPS
from omdpd.learners.cautious_lp import CautiousLP
from omdpd.learners.cpdpo import CPDPO
from omdpd.learners.cvops import CVOPS
from omdpd.learners.dope import DOPE
from omdpd.learners.dope_plus import DOPEPlus
from omdpd.learners.episode_safe import EpisodeSafe
from omdpd.learners.flexdome import FlexDOME
from omdpd.learners.germano import Germano
from omdpd.learners.ghosh import GhoshZhouShroff
from omdpd.learners.greedy_lp import GreedyLP
from omdpd.learners.lekeufack_jordan import LekeufackJordan
from omdpd.learners.linear_potential import LinearPotential
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
from omdpd.learners.plan_lp import PlanLP
from omdpd.learners.protocol import Learner
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.psrl import PosteriorSampling
from omdpd.learners.recoo import RECOO
from omdpd.learners.regularized import RegularizedPrimalDual
from omdpd.learners.sinha_vaze import SinhaVaze
from omdpd.learners.sops import SOPS
from omdpd.learners.triple_q import TripleQ
from omdpd.learners.ucpd import UCPD
from omdpd.learners.uniform import Uniform
from omdpd.learners.uopt_rpgpd import UOptRPGPD
from omdpd.learners.wcops import WCOPS

__all__ = [
    "ALIASES",
    "BVOPS",
    "CPDPO",
    "CVOPS",
    "DOPE",
    "LEARNERS",
    "NON_LEARNERS",
    "OMDPD",
    "OPDOP",
    "RECOO",
    "SOPS",
    "SVOPS",
    "UCPD",
    "WCOPS",
    "CautiousLP",
    "DOPEPlus",
    "EpisodeSafe",
    "FlexDOME",
    "Germano",
    "GhoshZhouShroff",
    "GreedyLP",
    "Learner",
    "LekeufackJordan",
    "LinearPotential",
    "OptAug",
    "OptCMDP",
    "OptCMDPBonus",
    "OptDual",
    "OptPessLP",
    "OptPessPrimalDual",
    "OptPrimalDual",
    "Oracle",
    "PlanLP",
    "PosteriorSampling",
    "ProximalOMDPD",
    "RegularizedPrimalDual",
    "SafePolicy",
    "SinhaVaze",
    "TripleQ",
    "UOptRPGPD",
    "Uniform",
]

# The name under which this method was published.
SVOPS = BVOPS

LEARNERS: dict[str, Callable[..., Learner[Any]]] = {
    "ProximalOMDPD.standard": ProximalOMDPD.standard,
    "ProximalOMDPD.cautious": ProximalOMDPD.cautious,
    "ProximalOMDPD.balanced": ProximalOMDPD.balanced,
    "ProximalOMDPD.optimistic": ProximalOMDPD.optimistic,
    "OMDPD.tuned": OMDPD.tuned,
    "OMDPD.theory": OMDPD.theory,
    "UCPD": UCPD.practical,
    "Germano": Germano.practical,
    "BVOPS": BVOPS.practical,
    "BVOPS.unconstrained": BVOPS.unconstrained,
    "SOPS": SOPS.practical,
    "CVOPS": CVOPS.practical,
    "WCOPS": WCOPS.practical,
    "OptPessLP": OptPessLP.practical,
    "DOPE": DOPE.practical,
    "DOPEPlus": DOPEPlus.practical,
    "OptPessPrimalDual": OptPessPrimalDual,
    "EpisodeSafe": EpisodeSafe.practical,
    "GhoshZhouShroff.average": GhoshZhouShroff.average,
    "GhoshZhouShroff.hard": GhoshZhouShroff.hard,
    "PosteriorSampling": PosteriorSampling.practical,
    "OPDOP": OPDOP,
    "OPDOP.restarted": OPDOP.restarted,
    "TripleQ": TripleQ,
    "TripleQ.restarted": TripleQ.restarted,
    "Uniform": Uniform,
    "Oracle": Oracle.uninformed,
    "CautiousLP": CautiousLP.practical,
    "PlanLP": PlanLP,
    "GreedyLP": GreedyLP.practical,
    "LinearPotential": LinearPotential.practical,
    "OptCMDP": OptCMDP.practical,
    "OptCMDPBonus": OptCMDPBonus.practical,
    "OptDual": OptDual.practical,
    "OptPrimalDual": OptPrimalDual.practical,
    "OptAug": OptAug.practical,
    "RegularizedPrimalDual": RegularizedPrimalDual.practical,
    "FlexDOME": FlexDOME.practical,
    "UOptRPGPD": UOptRPGPD.practical,
    "UOptRPGPD.published": UOptRPGPD.published,
    "CPDPO": CPDPO.practical,
    "CPDPO.unconstrained": CPDPO.unconstrained,
    "SinhaVaze": SinhaVaze.practical,
    "SinhaVaze.published": SinhaVaze.published,
    "SinhaVaze.anytime": SinhaVaze.anytime,
    "LekeufackJordan": LekeufackJordan.practical,
    "LekeufackJordan.published": LekeufackJordan.published,
    "RECOO": RECOO.practical,
}

# Played beside learners to show what learning is worth; they learn nothing, so that none of them wins anything.
NON_LEARNERS = ("Oracle", "Uniform")

# Other names of the same thing: a file may say them, and a run is stored under the first name.
ALIASES: dict[str, str] = {"SVOPS": "BVOPS", "UOBREPS": "BVOPS.unconstrained", "PODB": "CPDPO.unconstrained"}
