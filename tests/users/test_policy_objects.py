"""A user who wants to keep, look at, hand on and use what was learnt."""

import csv
import json

import matplotlib
import numpy as np
import pytest

from omdpd import (
    BanditFeedback,
    InvalidInputError,
    Policy,
    ProximalOMDPD,
    Session,
    Setting,
    Trajectory,
    Uniform,
    load_run,
    plot,
    run,
)
from omdpd.experiments import load_experiment, run_experiment
from omdpd.experiments.executors import InProcess
from omdpd.gym import learn
from omdpd.problem.cmdp import Labels
from omdpd.worlds import WORLDS
from omdpd.worlds.card import natural_value

H, S, A = 3, 4, 2
EXPERIMENT = """
episodes = 6
seeds = {seeds}
policies = "{policies}"
worlds = [{{name = "streaming"}}]
natures = [{{name = "fixed"}}]
learners = [{{name = "Uniform"}}]
"""


def some_policy():
    table = np.random.default_rng(0).dirichlet(np.ones(A), (H, S))
    return Policy(table, Labels(states=("idle", "busy", "full", "broken"), actions=("rest", "work")))


def test_a_run_a_session_and_an_environment_give_a_policy_that_acts():
    world, rng = WORLDS["streaming"](), np.random.default_rng(0)
    history = run(world, Uniform(), n_episodes=2)
    session = Session(ProximalOMDPD.cautious(), Setting(2, 3, 2))
    learned = learn("FrozenLake-v1", Uniform(), 2, horizon=3, budget=1.0, cost=lambda s, a, t: 0.0)
    for policy in (history.policy, session.policy(), learned.policy):
        assert isinstance(policy, Policy)
        drawn = [policy.act(1, 0, rng) for _ in range(200)]
        assert set(drawn) == set(range(policy.shape[2]))
    assert history.policy.labels.actions == world.labels.actions


def test_actions_are_drawn_with_their_probabilities():
    policy, rng = some_policy(), np.random.default_rng(1)
    drawn = [policy.act(2, 1, rng) for _ in range(4000)]
    assert np.mean(drawn) == pytest.approx(policy.at(2, 1)[1], abs=0.03)
    with pytest.raises(InvalidInputError, match="step is 3, but must be a whole number between 0 and 2"):
        policy.act(3, 0, rng)
    with pytest.raises(InvalidInputError, match=r"state is 1\.5, but must be a whole number between 0 and 3"):
        policy.act(0, 1.5, rng)


def test_an_action_needs_no_generator_and_takes_no_seed_for_one():
    policy = some_policy()
    assert {policy.act(0, 0) for _ in range(200)} == {0, 1}
    with pytest.raises(InvalidInputError, match=r"^rng is 0, but must be a generator: make one with numpy\.random"):
        policy.act(0, 0, 0)


def test_a_policy_is_evaluated_exactly_in_a_known_problem():
    world = WORLDS["inventory"]()
    history = run(world, Uniform(), n_episodes=1)
    found = history.policy.evaluate(world)
    assert found.value == pytest.approx(natural_value(world, history.rows[0].value), abs=1e-12)
    excess = np.array(history.rows[0].excess) * world.cost_scale
    assert np.allclose(found.costs - found.budget, excess, rtol=0.0, atol=1e-10)
    assert found.safe == bool((excess <= 0.0).all())
    assert f"earns {found.value:.6g}" in str(found)


def test_a_policy_of_other_sizes_is_refused():
    with pytest.raises(InvalidInputError, match="policy has length 3 along its step axis"):
        some_policy().evaluate(WORLDS["streaming"]())


def test_a_saved_policy_comes_back_to_the_last_bit_with_its_labels(tmp_path):
    policy = some_policy()
    again = Policy.load(policy.save(tmp_path / "new folder" / "policy.npz"))
    assert np.array_equal(again, policy)
    assert again.labels == policy.labels
    with np.load(tmp_path / "new folder" / "policy.npz") as plain:
        assert np.array_equal(plain["policy"], np.asarray(policy))


def test_a_policy_that_numpy_saved_is_read_too(tmp_path):
    np.savez(tmp_path / "mine.npz", policy=np.full((1, 2, 2), 0.5))
    assert Policy.load(tmp_path / "mine.npz").shape == (1, 2, 2)


def test_other_programs_read_it_as_json_and_csv(tmp_path):
    policy = some_policy()
    content = json.loads(policy.save(tmp_path / "policy.json").read_text())
    assert np.array_equal(content["policy"], np.asarray(policy))
    assert content["actions"] == ["rest", "work"]
    with open(policy.save(tmp_path / "policy.csv"), newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == H * S * A
    for row in rows:
        place = (int(row["step"]), int(row["state"]), int(row["action"]))
        assert float(row["probability"]) == policy[place]
        assert row["state_name"] == policy.labels.states[place[1]]


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"other": np.zeros(2)}, "it has no array 'policy', but other"),
        ({"policy": np.full((1, 1, 2), 0.7)}, r"policy\[0, 0\] \(step 0, state 0\) = 1.4 is the sum of a row"),
        ({"policy": np.full((1, 1, 2), np.nan)}, "nan is not a finite number"),
        ({"policy": np.full((1, 1, 2), 0.5), "labels": np.frombuffer(b"{", dtype=np.uint8)}, "labels cannot be read"),
        ({"policy": np.full((1, 1, 2), 0.5), "labels": np.frombuffer(b'{"states": ["a", "b"]}', dtype=np.uint8)},
         "2 state labels, but 1"),
        ({"policy": np.full((1, 1, 2), 0.5), "labels": np.frombuffer(b'{"states": ["\\u001b[2J"]}', dtype=np.uint8)},
         "not printable"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_policy_is_refused_with_a_sentence(tmp_path, arrays, sentence):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InvalidInputError, match=sentence) as told:
        Policy.load(tmp_path / "bad.npz")
    assert str(tmp_path / "bad.npz") in str(told.value)


def test_a_missing_file_and_an_unknown_ending_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"no\.npz is missing"):
        Policy.load(tmp_path / "no.npz")
    with pytest.raises(InvalidInputError, match=r"policy\.txt should end in one of \.npz, \.json, \.csv"):
        some_policy().save(tmp_path / "policy.txt")


def test_it_is_printed_as_a_table_with_labels_and_is_short_in_a_prompt():
    policy = some_policy()
    lines = str(policy).splitlines()
    assert lines[0].split() == ["step", "state", "rest", "work"]
    assert lines[2].split() == ["0", "busy", *(f"{p:.3f}" for p in policy.at(0, 1))]
    assert len(lines) == 1 + H * S
    assert repr(policy) == "Policy(3 steps, 4 states, 2 actions)"
    assert "broken" in policy._repr_html_()


def test_a_long_table_is_cut_and_a_stationary_one_is_printed_once():
    long = Policy(np.random.default_rng(0).dirichlet(np.ones(2), (50, 50)))
    assert str(long).splitlines()[-1] == "... and 2460 more lines"
    assert len(long.lines(most=None)) == 2501
    assert len(long._repr_html_()) < 10_000
    still = Policy(np.broadcast_to([[0.5, 0.5], [1.0, 0.0]], (9, 2, 2)))
    assert str(still).splitlines()[0].split() == ["state", "action", "0", "action", "1"]
    assert len(str(still).splitlines()) == 3


def test_labels_from_elsewhere_are_escaped_in_a_notebook():
    policy = Policy(np.ones((1, 1, 1)), Labels(states=("<script>",)))
    assert "<script>" not in policy._repr_html_()


def test_it_is_drawn_as_a_heat_map_without_pyplot(tmp_path):
    before = matplotlib.get_backend()
    figure = plot(some_policy(), tmp_path / "policy.svg", title="what was learnt")
    text = (tmp_path / "policy.svg").read_text()
    assert len(figure.axes) == A + 1  # one panel per action, one scale
    for word in ("chance of: rest", "chance of: work", "broken", "what was learnt"):
        assert word in text
    assert matplotlib.get_backend() == before
    assert len(plot(Policy(np.full((2, 3, 20), 0.05))).axes) == 2  # the likeliest action, and its scale


def test_a_table_of_ones_own_is_a_policy_if_its_rows_are_laws():
    assert Policy([[[0.5, 0.5]]]).shape == (1, 1, 2)
    with pytest.raises(InvalidInputError, match="is negative"):
        Policy([[[1.5, -0.5]]])
    with pytest.raises(ValueError, match="read-only"):
        some_policy().table[0, 0, 0] = 1.0


def test_numpy_takes_it_for_its_table():
    policy = some_policy()
    assert np.allclose(np.sum(policy, axis=2), 1.0)
    assert np.array_equal(np.asarray(policy) - policy, np.zeros((H, S, A)))
    assert policy[1, 2, 0] == policy.table[1, 2, 0]
    assert [row.shape for row in policy] == [(S, A)] * H


def test_a_stored_run_gives_its_last_policy_and_those_on_the_way(tmp_path):
    (tmp_path / "x.toml").write_text(EXPERIMENT.format(seeds=1, policies="log"))
    run_experiment(load_experiment(tmp_path / "x.toml"), tmp_path / "results", InProcess())
    found = load_run(tmp_path / "results")
    assert np.allclose(found.policy, 0.5)
    assert list(found.policies) == [1, 2, 3, 4, 5, 6]
    assert found.policy.labels.actions == WORLDS["streaming"]().labels.actions
    assert found.rows.n_rows == found.summary["episodes"] == 6
    assert repr(found) == "StoredRun(Uniform, streaming, fixed, seed 0, finished: 6 of 6 episodes)"
    assert repr(load_run(found.path)) == repr(found)
    assert "6 of 6" in found._repr_html_()


def test_a_run_that_kept_no_policies_or_is_one_of_many_says_what_to_do(tmp_path):
    (tmp_path / "x.toml").write_text(EXPERIMENT.format(seeds=2, policies="none"))
    run_experiment(load_experiment(tmp_path / "x.toml"), tmp_path / "results", InProcess())
    with pytest.raises(InvalidInputError, match="holds 2 runs: name one of them, for example"):
        load_run(tmp_path / "results")
    one = next((tmp_path / "results" / "runs").iterdir())
    with pytest.raises(InvalidInputError, match='kept no policies: run it with policies = "log"'):
        _ = load_run(one).policy
    with pytest.raises(InvalidInputError, match="holds no run"):
        load_run(tmp_path)


def test_a_policy_goes_wherever_a_table_does():
    session = Session(ProximalOMDPD.cautious(), Setting(2, 2, 2))
    states, actions, rng = [0], [], np.random.default_rng(0)
    for step in range(2):
        actions.append(session.policy().act(step, states[-1], rng))
        states.append(1)
    session.update(BanditFeedback(Trajectory(states[:2], actions), [0.0, 1.0], [[0.1, 0.1]]))
    assert session.episodes == 1
