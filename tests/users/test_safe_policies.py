"""A safe policy of one's own: its cost is written in the units of the budget, and a learner sees it in its own."""

import numpy as np
import pytest

import omdpd.learners
from omdpd import CMDP, InvalidInputError, SafePolicy, Session, Setting, run
from omdpd.learners import DOPE, SOPS, DOPEPlus, EpisodeSafe, OptPessLP
from omdpd.play.scene import with_known_facts

H, S, A = 3, 2, 2
REST = np.tile([1.0, 0.0], (H, S, 1))
# A step costs 50 at rest and 200 at work, so that an episode at rest costs 150 of a budget of 300.
WORLD = CMDP.from_arrays(
    np.full((S, A, S), 0.5), np.tile([0.0, 1.0], (S, 1)), np.tile([50.0, 200.0], (S, 1)), 300.0, horizon=H
)
SETTING = Setting(H, S, A, n_episodes=5, budget=300.0, cost_scale=100.0)
LEARNERS = [DOPE, DOPEPlus, EpisodeSafe, OptPessLP, SOPS]


def test_it_is_public_and_takes_lists_and_a_single_number():
    assert omdpd.SafePolicy is omdpd.learners.SafePolicy is SafePolicy
    safe = SafePolicy(REST.tolist(), 150)
    assert np.array_equal(safe.policy, REST)
    assert safe.cost.tolist() == [150.0]


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_run_takes_its_cost_in_the_units_of_the_problem(learner):
    given = with_known_facts(learner(safe=SafePolicy(REST, 150.0)), WORLD, "bandit")
    own = with_known_facts(learner(), WORLD, "bandit")  # the policy of least cost, which is to rest
    assert given.safe.cost == pytest.approx(own.safe.cost)
    again = with_known_facts(given, WORLD, "bandit")
    assert np.array_equal(again.safe.cost, given.safe.cost)
    assert len(run(WORLD, learner(safe=SafePolicy(REST, 150.0)), n_episodes=2).rows) == 2


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_session_takes_its_cost_in_the_units_of_the_setting(learner):
    session = Session(learner(safe=SafePolicy(REST, 150.0)), SETTING)
    assert session.learner.safe.cost.tolist() == [-1.5]
    without = Session(learner(safe=SafePolicy(REST, -1.5)), SETTING.scaled())
    assert without.learner.safe.cost.tolist() == [-1.5]
    assert np.array_equal(session.policy(), without.policy())


def test_a_session_begun_with_the_scaled_cost_goes_on_with_either(tmp_path):
    for safe in (SafePolicy(REST, -1.5, scaled=True), SafePolicy(REST, 150.0)):
        with Session.open(tmp_path / "kept", DOPE(safe=safe), SETTING) as session:
            assert session.learner.safe.cost.tolist() == [-1.5]


@pytest.mark.parametrize(
    ("safe", "sentence"),
    [
        (
            SafePolicy(REST, 350.0),
            r"strictly safe, but the one it was given costs 350 of a budget of 300 \(constraint 0\)",
        ),
        (SafePolicy(REST, [150.0, 1.0]), "has 2 entries, but there are 1 constraints: give one number per constraint"),
        (SafePolicy(REST, -1000.0), "stays 13 below a budget in its units, but 3 steps save 3 at most"),
        (SafePolicy(REST[:1], 150.0), r"safe policy has shape \(1, 2, 2\) and cost \(1,\), but the setting asks for"),
        ([REST, 150.0], r"must be given a strictly safe policy and its cost: set safe=SafePolicy\(policy, cost\)"),
    ],
)
def test_one_that_cannot_be_is_refused_in_the_users_units(safe, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Session(DOPE(safe=safe), SETTING)


@pytest.mark.parametrize(
    ("policy", "cost", "sentence"),
    [
        (REST, "150", "the safe policy's cost is not an array of numbers"),
        (REST, np.nan, "the safe policy's cost.* is not a finite number"),
        (REST[0], 150.0, "the safe policy has 2 axes, but needs 3"),
        (2.0 * REST, 150.0, "the safe policy.* is the sum of a row of probabilities and should be 1"),
    ],
)
def test_what_is_no_policy_or_no_cost_is_refused_where_it_is_made(policy, cost, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        SafePolicy(policy, cost)
