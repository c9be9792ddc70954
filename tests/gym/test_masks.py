"""Environments that say which actions may be taken: the others never reach them."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from omdpd import CMDP, ProximalOMDPD, Uniform
from omdpd.gym import Task, from_gymnasium, learn
from omdpd.gym.env import CMDPEnv
from omdpd.problem.arrays import InvalidInputError

# A lift of five floors: up, down, stay.  From the ground it cannot go down, from the top not up.
FLOORS, UP, DOWN, STAY = 5, 0, 1, 2


class Lift(gymnasium.Env):
    """Pays for the top floor, costs by moving; raises where it is sent where it cannot go."""

    observation_space, action_space = Discrete(FLOORS), Discrete(3)

    def __init__(self, says="info"):
        self.says = says

    def mask(self):
        return np.array([self.floor < FLOORS - 1, self.floor > 0, True], dtype=np.int8)

    def info(self):
        return {"action_mask": self.mask()} if self.says == "info" else {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.floor = 0
        return self.floor, self.info()

    def step(self, action):
        if not self.mask()[action]:
            raise RuntimeError("the lift broke")
        self.floor += {UP: 1, DOWN: -1, STAY: 0}[int(action)]
        return self.floor, float(self.floor == FLOORS - 1), False, False, self.info() | {"cost": float(action != STAY)}


class Asked(Lift):
    """Says so when it is asked, as sb3-contrib's wrappers do."""

    def action_masks(self):
        return self.mask().astype(bool)


@pytest.mark.parametrize("env", [Lift(), Asked(says="method")])
def test_masks_are_read_at_every_reset_and_step_and_kept_to(env):
    found = learn(env, ProximalOMDPD.standard(), 300, horizon=8, budget=4.5, seed=1)
    assert found.policy.table[:, 0, DOWN].max() == 0.0
    assert found.policy.table[:, FLOORS - 1, UP].max() == 0.0
    assert found.rewards[-50:].mean() > 3.0 > found.rewards[:5].mean()
    assert found.evaluate(n_episodes=50).rewards.mean() > 3.0


def test_what_is_known_in_advance_leaves_a_learner_no_number_for_it():
    allowed = np.array([[f < FLOORS - 1, f > 0, True] for f in range(FLOORS)])
    found = learn(Lift(says=None), ProximalOMDPD.standard(), 50, horizon=8, budget=4.5, allowed=allowed)
    assert not found.policy.table[:, ~allowed].any()
    by_step = np.stack([allowed] * 8)
    by_step[5:, 1:, UP] = False  # late it goes up from the ground alone
    later = learn(Lift(says=None), ProximalOMDPD.standard(), 50, horizon=8, budget=4.5, allowed=by_step)
    assert not later.policy.table[~by_step].any()
    asked = learn(Lift(says=None), ProximalOMDPD.standard(), 50, 8, 4.5, allowed=lambda s, a: allowed[s, a])
    assert np.array_equal(asked.policy.table, found.policy.table)
    with pytest.raises(InvalidInputError, match="allowed has 3 steps, but the problem has 8"):
        learn(Lift(says=None), ProximalOMDPD.standard(), 50, 8, 4.5, allowed=by_step[:3])
    with pytest.raises(InvalidInputError, match="the lift broke"):
        learn(Lift(says=None), Uniform(), 50, horizon=8, budget=4.5)


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [([1, 1], "must hold 3 times true or false"), ([0, 0, 0], "allows no action"), ([2, 0, 1], "must hold 3 times")],
)
def test_a_mask_that_is_none_is_named(mask, sentence):
    class Wrong(Lift):
        def info(self):
            return {"action_mask": mask}

    with pytest.raises(InvalidInputError, match=f"reset of the environment: action_mask.*{sentence}"):
        Task(Wrong(), 8, 4.5).play(np.full((9, 7, 3), 1 / 3), np.random.default_rng(0))


@pytest.mark.parametrize("first", [True, False])
def test_an_environment_that_says_its_mask_at_some_steps_alone_is_refused(first):
    class Sometimes(Lift):
        steps = -1

        def info(self):
            self.steps += 1
            return super().info() if (self.steps == 0) == first else {}

    words = "no action_mask, but had one" if first else "an action_mask, but had none"
    with pytest.raises(InvalidInputError, match=f"step 0 of the environment: info has {words} before: give one at"):
        Task(Sometimes(), 8, 4.5).play(np.full((9, 7, 3), 1 / 3), np.random.default_rng(0))


def test_our_own_environments_publish_masks_and_refuse_what_they_forbid():
    rng, allowed = np.random.default_rng(0), np.array([[1, 0], [1, 1], [0, 1]])
    p, r = rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2))
    env = CMDPEnv(CMDP.from_arrays(p, r, r, 2.0, horizon=4, allowed=allowed))
    s, info = env.reset(seed=1)
    for _ in range(4):
        assert info["action_mask"].tolist() == allowed[s].tolist()
        for a in np.flatnonzero(info["action_mask"] == 0):
            with pytest.raises(InvalidInputError, match="is not allowed in state"):
                env.step(a)
        s, *_, info = env.step(int(info["action_mask"].argmax()))
    assert learn(env, ProximalOMDPD.standard(), 5, horizon=4, budget=2.0).policy.table.shape == (4, 3, 2)


def test_actions_that_a_published_table_lacks_are_not_allowed():
    env, moves = Lift(), {UP: 1, DOWN: -1, STAY: 0}
    env.initial_state_distrib = np.eye(FLOORS)[0]
    env.P = {
        f: {a: [(1.0, f + n, float(f + n == FLOORS - 1), False)] for a, n in moves.items() if 0 <= f + n < FLOORS}
        for f in range(FLOORS)
    }
    cmdp = from_gymnasium(env, 8, lambda s, a, t: float(a != STAY), 4.0)
    assert not cmdp.mask.allowed[0, 0, DOWN]
    assert not cmdp.mask.allowed[0, FLOORS - 1, UP]
    assert cmdp.solve().value == pytest.approx(5.0)  # four steps up, and five rewards: on arrival and after
    stay = np.ones((8, FLOORS, 3), bool)
    stay[0, :, UP] = False  # also what does not exist stays away
    later = from_gymnasium(env, 8, lambda s, a, t: float(a != STAY), 4.0, allowed=stay)
    assert later.solve().value == pytest.approx(4.0)
    assert not later.mask.allowed[3, 0, DOWN]
    free = from_gymnasium(env, 8, lambda s, a, t: float(a != STAY), None).solve()
    assert free.evaluation.costs == pytest.approx([4.0])
    assert free.evaluation.budget == np.inf
    with pytest.raises(InvalidInputError, match="budget is missing"):
        from_gymnasium(env, 8, lambda s, a, t: 0.0)
