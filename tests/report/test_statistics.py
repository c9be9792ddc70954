"""Tables, figures, CSV and the page say the same numbers: one interval of a mean, one exponent of a mean curve."""

import csv
import io
import json

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from omdpd.experiments.spec import Experiment
from omdpd.report.curves import band, load_curves
from omdpd.report.results import growth_of, mean_of, summaries, with_early
from omdpd.report.statistics import Growth, half_width, power_of
from omdpd.report.study import load_study
from omdpd.report.tables import exponent_cell, formatted, print_table
from omdpd.storage.run_folder import RunFolder
from tests.references.named import LEARNERS, NATURES, WORLDS
from tests.references.studies import play

# A small world for as many episodes as an exponent asks for.
WORLD, EPISODES = WORLDS["random_dirichlet"](n_states=3, n_actions=2, horizon=3), 1000


def experiment(seeds):
    names = ("ProximalOMDPD.standard", "Uniform")
    learners = tuple(LEARNERS[name]() for name in names)
    return Experiment((WORLD,), (NATURES["noisy"](),), learners, EPISODES, seeds)


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """The folder of a study of four seeds."""
    folder = tmp_path_factory.mktemp("four")
    play(experiment(4), folder)
    return folder


def rows_of(records):
    return list(csv.DictReader(io.StringIO(formatted(records, "csv"))))


def terminal(records, width=200):
    console = Console(file=io.StringIO(), width=width)
    print_table(console, records)
    return console.file.getvalue()


def test_the_half_width_is_students():
    values = np.random.default_rng(0).normal(size=(5, 3))
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert np.allclose(half_width(values), (high - low) / 2.0)
    assert half_width(values[:2]) is None


def test_a_band_narrows_with_more_runs():
    values = np.random.default_rng(7).normal(size=(500, 4))
    # The width of a 95 % band of a mean is 2 x 1.96 standard errors.
    assert half_width(values).mean() == pytest.approx(1.96 / np.sqrt(500), rel=0.1)


def test_an_exponents_interval_encloses_a_known_exponent_and_is_the_same_every_time():
    rng = np.random.default_rng(0)
    scale = rng.uniform(0.5, 2.0, 20)
    noisy = Growth(250, 1000, scale * 250.0**0.5, scale * np.exp(rng.normal(0.0, 0.05, 20)) * 1000.0**0.5)
    low, high = noisy.interval
    assert low < 0.5 < high
    assert high - low < 0.1
    assert Growth(250, 1000, noisy.early, noisy.late).interval == (low, high)


def test_runs_that_grow_alike_have_an_interval_of_no_width():
    alike = Growth(250, 1000, np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    assert alike.interval == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("early", [[1.0, 2.0], [-5.0, 1.0, 6.0]])
def test_few_runs_and_means_that_may_be_negative_leave_an_exponent_without_an_interval(early):
    assert Growth(250, 1000, np.array(early), np.ones(len(early)) * 9.0).interval is None


def test_the_tables_half_width_is_the_figures_band_and_the_pages(four):
    records = summaries(four)
    curves = {c.learner: c for c in load_curves(four / "runs", records)}
    study = load_study(four)
    for i, (_, _, learner) in enumerate(study.groups()):
        group = [record for record in records if record["learner"] == learner]
        for key in ("regret", "violation"):
            table, drawn = mean_of(group, key), getattr(curves[learner], key)
            assert (table.mean, table.half) == pytest.approx((drawn.mean[-1], drawn.half[-1]), rel=1e-12)
            page = study.group(i)
            assert page["end"][key] == pytest.approx([table.mean, table.half], rel=1e-4)
            assert page[key]["high"][-1] == pytest.approx(table.mean + table.half, rel=1e-4)


def test_the_exponent_is_that_of_the_mean_curve_and_one_number_everywhere(four):
    records = summaries(four)
    rows = {row["learner"]: row for row in rows_of(records)}
    study = load_study(four)
    pages = {key[2]: study.group(i) for i, key in enumerate(study.groups())}
    for c in load_curves(four / "runs", records):
        group = [record for record in records if record["learner"] == c.learner]
        for key in ("regret", "violation"):
            drawn, table = getattr(c, key).growth, growth_of(group, key)
            assert drawn.exponent == table.exponent
            assert drawn.interval == table.interval
            row, page = rows[c.learner], pages[c.learner][key]
            assert table.exponent is not None
            assert float(row[f"{key}_exponent"]) == table.exponent
            assert page["exponent"] == pytest.approx(table.exponent, rel=1e-3)
            assert f"{table.exponent:.2f}" in formatted(records, "markdown")
            assert f"{table.exponent:.2f}" in terminal(records)
            if table.interval is not None:
                assert float(row[f"{key}_exponent_low"]) == table.interval[0]
                assert f"[{table.interval[0]:.2f}, {table.interval[1]:.2f}]" in formatted(records, "latex")


def test_the_mean_curve_is_measured_not_the_mean_of_exponents(four):
    group = [record for record in summaries(four) if record["learner"] == "Uniform"]
    mean = np.mean([record["early_regret"] for record in group]), np.mean([record["regret"] for record in group])
    assert growth_of(group, "regret").exponent == pytest.approx(np.log(mean[1] / mean[0]) / np.log(4.0))


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_than_three_seeds_have_no_interval_anywhere(four, n):
    records = [record for record in summaries(four) if record["seed"] < n]
    assert "±" not in terminal(records)
    assert "±" not in formatted(records, "markdown")
    assert all(row["violation_half"] == row["violation_exponent_low"] == "" for row in rows_of(records))
    assert all(c.violation.half is None for c in load_curves(four / "runs", records))


def test_a_narrow_terminal_leaves_the_intervals_of_exponents_out(four):
    text = terminal(summaries(four), width=80)
    assert "[" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_budget_stands_in_summaries_tables_and_figures(four):
    records = json.loads((four / "summary.json").read_text())
    for record in records:
        cmdp = WORLD.build(np.random.default_rng(np.random.SeedSequence(record["seed"], spawn_key=(0,))))
        assert record["budget"] == (cmdp.budget * cmdp.cost_scale).tolist()
    numbers = [record["budget"][0] for record in records]
    shown = f"{min(numbers):.4g}" if len(set(numbers)) == 1 else f"{min(numbers):.4g}..{max(numbers):.4g}"
    assert f"(budget {shown})" in terminal(records)
    assert rows_of(records)[0]["budget"] == shown
    assert load_curves(four / "runs", records)[0].budget == shown


def test_a_summary_of_an_earlier_version_is_completed_from_its_rows(four):
    for whole in summaries(four):
        old = {key: value for key, value in whole.items() if not key.startswith("early_") and key != "budget"}
        assert with_early(old, RunFolder(four / "runs" / whole["run"], whole["run"])) == {
            key: value for key, value in whole.items() if key != "budget"
        }


def grown(K, slope):
    """Four runs of K episodes whose mean grows with this slope."""
    return Growth(K // 4, K, np.full(4, 10.0), np.full(4, 10.0 * 4.0**slope))


def test_an_exponent_is_shown_where_the_episodes_tell_it_and_else_a_dash():
    told = grown(1000, 0.5)
    assert (told.exponent, power_of(told), exponent_cell(told)[:4]) == (told.slope, "K^0.50", "0.50")
    for growth in (grown(996, 0.5), grown(200, 3.13), grown(1000, 3.13)):
        assert growth.slope is not None
        assert growth.exponent is growth.interval is None
        assert (power_of(growth), exponent_cell(growth)) == ("-", "-")
    assert power_of(None) == "-"


def test_a_run_too_short_for_an_exponent_has_none():
    made = band(np.arange(1.0, 4.0), np.ones((3, 3)))
    assert made.growth.exponent is None
    assert made.growth.interval is None
