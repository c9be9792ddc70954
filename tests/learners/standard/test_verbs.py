"""What the verbs of the standard learner take of somebody's own loop."""

import numpy as np
import pytest

from omdpd.learners.proximal import ProximalOMDPD
from omdpd.natures import NATURES
from omdpd.play.loop import batches, start_of_run
from omdpd.play.scene import Scene
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import BanditFeedback, FullFeedback, Setting, Trajectory
from omdpd.worlds import random_dirichlet

H, S, A = 3, 4, 2
WALK = Trajectory(np.array([0, 1, 3]), np.array([1, 0, 1]))
REWARDS = np.array([0.0, 1.0, 0.5])


def table():
    return np.random.default_rng(0).uniform(-1.0, 1.0, (H, S, A))


@pytest.mark.parametrize(
    ("kind", "feedback", "said"),
    [
        ("full", BanditFeedback(WALK, REWARDS, np.zeros((1, H))), "feedback is BanditFeedback, but"),
        ("bandit", FullFeedback(WALK, REWARDS, np.zeros((1, H, S, A))), "feedback is FullFeedback, but"),
        ("bandit", BanditFeedback(WALK, REWARDS, np.zeros((2, H))), r"costs has shape \(2, 3\), but"),
        ("full", FullFeedback(WALK, REWARDS[:2], np.zeros((1, H, S, A))), r"rewards has shape \(2,\), but"),
        ("full", FullFeedback(WALK, REWARDS, np.zeros((1, H, S, A + 1))), r"cost has shape"),
    ],
)
def test_feedback_of_another_kind_or_size_is_refused_and_changes_nothing(kind, feedback, said):
    learner = ProximalOMDPD.standard()
    state = learner.init(Setting(H, S, A, n_episodes=10, feedback=kind))
    before = state.vector.copy()
    with pytest.raises(InvalidInputError, match=said):
        learner.update(state, feedback)
    assert np.array_equal(state.vector, before, equal_nan=True)


def test_a_table_may_leave_out_the_axis_of_its_only_constraint():
    learner = ProximalOMDPD.standard()
    state = learner.init(Setting(H, S, A, n_episodes=10, feedback="full"))
    one, other = (learner.update(state, FullFeedback(WALK, REWARDS, cost)) for cost in (table(), table()[None]))
    assert np.array_equal(one.vector, other.vector)
    assert np.array_equal(one.parts.kept[0], table().ravel())


def test_settings_that_are_whole_numbers_are_those_that_are_not():
    cmdp = random_dirichlet.make(np.random.default_rng(1), S, A, H)
    found = []
    for number in (int, float):
        dials = {"z": 1, "exploration": 1, "w0": 10, "gamma_scale": 16, "w_max": 10**6, "c_prime": 1}
        learner = ProximalOMDPD.standard(**{name: number(value) for name, value in dials.items()})
        scene = Scene(cmdp, NATURES["pool"](cmdp, 0), learner, 30, {})
        found.append(
            [v for part in batches(scene, start_of_run(scene), np.random.default_rng(0), bool) for v in part.values]
        )
    assert found[0] == found[1]
