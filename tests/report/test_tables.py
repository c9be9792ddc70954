"""Tables of summaries: nothing is cut, columns can be chosen, and the LaTeX table says what its numbers are."""

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from benchmarks.forger import Forger
from omdpd.experiments.spec import Experiment
from omdpd.play.rows import SUMMARY
from omdpd.problem.arrays import InvalidInputError
from omdpd.report.labels import RunLabel, told_apart
from omdpd.report.results import mean_of, summaries
from omdpd.report.stored import all_runs
from omdpd.report.study import load_study
from omdpd.report.tables import columns_named, formatted, print_table
from omdpd.storage.sealed import sealed_toml
from tests.references.named import LEARNERS, NATURES, WORLDS
from tests.references.studies import play

ONES = {"text": "a", "whole": 1, "number": 1.0, "numbers": [1.0], "limits": [1.0], "range": [0.0, 1.0], "truth": True}


def record(**changed):
    return {name: ONES[column.kind] for name, column in SUMMARY.items()} | changed


def study(worlds=("garnet",), n=5):
    """Long names, large numbers, and curves that grow like K^0.5 with some noise."""
    rng, found = np.random.default_rng(0), []
    for world in worlds:
        for learner in ("ProximalOMDPD.standard(exploration=0.25)", "A_mine"):
            for seed in range(n):
                late = 12345.0 + 1000.0 * rng.random()
                found.append(
                    record(
                        world=world, nature="noisy", learner=learner, seed=seed, episodes=3000, early_episode=300,
                        regret=-late if learner == "A_mine" else late, violation=late, weak_violation=late,
                        early_regret=late / 3.2, early_violation=late / 3.1, budget=[2.5], seconds=10.6,
                    )
                )  # fmt: skip
    return found


def shown(records, width, terminal=True, columns=()):
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    print_table(console, records, columns)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("terminal", [True, False])
def test_no_number_and_no_header_is_cut(width, terminal):
    told = shown(study(), width, terminal)
    heads = next(line for line in told.splitlines() if "nature, learner" in line).split()[2:]
    whole = {"regret", "violation", "weak", "exp", "r", "v", "s/run"}
    assert {*heads} <= whole
    for key in ("regret", "violation"):
        for learner in ("ProximalOMDPD.standard(exploration=0.25)", "A_mine"):
            mean = mean_of([each for each in study() if each["learner"] == learner], key)
            assert f"{mean.mean:.0f} ± {mean.half:.0f}" in told
    if terminal and width == 80:
        assert "left out for want of room: s/run, weak" in told
    else:
        assert ("left out" in told) == (terminal and width <= 100)


def test_columns_are_chosen_by_their_headers_or_their_names():
    told = shown(study(), 80, columns=columns_named("exp v, violation"))
    assert re.search(r"nature, learner\s+exp v\s+violation\s*\n", told)
    lines = formatted(study(), "markdown", columns_named("weak")).splitlines()
    assert lines[0] == "| world | nature | learner | runs | budget | weak |"
    rows = list(csv.DictReader(io.StringIO(formatted(study(), "csv", ["violation"]))))
    assert [name for name in rows[0] if "violation" in name] == ["violation", "violation_half"]
    with pytest.raises(
        InvalidInputError, match=r"no column 'violaton' \(did you mean 'violation'\?\); there are regret"
    ):
        columns_named("violaton")


def test_every_mean_has_its_interval_where_the_csv_has_one():
    (row, *_) = csv.DictReader(io.StringIO(formatted(study(), "csv")))
    (_, _, line, *_) = formatted(study(), "markdown", ["weak_violation"]).splitlines()
    assert f"{float(row['weak_violation']):.0f} ± {float(row['weak_violation_half']):.0f}" in line


def test_a_latex_table_says_what_it_shows_and_names_worlds():
    text = formatted(study(("garnet", "streaming")), "latex")
    caption = next(line for line in text.splitlines() if line.startswith(r"\caption"))
    assert (
        r"noisy: means over 5 seeds $\pm$ half of Student's 95 \% interval, after 3000 episodes, budget 2.5" in caption
    )
    assert "exp v: growth of violation as a power of K" in caption
    assert "bootstrap interval" in caption
    lines = text.splitlines()
    assert r"world & learner & regret & exp r & violation & exp v \\" in lines
    body = [line for line in lines if line.startswith(("garnet", "streaming"))]
    assert [line.split(" & ")[0] for line in body] == ["garnet"] * 2 + ["streaming"] * 2
    assert r"streaming & A\_mine & $-$1" in text  # a minus, and as in the records: not in the order of the alphabet
    assert body[3].split(" & ")[3] == "--"
    assert body[2].count(r"$\pm$") == 2
    assert text.count("&") == 5 * 5
    single = formatted(study(), "latex", ["violation"])
    assert r"\caption{garnet, noisy: means" in single
    assert "bootstrap" not in single
    assert r"learner & violation \\" in single
    assert "$\\pm$" not in formatted(study(n=2), "latex")


def test_chosen_settings_have_a_column():
    records = [each | {"settings": "step=0.1"} for each in study()]
    assert all(line.endswith("| step=0.1 |") for line in formatted(records, "markdown").splitlines()[2:])
    assert r"& step=0.1 \\" in formatted(records, "latex")


def test_results_are_in_the_order_of_the_experiments_file(tmp_path):
    names = ("Uniform", "SinhaVaze", "OptDual")
    learners = tuple(LEARNERS[name]() for name in names)
    natures = (NATURES["scaled"](), NATURES["adaptive"]())
    worlds = (WORLDS["random_dirichlet"](n_states=3, n_actions=2, horizon=3),)
    folder = play(Experiment(worlds, natures, learners[:2], 6, 2), tmp_path / "out")
    groups = list(dict.fromkeys((each["nature"], each["learner"]) for each in summaries(folder)))
    wanted = [(nature, name) for nature in ("scaled", "adaptive") for name in names[:2]]
    assert groups == wanted
    assert list(dict.fromkeys(run.labels[1:] for run in all_runs(folder))) == wanted
    assert [key[1:] for key in load_study(folder).groups()] == wanted


def test_a_run_of_the_default_of_version_0_2_is_no_seed_of_today_s(tmp_path):
    """That version wrote its name, `standard`, and no `persistence`; its summary has that name too."""
    learners = (LEARNERS["ProximalOMDPD.settling"](), LEARNERS["ProximalOMDPD.standard"]())
    folder = play(Experiment((WORLDS["cyclic"](),), (NATURES["noisy"](),), learners, 6, 1), tmp_path / "both")
    (old,) = (run.path for run in all_runs(folder) if run.labels[2] == "ProximalOMDPD.settling")
    Forger(old).summary("learner", "ProximalOMDPD.standard")
    text = (old / "spec.toml").read_text().split("\n", 1)[1]
    (old / "spec.toml").write_bytes(sealed_toml(old.name, text.replace("settling", "standard")))
    assert [each["learner"] for each in summaries(folder)] == ["ProximalOMDPD.settling", "ProximalOMDPD.standard"]
    assert "persistence" not in text


def test_runs_of_different_lengths_are_not_averaged(tmp_path):
    """An experiment played for 6 episodes, and again for 12 in the same folder."""
    for episodes, seeds in ((6, 2), (12, 3)):
        learners = (LEARNERS["Uniform"](), LEARNERS["GreedyLP"](kappa=0.5))
        grid = Experiment((WORLDS["cyclic"](),), (NATURES["noisy"](),), learners, episodes, seeds)
        folder = play(grid, tmp_path / "both")
    found = [(each["learner"], each["episodes"]) for each in summaries(folder)]
    names = ("Uniform(episodes={})", "GreedyLP(kappa=0.5, episodes={})")
    wanted = [(name.format(k), k) for name in names for k, n in ((6, 2), (12, 3)) for _ in range(n)]
    assert sorted(found) == sorted(wanted)
    assert {run.labels[2] for run in load_study(folder).ordered()} == {name for name, _ in wanted}
    assert {run.labels[2] for run in load_study(folder).ordered()} == {name for name, _ in wanted}  # and not twice


def test_a_default_that_was_changed_does_not_hide_under_the_same_label(tmp_path):
    """A learner that nothing here knows has the label of whoever played it, who spelled no default."""
    same = RunLabel("w", "noisy", "Mine", 0, 5, None, None, parts=({}, {}, {"name": "Mine", "bonus": 0.5}))
    other = replace(same, parts=({}, {}, {"name": "Mine", "bonus": 0.25}))
    assert [each.learner for each in told_apart([same, other, same])] == [f"Mine(bonus={x})" for x in (0.5, 0.25, 0.5)]
    assert [each.learner for each in told_apart(told_apart([same, other]))] == ["Mine(bonus=0.5)", "Mine(bonus=0.25)"]
    assert told_apart([same, same]) == [same, same]


def test_a_constraint_without_a_limit_is_called_so():
    assert "budget 2.5, no limit" in " ".join(shown([record(budget=[2.5, None])], 120).split())
