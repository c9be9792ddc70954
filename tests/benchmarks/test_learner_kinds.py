"""The table of what an episode of every learner costs names learners that there are, each once."""

from benchmarks.learners import KINDS, STEPS, kind_of
from omdpd.experiments.registry import Registry


def test_every_name_is_a_learners_and_in_one_kind():
    names = [name for names in KINDS.values() for name in names]
    assert len(names) == len(set(names))
    assert set(names) <= set(Registry.installed().complete("learners"))


def test_what_has_no_kind_of_its_own_steps_over_a_box():
    assert kind_of("OMDPD.tuned") == STEPS
    assert kind_of("Uniform") != STEPS
