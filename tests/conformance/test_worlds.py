"""What every world of the table keeps to."""

import numpy as np
import pytest

from omdpd.solvers.planning import best_plan
from omdpd.solvers.programs import best_policy
from omdpd.testing import WORLD_RULES, world_case
from omdpd.worlds import WORLDS as FACTORIES
from tests.references.named import WORLDS


@pytest.fixture(scope="module", params=list(WORLDS))
def case(request):
    """(spec, a world of it, drawn with seed 1)."""
    spec = WORLDS[request.param]()
    return spec, spec.build(np.random.default_rng(1))


@pytest.mark.parametrize("rule", WORLD_RULES)
@pytest.mark.parametrize("name", WORLDS)
def test_a_world_keeps_to_the_rules(name, rule):
    """Those of `omdpd.testing`."""
    WORLD_RULES[rule](world_case(FACTORIES[name]))


def test_the_two_planners_agree_where_there_is_one_constraint(case):
    _, cmdp = case
    if cmdp.n_constraints == 1:
        by_program = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
        by_dual = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess)
        assert by_dual.value == pytest.approx(by_program.value, abs=1e-6)


def test_a_spec_has_a_line_and_equal_specs_are_equal(case):
    spec, _ = case
    assert type(spec).__doc__.splitlines()[0].strip()
    assert spec == type(spec)()
