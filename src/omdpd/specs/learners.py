"""Learners as named values; `LEARNERS` resolves their names."""

from __future__ import annotations

from typing import Any

from omdpd.learners.omdpd import OMDPD
from omdpd.learners.optcmdp import OptCMDP
from omdpd.learners.protocol import Learner
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.sinha_vaze import SinhaVaze
from omdpd.learners.uniform import Uniform
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


class UniformSpec(Spec, frozen=True, tag="Uniform"):
    """The uniform policy."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return Uniform()


class OptCMDPSpec(Spec, frozen=True, tag="OptCMDP"):
    """Optimistic linear program every episode; the cautious program when costs are revealed."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return OptCMDP()


class SinhaVazeSpec(Spec, frozen=True, tag="SinhaVaze"):
    """Online gradient descent with an exponential potential, initial weight one."""

    w0: float = 1.0

    def build(self) -> Learner[Any]:
        """The learner."""
        return SinhaVaze(w0=self.w0)


LEARNERS: dict[str, Any] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        CautiousSpec, BalancedSpec, OptimisticSpec, TunedSpec, TheorySpec, UniformSpec, OptCMDPSpec, SinhaVazeSpec,
    )
}  # fmt: skip

LearnerSpec = (
    CautiousSpec | BalancedSpec | OptimisticSpec | TunedSpec | TheorySpec | UniformSpec | OptCMDPSpec | SinhaVazeSpec
)
