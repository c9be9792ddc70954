import numpy as np
import pytest

from omdpd import InvalidInputError, ProximalOMDPD, Uniform, plot, run
from omdpd.natures import fixed
from tests.references.instances import random_cmdp

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 12


def world(n_constraints=I):
    return random_cmdp(np.random.default_rng(0), H, S, A, n_constraints, budget=0.6)


def test_a_run_in_memory_tells_what_happened_in_every_episode():
    cmdp = world()
    history = run(cmdp, Uniform(), "fixed", n_episodes=K)
    assert history.values.shape == (K,)
    assert history.excess.shape == (K, I)
    paid = np.maximum(history.excess.max(axis=1), 0.0)
    assert np.allclose(history.violation, np.cumsum(paid), rtol=0.0, atol=1e-12)
    assert history.scores.violation == pytest.approx(history.violation[-1])
    assert np.allclose(history.regret, np.cumsum(history.comparator.value - history.values), rtol=0.0, atol=1e-10)
    assert history.scores.regret == pytest.approx(history.regret[-1])
    assert history.policy.shape == (H, S, A)


def test_the_same_seed_gives_the_same_history_and_another_one_does_not():
    cmdp = world()
    first, second, other = (
        run(cmdp, ProximalOMDPD.cautious(), "noisy", n_episodes=K, seed=seed).values for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_an_own_nature_may_be_passed():
    cmdp = world()
    by_name = run(cmdp, Uniform(), "fixed", n_episodes=K)
    by_object = run(cmdp, Uniform(), fixed.make(cmdp, 0), n_episodes=K)
    assert np.array_equal(by_name.values, by_object.values)
    assert by_object.nature == "Fixed"


def test_without_a_safe_policy_there_is_no_regret():
    history = run(world(1), Uniform(), "independent", n_episodes=80)
    assert not history.comparator.exists
    assert history.regret is None
    assert history.scores.regret is None
    assert history.violation[-1] > 0.0


def test_own_metrics_stand_in_every_row():
    history = run(world(), Uniform(), "fixed", n_episodes=3, metrics={"spread": lambda cmdp, met, pi: pi.max()})
    assert [row.metrics for row in history.rows] == [(1.0 / A,)] * 3


def test_an_unknown_nature_and_no_episodes_are_refused():
    with pytest.raises(InvalidInputError, match="nature is 300, but must be the name of a nature or one of your own"):
        run(world(), Uniform(), 300)
    with pytest.raises(InvalidInputError, match="there is no nature 'calm'; there are fixed, "):
        run(world(), Uniform(), "calm")
    with pytest.raises(InvalidInputError, match="n_episodes is 0"):
        run(world(), Uniform(), n_episodes=0)


def test_histories_are_drawn_into_one_file(tmp_path):
    cmdp = world()
    histories = [run(cmdp, Uniform(), "noisy", n_episodes=K, seed=seed) for seed in range(2)]
    figure = plot(histories, tmp_path / "x.svg", "a title")
    assert len(figure.axes) == 3
    text = (tmp_path / "x.svg").read_text()
    assert text.startswith("<?xml")
    assert "a title" in text


def test_one_history_needs_no_list_to_be_drawn():
    figure = plot(run(world(), Uniform(), n_episodes=5))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["Uniform"]


def test_plots_that_cannot_be_drawn_are_refused(tmp_path):
    cmdp = world()
    with pytest.raises(InvalidInputError, match="list of histories is empty"):
        plot([], tmp_path / "x.png")
    short, long = (run(cmdp, Uniform(), "fixed", n_episodes=n) for n in (3, 4))
    with pytest.raises(InvalidInputError, match=r"different lengths: \[3, 4\]"):
        plot([short, long], tmp_path / "x.png")
    with pytest.raises(InvalidInputError, match=r"x\.bmp should end in one of"):
        plot([short], tmp_path / "x.bmp")
    assert list(tmp_path.iterdir()) == []
