"""Published experiments, small: what their authors report of a method shows in ours, too."""

import numpy as np
import pytest

from benchmarks.published import (
    LEVELS,
    STEPS,
    control_numbers,
    random_streaming,
    random_thirty,
    streaming_learners,
)
from omdpd import run
from omdpd.learners import UOptRPGPD
from omdpd.worlds import streaming


def test_the_random_buffer_is_the_published_one():
    cmdp = random_streaming(3)
    rng = np.random.default_rng(3)
    fast, leaves = rng.uniform(0.5, 0.9), rng.uniform(0.1, 0.4)
    law = cmdp.transition[0]
    assert cmdp.shape == (STEPS, LEVELS, 2)
    assert law[2, 0, 3] == pytest.approx((1 - leaves) * fast)
    assert law[2, 1, 1] == pytest.approx(leaves * fast)
    assert law[0, 0, 0] == pytest.approx(1 - (1 - leaves) * fast)
    assert law[5, 1, 5] == pytest.approx(1 - leaves * fast)


def test_the_safe_method_never_violates_and_the_other_does_in_every_episode_as_published():
    learners = streaming_learners(10_000)
    safe = run(random_streaming(0), learners["EpisodeSafe"], "fixed", 300, 0).scores
    bold = run(random_streaming(0), learners["GhoshZhouShroff.hard"], "fixed", 300, 0).scores
    even = run(random_streaming(0), learners["Uniform"], "fixed", 300, 0).scores
    assert safe.violation == 0.0
    assert bold.violation > 100.0
    assert bold.regret < 0.3 * safe.regret
    assert even.violation == pytest.approx(0.4 * 300)  # half of four steps are fast, and 1.6 may be


def test_where_utility_is_what_reward_is_not_the_gap_is_minus_the_violation():
    cmdp = random_thirty(n_states=6)
    history = run(cmdp, UOptRPGPD.published(reward_scale=0.0), "fixed", 50, 0)
    assert np.allclose(np.diff(history.regret, prepend=0.0), -history.excess[:, 0], atol=1e-6)


@pytest.mark.whole
def test_the_uniform_pac_method_comes_back_to_its_budget_as_published():
    history = run(random_thirty(n_states=10), UOptRPGPD.published(reward_scale=0.0), "fixed", 6000, 0)
    over = history.excess[:, 0]
    assert over.max() > 1.0
    assert abs(over[-500:].mean()) < 0.2


def test_media_control_has_the_published_optimum_and_level_of_the_gap(capsys):
    control_numbers(60, range(2))
    said = capsys.readouterr().out.splitlines()
    assert said[-1].startswith("OptCMDP after 60")
    gap = float(said[-1].split("|gap| ")[1].split(",")[0])
    assert 20.0 < gap < 200.0
    assert streaming.make().shape == (10, 10, 2)
