"""Related work and plain references, as named values."""

from __future__ import annotations

from typing import Any

from omdpd.learners.protocol import Learner
from omdpd.learners.uniform import Uniform
from omdpd.specs.base import Spec


class UniformSpec(Spec, frozen=True, tag="Uniform"):
    """The uniform policy."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return Uniform()


RELATED: dict[str, Any] = {str(cls.__struct_config__.tag): cls for cls in (UniformSpec,)}

RelatedSpec = UniformSpec
