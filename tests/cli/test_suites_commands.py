"""`omdpd lab compare` and `omdpd lab suite`, small but whole."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from omdpd.experiments.comparing import comparison_grids, names_to_show, share_of
from omdpd.experiments.experiment import GridNames
from omdpd.experiments.registry import Registry
from omdpd.experiments.tuning import TRAINING_SEEDS
from omdpd.problem.arrays import InvalidInputError
from omdpd.report.planes import REST, draw_plane
from omdpd.worlds.facts import LARGE as FACTS_AT_SIZE

COMMAND = Path(sys.executable).with_name("omdpd")
FILES = {f"{name}.{kind}" for name in ("figure", "plane", "frontier") for kind in ("png", "svg", "pdf")}
FILES |= {"summary.json", "summary.csv", "table.md", "table.csv", "table.tex"}
FILES |= {"differences.csv", "ranks.csv", "tries.csv", "choices.csv", "limits.csv", "orders.csv"}


def omdpd(*words):
    return subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A tiny comparison: (result of the command, its folder, the words)."""
    out = tmp_path_factory.mktemp("compare") / "out"
    words = ["lab", "compare", "--episodes", 12, "--seeds", 3, "--natures", "pool", "--worlds", "random_dirichlet"]
    words += ["--tries", 3, "--jobs", 1, "--out", out, "--against", "SinhaVaze"]
    words += ["--learners", "ProximalOMDPD.standard,SinhaVaze,CPDPO"]
    return omdpd(*words), out, words


def lines(file):
    return list(csv.DictReader(file.read_text().splitlines()))


def test_a_comparison_leaves_tables_differences_ranks_choices_and_figures(compared):
    said, out, _ = compared
    assert said.returncode == 0, said.stderr
    assert {file.name for file in out.iterdir() if file.is_file()} >= FILES
    records = json.loads((out / "summary.json").read_text())
    assert sorted({r["seed"] for r in records}) == [0, 1, 2]
    assert all(r["episodes"] == 12 for r in records)
    assert "each learner at the best of up to 3 tries" in (out / "plane.svg").read_text()
    (limit,) = lines(out / "limits.csv")
    assert (limit["nature"], limit["episodes"], limit["seeds"]) == ("pool", "12", "3")
    assert float(limit["regret"]) > 0.0


def test_a_learner_that_does_not_suit_is_left_out_and_said_so(compared):
    said, out, _ = compared
    assert "CPDPO needs feedback 'bandit', but this nature gives 'full'" in said.stdout
    assert {line["learner"] for line in lines(out / "ranks.csv")} == {"ProximalOMDPD.standard", "SinhaVaze"}


def test_every_learner_has_the_same_number_of_tries_and_plays_the_one_that_was_chosen(compared):
    _, out, _ = compared
    tried, chosen = lines(out / "tries.csv"), lines(out / "choices.csv")
    assert {line["tries"] for line in chosen} == {"3"}
    assert {line["episodes"] for line in chosen} == {"12"}
    played = {record["learner"] for record in json.loads((out / "summary.json").read_text())}
    assert played == {line["chosen"] for line in chosen}
    for line in chosen:
        mine = [each for each in tried if each["learner"] == line["learner"]]
        assert len({each["settings"] for each in mine}) == 3
        (taken,) = [each for each in mine if each["chosen"] == "True"]
        assert (line["criterion"], line["chosen"]) == (taken["criterion"], taken["settings"])
        assert any(each["on_frontier"] == "True" for each in mine)
        assert (taken["instances"], sorted(each["instances"] for each in mine)) == ("12", ["1", "1", "12"])
    trained = [json.loads(f.read_text())["seed"] for f in (out / "training" / "runs").glob("*/summary.json")]
    assert set(trained) == set(TRAINING_SEEDS)


def test_paired_differences_are_those_of_the_summaries_to_the_yardstick_that_was_named(compared):
    _, out, _ = compared
    records = json.loads((out / "summary.json").read_text())
    ours, theirs = (
        {r["seed"]: r for r in records if r["learner"].startswith(name)} for name in ("SinhaVaze", "ProximalOMDPD")
    )
    mean = sum(theirs[seed]["regret"] - ours[seed]["regret"] for seed in ours) / len(ours)
    line = next(line for line in lines(out / "differences.csv") if line["metric"] == "regret")
    assert (line["learner"], line["against"], line["n"]) == ("ProximalOMDPD.standard", "SinhaVaze", "3")
    assert float(line["mean"]) == pytest.approx(mean)
    assert float(line["low"]) <= mean <= float(line["high"])


def test_the_leaders_are_played_at_other_numbers_of_episodes(compared):
    _, out, _ = compared
    grown = lines(out / "growth.csv")
    assert {line["episodes"] for line in grown} == {"3", "12", "48", "400"}


def test_the_same_comparison_again_runs_nothing(compared):
    said, out, words = compared
    before = {file: file.stat().st_mtime_ns for file in out.rglob("state.json")}
    again = omdpd(*words)
    assert again.returncode == 0
    assert {file: file.stat().st_mtime_ns for file in out.rglob("state.json")} == before
    assert said.returncode == 0


@pytest.mark.whole
def test_fresh_runs_everything_again_the_training_too(compared):
    _, out, words = compared
    before = {file: file.stat().st_mtime_ns for file in out.rglob("summary.json") if "runs" in file.parts}
    assert any("training" in file.parts for file in before)
    assert omdpd(*words, "--fresh").returncode == 0
    assert all(file.stat().st_mtime_ns > then for file, then in before.items())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("lab", "compare", "--tries", "0"), "--tries"),
        (
            ("lab", "compare", "--learners", "SinhaVaze", "--worlds", "paradox", "--against", "UCPD"),
            "--against is 'UCPD', which",
        ),
        (("lab", "compare", "--learners", "Nobody"), "there is no learner 'Nobody'"),
        (("lab", "suite", "--worlds", "nowhere"), "there is no world 'nowhere'"),
        (("lab", "compare", "--learners", "CPDPO", "--natures", "pool"), "no learner suits"),
    ],
)
def test_what_is_wrong_is_named(words, reason, tmp_path):
    said = omdpd(*words, "--out", tmp_path / "out")
    assert said.returncode != 0
    assert reason in " ".join((said.stdout + said.stderr).split())


def test_a_suite_goes_over_worlds_and_the_natures_that_suit_them(tmp_path):
    words = [
        "lab",
        "suite",
        "--worlds",
        "paradox,streaming",
        "--natures",
        "fixed,natural",
        "--episodes",
        8,
        "--seeds",
        1,
    ]
    said = omdpd(*words, "--learners", "Uniform,ProximalOMDPD.cautious", "--jobs", 1, "--out", tmp_path)
    assert said.returncode == 0, said.stderr
    records = json.loads((tmp_path / "summary.json").read_text())
    assert {r["world"] for r in records} == {"paradox", "streaming"}
    assert ("streaming", "natural") in {(r["world"], r["nature"]) for r in records}


@pytest.mark.whole
def test_without_figures_a_suite_and_a_comparison_leave_the_same_numbers(compared, tmp_path):
    _, out, words = compared
    again = [tmp_path / "out" if word == out else word for word in words]
    assert omdpd(*again, "--no-figures").returncode == 0
    left = {file.name for file in (tmp_path / "out").iterdir() if file.is_file()}
    assert left >= {file for file in FILES if file.endswith((".csv", ".json", ".md", ".tex"))}
    assert not any(file.endswith((".png", ".svg", ".pdf")) for file in left)
    assert (tmp_path / "out" / "ranks.csv").read_text() == (out / "ranks.csv").read_text()
    suite = ["lab", "suite", "--worlds", "paradox", "--natures", "fixed", "--learners", "Uniform", "--episodes", 8]
    said = omdpd(*suite, "--seeds", 1, "--jobs", 1, "--no-figures", "--out", tmp_path / "suite")
    assert said.returncode == 0, said.stderr
    assert "Figure" not in said.stdout
    assert (tmp_path / "suite" / "summary.csv").exists()
    assert not (tmp_path / "suite" / "figure.png").exists()


def test_the_plane_shows_every_learner_that_has_a_regret():
    records = [
        {"world": "w", "nature": "n", "learner": name, "regret": regret, "violation": 3.0}
        for name in ("a", "b")
        for regret in (10.0, 14.0)
    ]
    records.append({"world": "w", "nature": "n", "learner": "nobody", "regret": None, "violation": 1.0})
    (axes,) = draw_plane(records, "title").axes
    assert sorted(text.get_text() for text in axes.texts) == ["1", "2"]
    assert axes.lines[0].get_xydata().tolist() == [[12.0, 3.0]]


def crowd(n):
    """As many learners as are asked for, of which the first beats all and the second violates least."""
    numbers = [(5.0, 8.0), (9.0, 1.0), *((10.0 + i, 9.0 + i) for i in range(n - 2))]
    names = ["Best", "Safe.preset", *(f"Other{i}" for i in range(n - 2))]
    return [
        {"world": "w", "nature": "n", "learner": name, "regret": regret + noise, "violation": violation}
        for name, (regret, violation) in zip(names, numbers, strict=True)
        for noise in (-1.0, 1.0)
    ]


def test_of_many_learners_the_unbeaten_have_a_name_and_the_rest_is_grey():
    for wanted, named in (((), ["1", "2"]), (("Other3", "Safe"), ["1", "2"]), (("Other3",), ["1"])):
        figure = draw_plane(crowd(30), "title", wanted)
        (axes,) = figure.axes
        assert sorted(text.get_text() for text in axes.texts) == named
        grey = [line for line in axes.lines if line.get_color() == REST]
        assert len(grey) == 30 - len(named)
        assert any("grey: all others" in text.get_text() for text in figure.texts)
    assert len(draw_plane(crowd(10), "title").axes[0].texts) == 10


def test_the_default_places_have_their_learners_worlds_and_seeds():
    registry = Registry.installed()
    grids = comparison_grids(registry, GridNames(), 3000, 24, False)
    place = {(grid.worlds[0].label, grid.natures[0].label): grid for grid in grids}
    names = {key: {learner.name for learner in grid.learners} for key, grid in place.items()}
    moving = names["random_dirichlet", "moving"]
    restarted = {"OPDOP.restarted", "TripleQ.restarted"}
    assert restarted < moving < set(registry.complete("learners"))
    assert names["gathering", "noisy"] == names["chain", "noisy"] < names["streaming", "noisy"]
    assert all(not restarted & found for key, found in names.items() if key != ("random_dirichlet", "moving"))
    seeds = {world: grid.seeds for (world, _), grid in place.items()}
    assert {world for world, n in seeds.items() if n == 12} == {
        "chain",
        "gathering",
        "streaming",
        "inventory",
        "job_queue",
    }
    assert {n for world, n in seeds.items() if n != 12} == {24}
    for natures, asked, plays in (
        (["pool"], [], False),
        (["noisy", "moving"], [], True),
        (["pool"], [*restarted], True),
    ):
        (grid,) = comparison_grids(registry, GridNames(["garnet"], natures, asked), 300, 3, False)
        assert (restarted <= {learner.name for learner in grid.learners}) is plays
    (quick,) = comparison_grids(registry, GridNames(learners=["Uniform"]), 300, 3, True)
    assert (quick.seeds, [nature.label for nature in quick.natures]) == (3, ["noisy", "pool"])


def test_shards_of_a_comparison_have_each_learner_once():
    registry = Registry.installed()
    (grid,) = comparison_grids(
        registry, GridNames(["paradox"], ["fixed"], ["Uniform", "OptCMDP", "OptDual"]), 5, 2, False
    )
    shares = [share_of(grid.runs(), place, 2) for place in (1, 2)]
    assert sorted(run.id for share in shares for run in share) == sorted(run.id for run in grid.runs())
    assert not {run.learner for run in shares[0]} & {run.learner for run in shares[1]}
    with pytest.raises(InvalidInputError, match="--shard is 3/2"):
        share_of(grid.runs(), 3, 2)
    assert names_to_show(registry, grid.runs(), ["OptDual"]) == ["OptDual"]
    assert names_to_show(registry, grid.runs(), []) == []
    with pytest.raises(InvalidInputError, match="--highlight names 'DOPE'"):
        names_to_show(registry, grid.runs(), ["DOPE"])


def test_shards_play_a_comparison_that_a_call_without_them_sums_up(tmp_path):
    words = ["lab", "compare", "--worlds", "paradox", "--natures", "fixed", "--learners", "Uniform,OptDual"]
    words += ["--episodes", 6, "--seeds", 2, "--tries", 1, "--no-long", "--no-figures", "--jobs", 1, "--out", tmp_path]
    for place in ("1/2", "2/2"):
        said = omdpd(*words, "--shard", place)
        assert said.returncode == 0, said.stderr
        assert "without --shard sums up" in said.stdout
    played = {file.parent.name: file.stat().st_mtime_ns for file in (tmp_path / "runs").glob("*/summary.json")}
    assert len(played) == 4
    assert omdpd(*words).returncode == 0
    assert played == {f.parent.name: f.stat().st_mtime_ns for f in (tmp_path / "runs").glob("*/summary.json")}
    assert (tmp_path / "ranks.csv").exists()


@pytest.mark.whole
def test_the_suite_has_worlds_of_thousands_of_states(tmp_path):
    out = tmp_path / "large"
    words = ["--large", "--worlds", "streaming", "--natures", "fixed", "--learners", "Uniform"]
    said = omdpd("lab", "suite", *words, "--episodes", 3, "--seeds", 1, "--jobs", 1, "--out", out)
    assert said.returncode == 0, said.stderr
    (record,) = json.loads((out / "summary.json").read_text())
    assert record["world"] == "streaming(n_levels=10000, horizon=50, budget=25.0)"
    value = FACTS_AT_SIZE["streaming"][1].value
    assert record["comparator_value"] == pytest.approx(value, abs=1e-6)


def test_a_world_without_a_large_size_is_refused(tmp_path):
    said = omdpd("lab", "suite", "--large", "--worlds", "paradox", "--out", tmp_path / "out")
    assert said.returncode != 0
    assert "there is no large world 'paradox'; there are garnet, streaming" in " ".join(said.stderr.split())


@pytest.mark.whole
def test_differences_are_in_the_units_of_the_means(tmp_path):
    words = [
        "lab",
        "compare",
        "--worlds",
        "inventory",
        "--natures",
        "noisy",
        "--learners",
        "Uniform,GreedyLP",
        "--episodes",
        12,
    ]
    done = omdpd(
        *words, "--seeds", 3, "--tries", 1, "--no-long", "--jobs", 1, "--against", "Uniform", "--out", tmp_path
    )
    assert done.returncode == 0, done.stderr
    means = {line["learner"]: float(line["violation"]) for line in lines(tmp_path / "table.csv")}
    (apart,) = (float(line["mean"]) for line in lines(tmp_path / "differences.csv") if line["metric"] == "violation")
    assert apart == pytest.approx(means["GreedyLP"] - means["Uniform"], rel=1e-9)
    assert json.loads((tmp_path / "summary.json").read_text())[0]["cost_scale"] != [1.0]
    assert "each learner with its defaults" in (tmp_path / "plane.svg").read_text()  # nothing was tried
