"""Related work and plain references, as named values.

`reward_scale`, `cost_scale` and `transition_scale` multiply what optimism (or pessimism) adds to rewards, costs and the
kernel, and default to the same small values for everybody; `stationary` pools the counts over the steps.  Some learners
must know a strictly safe policy or the Slater gap: such a spec builds a learner that refuses to start, and
`omdpd.play.scene.informed` builds one that was told.
"""

from __future__ import annotations

from typing import Any

from omdpd.beliefs.confidence import BoxEstimator, EmpiricalEstimator
from omdpd.experiments.specs.base import Spec
from omdpd.learners.bvops import BVOPS
from omdpd.learners.cautious_lp import CautiousLP
from omdpd.learners.dope import DOPE
from omdpd.learners.germano import Germano
from omdpd.learners.greedy_lp import GreedyLP
from omdpd.learners.linear_potential import LinearPotential
from omdpd.learners.needs import SafeChoice
from omdpd.learners.opdop import OPDOP
from omdpd.learners.optpess_lp import OptPessLP
from omdpd.learners.optpess_primal_dual import OptPessPrimalDual
from omdpd.learners.oracle import Oracle
from omdpd.learners.protocol import Learner
from omdpd.learners.sops import SOPS
from omdpd.learners.triple_q import TripleQ
from omdpd.learners.ucpd import UCPD
from omdpd.learners.uniform import Uniform


class _Boxed(Spec, frozen=True):
    """Scales of the confidence box and of the bonuses, as in `ProximalOMDPD.optimistic`."""

    reward_scale: float = 0.2
    cost_scale: float = 0.0
    transition_scale: float = 0.005
    stationary: bool = False

    def estimator(self) -> BoxEstimator:
        """The confidence box with these scales, clipped, and trusting what was never seen."""
        scales = (self.reward_scale, self.cost_scale, self.transition_scale)
        return BoxEstimator(*scales, clip=True, trusting=True, stationary=self.stationary)


class UCPDSpec(_Boxed, frozen=True, tag="UCPD"):
    """Kullback-Leibler drift-plus-penalty steps; revealed costs."""

    reward_weight: float = 1.0
    step_scale: float = 1.0

    def build(self) -> Learner[Any]:
        """The learner."""
        return UCPD(self.estimator(), self.reward_weight, self.step_scale)


class GermanoSpec(_Boxed, frozen=True, tag="Germano"):
    """Primal-dual gradient descent with a bounded dual; revealed costs."""

    primal_scale: float = 1.0
    dual_scale: float = 1.0

    def build(self) -> Learner[Any]:
        """The learner."""
        return Germano(self.estimator(), self.primal_scale, self.dual_scale)


class BVOPSSpec(_Boxed, frozen=True, tag="BVOPS"):
    """Importance-weighted losses, projected on the optimistic safe set."""

    step_scale: float = 1.0

    def build(self) -> Learner[Any]:
        """The learner."""
        return BVOPS(self.estimator(), self.step_scale)


class SOPSSpec(_Boxed, frozen=True, tag="SOPS"):
    """The same, mixed with a known safe policy; its cost bonus is not zero, since safety rests on it."""

    cost_scale: float = 0.02
    step_scale: float = 1.0
    safe_policy: SafeChoice = "least-cost"

    def build(self) -> Learner[Any]:
        """The learner, not yet told its safe policy."""
        return SOPS(self.safe_policy, self.estimator(), self.step_scale)


class OptPessLPSpec(_Boxed, frozen=True, tag="OptPessLP"):
    """Optimistic reward, pessimistic cost, a known safe policy."""

    safe_policy: SafeChoice = "least-cost"

    def build(self) -> Learner[Any]:
        """The learner, not yet told its safe policy."""
        return OptPessLP(self.safe_policy, self.reward_scale, self.cost_scale, self.transition_scale, self.stationary)


class DOPESpec(_Boxed, frozen=True, tag="DOPE"):
    """The extended program with kernel bonuses on both sides, around a known baseline."""

    safe_policy: SafeChoice = "least-cost"

    def build(self) -> Learner[Any]:
        """The learner, not yet told its baseline."""
        return DOPE(self.safe_policy, self.reward_scale, self.cost_scale, self.transition_scale, self.stationary)


class OptPessPrimalDualSpec(_Boxed, frozen=True, tag="OptPessPrimalDual"):
    """Greedy for a truncated Lagrangian; `room` is the Slater gap (None: as the run finds it)."""

    tightening_scale: float = 1e-4
    room: float | None = None

    def build(self) -> Learner[Any]:
        """The learner; without `room` not yet told the Slater gap."""
        scales = (self.reward_scale, self.cost_scale, self.transition_scale)
        return OptPessPrimalDual(self.room, *scales, self.tightening_scale, self.stationary)


class OPDOPSpec(_Boxed, frozen=True, tag="OPDOP"):
    """Proximal policy optimisation; `room` is the Slater gap (None: as the run finds it)."""

    primal_scale: float = 1.0
    dual_scale: float = 1.0
    room: float | None = None

    def build(self) -> Learner[Any]:
        """The learner; without `room` not yet told the Slater gap."""
        scales = (self.reward_scale, self.cost_scale, self.transition_scale)
        return OPDOP(self.room, *scales, self.primal_scale, self.dual_scale, self.stationary)


class TripleQSpec(Spec, frozen=True, tag="TripleQ"):
    """Model-free; the scales multiply the published bonuses, which are about 10 H."""

    reward_scale: float = 0.01
    cost_scale: float = 1e-4
    tightening_scale: float = 0.0
    restart: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return TripleQ(self.reward_scale, self.cost_scale, self.tightening_scale, self.restart)


class UniformSpec(Spec, frozen=True, tag="Uniform"):
    """The uniform policy."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return Uniform()


class OracleSpec(Spec, frozen=True, tag="Oracle"):
    """The best safe policy of the true model, for stochastic costs."""

    def build(self) -> Learner[Any]:
        """The learner, not yet told the model."""
        return Oracle()


class CautiousLPSpec(Spec, frozen=True, tag="CautiousLP"):
    """A linear program with every table seen so far; `kappa` is the margin on the empirical kernel, unless `box`."""

    kappa: float = 0.02
    box: bool = False
    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        if self.box:
            return CautiousLP(BoxEstimator.practical(stationary=self.stationary))
        return CautiousLP(EmpiricalEstimator(kappa=self.kappa, stationary=self.stationary))


class GreedyLPSpec(Spec, frozen=True, tag="GreedyLP"):
    """A linear program under the running mean of the costs."""

    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return GreedyLP(EmpiricalEstimator(kappa=0.0, stationary=self.stationary))


class LinearPotentialSpec(_Boxed, frozen=True, tag="LinearPotential"):
    """Primal-dual gradient descent: the multiplier is linear in the costs paid."""

    dual_scale: float = 1.0

    def build(self) -> Learner[Any]:
        """The learner."""
        return LinearPotential(self.estimator(), self.dual_scale)


RELATED: dict[str, Any] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        UCPDSpec, GermanoSpec, BVOPSSpec, SOPSSpec, OptPessLPSpec, DOPESpec, OptPessPrimalDualSpec, OPDOPSpec,
        TripleQSpec, UniformSpec, OracleSpec, CautiousLPSpec, GreedyLPSpec, LinearPotentialSpec,
    )
}  # fmt: skip

RelatedSpec = (
    UCPDSpec | GermanoSpec | BVOPSSpec | SOPSSpec | OptPessLPSpec | DOPESpec | OptPessPrimalDualSpec | OPDOPSpec
    | TripleQSpec | UniformSpec | OracleSpec | CautiousLPSpec | GreedyLPSpec | LinearPotentialSpec
)  # fmt: skip
