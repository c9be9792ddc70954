import numpy as np
import pytest

from omdpd import ProximalOMDPD, run
from omdpd.natures import pool
from omdpd.problem.arrays import InvalidInputError
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.worlds import intrusion, random_dirichlet, streaming
from omdpd.worlds.facts import FACTS


def occupancy(cmdp, action):
    H, S, A = cmdp.shape
    policy = np.zeros((H, S, A))
    policy[:, :, action] = 1.0
    return occupancy_of_policy(policy, cmdp.transition, cmdp.initial)


def test_scenarios_are_switched_as_asked():
    cmdp = streaming.make()
    q = occupancy(cmdp, 0)
    cyclic = pool.make_natural(cmdp, 0, "cyclic")
    assert [cyclic.draw(k, q).key for k in range(4)] == [0, 1, 2, 0]
    blocks = pool.make_natural(cmdp, 0, "blocks")
    assert [blocks.draw(k, q).key for k in (0, 49, 50, 149, 150)] == [0, 0, 1, 2, 0]
    drawn = [pool.make_natural(cmdp, 5).draw(k, q).key for k in range(60)]
    assert set(drawn) == {0, 1, 2}
    assert drawn == [pool.make_natural(cmdp, 5).draw(k, q).key for k in range(60)]
    assert np.array_equal(cyclic.draw(1, q).cost, cyclic.table(1))


def test_a_hostile_nature_picks_what_costs_most():
    """An intruder who is never stopped ends up deep: the vault costs most.  One scanned every step stays shallow."""
    cmdp = intrusion.make()
    hostile = pool.make_hostile(cmdp, 0)
    excess = [float(np.vdot(table[0], occupancy(cmdp, 0))) for table in cmdp.scenarios.tables]
    assert hostile.draw(0, occupancy(cmdp, 0)).key == int(np.argmax(excess))
    assert cmdp.scenarios.names[hostile.draw(0, occupancy(cmdp, 1)).key] == "the desk"
    assert np.array_equal(hostile.table(2), cmdp.scenarios.tables[2])


@pytest.mark.parametrize("nature", ["natural", "hostile"])
def test_a_learner_is_judged_against_the_best_policy_safe_in_every_scenario(nature):
    history = run(intrusion.make(), ProximalOMDPD.cautious(), nature, n_episodes=60)
    assert history.comparator.exists
    if nature == "natural":  # sixty draws meet all three targets
        assert history.comparator.value == pytest.approx(FACTS["intrusion"].scenario_value, abs=1e-8)


def test_safety_is_judged_over_all_scenarios():
    cmdp = streaming.make()
    assert pool.make_natural(cmdp, 0).safety().exists
    tight = streaming.make(budget=5.0).with_scenarios({"always": np.ones((10, 2))})
    assert "exceeds a budget in some scenario by at least 5" in pool.make_hostile(tight, 0).safety().why


def test_a_world_without_scenarios_says_what_to_do():
    cmdp = random_dirichlet.make(np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="'random_dirichlet' names no scenarios of its own"):
        pool.make_natural(cmdp, 0)
    with pytest.raises(InvalidInputError, match="switching is 'daily'"):
        pool.make_natural(streaming.make(), 0, "daily")


def test_no_scenarios_at_all_are_refused():
    with pytest.raises(InvalidInputError, match="with_scenarios needs at least one cost table"):
        streaming.make().with_scenarios({})
