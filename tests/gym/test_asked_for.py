"""What an environment does not say is asked for by name, and what it does say is taken."""

import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.wrappers import TimeLimit

from omdpd import Uniform
from omdpd.gym import Agent, Bins, Learned, Task, from_gymnasium, learn
from omdpd.problem.arrays import InvalidInputError
from tests.gym.test_agent import Priced
from tests.gym.test_masks import Lift


class Published(Priced):
    """Says its budget in its metadata."""

    metadata = {"budget": 25.0}  # noqa: RUF012


class Boxed(Priced):
    """Observes a number."""

    observation_space = Box(0.0, 1.0, (1,))


def refused(call, words):
    with pytest.raises(InvalidInputError, match=words):
        call()


def agent(env=None, **settings):
    return Agent(env or Priced(), **{"budget": 30.0, "horizon": 4, "learner": Uniform()} | settings)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Priced, r"env is the class Priced, but must be an object of it: Priced\(\.\.\.\)"),
        (lambda: Priced(), "must be an environment with reset and step: give what it returns"),
        (None, "env is None, but must be an environment with reset and step, as gymnasium.make gives"),
    ],
)
def test_what_is_no_environment_is_said(env, words):
    refused(lambda: Agent(env, budget=1.0), words)
    refused(lambda: Task(env, 4, 1.0), words)
    refused(lambda: learn(env, Uniform(), 2, 4, 1.0), words)


def test_a_class_has_no_table_either():
    refused(lambda: from_gymnasium(Priced, 4, np.zeros((2, 2)), 1.0), "env is the class Priced")


@pytest.mark.parametrize("horizon", [0, -3, 2.5, "4"])
def test_a_horizon_that_is_none_is_named(horizon):
    refused(lambda: agent(horizon=horizon), f"horizon is {horizon!r}, but must be a whole number of at least 1")


def test_the_time_limit_of_a_wrapper_is_the_horizon():
    limited = TimeLimit(TimeLimit(Priced(), 3), 8)
    assert agent(limited, horizon=None).learn(2).learned.lengths.tolist() == [3, 3]
    assert agent(limited, horizon=2).task.horizon == 2
    refused(lambda: agent(limited, horizon=5), "cuts its episodes after 3 steps, before the horizon 5")


def test_a_forgotten_budget_is_asked_for_and_the_environments_own_is_taken_and_said():
    refused(lambda: Agent(Priced(), horizon=4), "budget is missing, and the environment publishes none.*budget=None")
    assert "budget 25 of the environment's own" in repr(Agent(Published(), horizon=4))
    assert "budget 0.5 of the environment's own" in repr(Agent("omdpd/Grid-v0"))
    assert Agent("omdpd/Queue-v0").budget.tolist() == [4.0, 3.0]
    assert "budget 0.2;" in repr(Agent("omdpd/Grid-v0", budget=0.2))
    assert "budget none;" in repr(Agent("omdpd/Grid-v0", budget=None))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("buget", "budget"), ("cost_limit", "budget"), ("costs", "cost"), ("cells", "state_of"), ("n_state", "n_states")],
)
def test_a_name_that_is_nearly_one_is_answered_with_it(name, meant):
    words = f"there is no setting of a task {name!r} \\(did you mean {meant!r}\\?\\)"
    refused(lambda: agent(**{name: 3}), words)
    refused(lambda: learn(Priced(), Uniform(), 2, 4, 1.0, **{name: 3}), words)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"state_of": [3, 3]}, r"state_of is \[3, 3\], but must be a function of the observation"),
        ({"state_of": lambda seen: 0}, "n_states is missing: say how many states state_of has"),
        ({"cost": 1.0}, r"cost is 1\.0, but must be a function of \(state, action, next state\), or a key of info"),
        ({"observation_cost": "fuel"}, "observation_cost is 'fuel', but must be a function"),
        ({"learner": Uniform}, r"learner is the class Uniform, but must be an object: Uniform\(\)"),
    ],
)
def test_a_setting_of_another_kind_is_named_before_anything_is_played(settings, words):
    refused(lambda: agent(**settings), words)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (lambda: Bins.even([0.0, 0.0], [1.0, 1.0], 2.5), r"counts\[0\] is 2\.5"),
        (lambda: Bins.even("a", [1.0], 3), "low is not an array of numbers: it holds text"),
        (lambda: Bins([["a"]]), r"edges\[0\] is not an array of numbers: it holds text"),
        (lambda: Bins(3), "edges is 3, but must hold the borders of each coordinate"),
        (lambda: agent(Boxed()), r"give state_of and n_states, or omdpd\.gym\.Bins"),
        (
            lambda: agent(Boxed(), state_of=Bins.even([0, 0], [1, 1], 3)),
            "not a vector of 2 numbers, as these Bins need",
        ),
    ],
)
def test_cells_that_are_none_are_named(cells, words):
    refused(cells, words)


def test_a_number_of_numpy_is_a_number_of_bins():
    assert Bins.even([0.0, 0.0], [1.0, 1.0], np.int64(3)).n_states == 9


def test_costs_of_another_number_than_budgets_are_named():
    class Several(Priced):
        def step(self, action):
            *answer, info = super().step(action)
            return *answer, {"costs": [info["cost"], 1.0]}

    refused(lambda: agent(Several()), "step 0 of the environment: a step reported 2 costs, but there are 1 budgets")


def test_a_file_asks_for_the_functions_that_it_does_not_keep(tmp_path):
    def toll(state, action, next_state):
        return 1.0

    file = agent(cost=toll).learn(3).save(tmp_path / "agent.npz")
    again = "agent.npz was made with cost=..., which no file keeps: give the same cost again"
    refused(lambda: Agent.load(file, Priced()), again)
    refused(lambda: Agent.load(file, Task(Priced(), 4, 30.0)), again)
    refused(lambda: Learned.load(file).evaluate(Priced()), "made with cost=")
    loaded = Agent.load(file, Priced(), cost=toll)
    assert loaded.evaluate(5).costs.tolist() == [[4.0]] * 5
    refused(lambda: Agent.load(loaded.save(tmp_path / "second.npz"), Priced()), "made with cost=")
    free = agent(budget=None, cost="cost").learn(2).save(tmp_path / "free.npz")
    refused(lambda: Agent.load(free, Priced()), "free.npz was made with cost=")
    unpriced = agent(Priced(reports_cost=False), budget=None).learn(2).save(tmp_path / "unpriced.npz")
    assert Agent.load(unpriced, Priced(reports_cost=False)).budget is None
    cells = agent(Boxed(), state_of=Bins.even([0.0], [2.0], 2)).learn(2).save(tmp_path / "cells.npz")
    refused(lambda: Agent.load(cells, Boxed()), "made with state_of=")


def test_so_does_the_folder_of_a_checkpoint(tmp_path):
    def go_on(n, **settings):
        return learn(
            Priced(), Uniform(), n, 4, 30.0, checkpoint=tmp_path / "folder", reward_range=(-3, 7), cost_scale=20.0,
            **settings,
        )  # fmt: skip

    go_on(3, cost="cost")
    refused(lambda: go_on(3), "folder was made with cost=..., which no file keeps: give the same cost again")
    assert len(go_on(3, cost="cost").rewards) == 3


def test_a_budget_is_judged_by_the_last_third_and_by_what_was_played_with_it(recwarn):
    class Early(Priced):
        resets = 0

        def reset(self, **how):
            self.resets += 1
            return super().reset(**how)

        def step(self, action):
            *answer, _ = super().step(action)
            return *answer, {"cost": 20.0 if self.resets <= 40 else 0.5}

    early = agent(Early()).learn(60)  # the first two thirds are over the budget, the last is not
    assert early.learned.costs[:30].min() > 30.0
    early.with_budget(1.0).learn(29)  # too few episodes of its own to be judged by
    assert not recwarn.list
    with pytest.warns(UserWarning, match="the last 10 episodes cost 2 on average, of a budget of 1"):
        early.with_budget(1.0).learn(30)


def test_a_mask_is_asked_for_and_has_to_fit():
    lift = agent(Lift(), budget=4.5, horizon=8).learn(2)
    refused(lambda: lift.predict(0, 0), r'action_mask is missing.*give info\["action_mask"\]')
    assert lift.predict(0, 0, action_mask=[0, 0, 1]) == 2
    refused(lambda: lift.predict(0, 0, action_mask=[1, 1]), "must hold 3 times true or false")
    refused(lambda: lift.predict(0, 0, action_mask=[0, 0, 0]), "action_mask allows no action")


def test_a_step_is_asked_for_and_has_to_be_one_of_the_horizon():
    done = agent().learn(2)
    refused(lambda: done.predict(0), "step is missing: the best actions depend on it")
    for deterministic in (True, False):
        refused(lambda d=deterministic: done.predict(0, 4, deterministic=d), "step is 4, but must be a whole number")


def test_a_loaded_agent_knows_that_there_are_masks(tmp_path):
    file = agent(Lift(), budget=4.5, horizon=8).learn(2).save(tmp_path / "lift.npz")
    refused(lambda: Agent.load(file, Lift()).predict(0, 0), "action_mask is missing")


def test_what_is_learnt_and_what_is_played_have_the_same_names():
    done = agent().learn(3)
    for each in (done.learned, done.evaluate(3)):
        assert each.rewards.shape == each.lengths.shape == (3,)
        assert each.costs.shape == (3, 1)
        assert each.budget.tolist() == [30.0]


def test_actions_that_are_no_numbers_are_named():
    class Pushed(Priced):
        action_space = Box(-1.0, 1.0, (1,))

    refused(lambda: agent(Pushed()), r"actions are Box\(.*not Discrete\(n\); a wrapper can offer a few")
