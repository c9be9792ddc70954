"""The classes that a learner's stored state may hold; nothing else comes back from a file."""

from __future__ import annotations

from omdpd import confidence, estimates, memory, mirror, potential, problem, programs
from omdpd.learners import omdpd, optcmdp, proximal, sinha_vaze
from omdpd.packing import class_name

STATE_CLASSES: dict[str, type] = {
    class_name(cls): cls
    for cls in (
        problem.Setting, estimates.Counts, confidence.Box, confidence.Kernel, confidence.Estimate, mirror.Hinges,
        mirror.SolveLog, memory.TableMemory, potential.Potential, programs.Basis, omdpd.State, proximal.State,
        proximal.Surrogate, optcmdp.State, sinha_vaze.State,
    )
}  # fmt: skip
