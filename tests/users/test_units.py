"""A user whose rewards are euros and whose costs are hours."""

import csv
import io
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from rich.console import Console

from omdpd import (
    CMDP,
    BanditFeedback,
    FullFeedback,
    InvalidInputError,
    Labels,
    ProximalOMDPD,
    Session,
    Setting,
    Trajectory,
    Uniform,
    load_problem,
    plot,
    run,
    save_problem,
)
from omdpd.cli.experiments import ls
from omdpd.experiments import load_experiment, run_experiment
from omdpd.experiments.executors import InProcess
from omdpd.gym.learning import Task
from omdpd.report.curves import load_curves
from omdpd.report.tables import formatted, print_table
from omdpd.worlds.card import problem_card

H, S, A = 4, 3, 2
LOW, HIGH, HOURS = -200.0, 300.0, 8.0


def tables():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(S), (S, A)), rng.random((S, A)), rng.random((2, S, A))


def plain(budget=(2.8, 1.5)):
    p, r, c = tables()
    return CMDP.from_arrays(p, r, c, budget=budget, horizon=H)


def in_euros(budget=(2.8, 1.5)):
    """The same problem, with rewards in euros and both costs in hours."""
    p, r, c = tables()
    return CMDP.from_arrays(
        p, LOW + (HIGH - LOW) * r, HOURS * c, budget=HOURS * np.array(budget), horizon=H,
        reward_range=(LOW, HIGH),
    )  # fmt: skip


def test_the_optimum_is_in_the_users_units():
    here, there = in_euros().solve(), plain().solve()
    assert here.value == pytest.approx(H * LOW + (HIGH - LOW) * there.value)
    assert here.evaluation.costs == pytest.approx(HOURS * there.evaluation.costs)
    assert here.shadow_prices == pytest.approx((HIGH - LOW) / HOURS * there.shadow_prices)
    assert here.slater_gap == pytest.approx(HOURS * there.slater_gap)
    assert problem_card(in_euros()).value == pytest.approx(here.value)


def test_a_history_is_in_the_users_units_and_so_is_its_figure():
    there = run(plain(), Uniform(), n_episodes=40)
    here = run(in_euros(), Uniform(), n_episodes=40)
    assert here.values == pytest.approx(H * LOW + (HIGH - LOW) * there.values)
    assert here.excess == pytest.approx(HOURS * there.excess)
    assert here.regret == pytest.approx((HIGH - LOW) * there.regret)
    assert here.violation == pytest.approx(HOURS * there.violation)
    for name in ("regret", "regret_positive", "lagrangian_regret"):
        assert getattr(here.scores, name) == pytest.approx((HIGH - LOW) * getattr(there.scores, name)), name
    for name in ("violation", "weak_violation", "late_violation"):
        assert getattr(here.scores, name) == pytest.approx(HOURS * getattr(there.scores, name)), name
    assert here.scores.violation_exponent == pytest.approx(there.scores.violation_exponent)
    assert here.violation[-1] > 0.0
    drawn = plot([here]).axes[2].lines[0].get_ydata()  # the mean of the cumulative regret
    assert drawn[-1] == pytest.approx(here.regret[-1])
    assert f"regret {here.scores.regret:.4g}, strong violation {here.scores.violation:.4g}" in repr(here)
    assert len(repr(here)) < 200


def test_a_reward_outside_the_range_is_named_and_the_range_is_asked_for():
    p, r, c = tables()
    with pytest.raises(
        InvalidInputError, match=r"= 300 is outside \[0, 1\]: give the range of rewards as reward_range"
    ):
        CMDP.from_arrays(p, np.full((S, A), 300.0), c, budget=2.5, horizon=H, reward_range=(0, 1))
    with pytest.raises(InvalidInputError, match=r"is outside \[0, 200\]"):
        CMDP.from_arrays(p, 300.0 + r, c, budget=2.5, horizon=H, reward_range=(0, 200))
    for wrong in ((1.0, 1.0), (2.0, 1.0), (0.0, np.inf), "01", (0.0, 1.0, 2.0)):
        with pytest.raises(InvalidInputError, match="reward_range"):
            CMDP.from_arrays(p, r, c, budget=2.5, horizon=H, reward_range=wrong)


def test_a_file_of_tables_in_euros_is_read_and_kept_in_them(tmp_path):
    p, r, c = tables()
    np.savez(
        tmp_path / "euros.npz", transition=p, reward=LOW + (HIGH - LOW) * r, cost=c, budget=[2.8, 1.5], horizon=H,
        reward_range=[LOW, HIGH],
    )  # fmt: skip
    read = load_problem(tmp_path / "euros.npz")
    assert read.reward_range == (LOW, HIGH)
    again = load_problem(save_problem(read, tmp_path / "again.npz"))
    assert again.solve().value == pytest.approx(read.solve().value)
    assert np.array_equal(again.reward, read.reward)


@pytest.mark.parametrize("budget", ["2.0", 2.0 + 0j, ["2.0", "1.0"], b"2", None, [[1.0]]])
def test_a_budget_that_is_no_number_is_refused_everywhere(budget):
    p, r, c = tables()
    if budget is not None:  # no limit
        with pytest.raises(InvalidInputError, match="budget"):
            CMDP.from_arrays(p, r, c, budget=budget, horizon=H)
        with pytest.raises(InvalidInputError, match="budget"):
            Setting(H, S, A, 2, budget=budget)
    with pytest.raises(InvalidInputError, match="budget"):
        _ = Task(gymnasium.make("FrozenLake-v1"), horizon=3, budget=budget).limits


def setting(**more):
    return Setting(H, S, A, 2, budget=[20.0, 14.4], cost_scale=HOURS, reward_range=(LOW, HIGH), **more)


def raw_episode(rng):
    states, actions = rng.integers(S, size=H), rng.integers(A, size=H)
    return Trajectory(states, actions), rng.uniform(LOW, HIGH, H), rng.uniform(0.0, HOURS, (2, H))


def test_a_session_in_the_users_units_is_the_session_in_the_learners():
    raw, scaled = Session(ProximalOMDPD.cautious(), setting()), Session(ProximalOMDPD.cautious(), setting().scaled())
    rng = np.random.default_rng(0)
    for _ in range(5):
        path, rewards, costs = raw_episode(rng)
        raw.update(BanditFeedback(path, rewards, costs))
        excess = (costs - np.array([[20.0], [14.4]]) / H) / HOURS
        scaled.update(BanditFeedback(path, (rewards - LOW) / (HIGH - LOW), excess))
    assert np.array_equal(raw.policy(), scaled.policy())


def test_whole_cost_tables_are_in_the_users_units_too():
    raw = Session(ProximalOMDPD.cautious(), setting(feedback="full"))
    scaled = Session(ProximalOMDPD.cautious(), setting(feedback="full").scaled())
    rng = np.random.default_rng(0)
    path, rewards, _ = raw_episode(rng)
    cost = rng.uniform(0.0, HOURS, (2, H, S, A))
    raw.update(FullFeedback(path, rewards, cost))
    excess = (cost - np.array([20.0, 14.4])[:, None, None, None] / H) / HOURS
    scaled.update(FullFeedback(path, (rewards - LOW) / (HIGH - LOW), excess))
    assert np.array_equal(raw.policy(), scaled.policy())


def test_feedback_that_leaves_the_declared_range_is_refused_and_changes_nothing():
    session = Session(ProximalOMDPD.cautious(), setting())
    path, rewards, costs = raw_episode(np.random.default_rng(0))
    rewards[2] = 301.0
    with pytest.raises(
        InvalidInputError, match=r"rewards\[2\] \(step 2\) = 301 is outside \[-200, 300\]: declare a wider"
    ):
        session.update(BanditFeedback(path, rewards, costs))
    rewards[2], costs[1, 3] = 0.0, 20.0
    told = r"costs\[1, 3\] \(constraint 1, step 3\) = 20 is further from budget / horizon"
    with pytest.raises(InvalidInputError, match=told):
        session.update(BanditFeedback(path, rewards, costs))
    assert session.episodes == 0


def test_without_units_the_error_says_how_to_declare_them():
    session = Session(ProximalOMDPD.cautious(), Setting(H, S, A, 2))
    path, rewards, costs = raw_episode(np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="rewards in other units need a reward_range in the setting"):
        session.update(BanditFeedback(path, rewards, costs))
    with pytest.raises(InvalidInputError, match="costs in other units need budget and cost_scale in the setting"):
        session.update(BanditFeedback(path, np.zeros(H), costs))


def test_a_session_in_units_lasts_on_disk_and_other_units_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    memory = Session(ProximalOMDPD.cautious(), setting())
    for _ in range(3):
        episode = BanditFeedback(*raw_episode(rng))
        memory.update(episode)
        with Session.open(tmp_path, ProximalOMDPD.cautious(), setting(), snapshot_every=2) as session:
            session.update(episode)
    with Session.open(tmp_path, ProximalOMDPD.cautious(), setting()) as session:
        assert session.episodes == 3
        assert np.array_equal(session.policy(), memory.policy())
    with pytest.raises(InvalidInputError, match="another learner or setting"):
        Session.open(tmp_path, ProximalOMDPD.cautious(), setting().scaled())


@pytest.mark.parametrize(
    ("units", "sentence"),
    [
        ({"cost_scale": 2.0}, "cost_scale is given without a budget"),
        ({"budget": [2.0, 2.0], "cost_scale": 0.0}, r"cost_scale\[0\] \(constraint 0\) = 0 is not positive"),
        ({"budget": [1.0, 2.0, 3.0]}, "budget is 3 numbers, but there are"),
        ({"budget": 2.0}, "budget is 1 number, but there are 2 costs: cost 0, cost 1"),
        ({"budget": [2.0], "names": ("money", "time")}, "budget is 1 number, but there are 2 costs: money, time"),
        ({"reward_range": (1.0, 0.0)}, "the smaller one first"),
    ],
)
def test_units_that_make_no_sense_are_refused(units, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Setting(H, S, A, 2, **units)


def test_a_session_of_before_there_were_units_keeps_its_fingerprint(tmp_path):
    Session.open(tmp_path, Uniform(), Setting(3, 4, 2, n_episodes=7)).close()
    # Computed by the version before: sha256 over the names and values of learner and setting.
    assert (
        "7e5f834be7f7d8f8a4e916b067f7b6cc00edd2aae6b8a52fbb59ebd7cae9d35c"
        in Path(tmp_path / "session.json").read_text()
    )


def stored(tmp_path, cmdp):
    """The records and the folder of an experiment on a user's problem file."""
    save_problem(cmdp, tmp_path / "mine.npz")
    (tmp_path / "x.toml").write_text(
        'episodes = 8\nseeds = 1\nworlds = [{name = "file", path = "mine.npz"}]\nnatures = [{name = "fixed"}]\n'
        'learners = [{name = "Uniform"}]\n'
    )
    return run_experiment(load_experiment(tmp_path / "x.toml"), tmp_path / "results", InProcess()), tmp_path / "results"


def test_tables_and_figures_of_stored_runs_are_in_the_users_units(tmp_path):
    """The same run as a history: euros and hours, in every table and in every figure."""
    p, r, c = tables()
    euros = LOW + (HIGH - LOW) * r
    cmdp = CMDP.from_arrays(p, euros, HOURS * c[1], budget=1.5 * HOURS, horizon=H, reward_range=(LOW, HIGH))
    records, folder = stored(tmp_path, cmdp)
    here = run(cmdp, Uniform(), n_episodes=8).scores
    assert records[0]["regret"] == pytest.approx(here.regret / (HIGH - LOW))  # the files keep what learners see
    numbers = next(csv.DictReader(io.StringIO(formatted(records, "csv"))))
    for name in ("regret", "violation", "lagrangian_regret", "weak_violation"):
        assert float(numbers[name]) == pytest.approx(getattr(here, name)), name
    assert here.violation > 0.0
    shown = io.StringIO()
    print_table(Console(file=shown, width=120), records)
    assert f"{here.regret:.0f}" in shown.getvalue()
    assert "(budget 12)" in shown.getvalue()
    (curves,) = load_curves(folder / "runs", records)
    assert curves.violation.mean[-1] == pytest.approx(here.violation)
    assert curves.regret.mean[-1] == pytest.approx(here.regret)
    (as_learnt,) = load_curves(folder / "runs", records, as_learnt=True)
    assert as_learnt.violation.mean[-1] == pytest.approx(here.violation / cmdp.cost_scale[0])


def test_constraints_with_scales_of_their_own_stay_as_learners_see_them_and_that_is_said(tmp_path):
    p, r, c = tables()
    both = c * np.array([HOURS, 3.0])[:, None, None]
    cmdp = CMDP.from_arrays(p, r, both, budget=[2.8 * HOURS, 1.5 * 3.0], horizon=H)
    records, folder = stored(tmp_path, cmdp)
    first, second = records[0]["cost_scale"]
    assert first != second
    note = f"budget 22.4, 4.5; here costs ÷ {first:.4g}, {second:.4g}"
    shown = io.StringIO()
    print_table(Console(file=shown, width=160), records)
    assert note in shown.getvalue()
    assert f"budget {load_curves(folder / 'runs', records)[0].budget}" == note
    assert note.removeprefix("budget ") in formatted(records, "markdown")
    assert note.removeprefix("budget ") in formatted(records, "latex")
    numbers = next(csv.DictReader(io.StringIO(formatted(records, "csv"))))
    assert (numbers["budget"], numbers["costs_divided_by"]) == ("22.4, 4.5", f"{first:.4g}, {second:.4g}")


def test_runs_that_are_not_finished_are_listed_in_the_users_units_too(tmp_path, capsys):
    p, r, c = tables()
    cmdp = CMDP.from_arrays(p, r, HOURS * c[1], budget=1.5 * HOURS, horizon=H)
    (record,), folder = stored(tmp_path, cmdp)
    ls(folder)
    finished = capsys.readouterr().out.splitlines()[-1].split()
    (folder / "runs" / record["run"] / "summary.json").unlink()
    ls(folder)
    unfinished = capsys.readouterr().out.splitlines()[-1].split()
    assert (finished[-4], unfinished[-4]) == ("finished", "unfinished")
    assert unfinished[-5] == finished[-5] == "12"  # the budget
    assert unfinished[-1] == finished[-1] == f"{run(cmdp, Uniform(), n_episodes=8).scores.violation:.1f}" != "0.0"
    (tmp_path / "mine.npz").unlink()  # the world cannot be built any more: what the learner saw is shown
    ls(folder)
    assert capsys.readouterr().out.splitlines()[-1].split()[-1] == f"{record['violation']:.1f}"


def test_tables_in_single_precision_are_taken_and_that_is_said_once(tmp_path):
    p, r, c = (table.astype(np.float32) for table in tables())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            cmdp = CMDP.from_arrays(p, r, c, budget=[2.8, 1.5], horizon=H)
    assert [str(warning.message) for warning in told] == [
        "probabilities in single precision: rows within 1e-06 of one are scaled to sum to one"
    ]
    assert cmdp.solve().value == pytest.approx(plain().solve().value, abs=1e-5)
    np.savez(tmp_path / "single.npz", transition=p, reward=r, cost=c, budget=[2.8, 1.5], horizon=H)
    with pytest.warns(UserWarning, match="single precision"):
        assert load_problem(tmp_path / "single.npz").solve().value == pytest.approx(cmdp.solve().value)


def test_a_planner_needs_no_range_and_a_learner_asks_for_it():
    """The same values, policy and prices; only what is learnt needs to know what a step can earn."""
    p, r, c = tables()
    euros = 120.0 * r - 70.0
    given, own = (CMDP.from_arrays(p, euros, c[0], 2.8, horizon=H, reward_range=span) for span in ((-70, 50), None))
    assert own.solve().value == pytest.approx(given.solve().value, rel=1e-12)
    assert own.solve().shadow_prices == pytest.approx(given.solve().shadow_prices, rel=1e-9)
    assert own.curve().values == pytest.approx(given.curve().values)
    run(given, Uniform(), "noisy", 3)
    with pytest.raises(InvalidInputError, match=r"to learn, give from_arrays .* as reward_range"):
        run(own, Uniform(), "noisy", 3)
    with pytest.raises(InvalidInputError, match="as reward_range"):
        run(own.with_budget(3.0), Uniform(), "noisy", 3)
    same = CMDP.from_arrays(p, np.full((S, A), -5.0), c[0], budget=None, horizon=H)
    assert same.solve().value == pytest.approx(-5.0 * H)


def test_names_are_given_with_the_tables():
    p, r, c = tables()
    labels = Labels(actions=tuple(f"do {a}" for a in range(A)), constraints=("hours", "litres"))
    cmdp = CMDP.from_arrays(p, r, c, [2.5, 2.5], horizon=H, labels=labels)
    assert cmdp.labels == labels
    assert "hours" in str(cmdp.solve())
    with pytest.raises(InvalidInputError, match="there are 2 state labels"):
        CMDP.from_arrays(p, r, c, [2.5, 2.5], horizon=H, labels=Labels(states=("a", "b")))
    fair = [(0.5, 0), (0.5, 1)]
    coin = CMDP.from_functions(
        (4, 2, 1), lambda s, a: fair, lambda s, a: 9.0 * s, lambda s, a: s, 3.0, labels=Labels(states=("head", "tail"))
    )
    assert coin.labels.states == ("head", "tail")
    assert coin.solve().value == pytest.approx(18.0)
