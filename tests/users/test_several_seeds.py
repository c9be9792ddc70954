"""A user who wants several seeds at once, a bar meanwhile, and learners that are told what they must know."""

import subprocess
import sys

import numpy as np
import pytest

from omdpd import CMDP, InvalidInputError, Policy, ProximalOMDPD, Uniform, plot, run
from omdpd.learners.dope import DOPE
from omdpd.learners.opdop import OPDOP
from omdpd.learners.oracle import Oracle
from omdpd.learners.sops import SOPS
from omdpd.play import progress_bar
from tests.references.instances import random_cmdp
from tests.references.real_commands import PATIENCE

H, S, A, K = 3, 4, 2, 12


def world():
    return random_cmdp(np.random.default_rng(0), H, S, A, budget=0.6)


def test_every_seed_is_the_run_of_that_seed():
    histories = run(world(), ProximalOMDPD.cautious(), "noisy", K, seed=3, seeds=3)
    alone = [run(world(), ProximalOMDPD.cautious(), "noisy", K, seed=seed) for seed in (3, 4, 5)]
    assert [h.label for h in histories] == ["ProximalOMDPD"] * 3
    for one, other in zip(histories, alone, strict=True):
        assert np.array_equal(one.values, other.values)
    chosen = run(world(), ProximalOMDPD.cautious(), "noisy", K, seeds=[5, 3])
    assert np.array_equal(chosen[0].values, alone[2].values)
    assert len(plot(histories).axes) == 3


def test_two_processes_give_the_same_histories():
    here = run(world(), ProximalOMDPD.cautious(), "noisy", K, seeds=3, policies=True)
    there = run(world(), ProximalOMDPD.cautious(), "noisy", K, seeds=3, jobs=2, policies=True)
    for one, other in zip(here, there, strict=True):
        assert np.array_equal(one.values, other.values)
        assert np.array_equal(one.policy, other.policy)
        assert one.scores == other.scores
        assert list(one.policies) == list(other.policies)


def test_what_cannot_be_sent_to_processes_is_refused_with_a_sentence():
    own = {"spread": lambda cmdp, met, policy: 0.0}
    with pytest.raises(InvalidInputError, match="other processes can only be given what they can import"):
        run(world(), Uniform(), n_episodes=2, seeds=2, jobs=2, metrics=own)


@pytest.mark.parametrize("wrong", [{"seeds": 0}, {"seeds": []}, {"seeds": "ab"}, {"seeds": [1, -1]}, {"jobs": -1}])
def test_seeds_and_jobs_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidInputError, match=r"seeds|jobs"):
        run(world(), Uniform(), n_episodes=2, **({"seeds": 2} | wrong))


def test_a_problem_that_is_none_is_refused():
    with pytest.raises(InvalidInputError, match="cmdp is a ndarray, but must be a CMDP"):
        run(np.zeros(3), Uniform())


SCRIPT = """
import numpy as np
from omdpd import CMDP, Uniform, run

cmdp = CMDP.from_arrays(np.full((2, 2, 2), 0.5), [[0, 1], [0, 1]], [[0, 1], [0, 1]], budget=1.5, horizon=3)
print(len(run(cmdp, Uniform(), n_episodes=2, seeds=2, jobs=2)))
"""


def test_a_script_without_a_main_guard_is_told_what_to_do(tmp_path):
    (tmp_path / "mine.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, tmp_path / "mine.py"], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode != 0
    assert "put it under `if __name__ ==" in done.stderr


@pytest.mark.parametrize("learner", [DOPE(), SOPS(), OPDOP(), Oracle(), ProximalOMDPD.optimistic(known_model=True)])
def test_a_learner_is_told_what_it_must_know(learner):
    history = run(world(), learner, "noisy", n_episodes=3)
    assert len(history.rows) == 3
    assert history.label == type(learner).__name__


def test_an_oracle_that_was_given_its_tables_keeps_them():
    cmdp = world()
    nothing_allowed = Oracle(cmdp.transition, cmdp.reward, cmdp.excess + 2.0)
    free = run(cmdp, Oracle(), n_episodes=1).values[0]
    assert run(cmdp, nothing_allowed, n_episodes=1).values[0] < free


def test_what_the_truth_does_not_grant_is_refused():
    impossible = CMDP.from_arrays(np.ones((1, 1, 1)), [[1.0]], [[1.0]], budget=0.0, horizon=2)
    with pytest.raises(InvalidInputError, match="DOPE must know a strictly safe policy, but even the policy of least"):
        run(impossible, DOPE(), n_episodes=2)


def test_a_learner_for_other_feedback_is_refused_with_what_it_needs():
    with pytest.raises(InvalidInputError, match="DOPE needs feedback 'bandit', but this nature gives 'full'"):
        run(world(), DOPE(), "pool", n_episodes=2)


def test_a_history_keeps_a_thin_sequence_of_policies_if_asked():
    history = run(world(), ProximalOMDPD.cautious(), n_episodes=200, policies=True)
    assert 2 <= len(history.policies) <= 40
    assert {1, 200} <= set(history.policies)
    assert all(isinstance(policy, Policy) for policy in history.policies.values())
    assert np.array_equal(history.policies[200], history.policy)
    assert not run(world(), Uniform(), n_episodes=3).policies


def test_without_a_terminal_there_are_lines_if_they_are_wanted_and_only_then(capsys):
    run(world(), Uniform(), n_episodes=30, label="mine", progress=True)
    assert capsys.readouterr().err == "mine: 30 of 30 episodes\n"
    run(world(), Uniform(), n_episodes=3, seeds=2, progress=True)
    assert capsys.readouterr().err == "Uniform, 2 seeds: 6 of 6 episodes\n"
    run(world(), Uniform(), n_episodes=30)
    run(world(), Uniform(), n_episodes=30, progress=False)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar_that_is_gone_at_the_end_even_of_work_that_failed(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_bar, "PATIENCE", 0.0)
    monkeypatch.setattr(progress_bar, "REFRESH", 0.0)

    def fail(cmdp, met, policy):
        raise ZeroDivisionError

    run(world(), Uniform(), n_episodes=30, label="mine")
    shown = capsys.readouterr().err
    assert "mine" in shown
    assert shown.endswith("\x1b[2K")  # the line is erased
    with pytest.raises(ZeroDivisionError):
        run(world(), Uniform(), n_episodes=3, metrics={"mine": fail}, seeds=2)
    assert "\x1b[?25l" not in capsys.readouterr().err.rpartition("\x1b[?25h")[2]  # no cursor stays hidden


def test_a_notebook_without_widgets_shows_neither_a_bar_nor_a_warning(monkeypatch, capsys, recwarn):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # as if it were not installed
    monkeypatch.setattr(progress_bar.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(progress_bar, "PATIENCE", 0.0)
    monkeypatch.setattr(progress_bar, "REFRESH", 0.0)
    run(world(), Uniform(), n_episodes=30, label="mine")
    assert capsys.readouterr() == ("", "")
    assert not [each for each in recwarn if "ipywidgets" in str(each.message)]
