"""Off-policy estimates equal their definitions written out, cover the truth, and are refused where logs do not tell."""

import numpy as np
import pytest
from scipy.stats import t

from omdpd import InvalidInputError, Log, Policy, Setting, verdict_from_logs
from omdpd.learners.safe.tally import folds_of
from omdpd.problem.cmdp import CMDP

H, S, A = 3, 3, 2


def world():
    rng = np.random.default_rng(10006)
    cost = rng.random((S, A))
    return CMDP.from_arrays(rng.dirichlet(np.ones(S), (S, A)), rng.random((S, A)), cost, budget=1.5, horizon=H)


def played(cmdp, policy, n, rng):
    """Episodes with propensities, drawn step by step."""
    rows = {name: [] for name in ("episode", "state", "action", "reward", "cost", "chance")}
    for k in range(n):
        s = rng.choice(S, p=cmdp.initial)
        for h in range(H):
            a = rng.choice(A, p=policy[h, s])
            reward = float(rng.random() < cmdp.reward[h, s, a])
            cost = cmdp.cost[0, h, s, a] * cmdp.cost_scale[0] + rng.normal(0.0, 0.2)
            for name, value in zip(rows, (k, s, a, reward, cost, policy[h, s, a]), strict=True):
                rows[name].append(value)
            s = rng.choice(S, p=cmdp.transition[h, s, a])
    return Log.from_frame(rows, propensity="chance")


@pytest.fixture(scope="module")
def case():
    cmdp, rng = world(), np.random.default_rng(10007)
    behaviour, target = (rng.dirichlet(np.ones(A) * 4, (H, S)) for _ in range(2))
    log = played(cmdp, behaviour, 60, rng)
    setting = Setting(H, S, A, initial=cmdp.initial, budget=1.5)
    return cmdp, behaviour, target, log, setting


def by_episode(log):
    """States, actions, (reward, cost) and propensities as (K, H) tables."""
    shape = (len(log), H)
    met = np.array([log.rewards.reshape(shape), log.costs[0].reshape(shape)])
    return log.states.reshape(shape), log.actions.reshape(shape), met, log.propensities.reshape(shape)


def test_weights_are_per_decision_weighted_importance_sampling_by_loops(case):
    _, _, target, log, setting = case
    states, actions, met, chance = by_episode(log)
    total = np.zeros(2)
    for h in range(H):
        above, below = np.zeros(2), 0.0
        for k in range(len(log)):
            rho = 1.0
            for j in range(h + 1):
                rho *= target[j, states[k, j], actions[k, j]] / chance[k, j]
            above += rho * met[:, k, h]
            below += rho
        total += above / below
    found = verdict_from_logs(setting, log, target, resamples=0)
    assert found.by_weights.expected == pytest.approx(total)


def counted_by_loops(log, episodes, target):
    """The model of some episodes, counted anew: values (2, H + 1, S) and action values (2, H, S, A) of a policy."""
    states, actions, met, _ = by_episode(log)
    n, moves, sums = np.zeros((S, A)), np.zeros((S, A, S)), np.zeros((2, S, A))
    for k in episodes:
        for h in range(H):
            n[states[k, h], actions[k, h]] += 1
            sums[:, states[k, h], actions[k, h]] += met[:, k, h]
            if h + 1 < H:
                moves[states[k, h], actions[k, h], states[k, h + 1]] += 1
    p, mean = moves / moves.sum(axis=2, keepdims=True), sums / n
    values, q_values = np.zeros((2, H + 1, S)), np.zeros((2, H, S, A))
    for h in range(H - 1, -1, -1):
        q_values[:, h] = mean + (np.einsum("sat,jt->jsa", p, values[:, h + 1]) if h + 1 < H else 0.0)
        values[:, h] = (target[h] * q_values[:, h]).sum(axis=2)
    return values, q_values


def test_the_model_is_that_of_its_counts_by_loops(case):
    _, _, target, log, setting = case
    values, _ = counted_by_loops(log, range(len(log)), target)
    found = verdict_from_logs(setting, log, target, resamples=0)
    assert found.by_model.expected == pytest.approx(values[:, 0] @ setting.mu)


def robust_by_loops(log, target, without=None):
    """The estimate by its definition; every episode's model is made of the episodes of the seven other folds."""
    states, actions, met, chance = by_episode(log)
    fold, kept = folds_of(0, len(log)), [k for k in range(len(log)) if k != without]
    models = [counted_by_loops(log, np.flatnonzero(fold != f), target) for f in range(8)]
    total = np.zeros(2)
    for h in range(H):
        above, below, ahead, before = np.zeros(2), 0.0, np.zeros(2), 0.0
        for k in kept:
            values, q_values = models[fold[k]]
            ratios = [target[j, states[k, j], actions[k, j]] / chance[k, j] for j in range(h + 1)]
            above += np.prod(ratios) * (met[:, k, h] - q_values[:, h, states[k, h], actions[k, h]])
            below += np.prod(ratios)
            ahead += np.prod(ratios[:-1]) * values[:, h, states[k, h]]
            before += np.prod(ratios[:-1])
        total += above / below + ahead / before
    return total


def test_the_doubly_robust_estimate_is_its_definition_by_loops(case):
    _, _, target, log, setting = case
    found = verdict_from_logs(setting, log, target, resamples=0)
    assert found.doubly_robust.expected == pytest.approx(robust_by_loops(log, target))


def test_its_interval_is_the_jackknife_with_students_quantile(case):
    """One episode left out at a time, by loops; the models of the folds stay what they were."""
    _, _, target, log, setting = case
    found, n = verdict_from_logs(setting, log, target, resamples=0), len(log)
    without = np.array([robust_by_loops(log, target, k) for k in range(n)])
    error = np.sqrt((n - 1) / n * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    wide = t.ppf(0.95, found.effective - 1) * error
    assert found.doubly_robust.high - found.doubly_robust.expected == pytest.approx(wide)
    assert found.doubly_robust.expected - found.doubly_robust.low == pytest.approx(wide)


def test_of_the_policy_that_played_weights_are_the_mean_of_the_logs(case):
    _, behaviour, _, log, setting = case
    found = verdict_from_logs(setting, log, behaviour, resamples=0)
    assert found.by_weights.expected == pytest.approx(log.totals().mean(axis=1))
    assert found.effective == pytest.approx(len(log))
    assert found.by_resampling is None


def test_all_intervals_cover_the_truth_about_as_often_as_they_say(case):
    cmdp, behaviour, target, _, setting = case
    rng, inside, n = np.random.default_rng(10008), {}, 60
    true = Policy(target).evaluate(cmdp)
    truth = np.r_[true.value, true.costs]
    for _ in range(n):
        found = verdict_from_logs(setting, played(cmdp, behaviour, 60, rng), target, resamples=30)
        for name in ("by_model", "by_resampling", "by_weights", "doubly_robust"):
            each = getattr(found, name)
            inside[name] = inside.get(name, 0) + ((each.low <= truth) & (truth <= each.high))
    for name, hits in inside.items():  # 90 % is meant; 60 draws of two quantities
        assert 0.8 <= hits.mean() / n <= 0.98, name


def test_logs_that_are_all_shorter_than_the_horizon_are_weighted_only_if_they_are_over(case):
    cmdp, _, _, log, _ = case
    setting, uniform = Setting(H + 2, S, A, initial=cmdp.initial, budget=1.5), np.full((H + 2, S, A), 1.0 / A)
    with pytest.raises(InvalidInputError, match="whose ends were not logged cannot be weighted"):
        verdict_from_logs(setting, log.with_short("cut"), uniform, resamples=0)
    whole = Setting(H, S, A, initial=cmdp.initial, budget=1.5)
    found = verdict_from_logs(setting, log.with_short("over"), uniform, resamples=0)
    expected = verdict_from_logs(whole, log, uniform[:H], resamples=0)
    assert found.by_weights.expected == pytest.approx(expected.by_weights.expected)
    assert found.effective == pytest.approx(expected.effective)


def test_within_answers_yes_no_and_unknown(case):
    cmdp, _, target, log, _ = case
    cost = Policy(target).evaluate(cmdp).costs[0]
    answers = []
    for budget in (2.0 * cost, 0.3 * cost, cost):
        setting = Setting(H, S, A, initial=cmdp.initial, budget=budget)
        answers.append(verdict_from_logs(setting, log, target, resamples=0).within)
    assert answers == [True, False, None]
    assert "the logs cannot tell" in str(verdict_from_logs(setting, log, target, resamples=0))


def test_a_policy_that_the_logs_do_not_cover_is_refused_in_words(case):
    cmdp, _, _, _, setting = case
    only = np.tile([1.0, 0.0], (H, S, 1))
    log = played(cmdp, only, 20, np.random.default_rng(10009))
    found = verdict_from_logs(setting, log, np.full((H, S, A), 0.5))
    assert found.by_model is None
    assert found.within is None
    assert "the logs do not cover this policy: 50 % of its steps" in str(found)


def test_weights_that_are_worth_few_episodes_are_left_out(case):
    _, behaviour, _, log, setting = case
    rare = np.where(behaviour == behaviour.min(axis=2, keepdims=True), 0.999, 0.001)
    found = verdict_from_logs(setting, log, rare, resamples=0)
    assert found.by_weights is None
    assert "nothing is concluded from them" in str(found)


def test_the_interval_holds_what_actions_never_tried_may_bring(case):
    """Expected is the policy without them; the worst that they may bring is one more independent error."""
    cmdp, _, _, _, setting = case
    only = np.tile([1.0, 0.0], (H, S, 1))
    log = played(cmdp, only, 60, np.random.default_rng(10010))
    without, touched = (
        verdict_from_logs(setting, log, np.tile([1.0 - x, x], (H, S, 1)), resamples=30) for x in (0.0, 0.004)
    )
    states, _, met, _ = by_episode(log)
    mean = np.array([[met[j][states == s].mean() for s in range(S)] for j in range(2)])
    worst = np.array([mean[0].min(), mean[1].max()])
    moves = np.array([[((states[:, :-1] == s) & (states[:, 1:] == t)).sum() for t in range(S)] for s in range(S)])
    p, values = moves / moves.sum(axis=1, keepdims=True), np.zeros((2, S))
    for _ in range(H):
        values = 0.996 * (mean + values @ p.T) + 0.004 * (worst[:, None] + values)
    for name in ("by_model", "by_resampling"):
        base, wider = getattr(without, name), getattr(touched, name)
        assert wider.expected == pytest.approx(base.expected)
        gap = 1.6448536 * np.abs(values @ setting.mu - base.expected)
        if name == "by_model":
            assert (wider.high - wider.expected > gap).all()
        else:
            assert wider.high - wider.expected == pytest.approx(np.hypot(base.high - base.expected, gap), rel=0.01)
