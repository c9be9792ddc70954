"""A user who watches runs with tools of their own."""

import json

import numpy as np
import pytest

from omdpd import CMDP, InvalidInputError, ProximalOMDPD, Uniform, run
from omdpd.experiments import executor, load_experiment, run_experiment
from omdpd.experiments.executors import InProcess
from omdpd.gym import learn
from tests.references.instances import random_cmdp

EXPERIMENT = """
episodes = 5
seeds = 2
worlds = [{name = "streaming"}]
natures = [{name = "fixed"}]
learners = [{name = "Uniform"}]
"""


def test_a_callback_gets_every_row_in_order():
    rows = []
    history = run(
        random_cmdp(np.random.default_rng(0), 3, 4, 2), ProximalOMDPD.cautious(), "noisy", 7, callback=rows.append
    )
    assert rows == list(history.rows)
    assert [row.episode for row in rows] == list(range(1, 8))


def test_its_rows_are_in_the_users_units():
    p, r = np.full((2, 2, 2), 0.5), np.array([[100.0, 500.0], [100.0, 500.0]])
    cost = [[[0.0, 8.0], [0.0, 8.0]], [[3.0, 1.0], [3.0, 1.0]]]
    cmdp = CMDP.from_arrays(p, r, cost, budget=[9.0, 4.0], horizon=3, reward_range=(100, 500))
    rows = []
    history = run(cmdp, Uniform(), n_episodes=4, callback=rows.append)
    assert [row.value for row in rows] == pytest.approx(history.values.tolist())
    assert rows[0].value == pytest.approx(900.0)  # half of the steps earn 500, half 100
    assert np.array([row.excess for row in rows]) == pytest.approx(history.excess)
    assert rows[-1].excess == pytest.approx((3.0, 2.0))  # 12 of 9, 6 of 4
    assert [row.violation_sum for row in rows] == pytest.approx(history.violation.tolist())
    assert rows[-1].value_sum == pytest.approx(4 * 900.0)


def test_what_a_callback_raises_ends_the_run():
    def stop(row):
        if row.episode == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(random_cmdp(np.random.default_rng(0), 3, 4, 2), Uniform(), callback=stop)


def test_a_callback_with_several_seeds_is_refused_with_what_to_do():
    with pytest.raises(InvalidInputError, match="a callback goes with a single run: call run once for every seed"):
        run(random_cmdp(np.random.default_rng(0), 3, 4, 2), Uniform(), seeds=2, callback=print)


def test_learning_in_an_environment_calls_back_too(capsys):
    rows = []
    settings = {"horizon": 3, "budget": 1.0, "cost": lambda s, a, t: 0.25}
    learned = learn("FrozenLake-v1", Uniform(), 4, **settings, callback=rows.append, progress=True)
    assert [row.episode for row in rows] == [1, 2, 3, 4]
    assert [row.reward for row in rows] == learned.rewards.tolist()
    assert [row.costs for row in rows] == [tuple(c) for c in learned.costs.tolist()]
    assert [row.length for row in rows] == learned.lengths.tolist()
    assert capsys.readouterr().err == "Uniform: 4 of 4 episodes\n"


def test_learning_that_goes_on_from_a_checkpoint_calls_back_from_there_on(tmp_path):
    rows = []

    def stop_after_two(row):
        rows.append(row)
        if len(rows) == 2:
            raise KeyboardInterrupt

    given = ("FrozenLake-v1", Uniform(), 4)
    settings = {"horizon": 3, "budget": 1.0, "cost": lambda s, a, t: 0.25, "checkpoint": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        learn(*given, **settings, callback=stop_after_two)
    learn(*given, **settings, callback=rows.append)
    assert [row.episode for row in rows] == [1, 2, 3, 4]


def write_down(spec, row):
    """A callback that other processes can import: a line per row beside the working directory."""
    with open(f"rows-{spec.seed}.jsonl", "a") as stream:
        stream.write(json.dumps(row._asdict()) + "\n")


def test_an_experiment_calls_back_where_its_runs_are_played(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text(EXPERIMENT)
    experiment = load_experiment(tmp_path / "x.toml")
    seen = []
    run_experiment(experiment, tmp_path / "here", InProcess(), callback=lambda spec, row: seen.append((spec.seed, row)))
    assert [(seed, row.episode) for seed, row in seen] == [(seed, k) for seed in (0, 1) for k in range(1, 6)]
    with executor("local", 2) as workers:
        run_experiment(experiment, tmp_path / "there", workers, callback=write_down)
    for seed in (0, 1):
        lines = [json.loads(line) for line in (tmp_path / f"rows-{seed}.jsonl").read_text().splitlines()]
        assert [line["value"] for line in lines] == [row.value for s, row in seen if s == seed]
