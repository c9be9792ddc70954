import math
from dataclasses import replace

import numpy as np
import pytest

from omdpd.beliefs.confidence import BoxEstimator, EmpiricalEstimator, KnownModel
from omdpd.learners.proximal import ProximalOMDPD, Stepping, Weighting
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.problem.setting import Setting
from omdpd.solvers.programs import best_policy
from tests.references.instances import bandit, forward, random_cmdp, random_kernel, random_policy, revealed
from tests.references.plain_loop import cautious_tables, follow_proximal, optimistic_tables

H, S, A, I = 4, 3, 2, 2  # noqa: E741
PRESETS = {
    "cautious": (ProximalOMDPD.cautious(), cautious_tables(0.02)),
    "balanced": (ProximalOMDPD.balanced(), cautious_tables(0.0)),
    "optimistic": (ProximalOMDPD.optimistic(), optimistic_tables),
    "kappa .5": (ProximalOMDPD.cautious(kappa=0.5), cautious_tables(0.5)),
}


def cmdp_of(seed, budget=0.0, n_constraints=I):
    return random_cmdp(np.random.default_rng((seed, 1)), H, S, A, n_constraints, budget)


def anchored_pool(cmdp, seed, n):
    """Tables that one policy satisfies with room and that are otherwise arbitrary, (n, I, H, S, A)."""
    rng = np.random.default_rng((seed, 2))
    safe = forward(random_policy(rng, H, S, A), cmdp.transition, cmdp.initial)
    tables = rng.uniform(-0.6, 0.6, (n, cmdp.n_constraints, H, S, A))
    tables -= (np.tensordot(tables, safe, axes=3) / H)[..., None, None, None] + 0.02
    return tables / np.abs(tables).max()


def tables_revealed(cmdp, seed):
    """A sequence with every case of the memory: new, again, a smaller and a larger multiple, zero, opposite sign."""
    pool = anchored_pool(cmdp, seed, 12)
    zero = np.zeros_like(pool[0])
    mixed = np.stack([pool[1][0], zero[1]])
    order = [pool[0], pool[1], pool[0], 0.5 * pool[1], zero, pool[2], mixed, 0.7 * pool[3], pool[3], pool[0], -pool[2]]
    return order + list(pool[4:]) + [pool[0]] * 10


@pytest.mark.parametrize("preset", PRESETS)
def test_episodes_with_met_costs_go_line_by_line(preset):
    learner, tables_of = PRESETS[preset]
    # Optimism about costs takes a while to see a violation at all.
    seed, episodes = (5, 40) if preset == "optimistic" else (0, 15)
    cmdp = cmdp_of(seed, budget=-0.8)
    rng = np.random.default_rng(10)
    state = learner.init(cmdp.setting(60, "bandit"))
    _, happened = follow_proximal(
        learner, state, cmdp, tables_of, episodes, lambda policy, k: bandit(rng, cmdp, policy),
        rng=np.random.default_rng(11),
    )  # fmt: skip
    assert happened["moved"] > 0
    assert happened["skipped"] > 0
    assert happened["surprise"] > 0.0


@pytest.mark.parametrize("memory", [8, 0, 3])
@pytest.mark.parametrize("preset", PRESETS)
def test_episodes_with_revealed_costs_go_line_by_line(preset, memory):
    base, tables_of = PRESETS[preset]
    learner = replace(base, memory=memory)
    cmdp = cmdp_of(1)
    revealed_tables = tables_revealed(cmdp, 1)
    rng = np.random.default_rng(12)
    state = learner.init(cmdp.setting(60, "full"))
    _, happened = follow_proximal(
        learner, state, cmdp, tables_of, 20,
        lambda policy, k: revealed(rng, cmdp, policy, revealed_tables[k - 1]), memory=memory,
        rng=np.random.default_rng(13),
    )  # fmt: skip
    assert happened["moved"] > 0
    assert happened["surprise"] > 0.0


@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_an_unknown_number_of_episodes_goes_line_by_line_below_256(feedback):
    cmdp = cmdp_of(2, budget=-0.8 if feedback == "bandit" else 0.0)
    learner, tables_of = PRESETS["cautious"]
    tables = tables_revealed(cmdp, 2)
    rng = np.random.default_rng(14)

    def feedback_of(policy, k):
        return bandit(rng, cmdp, policy) if feedback == "bandit" else revealed(rng, cmdp, policy, tables[k - 1])

    state = learner.init(cmdp.setting(None, feedback))
    _, happened = follow_proximal(learner, state, cmdp, tables_of, 8, feedback_of, rng=np.random.default_rng(15))
    assert happened["moved"] > 0


def test_beyond_256_the_episode_takes_the_place_of_the_unknown_number():
    setting = Setting(H, S, A, 1, feedback="full")
    learner = ProximalOMDPD.cautious()
    state = replace(learner.init(setting), k=399)
    cmdp = cmdp_of(3, n_constraints=1)
    rng = np.random.default_rng(16)
    met = revealed(rng, cmdp, learner.policy(state), np.ones((1, H, S, A)))
    after = learner.update(state, met)
    # The state before episode 401: L of its estimates and gamma of its weights use 401.
    L = math.log(12 * S * A * H * 401 / 0.01)
    assert after.k == 400
    assert after.weights[0] == pytest.approx(math.exp(16 / math.sqrt(H * 401) * after.V[0]), rel=1e-12)
    assert after.believed.reward[after.counts.visits == 0] == pytest.approx(2.0 + 0.1 * math.sqrt(L), rel=1e-9)


def test_pooled_counts_are_used_when_the_world_is_stationary():
    cmdp = cmdp_of(4)
    rng = np.random.default_rng(17)
    learner = ProximalOMDPD.cautious(stationary=True)
    state = learner.init(cmdp.setting(60, "bandit"))
    for _ in range(3):
        state = learner.update(state, bandit(rng, cmdp, learner.policy(state)))
    kernel = state.believed.region.transition
    assert np.array_equal(kernel[0], kernel[-1])
    assert np.array_equal(state.believed.reward[0], state.believed.reward[-1])


def test_the_first_occupancy_follows_the_uniform_policy_under_the_uniform_kernel():
    setting = Setting(H, S, A, I, initial=[0.2, 0.3, 0.5], n_episodes=10)
    q_hat = ProximalOMDPD.cautious().init(setting).q_hat
    assert np.allclose(q_hat[0], np.array([0.2, 0.3, 0.5])[:, None] / A, rtol=0.0, atol=1e-15)
    assert np.allclose(q_hat[1:], 1.0 / (S * A), rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("preset", ["cautious", "balanced", "optimistic"])
def test_projections_are_one_more_than_episodes_while_no_violation_is_met(preset):
    """B8: with nothing new the second projection is skipped."""
    cmdp = random_cmdp(np.random.default_rng(5), H, S, A)
    safe = CMDP.from_arrays(cmdp.transition, cmdp.reward, -np.abs(cmdp.cost), 0.0, cmdp.initial)
    rng = np.random.default_rng(18)
    learner = PRESETS[preset][0]
    state = learner.init(safe.setting(100, "bandit"))
    for k in range(25):
        state = learner.update(state, bandit_exactly(rng, safe, learner.policy(state)))
        assert learner.report(state).log.solves == k + 2
    assert not state.V.any()
    assert state.eta == H


def bandit_exactly(rng, cmdp, policy):
    met = bandit(rng, cmdp, policy)
    at = (np.arange(H), met.trajectory.states, met.trajectory.actions)
    return replace(met, rewards=cmdp.reward[at], costs=cmdp.excess[(slice(None), *at)])


def known(cmdp, with_cost):
    return ProximalOMDPD.known_model(cmdp.transition, cmdp.reward, cmdp.excess if with_cost else None)


@pytest.mark.parametrize("seed", range(3))
def test_with_everything_known_and_fixed_regret_and_violation_stay_constant(seed):
    """B1: the optimum is found at once and kept."""
    cmdp = binding_world(seed)
    learner = known(cmdp, with_cost=True)
    best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
    rng = np.random.default_rng((seed, 3))
    state = learner.init(cmdp.setting(1000, "bandit"))
    regret = violation = 0.0
    for _ in range(200):
        policy = learner.policy(state)
        q = forward(policy, cmdp.transition, cmdp.initial)
        regret += best.value - np.vdot(cmdp.reward, q)
        violation += max(np.tensordot(cmdp.excess, q, axes=3).max(), 0.0)
        state = learner.update(state, bandit(rng, cmdp, policy))
    assert violation <= 0.1
    assert regret <= 0.1


def binding_world(seed, n_constraints=1):
    """A world whose greedy policy is unsafe and that has a safe policy."""
    rng = np.random.default_rng((seed, 4))
    while True:
        cmdp = random_cmdp(rng, H, S, A, n_constraints)
        best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
        if best.feasible and best.multipliers.min() > 0.05:
            return cmdp


@pytest.mark.parametrize("n_constraints", [1, 2])
@pytest.mark.parametrize("memory", [8, 0])
def test_the_summed_certificate_holds_with_a_known_model_and_revealed_costs(memory, n_constraints):
    cmdp = random_cmdp(np.random.default_rng(6), H, S, A, n_constraints)
    pool = anchored_pool(cmdp, 6, 4)
    tables = pool.reshape(-1, H, S, A)
    best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, tables)
    assert best.feasible
    learner = replace(known(cmdp, with_cost=False), memory=memory)
    rng = np.random.default_rng(19)
    K = 80
    state = learner.init(cmdp.setting(K, "full"))
    regret = 0.0
    gamma = 16 / math.sqrt(n_constraints * H * K)
    for k in range(K):
        regret += best.value - float(np.vdot(cmdp.reward, state.q))
        state = learner.update(state, revealed(rng, cmdp, learner.policy(state), pool[rng.integers(4)]))
        said = learner.report(state).certificate
        potential = ((np.exp(gamma * state.V) - 1) / gamma).sum()
        bound = (H + H / 16) / state.eta
        assert said.bound >= bound
        assert said.bound == pytest.approx(bound, rel=1e-3)
        assert potential + regret <= said.bound + 1e-9, k
        assert regret <= said.regret + 1e-9
        assert state.V.max() <= said.violation + 1e-9
        assert said.regret == pytest.approx(said.bound - potential, rel=1e-9)
    assert state.V.max() > 0.0


@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_the_summed_certificate_holds_on_the_good_event_of_a_box(feedback):
    """With the paper's bonuses the box holds the truth and d~ is below d: then regret is bounded by the certificate."""
    cmdp = binding_world(7)
    learner = ProximalOMDPD(BoxEstimator(1.0, 1.0, 1.0, clip=True, trusting=True))
    pool = anchored_pool(cmdp, 7, 4)
    tables = cmdp.excess if feedback == "bandit" else pool.reshape(-1, H, S, A)
    best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, tables)
    rng = np.random.default_rng(20)
    state = learner.init(cmdp.setting(60, feedback))
    regret, good = 0.0, 0
    for _ in range(60):
        believed = state.believed
        held = believed.region.contains(cmdp.transition)
        if feedback == "bandit":
            held = held and np.tensordot(believed.cost, best.occupancy, axes=3).max() <= 1e-9
        if not held:
            break
        good += 1
        regret += float(np.vdot(believed.reward, best.occupancy - state.q))
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy)
        if feedback == "full":
            met = revealed(rng, cmdp, policy, pool[rng.integers(4)])
        state = learner.update(state, met)
        said = learner.report(state).certificate
        assert regret <= said.regret + 1e-8
        assert state.V.max() <= said.violation + 1e-8
    assert good == 60


def test_the_small_boxes_certificate_holds_as_long_as_the_good_event_does():
    cmdp = binding_world(8)
    learner = ProximalOMDPD.optimistic()
    best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
    rng = np.random.default_rng(21)
    state = learner.init(cmdp.setting(200, "bandit"))
    regret, good = 0.0, 0
    for _ in range(40):
        believed = state.believed
        held = believed.region.contains(cmdp.transition)
        if not (held and np.tensordot(believed.cost, best.occupancy, axes=3).max() <= 1e-9):
            break
        good += 1
        regret += float(np.vdot(believed.reward, best.occupancy - state.q))
        state = learner.update(state, bandit(rng, cmdp, learner.policy(state)))
        assert regret <= learner.report(state).certificate.regret + 1e-8
    assert good >= 1


@pytest.mark.parametrize("gamma_scale", [80.0, 96.0, 112.0])
def test_a_weight_that_was_cut_off_ends_the_certificate(gamma_scale):
    """Where eta_k w(V_k) passes its limit of 1e4 f_k is not the surrogate of the potential, so nothing is certified."""
    cmdp = random_cmdp(np.random.default_rng(10), H, S, A)
    rng = np.random.default_rng(22)
    table = rng.uniform(-0.2, 1.0, (1, H, S, A))
    steep = replace(known(cmdp, with_cost=False), weighting=Weighting(gamma_scale=gamma_scale))
    before = steep.init(cmdp.setting(16, "full"))
    assert steep.report(before).certificate is not None
    after = steep.update(before, revealed(rng, cmdp, steep.policy(before), table))
    weight = math.exp(gamma_scale / math.sqrt(H * 16) * after.V[0])
    assert weight < 1e6
    assert before.eta * weight > 1e4
    assert steep.report(after).certificate is None


def test_violation_below_the_solvers_noise_is_ignored_summed_and_reported():
    cmdp = random_cmdp(np.random.default_rng(11), H, S, A)
    learner = ProximalOMDPD.cautious()
    state = learner.init(cmdp.setting(50, "full"))
    rng = np.random.default_rng(23)
    tiny = np.full((1, H, S, A), 1e-8)
    state = learner.update(state, revealed(rng, cmdp, learner.policy(state), tiny))
    # d.q = 1e-8 H, below 1e-7 max(1, H max|d|) = 1e-7.
    assert state.V[0] == 0.0
    assert learner.report(state).ignored == pytest.approx(H * 1e-8, rel=1e-6)


def test_saturation_of_the_potential_is_counted():
    cmdp = random_cmdp(np.random.default_rng(12), H, S, A)
    learner = replace(ProximalOMDPD.cautious(), weighting=Weighting(w_max=1.5))
    state = learner.init(cmdp.setting(4, "full"))
    rng = np.random.default_rng(24)
    for _ in range(2):
        state = learner.update(state, revealed(rng, cmdp, learner.policy(state), np.ones((1, H, S, A))))
    said = learner.report(state)
    assert said.saturations == 2
    assert said.weight == 1.5


def test_the_step_is_slower_with_a_smaller_c_prime():
    cmdp = random_cmdp(np.random.default_rng(13), H, S, A)
    table = np.random.default_rng(14).uniform(-0.5, 1.0, (1, H, S, A))
    etas = []
    for c_prime in (1.0, 1.0 / 16.0):
        learner = replace(ProximalOMDPD.cautious(), stepping=Stepping(c_prime=c_prime))
        state = learner.init(cmdp.setting(50, "full"))
        rng = np.random.default_rng(25)
        state = learner.update(state, revealed(rng, cmdp, learner.policy(state), table))
        etas.append(1.0 / state.eta - 1.0 / H)
    assert etas[1] == pytest.approx(16.0 * etas[0], rel=1e-6)
    assert etas[0] > 0.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("preset", ["cautious", "optimistic"])
def test_no_solve_fails_with_two_constraints_that_may_have_no_safe_policy(preset, seed):
    cmdp = cmdp_of(seed, budget=-0.8)
    learner = PRESETS[preset][0]
    rng = np.random.default_rng(10)
    state = learner.init(cmdp.setting(60, "bandit"))
    for _ in range(40):
        state = learner.update(state, bandit(rng, cmdp, learner.policy(state)))
    log = learner.report(state).log
    assert log.failures == 0
    assert log.max_gap <= 1e-8
    assert log.max_residual <= 1e-9


def test_presets_are_what_they_are_called():
    assert ProximalOMDPD() == ProximalOMDPD.cautious()
    assert ProximalOMDPD.cautious(kappa=0.0) == ProximalOMDPD.balanced()
    assert isinstance(ProximalOMDPD.cautious().estimator, EmpiricalEstimator)
    assert ProximalOMDPD.cautious().estimator.kappa == 0.02
    assert ProximalOMDPD.optimistic().estimator == BoxEstimator(0.2, 0.0, 0.005, clip=True, trusting=True)
    assert ProximalOMDPD().memory == 8


def test_bad_settings_are_refused():
    setting = Setting(H, S, A, n_episodes=10)
    with pytest.raises(InvalidInputError, match="memory is -1"):
        ProximalOMDPD(memory=-1).init(setting)
    with pytest.raises(InvalidInputError, match="kappa is -1"):
        ProximalOMDPD.cautious(kappa=-1).init(setting)
    with pytest.raises(InvalidInputError, match="needs full feedback"):
        ProximalOMDPD.known_model(np.zeros((H, S, A, S)), np.zeros((H, S, A))).init(setting)


def test_a_known_cost_is_used_from_the_first_episode_on():
    cmdp = binding_world(14)
    learner = known(cmdp, with_cost=True)
    state = learner.init(cmdp.setting(100, "bandit"))
    assert np.array_equal(state.predicted.hinges.tables, cmdp.excess)
    assert isinstance(learner.estimator, KnownModel)
    kernel = random_kernel(np.random.default_rng(26), H, S, A)
    assert not np.allclose(
        ProximalOMDPD.known_model(kernel, cmdp.reward, cmdp.excess).init(state.setting).q_hat, state.q_hat
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"memory": -1}, "memory is -1, but must be a whole number of at least 0"),
        ({"w0": 0.0}, "w0 is 0.0, but must be positive"),
        ({"eta": -1.0}, "eta_init is -1.0, but must be positive"),
        ({"gamma_scale": 0.0}, "gamma_scale is 0.0, but must be positive"),
        ({"gamma_scale": -1.0}, "gamma_scale is -1.0, but must be positive"),
    ],
)
@pytest.mark.parametrize("preset", ["standard", "cautious", "balanced", "optimistic"])
def test_a_constant_that_is_impossible_is_refused_by_name(preset, settings, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        getattr(ProximalOMDPD, preset)(**settings)
