"""A long run in windows: each begins where the last ended, and what is learnt is near what the long run allows."""

import pytest

from omdpd import InvalidInputError, ProximalOMDPD, Uniform
from omdpd.learners.oracle import Oracle
from omdpd.play.windows import learn_windows, window_problem
from omdpd.worlds.card import natural_value
from tests.references.instances import ring


class Follows(Uniform):
    """Notes which windows it was told of."""

    met = []  # noqa: RUF012

    def update(self, state, feedback):
        self.met.append(feedback.trajectory)
        return super().update(state, feedback)


def test_a_window_begins_where_the_last_one_may_have_ended():
    Follows.met.clear()
    found = learn_windows(ring(), Follows(), 5, 200, seed=3)
    assert len(found.rewards) == len(Follows.met) == 200
    moved = 0
    for last, following in zip(Follows.met, Follows.met[1:], strict=False):
        step = (following.states[0] - last.states[-1]) % 4
        assert step == 0 or (step == 1 and last.actions[-1] == 1)
        moved += step
    going = sum(walk.actions[-1] for walk in Follows.met[:-1])
    assert moved / going == pytest.approx(0.9, abs=0.08)


def test_a_window_is_the_problem_with_more_steps_and_budget():
    cmdp = ring()
    window = window_problem(cmdp, 400)
    assert window.limits == pytest.approx([120.0])
    # Per step a long window's optimum is that of the long run, up to a bias.
    assert window.solve().value / 400 == pytest.approx(cmdp.solve().value, abs=0.01)
    played = learn_windows(cmdp, Oracle(), 400, 20, noise="exact")
    reward, costs = played.after(1.0)
    assert reward == pytest.approx(played.best, abs=0.02)
    assert costs == pytest.approx([0.3], abs=0.02)
    assert natural_value(cmdp, 1.0) == 1.0


def test_the_default_learns_the_long_run():
    found = learn_windows(ring(), ProximalOMDPD.standard(stationary=True), 20, 400, seed=1)
    reward, costs = found.after()
    assert reward > 0.85 * found.best
    assert costs[0] < 0.3 + 0.05
    assert "the best earns" in str(found)


@pytest.mark.parametrize("end", [{"discount": 0.9}, {"horizon": 4}])
def test_only_averages_have_windows(end):
    with pytest.raises(InvalidInputError, match="windows are of a problem without an end"):
        window_problem(ring(**end), 5)


def test_what_is_over_budget_is_said_beside_how_it_began():
    cmdp = ring()
    said = str(learn_windows(cmdp, Uniform(), 5, 40, seed=3))
    assert "of 0.3 (over budget; first half 0.5" in said or "of 0.3 (over budget; first half 0.4" in said
    assert "over budget" not in str(learn_windows(ring(budget=None), Uniform(), 5, 40, seed=3))
    assert "of no limit (first half" in str(learn_windows(ring(budget=None), Uniform(), 5, 40, seed=3))
