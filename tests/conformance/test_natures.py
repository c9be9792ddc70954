"""What every nature of the table keeps to."""

import numpy as np
import pytest
from instances import forward, random_policy
from named import NATURES, WORLDS
from reference_programs import dual_value

from omdpd.natures.protocol import Safety
from omdpd.play.judging import comparator

# Natures that need scenarios of the world's own are tried in a world that has some.
OWN = ("natural", "hostile")
# Natures that look at the policy in play; against some policies they may always pick the same table.
LOOKING = ("adaptive", "hostile")
CASES = [(name, "cyclic" if name in OWN else "random_dirichlet") for name in NATURES]


def scene(name, world, seed=5):
    cmdp = WORLDS[world]().build(np.random.default_rng(1))
    return cmdp, NATURES[name]().build(cmdp, seed)


def occupancy(cmdp, seed):
    rng = np.random.default_rng(seed)
    return forward(random_policy(rng, *cmdp.shape), cmdp.transition, cmdp.initial)


@pytest.mark.parametrize(("name", "world"), CASES)
def test_a_draw_is_a_pure_function_of_seed_episode_and_occupancy(name, world):
    cmdp, nature = scene(name, world)
    _, again = scene(name, world)
    for k in (17, 0, 3):  # in any order
        q = occupancy(cmdp, k)
        first, second, third = nature.draw(k, q), nature.draw(k, q), again.draw(k, q)
        assert np.array_equal(first.cost, second.cost)
        assert np.array_equal(first.cost, third.cost)
        assert first.key == second.key == third.key


@pytest.mark.parametrize(("name", "world"), CASES)
def test_a_round_has_the_worlds_shape_and_stays_in_its_range(name, world):
    cmdp, nature = scene(name, world)
    for k in range(20):
        met = nature.draw(k, occupancy(cmdp, k))
        assert met.cost.shape == (cmdp.n_constraints, *cmdp.shape)
        assert np.abs(met.cost).max() <= 1.0 + 1e-12
        assert np.array_equal(met.reward, cmdp.reward)
        assert np.all(np.isfinite(met.cost))


@pytest.mark.parametrize(("name", "world"), CASES)
def test_a_key_names_its_table_up_to_a_positive_factor(name, world):
    cmdp, nature = scene(name, world)
    for k in range(20):
        met = nature.draw(k, occupancy(cmdp, k))
        table = nature.table(met.key)
        size, known = np.abs(met.cost).max(), np.abs(table).max()
        if size == 0.0:
            assert known == 0.0
        else:
            assert np.allclose(met.cost / size, table / known, rtol=0.0, atol=1e-12)
        if not nature.repeats:
            assert met.key == k


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
def test_drawing_leaves_the_occupancy_and_the_world_alone(name, world):
    cmdp, nature = scene(name, world)
    q = occupancy(cmdp, 1)
    before = [x.copy() for x in (q, cmdp.reward, cmdp.cost, cmdp.transition)]
    for k in range(5):
        nature.draw(k, q)
    assert all(np.array_equal(a, b) for a, b in zip(before, (q, cmdp.reward, cmdp.cost, cmdp.transition), strict=True))


@pytest.mark.parametrize(("name", "world"), CASES)
def test_the_verdict_on_safety_agrees_with_a_linear_program_over_many_episodes(name, world):
    cmdp, nature = scene(name, world)
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
def test_costs_that_change_are_revealed(name, world):
    cmdp, nature = scene(name, world)
    assert nature.feedback in ("bandit", "full")
    tables = {nature.draw(k, occupancy(cmdp, k)).cost.tobytes() for k in range(30)}
    if nature.feedback == "bandit":
        assert len(tables) == 1
    elif name not in LOOKING:
        assert len(tables) > 1
