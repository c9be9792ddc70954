"""What a page shows of a learner: what its report said at the last commit, and nothing that it happens to keep."""

import shutil

import numpy as np
import pytest

from benchmarks.forger import Forger
from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.one_run import scene_of
from omdpd.experiments.spec import Experiment
from omdpd.experiments.writer import resumed
from omdpd.learners.protocol import shown_of
from omdpd.play.loop import start_of_run
from omdpd.report.groups import log_of
from omdpd.report.stored import read_run
from omdpd.report.study import load_study
from tests.references.named import LEARNERS, NATURES, WORLDS

H, K = 3, 12
COUNTS = ("solves", "iterations", "failures", "max_gap", "infeasible", "saturations")


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    world = WORLDS["random_dirichlet"](n_states=3, n_actions=2, horizon=H)
    learners = (LEARNERS["ProximalOMDPD.standard"](), LEARNERS["ProximalOMDPD.cautious"](), LEARNERS["Uniform"]())
    folder = tmp_path_factory.mktemp("shown") / "out"
    run_experiment(Experiment((world,), (NATURES["noisy"](),), learners, K, 1), folder, InProcess())
    return folder


@pytest.fixture
def unfinished(played, tmp_path):
    """The folder as if its runs had been stopped after the last commit."""
    shutil.copytree(played, tmp_path / "out")
    for file in tmp_path.glob("out/runs/*/summary.json"):
        file.unlink()
    return tmp_path / "out"


def runs_by_learner(folder):
    return {run.labels[2]: run for run in map(read_run, (folder / "runs").iterdir())}


def told(run):
    """What the learner's report says of the state that was committed."""
    scene = scene_of(run.spec)
    end = resumed(run.folder, scene.learner, start_of_run(scene), np.random.default_rng(0))
    return shown_of(scene.learner, end.learner_state)


def test_an_unfinished_run_shows_what_its_report_said(unfinished):
    for name, run in runs_by_learner(unfinished).items():
        assert run.state == "unfinished"
        wanted, found = told(run), log_of(run)
        assert {key: found[key] for key in COUNTS} == {key: getattr(wanted, key) for key in COUNTS}
        assert (found["solves"] > 0) == (name != "Uniform")


def test_visits_are_shown_of_every_learner_that_counts_and_of_no_other(played):
    study = load_study(played)
    chosen = study.shown_policies()
    visits = {key[2]: study.policies(i, chosen)["runs"][0].get("visits") for i, key in enumerate(study.groups())}
    assert visits.pop("Uniform") is None
    assert {name: sum(found) for name, found in visits.items()} == dict.fromkeys(visits, H * K)
    assert len(visits) == 2


def test_a_run_of_an_earlier_version_shows_its_last_snapshot_and_no_visits(unfinished, played):
    new = {name: log_of(run) for name, run in runs_by_learner(unfinished).items()}
    for path in (unfinished / "runs").iterdir():
        shutil.copyfile(played / "runs" / path.name / "summary.json", path / "summary.json")
        Forger(path).commit(lambda content: content["tree"]["progress"].pop())
        (path / "summary.json").unlink()
    for name, run in runs_by_learner(unfinished).items():
        assert run.state == "unfinished", run.told
        assert run.kept.shown.visits is None
        kept = (
            "solves",
            "iterations",
            "failures",
            "max_gap",
            "saturations",
        )  # what snapshots have, at the last episode
        assert {key: log_of(run)[key] for key in kept} == {key: new[name][key] for key in kept}
