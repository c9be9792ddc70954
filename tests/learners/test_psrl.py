import numpy as np
import pytest

from omdpd.experiments.one_run import advance, run
from omdpd.experiments.registry import Registry
from omdpd.learners.psrl import PosteriorSampling
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.flow import value_of_policy
from omdpd.storage.run_folder import RunFolder
from tests.references.instances import bandit, random_cmdp
from tests.references.reference_programs import dual_value

H, S, A, I, K = 4, 3, 2, 2, 40  # noqa: E741


def test_every_plan_is_an_optimum_under_the_model_that_was_drawn():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=0.3)
    learner, rng = PosteriorSampling(), np.random.default_rng(1)
    setting = cmdp.setting(K, "bandit")
    state = learner.init(setting)
    solved = 0
    for k in range(15):
        model = learner.drawn(setting, state.counts, k)
        assert np.allclose(model.box.lower.sum(-1), 1.0)
        value, _ = dual_value(model.box.lower, setting.mu, model.reward, model.cost)
        if value is not None:
            solved += 1
            policy = learner.policy(state)
            assert value_of_policy(policy, model.box.lower, setting.mu, model.reward) == pytest.approx(value, abs=1e-6)
        state = learner.update(state, bandit(rng, cmdp, learner.policy(state)))
    assert solved > 0


def test_draws_follow_the_data_and_the_seed_of_the_setting():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I)
    learner, setting = PosteriorSampling(kappa=0.0), Setting(H, S, A, I, n_episodes=K, seed=3)
    many = learner.init(setting).counts
    many = type(many)(
        np.full((H, S, A), 1e8), 1e8 * cmdp.transition, 1e8 * cmdp.reward, 1e8 * cmdp.excess
    )  # fmt: skip
    drawn = learner.drawn(setting, many, 5)
    assert np.allclose(drawn.box.lower, cmdp.transition, atol=1e-3)
    assert np.allclose(drawn.reward, cmdp.reward, atol=1e-3)
    assert np.allclose(drawn.cost, cmdp.excess, atol=1e-3)
    other = learner.drawn(Setting(H, S, A, I, n_episodes=K, seed=4), many, 5)
    assert not np.array_equal(drawn.reward, other.reward)
    assert np.array_equal(drawn.reward, learner.drawn(setting, many, 5).reward)


def test_a_run_that_was_stopped_goes_on_bit_for_bit_and_seeds_differ(tmp_path):
    specs = [Registry.installed().run("random_dirichlet", "noisy", "PosteriorSampling", 30, seed) for seed in (1, 2)]
    whole = run(specs[0], tmp_path / "whole")
    folder = RunFolder(tmp_path / "parts", specs[0].id)
    with folder.owned():
        while (parts := advance(specs[0], folder, None, 0.0, seconds=0.0)) is None:
            pass
    for key in ("regret", "violation", "infeasible"):
        assert parts[key] == whole[key]
    assert run(specs[1], tmp_path / "other")["regret"] != whole["regret"]
