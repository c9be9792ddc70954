"""Our own learners as named values."""

from __future__ import annotations

from typing import Any

from omdpd.learners.omdpd import OMDPD
from omdpd.learners.protocol import Learner
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.specs.base import Spec


class CautiousSpec(Spec, frozen=True, tag="ProximalOMDPD.cautious"):
    """The default: empirical kernel, exact hinges, a shrinking margin on cost (`kappa` is the safety dial)."""

    kappa: float = 0.02
    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return ProximalOMDPD.cautious(self.kappa, self.stationary)


class BalancedSpec(Spec, frozen=True, tag="ProximalOMDPD.balanced"):
    """The same without the margin."""

    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return ProximalOMDPD.balanced(self.stationary)


class OptimisticSpec(Spec, frozen=True, tag="ProximalOMDPD.optimistic"):
    """The same loop over a small confidence box, closest to the paper's optimism."""

    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return ProximalOMDPD.optimistic(self.stationary)


class TunedSpec(Spec, frozen=True, tag="OMDPD.tuned"):
    """The paper's algorithm with practical constants."""

    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return OMDPD.tuned(self.stationary)


class TheorySpec(Spec, frozen=True, tag="OMDPD.theory"):
    """The paper's algorithm with the theorem's constants, which enforce nothing at usual K."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return OMDPD.theory()


OURS: dict[str, Any] = {
    str(cls.__struct_config__.tag): cls for cls in (CautiousSpec, BalancedSpec, OptimisticSpec, TunedSpec, TheorySpec)
}

OurSpec = CautiousSpec | BalancedSpec | OptimisticSpec | TunedSpec | TheorySpec
