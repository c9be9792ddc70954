"""What every nature of the table keeps to."""

import numpy as np
import pytest

from omdpd.natures import NATURES as FACTORIES
from omdpd.natures.fixed import Fixed
from omdpd.natures.pool import Pool, draw_pool
from omdpd.natures.protocol import Safety, changes_of, rounds_ahead
from omdpd.natures.revealed import Scaled
from omdpd.play.judging import comparator
from omdpd.problem.arrays import InvalidInputError
from omdpd.testing import NATURE_RULES, check_nature, nature_case
from omdpd.testing.common import ConformanceError, small_world
from tests.references.instances import forward, random_policy
from tests.references.named import NATURES, WORLDS
from tests.references.reference_programs import dual_value

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


class Turning(Pool):
    """A pool that gives its rounds in another order every time it is asked."""

    def draw(self, k, occupancy):
        return super().draw(k, occupancy)

    def ahead(self, k, n):
        rounds, choices = super().ahead(k, n)
        turn = k % len(rounds)
        return rounds[turn:] + rounds[:turn], (choices - turn) % len(rounds)


def test_a_nature_may_give_other_rounds_at_every_call():
    check_nature(lambda cmdp, seed: Turning(cmdp, seed, draw_pool(cmdp, seed, 3), "cyclic"))


class Wrong(Fixed):
    """A nature that says something else ahead than it may."""

    said = ()

    def draw(self, k, occupancy):
        return super().draw(k, occupancy)

    def ahead(self, k, n):
        return (super().draw(k, None),), self.said


@pytest.mark.parametrize("said", [[0, 1], [0, -2], [0], [[0, 0]], [0.0, 0.0], "no"], ids=str)
def test_a_nature_that_says_nonsense_ahead_is_refused(said, monkeypatch):
    monkeypatch.setattr(Wrong, "said", said)
    with pytest.raises(InvalidInputError, match=r"Wrong\.ahead\(3, 2\) must give its rounds and 2 places among them"):
        rounds_ahead(Wrong(small_world(1)), 3, 2)


class Looking(Scaled):
    """A nature of the user's whose own `draw` looks at what is played: what it inherits does not hold for it."""

    def draw(self, k, occupancy):
        return super().draw(int(1e6 * occupancy[-1, 0, 0]), occupancy)


class Peeking(Looking):
    """A nature that says it is oblivious, and is not."""

    oblivious = True

    def draw(self, k, occupancy):
        return super().draw(k, occupancy if occupancy.size else np.zeros((1, 1, 1)))


class Needy(Scaled):
    """A nature that does not depend on what it is shown, but has to be shown something."""

    oblivious = True

    def draw(self, k, occupancy):
        return super().draw(k, occupancy[0, 0, 0])


def test_what_a_subclass_inherits_is_not_said_of_a_draw_of_its_own():
    cmdp = small_world(1)
    assert rounds_ahead(Scaled(cmdp, 3), 0, 1) is not None
    assert rounds_ahead(Looking(cmdp, 3), 0, 1) is None


@pytest.mark.parametrize(
    ("nature", "fault"), [(Peeking, "depends on what is played"), (Needy, "cannot do without an occupancy")]
)
def test_a_nature_that_is_not_oblivious_but_says_so_is_found_out(nature, fault):
    with pytest.raises(ConformanceError, match=f"it is oblivious, but .* {fault}"):
        check_nature(nature)
