import base64
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from omdpd.experiments import executor, load_experiment, run_experiment
from omdpd.play.units import Units
from omdpd.problem.arrays import InvalidInputError
from omdpd.report.comparison import compared
from omdpd.report.groups import RunCurves, at_a_glance
from omdpd.report.html import data_text, page
from omdpd.report.statistics import holm, paired_test
from omdpd.report.stored import stored_runs
from omdpd.report.study import KNOWN_AT_THE_END, NOT_SAFE, load_study
from omdpd.report.thinning import bucket_maxima, kept_places, rounded_for_json, shares
from omdpd.storage.run_folder import RunFolder
from omdpd.storage.sealed import sealed_toml

HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">'


def runs_of(folder):
    return sorted((folder / "runs").iterdir())


def test_thinning_keeps_the_ends_and_the_extremes_of_every_curve():
    rng = np.random.default_rng(3)
    k = np.arange(1.0, 5001.0)
    curves = np.cumsum(rng.normal(size=(4, 5000)), axis=1)
    curves[2, 1234] += 500.0  # a spike that an even grid would miss
    places = kept_places(k, curves, 200)
    assert len(places) <= 200 + 2 * len(curves)
    assert {0, 4999, 1234} <= set(places.tolist())
    for curve in curves:
        assert curve[places].max() == curve.max()
        assert curve[places].min() == curve.min()
    mean = curves.mean(axis=0)
    for part, kept in zip(np.array_split(mean, 50), np.array_split(np.arange(5000), 50), strict=True):
        assert part.max() == mean[[i for i in kept if i in set(places.tolist())]].max()


def test_a_short_curve_is_kept_whole():
    assert kept_places(np.arange(1.0, 8.0), np.zeros((1, 7)), 200).tolist() == list(range(7))


def test_a_single_bad_episode_is_seen_in_its_stretch():
    values = np.zeros(3000)
    values[1717] = 0.25
    largest = bucket_maxima(np.arange(1.0, 3001.0), values, 240, 3000)
    assert sum(x > 0 for x in largest) == 1
    assert largest[1717 * 240 // 3000] == 0.25


class Seen:
    """The columns of a run that was played."""

    def __init__(self, values):
        self.columns = {"value_sum": np.cumsum(values)}


def curves_of(values, costs, best):
    """The curves of a run of episodes with these values and costs, of a budget of 12 in episodes of 8 steps."""
    k, over = np.arange(1.0, len(values) + 1), np.maximum(np.array(costs) - 12.0, 0.0)
    units = Units(8, (0.0, 10.0), np.array([2.0]))
    values = np.array(values) / units.span
    regret = None if best is None else k * best - units.span * np.cumsum(values)
    return RunCurves(Seen(values), units, 0, k, regret, np.cumsum(over), None, over)


def test_a_glance_has_the_last_tenth_and_the_first_episode_of_lasting_safety():
    early = curves_of([5.0] * 18 + [3.0, 4.0], [20.0] * 5 + [11.0] * 15, best=6.0)
    late = curves_of([5.0] * 20, [11.0] * 18 + [13.0, 12.0], best=6.0)
    found = at_a_glance([early, late])
    assert found["since"] == [6, None]
    assert found["over"] == pytest.approx((0.0 + 0.5) / 2)  # of episodes 19 and 20
    assert found["earned"] == pytest.approx((3.5 + 5.0) / 2)
    assert found["best"] == pytest.approx(6.0)


def test_a_glance_does_not_call_safe_what_is_over_at_the_end():
    assert at_a_glance([curves_of([1.0] * 10, [11.0] * 9 + [13.0], best=None)]) == {
        "over": 1.0, "earned": 1.0, "best": None, "since": [None],
    }  # fmt: skip
    # A thousandth of the largest cost of an episode, 8 * 2, is rounding.
    assert at_a_glance([curves_of([1.0] * 10, [12.015] * 10, best=1.0)])["since"] == [1]
    assert at_a_glance([curves_of([1.0] * 10, [12.017] * 10, best=1.0)])["since"] == [None]


def test_stretches_that_were_not_played_are_empty():
    assert bucket_maxima(np.array([1.0, 2.0]), np.array([0.0, 0.0]), 2, 10) == [0.0, None]


def test_numbers_are_written_with_five_digits_and_nothing_where_they_are_undefined():
    assert rounded_for_json([[0.123456, np.nan], [1.0, np.inf]]) == [[0.12346, None], [1.0, None]]


def test_shares_come_back_to_a_hundred_thousandth():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 7)
    back = np.frombuffer(base64.b64decode(shares(p)), "<u2") / 65535
    assert np.abs(back.reshape(7, 3) - p).max() < 1e-5


def test_the_paired_test_is_students():
    rng = np.random.default_rng(1)
    a, b = rng.normal(1.0, 1.0, 8), rng.normal(0.0, 1.0, 8)
    mine, theirs = paired_test(a - b), stats.ttest_rel(a, b)
    assert mine.p == pytest.approx(theirs.pvalue)
    assert (mine.low, mine.high) == pytest.approx(tuple(theirs.confidence_interval(0.95)))
    assert paired_test(np.array([2.0, 3.0])).p is None
    assert paired_test(np.zeros(4)).p == 1.0


def test_holms_correction_keeps_order_and_is_at_most_one():
    assert holm([0.001, 0.4, 0.03, 0.9]) == pytest.approx([0.004, 0.8, 0.09, 0.9])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_learners_are_compared_on_the_same_seeds_and_few_seeds_are_marked():
    records = [
        {"world": "w", "nature": "n", "learner": name, "seed": seed, "regret": None, "violation": base + seed}
        for name, base, seeds in (("a", 0.0, range(6)), ("b", 2.0, range(6)), ("c", 5.0, range(2, 4)))
        for seed in seeds
    ]
    families = compared(records)
    assert {family["metric"] for family in families} == {"violation"}
    against_a = {row["learner"]: row for row in next(f for f in families if f["baseline"] == "a")["rows"]}
    assert (against_a["b"]["mean"], against_a["b"]["n"], against_a["b"]["few"]) == (2.0, 6, False)
    assert (against_a["c"]["mean"], against_a["c"]["n"], against_a["c"]["few"]) == (5.0, 2, True)


def test_a_study_is_plain_data_and_has_all_parts(study_folder):
    parts = load_study(study_folder).parts()
    json.dumps(parts, allow_nan=False)
    assert {"head", "problems", "progress", "comparison", "group-0", "place-0", "policies-0"} <= set(parts)
    assert [row["state"] for row in parts["progress"]["runs"]] == ["finished"] * 18
    group = parts["group-0"]
    assert group["n_finished"] == 3
    assert group["x"][-1] == 60
    summaries = [RunFolder(path).summary for path in runs_of(study_folder)]
    here = [s["violation"] for s in summaries if (s["learner"], s["nature"]) == (group["learner"], group["nature"])]
    assert group["violation"]["mean"][-1] == pytest.approx(np.mean(here), rel=1e-4)
    assert group["end"]["violation"][0] == pytest.approx(np.mean(here), rel=1e-4)


def test_policies_are_kept_on_the_way_and_the_last_one_comes_after_the_last_episode(study_folder):
    parts = load_study(study_folder).parts()
    runs = parts["policies-0"]["runs"]
    assert [run["seed"] for run in runs] == [0, 1, 2]
    assert runs[0]["episodes"][0] == 1
    assert runs[0]["episodes"][-1] == 60
    assert sum(runs[0]["visits"]) == 60 * 3


def test_where_nobody_is_safe_the_study_says_why_there_is_no_regret(study_folder):
    study = load_study(study_folder)
    i = next(i for i, key in enumerate(study.groups()) if key[1] == "independent")
    group = study.group(i)
    assert group["regret"] is None
    assert group["why"] == NOT_SAFE


def test_an_infeasible_problem_has_a_card_that_says_so(infeasible_folder):
    (world,) = load_study(infeasible_folder).problems()["worlds"]
    assert world["feasible"] is False
    assert world["value"] is None
    assert world["slater_gap"] < 0.0


def partial(study_folder, tmp_path):
    """The study with one run unfinished, one failed, one damaged and one not begun."""
    folder = tmp_path / "partial"
    shutil.copytree(study_folder, folder)
    unfinished, failed, damaged, waiting = runs_of(folder)[:4]
    for run in (unfinished, failed):
        (run / "summary.json").unlink()
    RunFolder(failed, failed.name).fail({"error": "ValueError: " + HOSTILE, "traceback": "line " + HOSTILE})
    (damaged / "commit.json").write_text("{")
    shutil.rmtree(waiting)
    return folder, [path.name for path in (unfinished, failed, damaged, waiting)]


def test_partial_studies_tell_the_states_of_their_runs(study_folder, tmp_path):
    folder, names = partial(study_folder, tmp_path)
    study = load_study(folder)
    rows = {row["run"]: row for row in study.progress()["runs"]}
    assert [rows[name]["state"] for name in names[1:]] == ["failed", "damaged", "waiting"]
    assert rows[names[0]]["state"] in ("running", "unfinished")
    assert HOSTILE in rows[names[1]]["error"]
    assert "is damaged" in rows[names[2]]["error"]
    assert json.dumps(study.parts(), allow_nan=False)


def test_means_are_over_finished_runs_only(study_folder, tmp_path):
    folder, _ = partial(study_folder, tmp_path)
    study = load_study(folder)
    for i, views in enumerate(study.groups().values()):
        finished = sum(view.state == "finished" for view in views)
        assert study.group(i).get("n_mean", 0) == (finished or len([v for v in views if v.columns]))


def test_regret_of_an_unfinished_run_is_known_where_tables_repeat_and_else_said_to_come(study_folder, tmp_path):
    folder = tmp_path / "going"
    shutil.copytree(study_folder, folder)
    for run in runs_of(folder):
        (run / "summary.json").unlink()
    study = load_study(folder)
    for i, (_, nature, _) in enumerate(study.groups()):
        group = study.group(i)
        assert (group["regret"] is not None) == (nature == "noisy")
        assert group["why"] == ("" if nature == "noisy" else KNOWN_AT_THE_END)


def respelled(run, before, after):
    """The run with another spec, sealed as if it had been written so."""
    text = (run / "spec.toml").read_text().split("\n", 1)[1]
    (run / "spec.toml").write_bytes(sealed_toml(run.name, text.replace(before, after)))


def test_a_learner_that_nobody_here_knows_is_shown_by_its_name(study_folder, tmp_path):
    folder = tmp_path / "strange"
    shutil.copytree(study_folder, folder)
    (folder / "experiment.toml").unlink()
    run = runs_of(folder)[0]
    name = RunFolder(run).summary["learner"]
    respelled(run, f'name = "{name}"', f"name = '{HOSTILE}'")
    parts = load_study(folder).parts()
    assert any(learner.startswith(HOSTILE) for learner in parts["head"]["learners"])
    # Its world is known, and named as in every other run.
    assert {run.labels[0] for run in stored_runs(folder)} == {run.labels[0] for run in stored_runs(study_folder)}


def test_a_world_that_cannot_be_built_is_said_and_the_curves_remain(study_folder, tmp_path):
    folder = tmp_path / "gone"
    shutil.copytree(study_folder, folder)
    (folder / "experiment.toml").unlink()
    for run in runs_of(folder):
        respelled(run, 'name = "random_dirichlet"', 'name = "of another package"')
    parts = load_study(folder).parts()
    assert "nobody here knows" in parts["problems"]["worlds"][0]["fault"]
    assert parts["group-0"]["violation"]["mean"]
    assert parts["policies-0"]["runs"] == []


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="holds no results"):
        load_study(tmp_path)


def test_the_page_has_one_script_element_per_script_whatever_the_names_are():
    text = page({"head": {"title": HOSTILE}}, HOSTILE)
    assert text.count("<script") == text.count("</script>") == 8
    assert HOSTILE not in text
    assert json.loads(data_text(HOSTILE)) == HOSTILE


def test_the_vendored_libraries_are_as_pinned():
    tool = Path(__file__).parents[2] / "tools" / "vendor.py"
    said = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert said.stdout.strip() == "vendored files: as pinned", said.stderr


def test_a_study_is_in_the_users_units(tmp_path):
    toml = tmp_path / "stock.toml"
    toml.write_text(
        'episodes = 6\nseeds = 3\nworlds = [{name = "inventory"}]\nnatures = [{name = "noisy"}]\n'
        'learners = [{name = "Uniform"}, {name = "GreedyLP"}]\n'
    )
    with executor("local", jobs=1) as workers:
        run_experiment(load_experiment(toml), tmp_path / "out", workers)
    records = json.loads((tmp_path / "out" / "summary.json").read_text())
    (scale,) = records[0]["cost_scale"]
    assert scale > 2.0
    study = load_study(tmp_path / "out")
    for i, (_, _, learner) in enumerate(study.groups()):
        expected = scale * np.mean([r["violation"] for r in records if r["learner"] == learner])
        shown = study.group(i)
        assert shown["end"]["violation"][0] == pytest.approx(expected, rel=1e-3)
        assert shown["violation"]["mean"][-1] == pytest.approx(expected, rel=1e-3)
    means = {
        n: scale * np.mean([r["violation"] for r in records if r["learner"] == n]) for n in ("Uniform", "GreedyLP")
    }
    (family,) = (f for f in study.comparison()["families"] if (f["metric"], f["baseline"]) == ("violation", "GreedyLP"))
    (row,) = family["rows"]
    assert row["mean"] == pytest.approx(means["Uniform"] - means["GreedyLP"], rel=1e-3)
