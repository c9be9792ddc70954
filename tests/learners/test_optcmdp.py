import numpy as np
import pytest

from omdpd.learners.optcmdp import OptCMDP
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.boxes import box_values_of_policy
from tests.references.instances import bandit, forward, random_cmdp, random_policy, revealed
from tests.references.pinned_plans import check_plan
from tests.references.plain_loop import PlainCounts, dot, optimistic_tables, remember

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


def best_cost(region, policy, mu, table):
    """The least cost of a policy under any kernel of the box."""
    return -float(mu @ box_values_of_policy(policy, region.lower, region.upper, -table)[1][0])


@pytest.mark.parametrize("seed", range(3))
def test_every_plan_under_bandit_feedback_is_an_optimum_of_the_extended_program(seed):
    cmdp = random_cmdp(np.random.default_rng((seed, 0)), H, S, A, I, budget=-0.6)
    learner = OptCMDP()
    setting = cmdp.setting(K, "bandit")
    rng = np.random.default_rng((seed, 1))
    state, counts, infeasible = learner.init(setting), PlainCounts(H, S, A, I), 0
    for k in range(10):
        r, d, _, _, region = optimistic_tables(counts, K)
        policy = learner.policy(state)
        infeasible += not check_plan(policy, region, setting.mu, r, d)
        said = learner.report(state)
        assert said.log.solves == k + 1
        assert said.infeasible == infeasible
        met = bandit(rng, cmdp, policy)
        counts.add(met)
        state = learner.update(state, met)


@pytest.mark.parametrize("seed", range(3))
def test_every_plan_under_full_feedback_satisfies_every_table_seen_so_far(seed):
    cmdp = random_cmdp(np.random.default_rng((seed, 2)), H, S, A, I)
    learner = OptCMDP()
    setting = cmdp.setting(K, "full")
    rng = np.random.default_rng((seed, 3))
    safe = forward(random_policy(rng, H, S, A), cmdp.transition, cmdp.initial)
    pool = rng.uniform(-0.6, 0.6, (6, I, H, S, A))
    pool -= (np.tensordot(pool, safe, axes=3) / H)[..., None, None, None] + 0.02
    sequence = [pool[0], pool[1], 0.5 * pool[0], np.zeros_like(pool[0]), 0.5 * pool[2], pool[2], *pool[3:], pool[0]]
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    kept = [[] for _ in range(I)]
    for table in sequence:
        r, _, _, _, region = optimistic_tables(counts, K)
        tables = np.array([d for one in kept for d in one]).reshape(-1, H, S, A)
        policy = learner.policy(state)
        assert check_plan(policy, region, setting.mu, r, tables)
        for d in tables:
            assert best_cost(region, policy, setting.mu, d) <= 1e-6
        met = revealed(rng, cmdp, policy, table)
        counts.add(met)
        kept = [remember(one, d, 10**6) for one, d in zip(kept, table, strict=True)]
        state = learner.update(state, met)
    assert learner.report(state).infeasible == 0
    assert len(state.rows) <= sum(len(one) for one in kept)


def test_tables_that_contradict_each_other_are_counted_and_the_least_violating_policy_is_played():
    cmdp = random_cmdp(np.random.default_rng(4), H, S, A)
    learner = OptCMDP()
    rng = np.random.default_rng(5)
    state = learner.init(cmdp.setting(K, "full"))
    cheap = np.full((1, H, S, A), 0.25)
    cheap[..., 1] = 0.75
    for _ in range(3):
        state = learner.update(state, revealed(rng, cmdp, learner.policy(state), cheap))
    assert learner.report(state).infeasible == 3
    assert np.allclose(
        learner.policy(state)[..., 0][forward(learner.policy(state), cmdp.transition, cmdp.initial).sum(-1) > 0], 1.0
    )
    assert dot(cheap[0], forward(learner.policy(state), cmdp.transition, cmdp.initial)) == pytest.approx(0.25 * H)


def test_only_violated_tables_become_rows():
    cmdp = random_cmdp(np.random.default_rng(6), H, S, A)
    learner = OptCMDP()
    rng = np.random.default_rng(7)
    state = learner.init(cmdp.setting(K, "full"))
    for k in range(4):
        harmless = -np.abs(rng.random((1, H, S, A))) - 0.01 * k
        state = learner.update(state, revealed(rng, cmdp, learner.policy(state), harmless / np.abs(harmless).max()))
    assert state.rows == ()
    assert len(state.memory[0].tables) == 4


def test_an_unknown_number_of_episodes_is_fine():
    learner = OptCMDP()
    state = learner.init(Setting(H, S, A))
    assert np.allclose(learner.policy(state).sum(axis=-1), 1.0)
