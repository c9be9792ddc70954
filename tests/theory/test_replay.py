"""A stored run is played again bit for bit, finished, half-way or gone on with; what came out otherwise is said."""

import numpy as np
import pytest
from typer.testing import CliRunner

from omdpd import InvalidInputError, load_run
from omdpd.cli.main import app
from omdpd.experiments.one_run import advance, run
from omdpd.experiments.registry import Registry, run_of
from omdpd.storage.run_folder import RunFolder
from omdpd.theory import monitor as monitoring
from omdpd.theory.monitor import monitor_stored

K = 40


def spec_of(learner="OMDPD.tuned", nature="noisy", episodes=K, **more):
    world = {"name": "random_dirichlet", "n_states": 3, "n_actions": 2, "horizon": 3}
    content = {
        "world": world,
        "nature": {"name": nature},
        "learner": {"name": learner},
        "episodes": episodes,
        "seed": 1,
        **more,
    }
    return run_of(content, Registry.installed())


def stored(tmp_path, spec):
    run(spec, tmp_path / spec.id)
    return RunFolder(tmp_path / spec.id, spec.id)


def sides(monitor):
    return {each.name: (each.left.tolist(), each.right.tolist()) for each in monitor}


@pytest.mark.parametrize("nature", ["noisy", "pool", "adaptive"])
@pytest.mark.parametrize("learner", ["OMDPD.tuned", "ProximalOMDPD.standard"])
def test_a_stored_run_comes_out_bit_for_bit(tmp_path, learner, nature):
    spec = spec_of(learner, nature)
    record = stored(tmp_path, spec)
    files = {file.name: file.read_bytes() for file in record.path.iterdir()}
    replay = monitor_stored(spec, record)
    assert (replay.n_rows, replay.differs) == (K, None)
    assert str(replay) == f"played again: all {K} recorded rows came out bit for bit"
    summary = record.summary
    losses = replay.monitor.losses
    for name in ("optimisation_regret", "estimation_regret", "optimisation_violation", "estimation_violation"):
        assert getattr(losses, name)[-1] == pytest.approx(summary[name], abs=1e-9)
    assert {file.name: file.read_bytes() for file in record.path.iterdir()} == files


def test_a_run_is_monitored_half_way_and_after_it_was_gone_on_with(tmp_path):
    spec = spec_of(nature="pool", episodes=300)
    record = RunFolder(tmp_path / spec.id, spec.id)
    with record.owned():
        assert advance(spec, record, None, 0.0, seconds=0.0) is None
    played = RunFolder(record.path, spec.id).episodes
    assert 0 < played < 300
    half = monitor_stored(spec, RunFolder(record.path, spec.id))
    assert (half.n_rows, len(half.monitor.rows), half.differs) == (played, played, None)
    run(spec, record.path)
    whole = monitor_stored(spec, RunFolder(record.path, spec.id))
    assert (whole.n_rows, whole.differs) == (300, None)
    straight = monitor_stored(spec, stored(tmp_path / "straight", spec))
    assert sides(whole.monitor) == sides(straight.monitor)


def test_a_long_run_is_held_against_the_rows_that_it_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr("omdpd.play.loop.FULL_RECORD", 10)
    monkeypatch.setattr("omdpd.play.loop.EVEN_POINTS", 5)
    monkeypatch.setattr("omdpd.play.loop.POINTS_PER_DECADE", 6)
    spec = spec_of()
    replay = monitor_stored(spec, stored(tmp_path, spec))
    assert 5 < replay.n_rows < K
    assert replay.differs is None
    assert len(replay.monitor.rows) == K


def test_a_run_that_comes_out_otherwise_is_said_to(tmp_path, monkeypatch):
    spec = spec_of()
    record = stored(tmp_path, spec)
    rows = record.rows()
    rows["violation_sum"][6] += 1e-12
    monkeypatch.setattr(monitoring, "as_written_now", lambda stored: rows)
    replay = monitor_stored(spec, record)
    assert (replay.differs, replay.column) == (7, "violation_sum")
    result = CliRunner().invoke(app, ["lab", "monitor", str(record.path)], env={"COLUMNS": "150"})
    assert result.exit_code == 2
    assert "violation_sum of episode 7 is not what was recorded" in result.output


def test_the_command_prints_every_inequality_and_draws(tmp_path):
    record = stored(tmp_path, spec_of())
    figure = tmp_path / "monitor.svg"
    arguments = ["lab", "monitor", str(record.path), "--out", str(figure)]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    for text in (
        "surrogate regret",
        "Lemma 5.8",
        "comparator in Q_k",
        "bit for bit",
        "by optimisation",
        "trivial: no run",
    ):
        assert text in result.output
    assert figure.exists()


def test_a_narrow_terminal_folds_words_and_cuts_no_number(tmp_path):
    record = stored(tmp_path, spec_of())
    result = CliRunner().invoke(app, ["lab", "monitor", str(record.path)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert "100.0%" in result.output
    assert "…" not in result.output


def test_a_loaded_run_is_monitored(tmp_path):
    spec = spec_of("ProximalOMDPD.cautious")
    found = load_run(stored(tmp_path, spec).path).monitor()
    assert len(found.rows) == K
    assert found["violation split"].held


@pytest.mark.parametrize("learner", ["ProximalOMDPD.standard", "ProximalOMDPD.cautious"])
def test_a_run_whose_learner_is_not_told_how_long_it_is_is_monitored_as_it_was_played(tmp_path, learner):
    """Weights grow with max(k, 256) in the place of K, and Lemma 2 is about that potential."""
    spec = spec_of(learner, episodes_known=False)
    loaded = load_run(stored(tmp_path, spec).path)
    assert loaded.spec == spec
    found = loaded.monitor()
    assert found.rows.column("value") == loaded.rows["value"].tolist()
    w0, gamma = 10.0 if "standard" in learner else 1.0, 16 / np.sqrt(3 * 256)
    violation = found.losses.optimisation_violation  # one constraint: V itself
    assert violation[-1] > 0.0
    assert found["potential"].left == pytest.approx(w0 / gamma * np.expm1(gamma * violation))
    assert found["potential"].held


def test_runs_that_cannot_be_monitored_are_refused_with_the_reason(tmp_path):
    spec = spec_of("OptCMDP")
    with pytest.raises(InvalidInputError, match="OptCMDP is not monitored"):
        monitor_stored(spec, stored(tmp_path, spec))
    nothing = spec_of()
    with pytest.raises(InvalidInputError, match="holds no rows yet"):
        monitor_stored(nothing, RunFolder(tmp_path / nothing.id, nothing.id))
