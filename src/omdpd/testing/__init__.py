"""One call checks whether a learner, a world or a nature, yours or ours, keeps to what all of them keep to.

    from omdpd.testing import check_learner, check_nature, check_world

    check_learner(MyLearner())                    # every kind of feedback that its card names
    check_world(my_world)                         # a CMDP, or a factory that takes rng
    check_nature(my_nature, my_world)             # a factory that takes (cmdp, seed)

A check that fails raises `ConformanceError` with a sentence that says which rule was broken.  `LEARNER_RULES`,
`WORLD_RULES` and `NATURE_RULES` hold the single rules by name, for a test suite that wants a case for each.
"""

from omdpd.testing.common import ConformanceError
from omdpd.testing.learners import LEARNER_RULES, check_learner, learner_cases
from omdpd.testing.natures import NATURE_RULES, check_nature, nature_case
from omdpd.testing.worlds import WORLD_RULES, check_world, world_case

__all__ = [
    "LEARNER_RULES",
    "NATURE_RULES",
    "WORLD_RULES",
    "ConformanceError",
    "check_learner",
    "check_nature",
    "check_world",
    "learner_cases",
    "nature_case",
    "world_case",
]
