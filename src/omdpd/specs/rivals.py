"""The algorithms of the paper's Table 1 and the engine's relatives, as named values."""

from __future__ import annotations

from typing import Any

from omdpd.learners.optcmdp import OptCMDP
from omdpd.learners.protocol import Learner
from omdpd.learners.sinha_vaze import SinhaVaze
from omdpd.specs.base import Spec


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


RIVALS: dict[str, Any] = {str(cls.__struct_config__.tag): cls for cls in (OptCMDPSpec, SinhaVazeSpec)}

RivalSpec = OptCMDPSpec | SinhaVazeSpec
