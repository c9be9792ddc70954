"""The benchmark's problems are read off a learner's states: they must be the steps that the learner took."""

import numpy as np
import pytest

from benchmarks.solvers.general import quadratic_program
from benchmarks.solvers.problems import KINDS, Kind, Size, recorded, steps_between
from omdpd.learners.omdpd import OMDPD
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.natures import fixed, pool
from omdpd.play.loop import play, start_of_run
from omdpd.play.scene import Scene
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.worlds import random_dirichlet

SMALL = Size(4, 2, 3, 12)


@pytest.mark.parametrize("make_nature", [fixed.make_noisy, pool.make])
@pytest.mark.parametrize(
    "learner", [OMDPD.tuned(), ProximalOMDPD.cautious(), ProximalOMDPD.optimistic()], ids=["OMDPD", "cautious", "box"]
)
def test_a_recorded_step_taken_again_is_the_learners_own_to_the_last_bit(learner, make_nature):
    cmdp = random_dirichlet.make(np.random.default_rng(5), SMALL.S, SMALL.A, SMALL.H, binding=False)
    scene = Scene(cmdp, make_nature(cmdp, 5), learner, SMALL.episodes, {})
    before = start_of_run(scene).learner_state
    for _, _, now in play(scene, start_of_run(scene), np.random.default_rng(5), lambda k: False):
        after = now.learner_state
        answers = [step.solve().occupancy for step in steps_between(learner, before, after)]
        expected = [after.q_hat, after.q] if len(answers) == 2 else [after.q]
        np.testing.assert_array_equal(answers, expected)
        before = after


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_problems_are_of_their_kind_and_have_a_step_before_them(kind):
    problems = recorded(SMALL, kind, seed=2, n_problems=3)
    assert len(problems) == 3
    for problem in problems:
        assert min(kind.hinges, 1) <= len(problem.hinges.weights) <= kind.hinges
        assert problem.before.occupancy.shape == problem.reference.shape


def test_the_general_program_has_the_steps_answer_as_its_optimum():
    problem = recorded(SMALL, Kind("kernel", 1), seed=3, n_problems=1)[0]
    program = quadratic_program(problem)
    step = problem.solve()
    q, excess = step.occupancy.ravel(), np.maximum(problem.hinges.arguments(step.occupancy), 0.0)
    z = np.concatenate([q, excess])
    np.testing.assert_allclose(program.A @ z, program.b, atol=1e-9)
    assert (program.G @ z).max() <= 1e-12
    # No mixture with another feasible point is better.
    uniform = np.full(problem.reference.shape, 1.0 / SMALL.A)
    other = occupancy_of_policy(uniform, problem.region.transition, problem.initial)
    for share in (0.01, 0.1, 1.0):
        mixed = (1 - share) * step.occupancy + share * other
        w = np.concatenate([mixed.ravel(), np.maximum(problem.hinges.arguments(mixed), 0.0)])
        assert _objective(program, w) >= _objective(program, z) - 1e-10


def _objective(program, z):
    return 0.5 * z @ program.P @ z + program.cost @ z
