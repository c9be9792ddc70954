import msgspec
import numpy as np
import pytest

from omdpd.experiments.one_run import advance, run, scene_of
from omdpd.experiments.registry import Registry, run_of
from omdpd.experiments.spec import RunSpec, toml_of
from omdpd.experiments.writer import MAX_POLICIES, MAX_SNAPSHOT_BYTES, snapshot_grid
from omdpd.play.loop import play, start_of_run
from omdpd.storage.run_folder import RunFolder
from tests.references.named import LEARNERS, NATURES, WORLDS

K = 50
SMALL = WORLDS["random_dirichlet"](n_states=3, n_actions=2, horizon=3)


def spec(policies="log", learner="OMDPD.tuned"):
    return RunSpec(SMALL, NATURES["noisy"](), LEARNERS[learner](), K, 0, policies=policies)


@pytest.mark.parametrize("n_episodes", [1, 2, 39, 40, 41, 60, 3000, 10**6, 10**9])
@pytest.mark.parametrize("size", [6, 75, 20_000, 300_000])
def test_the_grid_has_both_ends_and_keeps_its_bound_on_bytes(n_episodes, size):
    grid = snapshot_grid(n_episodes, size)
    assert {1, n_episodes} <= grid
    assert len(grid) <= MAX_POLICIES
    assert len(grid) * size * 4 <= MAX_SNAPSHOT_BYTES
    if n_episodes > 100 and size < 20_000:
        assert len(grid) >= 0.9 * MAX_POLICIES


def test_nothing_is_kept_where_two_policies_would_not_fit():
    assert snapshot_grid(1000, MAX_SNAPSHOT_BYTES // 4) == frozenset()


def test_kept_policies_are_those_that_are_played_next(tmp_path):
    run(spec(), tmp_path)
    kept = RunFolder(tmp_path).policies()
    assert kept["episodes"].tolist() == sorted(snapshot_grid(K, 18))
    scene = scene_of(spec())
    wanted = dict(zip(kept["episodes"].tolist(), kept["policies"], strict=True))
    rng = np.random.default_rng(spec().stream(2))
    for _, _, now in play(scene, start_of_run(scene), rng, lambda k: False):
        if now.k in wanted:
            assert np.allclose(wanted[now.k], scene.learner.policy(now.learner_state), atol=1e-6)
    assert np.all(np.diff(kept["lam"][:, 0]) >= 0.0)
    assert np.all(np.diff(kept["solves"]) > 0)


def test_a_run_that_is_stopped_and_gone_on_with_keeps_the_same_policies(tmp_path):
    run(spec(), tmp_path / "whole")
    parts = RunFolder(tmp_path / "parts")
    while advance(spec(), parts, None, every=0.0, seconds=0.0) is None:
        pass
    one, other = RunFolder(tmp_path / "whole").policies(), parts.policies()
    assert one.keys() == other.keys()
    for name in one:
        assert np.array_equal(one[name], other[name], equal_nan=True), name


def test_a_run_may_keep_none_and_then_has_another_name(tmp_path):
    run(spec("none"), tmp_path)
    assert RunFolder(tmp_path).policies() is None
    assert not list(tmp_path.glob("policies-*"))
    assert spec("none").id != spec().id


def test_the_switch_is_no_part_of_a_name_or_file_where_it_is_left_alone():
    plain = RunSpec(SMALL, NATURES["noisy"](), LEARNERS["OMDPD.tuned"](), K, 0)
    assert plain.id == spec("log").id
    assert "policies" not in toml_of(plain)
    assert run_of(msgspec.to_builtins(spec("none")), Registry.installed()) == spec("none")


def test_belief_and_truth_of_a_policy_are_kept_where_the_learner_tells_its_belief(tmp_path):
    run(spec(learner="ProximalOMDPD.cautious"), tmp_path)
    kept = RunFolder(tmp_path).policies()
    assert np.all(np.isfinite(kept["believed_value"]))
    assert abs(kept["believed_value"][-1] - kept["value"][-1]) < abs(kept["believed_value"][0] - kept["value"][0])
