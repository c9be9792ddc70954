"""UC-CFH and the finite-horizon method of Chen, Jain and Luo: their boxes by hand, their plans by a general solver."""

import math

import numpy as np
import pytest

from omdpd.learners.chen_jain_luo import ChenJainLuo
from omdpd.learners.uccfh import UCCFH
from omdpd.solvers.compiled.boxes import tighten
from omdpd.solvers.regions import Box
from tests.references.instances import bandit, random_cmdp
from tests.references.pinned_plans import check_plan
from tests.references.plain_loop import PlainCounts, optimistic_tables

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


def lesser_width(p, n):
    """The lesser of Hoeffding's and Bernstein's half-width of one entry of a row."""
    Lp = math.log(6 * S * A * H * K / 0.01)
    hoeffding = math.sqrt(Lp / (2 * n))
    return min(hoeffding, math.sqrt(2 * p * (1 - p) * Lp / n) + 7 * Lp / (3 * (n - 1))) if n > 1 else hoeffding


def wide(p, n):
    """4 sqrt(p a) + 28 a of one entry of a row."""
    a = math.log(2 * S * A * H * K / 0.01) / n
    return 4 * math.sqrt(p * a) + 28 * a


def box_by_hand(counts, scale, width):
    lower, upper = np.zeros((H, S, A, S)), np.ones((H, S, A, S))
    for h, s, a in np.argwhere(counts.moves.sum(-1) > 0):
        n = counts.moves[h, s, a].sum()
        for t in range(S):
            p = counts.moves[h, s, a, t] / n
            reach = scale * width(p, n)
            lower[h, s, a, t], upper[h, s, a, t] = max(p - reach, 0.0), min(p + reach, 1.0)
    return Box(*tighten(lower, upper))


def has_doubled(now, then):
    return any(x >= 2 * max(y, 1) or (y == 0 and x > 0) for x, y in zip(now.ravel(), then.ravel(), strict=True))


@pytest.mark.parametrize("budget", [0.3, -0.6])
def test_every_phase_of_uc_cfh_plays_an_optimum_over_the_box_of_the_lesser_width(budget):
    cmdp, rng = random_cmdp(np.random.default_rng(5), H, S, A, I, budget=budget), np.random.default_rng(6)
    learner, setting = UCCFH(transition_scale=0.05), cmdp.setting(K, "bandit")
    state, counts, phases = learner.init(setting), PlainCounts(H, S, A, I), 1
    began, played = counts.n.copy(), learner.policy(state)
    for _ in range(25):
        met = bandit(rng, cmdp, played)
        counts.add(met)
        state = learner.update(state, met)
        policy = learner.policy(state)
        if not has_doubled(counts.n, began):
            assert np.array_equal(policy, played)
            continue
        phases, began, played = phases + 1, counts.n.copy(), policy
        r, d = optimistic_tables(counts, K)[:2]
        check_plan(policy, box_by_hand(counts, 0.05, lesser_width), setting.mu, r, d)
    assert learner.report(state).log.solves == phases
    assert 1 < phases < 26


@pytest.mark.parametrize("span", [0.0, 0.4])
def test_every_plan_of_chen_jain_and_luo_is_an_optimum_with_the_allowance(span):
    cmdp, rng = random_cmdp(np.random.default_rng(7), H, S, A, I, budget=-0.3), np.random.default_rng(8)
    learner, setting = ChenJainLuo(transition_scale=0.02, span=span), cmdp.setting(K, "bandit")
    state, counts, feasible = learner.init(setting), PlainCounts(H, S, A, I), []
    for _ in range(12):
        met = bandit(rng, cmdp, learner.policy(state))
        counts.add(met)
        state = learner.update(state, met)
        r, d = optimistic_tables(counts, K)[:2]
        # d.q <= span: spread over the H steps, of which an episode has each once.
        box = box_by_hand(counts, 0.02, wide)
        feasible.append(check_plan(learner.policy(state), box, setting.mu, r, d - span / H))
    assert any(feasible)
