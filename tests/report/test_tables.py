"""Tables of summaries: nothing is cut, columns can be chosen, and the LaTeX table says what its numbers are."""

import csv
import io
import re

import numpy as np
import pytest
from rich.console import Console

from omdpd.experiments.spec import Experiment
from omdpd.play.rows import SUMMARY
from omdpd.problem.arrays import InvalidInputError
from omdpd.report.results import mean_of, summaries
from omdpd.report.stored import all_runs
from omdpd.report.study import load_study
from omdpd.report.tables import columns_named, formatted, print_table
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


def test_a_constraint_without_a_limit_is_called_so():
    assert "budget 2.5, no limit" in " ".join(shown([record(budget=[2.5, None])], 120).split())
