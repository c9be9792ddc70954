"""Environments that misbehave are refused with a sentence that names the step and what came; nothing is cut to fit."""

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from benchmarks.strange_inputs.environments import Env
from omdpd import InvalidInputError, Uniform
from omdpd.gym import Bins, Learned, Task, from_gymnasium, learn, learn_by_context
from omdpd.gym.env import CMDPEnv


def learnt(env, **settings):
    return learn(env, Uniform(), 2, 4, 1.0, progress=False, **settings)


def refused(call, *words):
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("value", [1.7, "1", b"1", "0.5", None, [0, 1], float("nan"), {}, np.array(1.5), 3, -1, 10**30])
def test_an_observation_that_is_no_state_is_refused_with_its_step(value):
    came = "3" if value == 3 else repr(value)
    refused(lambda: learnt(Env(2, "observation", value)), "step 2 of the environment: the observation", came[:60])
    refused(lambda: learnt(Env(-1, "observation", value)), "reset of the environment: the observation", came[:60])


@pytest.mark.parametrize("value", [1.0, True, np.int8(1), np.array([1]), np.array(1.0)])
def test_a_whole_number_is_a_state_however_it_is_kept(value):
    assert learnt(Env(1, "observation", value)).lengths.tolist() == [4, 4]


@pytest.mark.parametrize("value", [None, "0.5", b"1", float("nan"), float("inf"), [0.1, 0.2], {}, 1j])
def test_a_reward_that_is_no_finite_number_is_refused(value):
    refused(lambda: learnt(Env(1, "reward", value)), f"step 1 of the environment: the reward is {value!r}")


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("info", None, "step 0 of the environment: info is None, but must be a dictionary"),
        ("info", [], "step 0 of the environment: info is []"),
        ("terminated", "no", "step 0 of the environment: terminated is 'no', but must be true or false"),
        ("truncated", None, "step 0 of the environment: truncated is None"),
        ("cost", None, "step 0 of the environment: the cost is not an array of numbers: it holds None"),
        ("cost", "0.1", "step 0 of the environment: the cost is not an array of numbers: it holds text"),
        ("cost", float("nan"), "step 0 of the environment: the cost[0] (constraint 0) = nan is not a finite number"),
        ("cost", [0.1, 0.2], "step 0 of the environment: a step reported 2 costs, but there are 1 budgets"),
        ("answer", None, "step 0 of the environment: it gave None, but must give 5 or 6 values"),
        ("answer", (0, 0.0, False, {}), "step 0 of the environment: it gave (0, 0.0, False, {}), but must give 5 or 6"),
        ("raise", ValueError("a\nb"), "step 0 of the environment: it raised ValueError: a b"),
        ("raise", SystemExit(0), "step 0 of the environment: it raised SystemExit: 0"),
    ],
)
def test_whatever_else_a_step_gives_is_named(place, value, words):
    refused(lambda: learnt(Env(0, place, value)), words)


@pytest.mark.parametrize("answer", [0, None, (0,), [0, {}], (0, None), (0, {}, {})])
def test_a_reset_that_is_not_of_today_is_refused(answer):
    refused(lambda: learnt(Env(-1, "answer", answer)), f"reset of the environment: it gave {answer!r}")


def test_a_reset_that_takes_no_seed_is_refused():
    refused(lambda: learnt(Env(reset=lambda: (0, {}))), "reset of the environment: it raised TypeError", "seed")


def test_spaces_that_no_policy_fits_are_refused_before_anything_is_allocated():
    refused(lambda: learnt(Env(observation_space=Discrete(10**9))), "1000000002 states", "need a policy of")
    refused(lambda: learnt(Env(action_space=Discrete(10**9))), "1000000000 actions", "need a policy of")
    refused(lambda: learnt(Env(), state_of=lambda o: 0, n_states=10**9), "lump states together")


def test_functions_of_the_users_own_are_named_with_the_step():
    def fails(*words):
        raise KeyError("door")

    refused(lambda: learnt(Env(), state_of=fails, n_states=3), "reset of the environment: state_of raised KeyError")
    refused(lambda: learnt(Env(), cost=fails), "step 0 of the environment: cost raised KeyError: 'door'")
    refused(lambda: learnt(Env(), observation_cost=fails), "step 0 of the environment: observation_cost raised")
    refused(lambda: learn_by_context(Task(Env(), 4, 1.0), Uniform(), 2, fails, 2), "context_of raised KeyError")
    refused(
        lambda: learn_by_context(Task(Env(), 4, 1.0), Uniform(), 2, lambda o: 0.5, 2), "is 0.5, but must be a whole"
    )
    bins = Bins.even([0.0], [2.0], 3)
    refused(lambda: learnt(Env(1, "observation", "x"), state_of=bins), "step 1 of the environment: the observation 'x'")


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ((1.0, 7, 0.0, False), "P[1][0] of Env leads to state 7 with probability 1, but states go from 0 to 1"),
        ((1.0, -1, 0.0, False), "P[1][0] of Env leads to state -1"),
        ((-0.5, 0, 0.0, False), "P[1][0] of Env leads to state 0 with probability -0.5"),
        ((1.0, 0.5, 0.0, False), "a next state in P[1][0] of Env is 0.5"),
        (("1", 0, 0.0, False), "a probability in P[1][0] of Env is '1'"),
        ((1.0, 0, float("nan"), False), "a reward in P[1][0] of Env is nan"),
        ((1.0, 0, 0.0, "no"), "an end in P[1][0] of Env is 'no'"),
        ((1.0, 0), "P[1][0] of Env has (1.0, 0), no (probability, next state, reward, ends)"),
        (None, "P[1][0] of Env has None"),
    ],
)
def test_a_table_that_is_none_is_refused_by_its_entry(outcome, words):
    good = [(1.0, 0, 0.5, False)]
    table = {0: {0: good, 1: good}, 1: {0: [outcome], 1: good}}
    refused(lambda: from_gymnasium(Env(P=table), 3, np.zeros((2, 2)), 1.0), words)


def test_first_states_outside_the_table_are_refused():
    table = {0: {0: [(1.0, 0, 0.5, False)]}}
    refused(lambda: from_gymnasium(Env(-1, "observation", 2, P=table), 3, np.zeros((1, 1)), 1.0), "from 2 to 2")


@pytest.mark.parametrize("action", [1.7, "1", None, [0, 1], -1, 2])
def test_our_own_environments_take_no_action_that_is_none(action):
    env = CMDPEnv("cyclic")
    env.reset(seed=0)
    refused(lambda: env.step(action if action != 2 else env.action_space.n), "the action is")


def test_what_was_loaded_is_played_in_an_environment_with_its_own_horizon_and_budget(tmp_path):
    learned = learnt(Env())
    loaded = Learned.load(learned.save(tmp_path / "learned.npz"))
    played = loaded.evaluate(Env(), n_episodes=3)
    assert played.lengths.tolist() == [4, 4, 4]
    assert played.budget.tolist() == [1.0]
    np.testing.assert_array_equal(played.rewards, learned.evaluate(n_episodes=3).rewards)
    refused(lambda: loaded.evaluate(3), "env is 3, but must be an environment")
