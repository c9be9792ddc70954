"""Natures that change rewards, unrevealed costs or the kernel, and how runs on them are judged."""

import math

import numpy as np
import pytest

from omdpd.experiments.seeds import run
from omdpd.learners.omdpd import OMDPD
from omdpd.learners.optcmdp import OptCMDP
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.uniform import Uniform
from omdpd.natures import NATURES as FACTORIES
from omdpd.natures import pool
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from tests.references.instances import forward, random_policy
from tests.references.named import NATURES, WORLDS
from tests.references.reference_programs import dual_value

CHANGING = ("switching_rewards", "drifting_rewards", "adaptive_rewards")


def world(seed=1):
    return WORLDS["random_dirichlet"]().build(np.random.default_rng(seed))


def occupancy(cmdp, seed):
    return forward(random_policy(np.random.default_rng(seed), *cmdp.shape), cmdp.transition, cmdp.initial)


@pytest.mark.parametrize("name", CHANGING)
def test_rewards_change_and_costs_are_the_world_s(name):
    cmdp = world()
    nature = NATURES[name]().build(cmdp, 3)
    rounds = [nature.draw(k, occupancy(cmdp, k)) for k in range(0, 400, 10)]
    assert len({met.reward.tobytes() for met in rounds}) > 1
    assert all(np.array_equal(met.cost, cmdp.excess) for met in rounds)
    assert all(met.reward.min() >= 0.0 and met.reward.max() <= 1.0 for met in rounds)


@pytest.mark.parametrize("name", CHANGING)
def test_with_a_pool_costs_are_revealed_too(name):
    cmdp = world()
    nature = NATURES[name](costs="pool").build(cmdp, 3)
    assert nature.feedback == "full"
    assert nature.safety().exists


def test_the_adaptive_reward_pays_the_policy_in_play_the_least():
    cmdp = world()
    nature = NATURES["adaptive_rewards"]().build(cmdp, 3)
    q = occupancy(cmdp, 8)
    paid = [float((table * q).sum()) for table in nature.tables]
    assert float((nature.draw(5, q).reward * q).sum()) == min(paid)


def test_a_turn_passes_through_all_reward_tables():
    cmdp = world()
    nature = NATURES["drifting_rewards"](period=8, size=4).build(cmdp, 3)
    for j in range(4):
        assert np.allclose(nature.reward(2 * j, occupancy(cmdp, 0)), nature.tables[j])
    between = nature.reward(1, occupancy(cmdp, 0))
    assert np.allclose(between, (nature.tables[0] + nature.tables[1]) / 2)


@pytest.mark.parametrize("name", CHANGING)
def test_regret_is_against_the_best_safe_policy_for_the_mean_of_the_rewards_that_were_met(name):
    cmdp, K = world(), 120
    history = run(cmdp, Uniform(), name, K, 4)
    seed = int(np.random.SeedSequence(4, spawn_key=(1,)).generate_state(1, np.uint64)[0] >> 1)
    nature = FACTORIES[name](cmdp, seed)
    H, S, A = cmdp.shape
    q = forward(np.full((H, S, A), 1 / A), cmdp.transition, cmdp.initial)
    met = [nature.draw(k, q).reward for k in range(K)]
    best, _ = dual_value(cmdp.transition, cmdp.initial, np.mean(met, axis=0), cmdp.excess)
    assert history.comparator.value == pytest.approx(best, abs=1e-6)
    assert history.scores.regret == pytest.approx(sum(best - (r * q).sum() for r in met), abs=1e-4)
    assert history.scores.regret_exponent is None


def test_unrevealed_costs_change_and_are_met_along_the_trajectory_alone():
    cmdp = world()
    for choosing in ("random", "blocks", "adaptive"):
        nature = NATURES["unrevealed"](choosing=choosing).build(cmdp, 3)
        keys = [nature.draw(k, occupancy(cmdp, k)).key for k in range(0, 400, 5)]
        assert nature.feedback == "bandit"
        assert len(set(keys)) > 1
    q = occupancy(cmdp, 2)
    costs = np.tensordot(nature.tables, q, axes=3).max(axis=1)
    assert nature.draw(0, q).key == int(np.argmax(costs))


def test_a_moving_world_goes_there_and_back_by_its_step():
    cmdp = world()
    nature = NATURES["moving"](piece=10, step=0.1, reach=0.3).build(cmdp, 3)
    assert [nature.place(k) for k in range(0, 80, 10)] == [0, 1, 2, 3, 2, 1, 0, 1]
    assert np.array_equal(nature.world(0).transition, cmdp.transition)
    for k in (10, 30):
        p = nature.world(k).transition
        assert np.allclose(p.sum(-1), 1.0)
        before = nature.world(k - 10)
        assert 0.0 < np.abs(p - before.transition).max() <= 0.1 + 1e-12
        assert 0.0 < np.abs(nature.world(k).reward - before.reward).max() <= 0.1 + 1e-12


def test_regret_in_a_moving_world_is_against_every_episode_s_own_optimum():
    cmdp, K = world(), 40
    seed = int(np.random.SeedSequence(4, spawn_key=(1,)).generate_state(1, np.uint64)[0] >> 1)
    nature = FACTORIES["moving"](cmdp, seed, piece=10, step=0.2, reach=0.4)
    history = run(cmdp, Uniform(), nature, K, 4)
    H, S, A = cmdp.shape
    regret = violation = 0.0
    for k in range(K):
        here = nature.world(k)
        best, _ = dual_value(here.transition, here.initial, here.reward, here.excess)
        q = forward(np.full((H, S, A), 1 / A), here.transition, here.initial)
        regret += best - float((here.reward * q).sum())
        violation += max(float((here.excess[0] * q).sum()), 0.0)
    assert history.scores.regret == pytest.approx(regret, abs=1e-5)
    assert history.scores.violation == pytest.approx(violation, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("switching_rewards", {"strength": 2.0}, "strength is 2.0, but must lie between 0 and 1"),
        ("moving", {"step": 0.6}, "step is 0.6 and reach 0.5"),
    ],
)
def test_what_cannot_be_is_refused(name, settings, why):
    with pytest.raises(InvalidInputError, match=why):
        NATURES[name](**settings).build(world(), 0)


@pytest.mark.parametrize("room", [0.0, 0.2])
@pytest.mark.parametrize("learner", [ProximalOMDPD.standard(), OMDPD.tuned(), OptCMDP(), Uniform()])
def test_no_learner_keeps_both_promises_where_an_adversary_looks_like_chance(learner, room):
    """docs/theory.md, 10: (1 + room) regret, if the coin is chance, + 2 violation, if it is not, are K but for luck."""
    K = 400
    cmdp = CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[-room, 0.0]], budget=0.0, horizon=1)
    coin = pool.unrevealed(cmdp, 0, np.array([-room, 1.0, -room, -1.0]).reshape(2, 1, 1, 1, 2), "random")
    found = run(cmdp, learner, coin, K)
    regret = K - found.rows[-1].value_sum  # where the mean cost is zero, to take the risk is safe and earns 1
    assert (1.0 + room) * regret + 2.0 * found.scores.violation >= K - 3.0 * math.sqrt(K)
