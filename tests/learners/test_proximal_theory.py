"""The inequalities of docs/theory.md that a run can check, checked on runs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from omdpd.beliefs.confidence import EmpiricalEstimator, KnownModel
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.standard.state import SHARE
from omdpd.learners.surrogate import Stepping, Weighting, kernel_move
from omdpd.problem.cmdp import CMDP
from omdpd.solvers.mirror import Hinges, mirror_step
from omdpd.solvers.programs import best_policy
from omdpd.solvers.regions import Kernel
from tests.references.instances import bandit, forward, random_cmdp, random_policy, revealed
from tests.references.opened import opened, with_number

H, S, A = 4, 3, 2
K = 120
# The empirical kernel with lagged weights: the learner of the theorem, whatever the scale of its bonuses.
LAGGED = ProximalOMDPD(EmpiricalEstimator(kappa=0.0), Weighting(lagged=True))
PRESETS = {"lagged": LAGGED, "standard": ProximalOMDPD.standard(), "standard, z = 0": ProximalOMDPD.standard(z=0.0)}
EMPIRICAL = PRESETS | {"cautious": ProximalOMDPD.cautious(), "balanced": ProximalOMDPD.balanced()}


def binding_world(seed) -> CMDP:
    rng = np.random.default_rng((seed, 4))
    while True:
        cmdp = random_cmdp(rng, H, S, A)
        best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
        if best.feasible and best.multipliers.min() > 0.05:
            return cmdp


def bandit_run(learner, cmdp, episodes=K):
    rng = np.random.default_rng(8)
    states = [learner.init(cmdp.setting(episodes, "bandit"))]
    for _ in range(episodes):
        states.append(learner.update(states[-1], bandit(rng, cmdp, learner.policy(states[-1]))))
    return states


def comparators(cmdp, n=4):
    rng = np.random.default_rng(9)
    best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
    return [best.policy, *(random_policy(rng, H, S, A) for _ in range(n))]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("preset", PRESETS)
def test_optimisation_costs_no_more_than_the_drift_of_the_beliefs(preset, seed):
    """Lemma 1: sum_k m_k(q_k) - m_k(u_k) <= H/eta + drift/eta for u_k the occupancy of any policy under belief k."""
    learner, cmdp = PRESETS[preset], binding_world(seed)
    states = bandit_run(learner, cmdp)
    for policy in comparators(cmdp):
        total = 0.0
        for k, state in enumerate(states[:-1]):
            u = forward(policy, state.believed.region.transition, cmdp.initial)
            m, after = opened(state).predicted, opened(states[k + 1])
            total += m.value(state.q) - m.value(u)
            assert total <= H / after.eta + after.drift + after.inexactness + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_drift_of_an_unshared_kernel_is_logarithmic(seed):
    """One visit of a row with n earlier ones moves it by at most 2/(n+1): (H + drift)/eta <= 1 + HSA(1 + ln K)."""
    states = bandit_run(LAGGED, binding_world(seed))
    for k, state in enumerate(states[1:], start=1):
        visits = state.counts.visits[:-1]
        harmonic = sum((H - 1 - h) * 2.0 / n for (h, *_), v in np.ndenumerate(visits) for n in range(1, int(v) + 1))
        assert state.eta == H
        assert H * state.drift <= harmonic + 1e-9
        assert 1.0 + state.drift <= 1.0 + H * S * A * (1.0 + math.log(k))


@pytest.mark.parametrize("preset", PRESETS)
def test_the_lagged_potential_is_paid_for_up_to_a_factor(preset):
    """Lemma 2: Phi(V_K) <= exp(gamma H) sum_k w_{k-1} x_k, x_k = [d~_k.q_k]^+."""
    learner = PRESETS[preset]
    states = bandit_run(learner, binding_world(2), 300)
    paid = 0.0
    for k, state in enumerate(states[:-1]):
        if states[k + 1].capped:  # a weight that was cut off is not the potential's
            assert k > 20
            break
        paid += state.weights[0] * max(float(np.vdot(state.believed.counted_cost[0], state.q)), 0.0)
        potential = learner.weighting.potential(state.setting, k + 1)
        assert float(potential.value(states[k + 1].V)[0]) <= math.exp(potential.beta * H) * paid + 1e-9
    assert paid > 0.0


def test_with_gamma_of_order_one_over_h_believed_violation_is_logarithmic():
    """V_K <= H ln(1 + (e/(H w0)) (bound + K max r~.q)): far below K, where weights of order 1/sqrt(K) are not."""
    cmdp = binding_world(3)
    gamma_scale = math.sqrt(H * K) / H  # gamma = 1/H
    learner = replace(LAGGED, weighting=Weighting(gamma_scale=gamma_scale, lagged=True))
    states = bandit_run(learner, cmdp)
    end = states[-1]
    bound = H / end.eta + end.drift + end.inexactness
    limit = H * math.log1p(math.e / H * (bound + end.reward_sum))
    assert 0.0 < end.V[0] <= limit
    assert limit < 0.5 * K


@pytest.mark.parametrize("preset", EMPIRICAL)
def test_the_certificate_holds_against_every_policy_that_is_believed_safe(preset):
    """sum_k r~_k.(u_k - q_k) <= regret for policies whose believed occupancies meet every believed constraint."""
    learner = EMPIRICAL[preset]
    cmdp = binding_world(4).with_budget(1.0)  # so that some policies always are
    states = bandit_run(learner, cmdp)
    checked = 0
    for policy in comparators(cmdp, 8):
        gained = 0.0
        for k, state in enumerate(states[:-1]):
            u = forward(policy, state.believed.region.transition, cmdp.initial)
            if np.tensordot(state.believed.cost, u, axes=3).max() > 0.0:
                break
            gained += float(np.vdot(state.believed.reward, u - state.q))
            said = learner.report(states[k + 1]).certificate
            assert gained <= said.regret + 1e-9
            checked += 1
    assert checked >= K


@pytest.mark.parametrize("n_tables", [3, 30])
@pytest.mark.parametrize("preset", EMPIRICAL)
def test_the_certificate_holds_with_revealed_tables_whether_or_not_they_fit_the_memory(preset, n_tables):
    learner, cmdp = EMPIRICAL[preset], binding_world(5)
    rng = np.random.default_rng(10)
    policies = [random_policy(rng, H, S, A) for _ in range(12)]
    tables = rng.uniform(-1.0, 0.2, (n_tables, 1, H, S, A))
    state = learner.init(cmdp.setting(60, "full"))
    gained, alive = np.zeros(12), np.ones(12, dtype=bool)
    for k in range(60):
        us = [forward(policy, state.believed.region.transition, cmdp.initial) for policy in policies]
        before = state
        state = learner.update(state, revealed(rng, cmdp, learner.policy(state), tables[k % n_tables]))
        f = learner.observed_surrogate(before, state)
        for j, u in enumerate(us):
            alive[j] &= bool(f.hinges.arguments(u).max(initial=0.0) <= 0.0)
            gained[j] += float(np.vdot(before.believed.reward, u - before.q))
        said = learner.report(state).certificate
        assert np.all(gained[alive] <= said.regret + 1e-9)
        assert state.V.max() <= said.violation + 1e-9
    assert alive.any()


@pytest.mark.parametrize("known", [True, False])
def test_a_pool_of_revealed_tables_costs_regret_nothing_and_violation_a_constant(known):
    """Section 5: sum_k r~_k.(u_k - q_k) <= (H + drift)/eta and V <= nH + H ln(...), new tables at the worst moments."""
    cmdp, rng, n, K = binding_world(5), np.random.default_rng(10), 6, 80
    # The better action is dear in a third of the states: the uniform policy is safe under any kernel.
    safe, better = np.full((H, S, A), 0.5), np.where(cmdp.reward.argmax(-1)[..., None] == np.arange(A), 0.9, -0.9)
    tables = (rng.random((n, 1, H, S, 1)) < 1 / 3) * better - 0.01
    model = KnownModel(cmdp.transition, cmdp.reward) if known else EmpiricalEstimator(kappa=0.0)
    weighting = Weighting(gamma_scale=math.sqrt(H * K) / H, lagged=True)
    learner = ProximalOMDPD(model, weighting, Stepping(patient=True), memory=n)
    policies = [safe, *(random_policy(rng, H, S, A) for _ in range(19))]
    state, met = learner.init(cmdp.setting(K, "full")), set()
    gained, alive, drift = np.zeros(20), np.ones(20, dtype=bool), 0.0
    for k in range(K):
        us = [forward(policy, state.believed.region.transition, cmdp.initial) for policy in policies]
        # A new table every tenth episode, and of those that may be shown the one that costs the plan the most.
        unseen = [j for j in range(n) if j not in met]
        worst = max(unseen if unseen and k % 10 == 0 else met, key=lambda j: float(np.vdot(tables[j], state.q)))
        met.add(worst)
        before = state
        state = learner.update(before, revealed(rng, cmdp, learner.policy(before), tables[worst]))
        gained += [float(np.vdot(before.believed.reward, u - before.q)) for u in us]
        alive &= [max(float(np.vdot(tables[j], u)) for j in met) <= 0.0 for u in us]
        assert np.all(gained[alive] <= 1.0 + drift + state.inexactness + 1e-9)
        drift += kernel_move(before.believed.region, state.believed.region, None) / H
    assert state.eta == H
    assert len(met) == n
    assert alive.any()
    assert 1.0 < state.V[0] <= n * H + H * math.log1p(math.e / H * (1.0 + drift + state.reward_sum))


@pytest.mark.parametrize("preset", PRESETS)
def test_one_step_loses_no_more_than_h_over_eta_to_any_policy(preset):
    """m_k(q_k) - m_k(u) <= H/eta in every single episode, so that eta_k = Hk loses 1 + ln K in all."""
    learner, cmdp = PRESETS[preset], binding_world(1)
    for state in bandit_run(learner, cmdp, 60)[:-1]:
        for policy in comparators(cmdp):
            u = forward(policy, state.believed.region.transition, cmdp.initial)
            m = opened(state).predicted
            assert m.value(state.q) - m.value(u) <= H / state.eta + opened(state).inexactness + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_a_step_charges_a_comparator_its_multipliers_and_not_its_weights(seed):
    """Section 4: sum_i w_i [c_i.q]^+ - g.q <= sum_i lam_i c_i.u - g.u + (D(u, q') - D(u, q))/eta for every u."""
    rng, cmdp, eta = np.random.default_rng(seed), binding_world(seed), float(H)
    shape, w = (H, S, A), np.array([10.0, 3.0])
    gain, tables = rng.random(shape), rng.uniform(-1.0, 1.0, (2, *shape)) + 0.1
    near = forward(random_policy(rng, *shape), cmdp.transition, cmdp.initial)
    step = mirror_step(Kernel(cmdp.transition), cmdp.initial, near, -gain, eta, Hinges(tables, w))
    q, prices = step.occupancy, step.multipliers / eta
    paid = float(w @ np.maximum(np.tensordot(tables, q, 3), 0.0)) - float(np.vdot(gain, q))
    assert np.all((prices >= -1e-9) & (prices <= w + 1e-9))
    for _ in range(20):
        u = forward(random_policy(rng, *shape), cmdp.transition, cmdp.initial)
        nearer = 0.5 * float(((u - near) ** 2).sum() - ((u - q) ** 2).sum()) / eta
        assert paid <= float(prices @ np.tensordot(tables, u, 3)) - float(np.vdot(gain, u)) + nearer + 1e-6


@pytest.mark.parametrize("lagged", [True, False])
def test_what_margins_below_zero_forgive_is_added_to_the_certificate(lagged):
    """sum_i w_i x_i <= sum_i w_i [lifted_i.q]^+ + what is added: without it Phi(V) is not paid for."""
    # Every surprise slows the steps, so that none is in `drift` too.
    learner, cmdp = ProximalOMDPD.standard(lagged=lagged, patient=False), binding_world(7)
    rng, table = np.random.default_rng(12), cmdp.excess
    state = learner.init(cmdp.setting(K, "full"))
    state = with_number(state, SHARE, -1.0)
    charged = paid = 0.0
    for _ in range(30):
        before = state
        state = learner.update(before, revealed(rng, cmdp, learner.policy(before), table))
        moved = kernel_move(before.believed.region, state.believed.region, None) / state.eta
        weights = before.weights if lagged else learner.weighting.potential(state.setting, state.k).slope(state.V)
        paid += float(weights @ (state.V - before.V))
        penalty = learner.observed_surrogate(before, state).hinges.value(before.q)
        charged += penalty + opened(state).drift - opened(before).drift - moved
        assert paid <= charged + 1e-9
    assert -1.0 < opened(state).share < 0.0
    assert paid > 1.0


def test_a_run_of_an_earlier_version_goes_on_without_a_certificate():
    learner, cmdp = ProximalOMDPD.cautious(), binding_world(6)
    rng = np.random.default_rng(11)
    state = replace(learner.init(cmdp.setting(10, "bandit")), drift=None)
    state = learner.update(state, bandit(rng, cmdp, learner.policy(state)))
    assert state.drift is None
    assert learner.report(state).certificate is None


def test_a_step_size_of_the_theorem_is_the_horizon():
    assert LAGGED.stepping == Stepping()
    assert LAGGED.init(binding_world(0).setting(5, "bandit")).eta == H
