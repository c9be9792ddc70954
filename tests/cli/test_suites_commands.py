"""`omdpd compare` and `omdpd suite`, small but whole; and the procedure that chooses a learner's own scales."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from named import LEARNERS, NATURES, WORLDS

from omdpd.experiments.spec import RunSpec
from omdpd.experiments.tuning import FACTORS, TRAINING_SEEDS, best_candidate, candidates, training_runs
from omdpd.report.planes import draw_plane
from omdpd.worlds.facts import LARGE as FACTS_AT_SIZE

COMMAND = Path(sys.executable).with_name("omdpd")
FILES = {f"{name}.{kind}" for name in ("figure", "plane") for kind in ("png", "svg", "pdf")}
FILES |= {"summary.json", "summary.csv", "table.md", "table.csv", "table.tex", "differences.csv"}


def omdpd(*words):
    return subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A tiny comparison: (result of the command, its folder, the words)."""
    out = tmp_path_factory.mktemp("compare") / "out"
    words = ["compare", "--episodes", 12, "--seeds", 2, "--natures", "pool", "--jobs", 1, "--out", out]
    words += ["--learners", "ProximalOMDPD.standard,SinhaVaze,CPDPO"]
    return omdpd(*words), out, words


def test_a_comparison_leaves_tables_differences_and_figures_of_both_kinds(compared):
    said, out, _ = compared
    assert said.returncode == 0, said.stderr
    for kind in ("same", "own"):
        assert {file.name for file in (out / kind).iterdir() if file.is_file()} >= FILES
        records = json.loads((out / kind / "summary.json").read_text())
        assert sorted({r["seed"] for r in records}) == [0, 1]
        assert all(r["episodes"] == 12 for r in records)


def test_a_learner_that_does_not_suit_is_left_out_and_said_so(compared):
    said, out, _ = compared
    assert "CPDPO needs feedback 'bandit', but this nature gives 'full'" in said.stdout
    assert {r["learner"] for r in json.loads((out / "same" / "summary.json").read_text())} == {
        "ProximalOMDPD.standard", "SinhaVaze",
    }  # fmt: skip


def test_paired_differences_are_those_of_the_summaries(compared):
    _, out, _ = compared
    records = json.loads((out / "same" / "summary.json").read_text())
    ours, theirs = (
        {r["seed"]: r for r in records if r["learner"] == name} for name in ("ProximalOMDPD.standard", "SinhaVaze")
    )
    mean = sum(theirs[seed]["regret"] - ours[seed]["regret"] for seed in ours) / len(ours)
    (line,) = csv.reader((out / "same" / "differences.csv").read_text().splitlines())
    assert line[:3] == ["random_dirichlet", "pool", "SinhaVaze"]
    assert line[3] == f"{mean:+.0f}"  # two seeds have no interval


def test_the_same_comparison_again_runs_nothing(compared):
    said, out, words = compared
    before = {file: file.stat().st_mtime_ns for file in out.rglob("state.json")}
    again = omdpd(*words)
    assert again.returncode == 0
    assert {file: file.stat().st_mtime_ns for file in out.rglob("state.json")} == before
    assert said.returncode == 0


def test_fresh_runs_everything_again_the_training_too(compared):
    _, out, words = compared
    before = {file: file.stat().st_mtime_ns for file in out.rglob("summary.json") if "runs" in file.parts}
    assert any("training" in file.parts for file in before)
    assert omdpd(*words, "--fresh").returncode == 0
    assert all(file.stat().st_mtime_ns > then for file, then in before.items())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("compare", "--scales", "none"), "--scales is 'none', but must be same, own or both"),
        (("compare", "--learners", "Nobody"), "there is no learner 'Nobody'"),
        (("suite", "--worlds", "nowhere"), "there is no world 'nowhere'"),
        (("compare", "--learners", "CPDPO", "--natures", "pool"), "no learner suits"),
    ],
)
def test_what_is_wrong_is_named(words, reason, tmp_path):
    said = omdpd(*words, "--out", tmp_path / "out")
    assert said.returncode != 0
    assert reason in " ".join((said.stdout + said.stderr).split())


def test_a_suite_goes_over_worlds_and_the_natures_that_suit_them(tmp_path):
    words = ["suite", "--worlds", "paradox,streaming", "--natures", "fixed,natural", "--episodes", 8, "--seeds", 1]
    said = omdpd(*words, "--learners", "Uniform,ProximalOMDPD.cautious", "--jobs", 1, "--out", tmp_path)
    assert said.returncode == 0, said.stderr
    records = json.loads((tmp_path / "summary.json").read_text())
    assert {r["world"] for r in records} == {"paradox", "streaming"}
    assert ("streaming", "natural") in {(r["world"], r["nature"]) for r in records}


def test_every_learner_gets_the_same_number_of_tries():
    assert [
        spec.kappa / LEARNERS["ProximalOMDPD.cautious"]().kappa
        for spec in candidates(LEARNERS["ProximalOMDPD.cautious"]())
    ] == pytest.approx(list(FACTORS))
    assert candidates(LEARNERS["Uniform"]()) == [LEARNERS["Uniform"]()]
    run = RunSpec(WORLDS["random_dirichlet"](), NATURES["pool"](), LEARNERS["ProximalOMDPD.cautious"](), 40, 0)
    (tries,) = training_runs([run], 10).values()
    assert [len(runs) for runs in tries.values()] == [len(TRAINING_SEEDS)] * len(FACTORS)
    assert all(trained.episodes == 10 and trained.seed in TRAINING_SEEDS for t in tries.values() for trained in t)


def test_the_best_candidate_has_the_least_positive_regret_plus_violation():
    low, high = LEARNERS["ProximalOMDPD.cautious"](kappa=0.01), LEARNERS["ProximalOMDPD.cautious"](kappa=0.1)
    trained = {
        low: [{"regret_positive": 5.0, "violation": 9.0}, {"regret_positive": None, "violation": 1.0}],
        high: [{"regret_positive": 8.0, "violation": 1.0}, {"regret_positive": 4.0, "violation": 1.0}],
    }
    assert best_candidate(trained) == high


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


def test_the_suite_has_worlds_of_thousands_of_states(tmp_path):
    out = tmp_path / "large"
    words = ["--large", "--worlds", "streaming", "--natures", "fixed", "--learners", "Uniform"]
    said = omdpd("suite", *words, "--episodes", 3, "--seeds", 1, "--jobs", 1, "--out", out)
    assert said.returncode == 0, said.stderr
    (record,) = json.loads((out / "summary.json").read_text())
    assert record["world"] == "streaming(n_levels=10000, horizon=50, budget=25.0)"
    value = FACTS_AT_SIZE["streaming"][1].value
    assert record["comparator_value"] == pytest.approx(value, abs=1e-6)


def test_a_world_without_a_large_size_is_refused(tmp_path):
    said = omdpd("suite", "--large", "--worlds", "paradox", "--out", tmp_path / "out")
    assert said.returncode != 0
    assert "there is no large world 'paradox'; there are garnet, streaming" in " ".join(said.stderr.split())
