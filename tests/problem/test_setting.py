import numpy as np
import pytest

from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import BanditFeedback, FullFeedback, Setting, Trajectory, checked_feedback

H, S, A, I = 3, 4, 2, 5  # noqa: E741
WALK = Trajectory(np.array([0, 3, 1]), np.array([1, 0, 1]))


def setting(feedback="bandit", n_constraints=I):
    return Setting(H, S, A, n_constraints, feedback=feedback)


def test_the_initial_law_is_uniform_unless_given():
    assert np.array_equal(setting().mu, np.full(S, 0.25))
    assert np.array_equal(Setting(H, 2, A, initial=[0.25, 0.75]).mu, [0.25, 0.75])


def test_the_shape_is_in_the_order_of_the_axes():
    assert setting().shape == (H, S, A)


@pytest.mark.parametrize("name", ["horizon", "n_states", "n_actions", "n_constraints", "n_episodes"])
def test_a_size_of_zero_is_refused_by_name(name):
    sizes = {"horizon": H, "n_states": S, "n_actions": A, "n_constraints": I, "n_episodes": 10} | {name: 0}
    with pytest.raises(InvalidInputError, match=f"{name} is 0"):
        Setting(**sizes)


def test_an_unknown_kind_of_feedback_is_refused():
    with pytest.raises(InvalidInputError, match="feedback is 'partial', but must be 'bandit' or 'full'"):
        setting("partial")


def test_an_initial_law_of_the_wrong_length_or_sum_is_refused():
    with pytest.raises(InvalidInputError, match="initial has length 3 along its state axis"):
        Setting(H, S, A, initial=[0.5, 0.25, 0.25])
    with pytest.raises(InvalidInputError, match=r"initial = 1.1 is the sum"):
        Setting(H, 2, A, initial=[0.5, 0.6])


def test_good_feedback_comes_back_as_plain_arrays():
    given = BanditFeedback(Trajectory([0, 3, 1], [1, 0, 1]), [0, 1, 0], np.zeros((I, H)).tolist())
    checked = checked_feedback(setting(), given)
    assert checked.costs.shape == (I, H)
    assert checked.costs.dtype == np.float64
    assert checked.trajectory.states.dtype == np.int64


def test_one_constraint_may_drop_its_axis():
    checked = checked_feedback(setting(n_constraints=1), BanditFeedback(WALK, np.zeros(H), np.array([0.0, 0.5, 1.0])))
    assert np.array_equal(checked.costs, [[0.0, 0.5, 1.0]])
    table = np.zeros((H, S, A))
    assert checked_feedback(setting("full", 1), FullFeedback(WALK, np.zeros(H), table)).cost.shape == (1, H, S, A)


def test_numbers_outside_their_range_are_named():
    with pytest.raises(InvalidInputError, match=r"rewards\[1\] \(step 1\) = 1.5 is outside \[0, 1\]"):
        checked_feedback(setting(n_constraints=1), BanditFeedback(WALK, np.array([0.0, 1.5, 1.0]), np.zeros(H)))
    with pytest.raises(InvalidInputError, match=r"costs\[0, 2\] .* = -2 is outside \[-1, 1\]"):
        checked_feedback(setting(n_constraints=1), BanditFeedback(WALK, np.zeros(H), np.array([0.0, 0.0, -2.0])))
    with pytest.raises(InvalidInputError, match=r"cost\[0, 0, 0, 0\] .* = 3 is outside \[-1, 1\]"):
        checked_feedback(setting("full", 1), FullFeedback(WALK, np.zeros(H), np.full((H, S, A), 3.0)))


def test_several_constraints_may_not_drop_their_axis():
    with pytest.raises(InvalidInputError, match="costs has length 1 along its constraint axis"):
        checked_feedback(setting(), BanditFeedback(WALK, np.zeros(H), np.zeros(H)))
    with pytest.raises(InvalidInputError, match="cost has length 1 along its constraint axis"):
        checked_feedback(setting("full"), FullFeedback(WALK, np.zeros(H), np.zeros((H, S, A))))


def test_the_promised_kind_of_feedback_is_insisted_on():
    full = FullFeedback(WALK, np.zeros(H), np.zeros((I, H, S, A)))
    with pytest.raises(InvalidInputError, match="promises BanditFeedback, but FullFeedback came"):
        checked_feedback(setting(), full)
    bandit = BanditFeedback(WALK, np.zeros(H), np.zeros((I, H)))
    with pytest.raises(InvalidInputError, match="promises FullFeedback, but BanditFeedback came"):
        checked_feedback(setting("full"), bandit)


def test_a_state_or_action_out_of_range_is_named():
    walk = Trajectory(np.array([0, 4, 1]), np.array([1, 0, 1]))
    with pytest.raises(InvalidInputError, match=r"states\[1\] = 4 is not between 0 and 3"):
        checked_feedback(setting(), BanditFeedback(walk, np.zeros(H), np.zeros((I, H))))
    walk = Trajectory(np.array([0, 3, 1]), np.array([1, 0, -1]))
    with pytest.raises(InvalidInputError, match=r"actions\[2\] = -1 is not between 0 and 1"):
        checked_feedback(setting(), BanditFeedback(walk, np.zeros(H), np.zeros((I, H))))


@pytest.mark.parametrize("states", [[0, 1], [0.0, 1.0, 2.0], [[0, 1, 2]]])
def test_a_trajectory_is_one_whole_number_per_step(states):
    walk = Trajectory(np.array(states), np.array([1, 0, 1]))
    with pytest.raises(InvalidInputError, match="states must be 3 whole numbers"):
        checked_feedback(setting(), BanditFeedback(walk, np.zeros(H), np.zeros((I, H))))


def test_a_reward_that_is_not_a_number_is_named():
    with pytest.raises(InvalidInputError, match=r"rewards\[1\] \(step 1\)"):
        checked_feedback(setting(), BanditFeedback(WALK, np.array([0.0, np.nan, 1.0]), np.zeros((I, H))))
