"""Our own learners as named values."""

from __future__ import annotations

from typing import Any

from omdpd.beliefs.confidence import BoxEstimator
from omdpd.experiments.specs.base import Spec
from omdpd.learners.omdpd import OMDPD
from omdpd.learners.protocol import Learner
from omdpd.learners.proximal import ProximalOMDPD


class CautiousSpec(Spec, frozen=True, tag="ProximalOMDPD.cautious"):
    """The default: empirical kernel, exact hinges, a shrinking margin on cost (`kappa` is the safety dial)."""

    kappa: float = 0.02
    reward_scale: float = 0.1
    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return ProximalOMDPD.cautious(self.kappa, self.stationary, self.reward_scale)


class BalancedSpec(Spec, frozen=True, tag="ProximalOMDPD.balanced"):
    """The same without the margin."""

    reward_scale: float = 0.1
    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return ProximalOMDPD.balanced(self.stationary, self.reward_scale)


class OptimisticSpec(Spec, frozen=True, tag="ProximalOMDPD.optimistic"):
    """The same loop over a small confidence box, closest to the paper's optimism."""

    reward_scale: float = 0.2
    cost_scale: float = 0.0
    transition_scale: float = 0.005
    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        scales = BoxEstimator.practical(self.reward_scale, self.cost_scale, self.transition_scale, self.stationary)
        return ProximalOMDPD.optimistic(estimator=scales)


class TunedSpec(Spec, frozen=True, tag="OMDPD.tuned"):
    """The paper's algorithm with practical constants."""

    reward_scale: float = 0.2
    cost_scale: float = 0.0
    transition_scale: float = 0.005
    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        scales = BoxEstimator.practical(self.reward_scale, self.cost_scale, self.transition_scale, self.stationary)
        return OMDPD.tuned(estimator=scales)


class TheorySpec(Spec, frozen=True, tag="OMDPD.theory"):
    """The paper's algorithm with the theorem's constants, which enforce nothing at usual K."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return OMDPD.theory()


OURS: dict[str, Any] = {
    str(cls.__struct_config__.tag): cls for cls in (CautiousSpec, BalancedSpec, OptimisticSpec, TunedSpec, TheorySpec)
}

OurSpec = CautiousSpec | BalancedSpec | OptimisticSpec | TunedSpec | TheorySpec
