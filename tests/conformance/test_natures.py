"""What every nature of the table keeps to."""

import numpy as np
import pytest
from instances import forward, random_policy
from named import NATURES, WORLDS
from reference_programs import dual_value

from omdpd.natures import NATURES as FACTORIES
from omdpd.natures.pool import Pool, draw_pool
from omdpd.natures.protocol import Safety, changes_of
from omdpd.play.judging import comparator
from omdpd.testing import NATURE_RULES, check_nature, nature_case
from omdpd.testing.common import ConformanceError

# Natures that need scenarios of the world's own are tried in a world that has some.
OWN = ("natural", "hostile")
# Natures that look at the policy in play; against some policies they may always pick the same table.
LOOKING = ("adaptive", "hostile", "adaptive_rewards")
CASES = [(name, "cyclic" if name in OWN else "random_dirichlet") for name in NATURES]


def scene(name, world, seed=5):
    cmdp = WORLDS[world]().build(np.random.default_rng(1))
    return cmdp, NATURES[name]().build(cmdp, seed)


def occupancy(cmdp, seed):
    rng = np.random.default_rng(seed)
    return forward(random_policy(rng, *cmdp.shape), cmdp.transition, cmdp.initial)


@pytest.mark.parametrize("rule", NATURE_RULES)
@pytest.mark.parametrize(("name", "world"), CASES)
def test_a_nature_keeps_to_the_rules(name, world, rule):
    """Those of `omdpd.testing`."""
    cmdp, _ = scene(name, world)
    NATURE_RULES[rule](nature_case(FACTORIES[name], cmdp))


@pytest.mark.parametrize(("name", "world"), CASES)
def test_only_a_nature_that_looks_depends_on_the_occupancy(name, world):
    cmdp, nature = scene(name, world)
    differs = [
        not np.array_equal(nature.draw(k, occupancy(cmdp, 1)).cost, nature.draw(k, occupancy(cmdp, 2 + k)).cost)
        for k in range(30)
    ]
    if name not in LOOKING:
        assert not any(differs)


@pytest.mark.parametrize(("name", "world"), CASES)
def test_the_verdict_on_safety_agrees_with_a_linear_program_over_many_episodes(name, world):
    cmdp, nature = scene(name, world)
    if "kernel" in changes_of(nature):
        return  # no one program holds episodes of different worlds; the suite's own rule asks for each
    verdict = nature.safety()
    assert isinstance(verdict, Safety)
    assert len(verdict.why) > 20
    rounds = [nature.draw(k, occupancy(cmdp, k)) for k in range(200)]
    distinct = {met.key: met.cost for met in rounds}
    tables = np.concatenate(list(distinct.values()))
    value, _ = dual_value(cmdp.transition, cmdp.initial, cmdp.reward, tables)
    assert verdict.exists == (value is not None)
    best = comparator(cmdp, nature, sorted(distinct))
    assert best.exists == verdict.exists
    if verdict.exists:
        assert best.value == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("name", "world"), CASES)
def test_revealed_costs_do_change(name, world):
    cmdp, nature = scene(name, world)
    tables = {nature.draw(k, occupancy(cmdp, k)).cost.tobytes() for k in range(30)}
    if nature.feedback == "full" and name not in LOOKING:
        assert len(tables) > 1


class Forgetful(Pool):
    """A pool that draws its tables in turn, and tells ahead that they are drawn at random."""

    def draw(self, k, occupancy):
        return super().ahead(k, 0)[0][k % len(self.tables)]

    def ahead(self, k, n):
        return super().ahead(k, n)


def test_a_nature_that_tells_other_rounds_ahead_than_it_draws_is_found_out():
    with pytest.raises(ConformanceError, match="ahead gives another round of episode"):
        check_nature(lambda cmdp, seed: Forgetful(cmdp, seed, draw_pool(cmdp, seed, 3)))
