"""The algorithms of the paper's Table 1 and the engine's relatives, as named values.

`reward_scale`, `cost_scale` and `transition_scale` multiply what optimism adds to rewards, costs and the kernel: those
of `ProximalOMDPD.optimistic` for everybody by default, one in theory.  `room` is the Slater gap that a learner must be
told (None: as the run finds it, `omdpd.play.scene.informed`).  Other scales multiply a method's own constants.
"""

from __future__ import annotations

from typing import Any

from omdpd.beliefs.bonuses import BernsteinBonus, IteratedLogBonus
from omdpd.beliefs.confidence import BoxEstimator
from omdpd.experiments.specs.base import Spec
from omdpd.learners.cpdpo import CPDPO
from omdpd.learners.lekeufack_jordan import LekeufackJordan
from omdpd.learners.optaug import OptAug
from omdpd.learners.optcmdp import OptCMDP
from omdpd.learners.optcmdp_bonus import OptCMDPBonus
from omdpd.learners.optdual import OptDual
from omdpd.learners.optprimaldual import OptPrimalDual
from omdpd.learners.protocol import Learner
from omdpd.learners.recoo import RECOO
from omdpd.learners.regularized import RegularizedPrimalDual
from omdpd.learners.sinha_vaze import SinhaVaze
from omdpd.learners.uopt_rpgpd import UOptRPGPD


class _Scaled(Spec, frozen=True):
    """Scales of the confidence box or of the bonuses that stand for it."""

    reward_scale: float = 0.2
    cost_scale: float = 0.0
    transition_scale: float = 0.005
    stationary: bool = False

    def box(self) -> BoxEstimator:
        """The confidence box with these scales, clipped, and trusting what was never seen."""
        scales = (self.reward_scale, self.cost_scale, self.transition_scale)
        return BoxEstimator(*scales, clip=True, trusting=True, stationary=self.stationary)

    def bonus(self) -> BernsteinBonus:
        """The bonuses that stand for that box."""
        return BernsteinBonus(self.reward_scale, self.cost_scale, self.transition_scale, self.stationary)


class OptCMDPSpec(_Scaled, frozen=True, tag="OptCMDP"):
    """Optimistic linear program every episode; the cautious program when costs are revealed."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return OptCMDP(self.box())


class OptCMDPBonusSpec(_Scaled, frozen=True, tag="OptCMDPBonus"):
    """The same under the empirical kernel, optimism in the tables."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return OptCMDPBonus(self.bonus())


class OptDualSpec(_Scaled, frozen=True, tag="OptDual"):
    """Optimistic planning for the Lagrangian, gradient steps on the multipliers."""

    room: float | None = None
    dual_scale: float = 1.0

    def build(self) -> Learner[Any]:
        """The learner; without `room` not yet told the Slater gap."""
        return OptDual(self.room, self.box(), self.dual_scale)


class OptPrimalDualSpec(_Scaled, frozen=True, tag="OptPrimalDual"):
    """Exponential weights on the Lagrangian, gradient steps on the multipliers."""

    room: float | None = None
    primal_scale: float = 100.0
    dual_scale: float = 1.0

    def build(self) -> Learner[Any]:
        """The learner; without `room` not yet told the Slater gap."""
        return OptPrimalDual(self.room, self.bonus(), self.primal_scale, self.dual_scale)


class OptAugSpec(_Scaled, frozen=True, tag="OptAug"):
    """Augmented Lagrangian over the confidence polytope."""

    penalty_scale: float = 1.0
    penalty_power: float = 2.5

    def build(self) -> Learner[Any]:
        """The learner."""
        return OptAug(self.box(), self.penalty_scale, self.penalty_power)


class RegularizedPrimalDualSpec(_Scaled, frozen=True, tag="RegularizedPrimalDual"):
    """Primal-dual with entropy on the policy and a square on the multipliers."""

    room: float | None = None
    eta_scale: float = 10.0
    tau_scale: float = 0.1

    def build(self) -> Learner[Any]:
        """The learner; without `room` not yet told the Slater gap."""
        return RegularizedPrimalDual(self.room, self.bonus(), self.eta_scale, self.tau_scale)


class UOptRPGPDSpec(_Scaled, frozen=True, tag="UOptRPGPD"):
    """The same with steps and temperature that fall by themselves; `published` has the authors' bonus."""

    published: bool = False
    eta_power: float = 0.53
    tau_power: float = 0.4

    def build(self) -> Learner[Any]:
        """The learner; the published bonus has its own scale of the kernel, 0.001."""
        bonus = self.bonus()
        if self.published:
            own = IteratedLogBonus(self.reward_scale, self.cost_scale, stationary=self.stationary)
            return UOptRPGPD(own, self.eta_power, self.tau_power)
        return UOptRPGPD(bonus, self.eta_power, self.tau_power)


class CPDPOSpec(_Scaled, frozen=True, tag="CPDPO"):
    """Policy optimisation with dilated bonuses against a multiplier that is switched on and off."""

    room: float | None = None
    eta_scale: float = 50.0
    gamma_scale: float = 0.003
    bonus_scale: float = 0.003

    def build(self) -> Learner[Any]:
        """The learner; without `room` not yet told the Slater gap."""
        return CPDPO(self.room, self.box(), self.eta_scale, self.gamma_scale, self.bonus_scale)


class SinhaVazeSpec(_Scaled, frozen=True, tag="SinhaVaze"):
    """Online gradient descent with an exponential potential, initial weight one."""

    w0: float = 1.0
    beta_root: float = 1.0

    def build(self) -> Learner[Any]:
        """The learner."""
        return SinhaVaze(self.box(), self.w0, self.beta_root)


class PublishedSinhaVazeSpec(_Scaled, frozen=True, tag="SinhaVaze.published"):
    """The same with the published weight and growth, which enforce nothing for a long time."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return SinhaVaze(self.box(), None, None)


class LekeufackJordanSpec(_Scaled, frozen=True, tag="LekeufackJordan"):
    """Optimistic mirror descent, prediction at the intermediate point."""

    w0: float = 1.0
    beta_root: float = 1.0

    def build(self) -> Learner[Any]:
        """The learner."""
        return LekeufackJordan(self.box(), self.w0, self.beta_root)


class RECOOSpec(_Scaled, frozen=True, tag="RECOO"):
    """One proximal step with the exact hinge, weighted by a rectified queue."""

    alpha_scale: float = 1.0
    epsilon: float = 0.01

    def build(self) -> Learner[Any]:
        """The learner."""
        return RECOO(self.box(), self.alpha_scale, self.epsilon)


RIVALS: dict[str, Any] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        OptCMDPSpec, OptCMDPBonusSpec, OptDualSpec, OptPrimalDualSpec, OptAugSpec, RegularizedPrimalDualSpec,
        UOptRPGPDSpec, CPDPOSpec, SinhaVazeSpec, PublishedSinhaVazeSpec, LekeufackJordanSpec, RECOOSpec,
    )
}  # fmt: skip

RivalSpec = (
    OptCMDPSpec | OptCMDPBonusSpec | OptDualSpec | OptPrimalDualSpec | OptAugSpec | RegularizedPrimalDualSpec
    | UOptRPGPDSpec | CPDPOSpec | SinhaVazeSpec | PublishedSinhaVazeSpec | LekeufackJordanSpec | RECOOSpec
)  # fmt: skip
