import math
from dataclasses import replace

import numpy as np
import pytest

from omdpd.beliefs.confidence import BoxEstimator
from omdpd.experiments.seeds import run
from omdpd.learners.omdpd import OMDPD, AsPrinted, LastGradient, Surrogate
from omdpd.learners.protocol import stored_classes
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Kernel
from omdpd.storage.packing import pack, unpack
from tests.references.instances import bandit, forward, random_box, random_cmdp, random_policy, revealed
from tests.references.plain_loop import PlainCounts, Solves, dot, kernel_of, optimistic_tables, theory_tables

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50
SIZE = S * A * H


def cmdp_of(seed, n_constraints=I):
    return random_cmdp(np.random.default_rng((seed, 1)), H, S, A, n_constraints, budget=-0.8)


def theory_constants(n_constraints):
    L = math.log(6 * (n_constraints + 1) * SIZE * K / 0.01)
    beta = SIZE / (8 * math.sqrt(H) * math.sqrt(6 * SIZE * K))
    return 1 / (2 * (1 + math.sqrt(L)) * SIZE), beta, beta


def tuned_constants(_):
    return 0.1, 1.0, 10 / math.sqrt(H * K)


def tuned_tables(counts, K):
    r, d, _, _, region = optimistic_tables(counts, K)
    return r, d, region


PRESETS = {
    "theory": (OMDPD.theory(), theory_constants, theory_tables),
    "tuned": (OMDPD.tuned(), tuned_constants, tuned_tables),
}


def follow(learner, constants, tables_of, cmdp, feedback_of, kind, episodes, known=None):
    """Sections 3-5 of the definition, line by line, from the raw feedback; every solve by the general solver."""
    alpha, w0, beta = constants
    setting = cmdp.setting(K, kind)
    mu = setting.mu
    n_constraints = setting.n_constraints
    state = learner.init(setting)
    counts = PlainCounts(H, S, A, n_constraints)
    start = np.full((H, S, A, S), 1 / S) if known is None else known.transition
    q = q_hat = forward(np.full((H, S, A), 1 / A), start, mu)
    lam, last, E, E_before = np.zeros(n_constraints), np.zeros((H, S, A)), 0.0, 0.0
    eta = math.sqrt(H)
    active_seen = set()
    for k in range(1, episodes + 1):
        assert np.allclose(state.q, q, rtol=0, atol=1e-12)
        assert np.allclose(state.q_hat, q_hat, rtol=0, atol=1e-12)
        assert math.isclose(state.eta, eta, rel_tol=1e-9)
        feedback = feedback_of(learner.policy(state), k)
        counts.add(feedback)
        if known is None:
            r, d, region = tables_of(counts, K)
        else:
            r, d, region = known.reward, known.excess, Kernel(known.transition)
        d = feedback.cost if kind == "full" else d
        lam = lam + alpha * np.array([max(dot(d[i], q), 0.0) for i in range(n_constraints)])
        slope = w0 * np.exp(beta * lam)

        def gradient(at, r=r, d=d, slope=slope):
            return alpha * (-r + sum(slope[i] * d[i] * (dot(d[i], at) > 0) for i in range(n_constraints)))

        active_seen |= {dot(d[i], q) > 0 for i in range(n_constraints)}
        grad = gradient(q)
        state = learner.update(state, feedback)
        assert np.allclose(state.lam, lam, rtol=1e-12, atol=1e-15)
        assert np.allclose(state.grad, grad, rtol=1e-10, atol=1e-12)
        Solves(region, mu, q_hat, eta).check(state.q_hat, -grad, [])
        E_before, E = E, E + float(((grad - last) ** 2).sum())
        roots = math.sqrt(E) + math.sqrt(E_before)
        eta = math.sqrt(H) * min(1 / roots if roots > 0 else math.inf, 1)
        hint = grad if learner.hint == LastGradient() else gradient(state.q_hat) - (state.q_hat - q)
        Solves(region, mu, state.q_hat, eta).check(state.q, -hint, [])
        q, q_hat, last = state.q, state.q_hat, grad
    assert learner.report(state).log.solves == 2 * episodes
    assert learner.report(state).log.failures == 0
    assert learner.report(state).weight == pytest.approx(slope.max())
    return state, active_seen


@pytest.mark.parametrize("hint", [LastGradient(), AsPrinted()], ids=["last gradient", "as printed"])
@pytest.mark.parametrize("kind", ["bandit", "full"])
@pytest.mark.parametrize("preset", PRESETS)
def test_episodes_go_line_by_line(preset, kind, hint):
    base, constants, tables_of = PRESETS[preset]
    learner = replace(base, hint=hint)
    cmdp = cmdp_of(0)
    rng = np.random.default_rng(1)
    tables = np.random.default_rng(2).uniform(-0.7, 1.0, (8, I, H, S, A))

    def feedback_of(policy, k):
        return bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, tables[k - 1])

    _, active = follow(learner, constants(I), tables_of, cmdp, feedback_of, kind, 8)
    if kind == "full":
        assert active == {True, False}


@pytest.mark.parametrize("n_constraints", [1, 3])
def test_the_theorems_constants(n_constraints):
    setting = Setting(H, S, A, n_constraints, n_episodes=K)
    state = OMDPD.theory().init(setting)
    alpha, w0, beta = theory_constants(n_constraints)
    assert state.alpha == pytest.approx(alpha, rel=1e-13)
    assert state.potential.w0 == pytest.approx(w0, rel=1e-13)
    assert state.potential.beta == pytest.approx(beta, rel=1e-13)
    assert state.diameter == H


def test_at_the_papers_size_the_theorems_penalty_stays_near_nothing():
    state = OMDPD.theory().init(Setting(5, 5, 3, n_episodes=3000))
    most = state.alpha * 5 * 3000  # lam if every episode violated by H
    assert state.potential.slope(np.zeros(1))[0] == pytest.approx(0.0036, abs=2e-4)
    assert state.potential.slope(np.array([most]))[0] < 0.05


def test_the_tuned_constants():
    state = OMDPD.tuned().init(Setting(5, 5, 3, n_episodes=3000))
    assert state.alpha == 0.1
    assert state.potential.w0 == 1.0
    assert state.alpha * state.potential.beta == pytest.approx(1 / math.sqrt(5 * 3000))
    assert OMDPD.tuned().estimator == BoxEstimator(0.2, 0.0, 0.005, clip=True, trusting=True)


def test_the_papers_diameter_is_an_option():
    state = OMDPD(diameter=SIZE / 2).init(Setting(H, S, A, n_episodes=K))
    assert state.eta == pytest.approx(math.sqrt(SIZE / 2))
    assert state.potential.beta == pytest.approx(SIZE / (8 * math.sqrt(SIZE / 2) * math.sqrt(6 * SIZE * K)))


def known_constants(n_constraints):
    alpha, _, _ = theory_constants(n_constraints)
    beta = 2 * SIZE / (3.5 * math.sqrt(H) * math.sqrt(2 * SIZE * K))
    return alpha, beta, beta


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_a_known_model_goes_line_by_line(kind):
    cmdp = cmdp_of(3)
    learner = OMDPD.known_model(cmdp.transition, cmdp.reward, cmdp.excess if kind == "bandit" else None)
    rng = np.random.default_rng(4)
    tables = np.random.default_rng(5).uniform(-0.7, 1.0, (6, I, H, S, A))

    def feedback_of(policy, k):
        return bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, tables[k - 1])

    follow(learner, known_constants(I), None, cmdp, feedback_of, kind, 6, known=cmdp)


def test_the_surrogates_gradient_keeps_the_indicator():
    reward, cost = np.full((1, 1, 2), 0.5), np.array([[[[1.0, -1.0]]], [[[-1.0, 1.0]]]])
    f = Surrogate(2.0, reward, cost, np.array([3.0, 5.0]), np.zeros((1, 1, 2)))
    assert np.array_equal(f.gradient(np.array([[[0.7, 0.3]]])).ravel(), [2 * (-0.5 + 3), 2 * (-0.5 - 3)])
    assert np.array_equal(f.gradient(np.array([[[0.3, 0.7]]])).ravel(), [2 * (-0.5 - 5), 2 * (-0.5 + 5)])
    assert np.array_equal(f.gradient(np.array([[[0.5, 0.5]]])).ravel(), [-1.0, -1.0])


def test_the_printed_hint_is_the_gradient_at_the_new_point_with_the_concave_quadratic():
    rng = np.random.default_rng(6)
    met_at, q_hat = rng.random((1, 2, 2)), rng.random((1, 2, 2))
    f = Surrogate(0.5, rng.random((1, 2, 2)), np.ones((1, 1, 2, 2)), np.array([2.0]), met_at)
    expected = 0.5 * (-f.reward + 2.0) - (q_hat - met_at)
    assert np.allclose(AsPrinted().predict(f, np.zeros((1, 2, 2)), q_hat), expected, rtol=0.0, atol=1e-15)
    assert np.array_equal(LastGradient().predict(f, met_at, q_hat), met_at)


@pytest.mark.parametrize("scale", [1.0, 0.005])
def test_nested_boxes_lie_inside_each_other_but_for_the_rows_that_are_counted_and_end_the_certificate(scale):
    learner, cmdp, rng = OMDPD.tuned(transition_scale=scale, nested=True), cmdp_of(7), np.random.default_rng(8)
    state = learner.init(cmdp.setting(K, "bandit"))
    began_anew = 0
    for _ in range(20):
        earlier, state = state.box, learner.update(state, bandit(rng, cmdp, learner.policy(state)))
        if earlier is not None:
            inside = (state.box.lower >= earlier.lower - 1e-12) & (state.box.upper <= earlier.upper + 1e-12)
            began_anew += int((~inside.all(axis=-1)).sum())
        assert state.resets == began_anew
        assert (learner.report(state).certificate is None) == (began_anew > 0)
    assert (began_anew > 0) == (scale < 1.0)


def test_a_nested_run_of_a_version_that_did_not_count_is_read_and_has_no_certificate():
    learner = OMDPD.tuned(nested=True)
    tree, arrays = pack(learner.init(cmdp_of(7).setting(K, "bandit")))
    del tree["fields"]["resets"]
    state = unpack(tree, arrays, stored_classes(learner))
    assert state.resets is None
    assert learner.report(state).certificate is None
    plain, _ = pack(OMDPD.tuned().init(cmdp_of(7).setting(K, "bandit")))
    assert "resets" not in plain["fields"]  # what other runs store stays as it was


def test_the_mean_of_the_box_is_where_a_run_starts():
    setting = Setting(H, S, A, I, initial=[0.2, 0.3, 0.5], n_episodes=K)
    state = OMDPD.theory().init(setting)
    expected = forward(np.full((H, S, A), 0.5), kernel_of(PlainCounts(H, S, A, I)).transition, setting.mu)
    assert np.allclose(state.q, expected, rtol=0.0, atol=1e-15)
    assert np.allclose(OMDPD.theory().policy(state), 0.5, rtol=0.0, atol=1e-15)


def test_the_check_used_here_notices_a_point_that_is_not_the_minimiser():
    rng = np.random.default_rng(9)
    box, inside = random_box(rng, H, S, A)
    mu = np.full(S, 1 / S)
    reference, wrong = (forward(random_policy(rng, H, S, A), inside, mu) for _ in range(2))
    with pytest.raises(AssertionError):
        Solves(box, mu, reference, 1.0).check(wrong, rng.random((H, S, A)), [])


@pytest.mark.parametrize("nested", [False, True])
def test_a_report_has_the_tables_and_the_region_that_the_next_policy_was_planned_with(nested):
    learner = OMDPD.tuned(transition_scale=0.05, nested=nested)
    cmdp, rng = cmdp_of(7), np.random.default_rng(8)
    setting = cmdp.setting(K, "bandit")
    state, widest, cut = learner.init(setting), None, False
    assert learner.report(state).believed.region.contains(cmdp.transition)
    for k in range(1, 21):
        state = learner.update(state, bandit(rng, cmdp, learner.policy(state)))
        own = learner.estimator.estimate(setting, state.counts, k)
        found = learner.report(state).believed
        expected = own.region.within(widest)[0] if nested and widest is not None else own.region
        cut = cut or not np.array_equal(expected.lower, own.region.lower)
        widest = expected
        for table, planned in (
            (found.reward, own.reward), (found.cost, own.cost),
            (found.region.lower, expected.lower), (found.region.upper, expected.upper),
        ):  # fmt: skip
            assert np.array_equal(table, planned)
    assert cut == nested


@pytest.mark.parametrize("nature", ["fixed", "pool"])
def test_with_a_known_model_the_certificate_bounds_what_it_says(nature):
    """sqrt C (4.5 sqrt E + 1) / alpha, less Phi / alpha, is above the regret of the learner's own occupancies."""
    cmdp = random_cmdp(np.random.default_rng(4), 3, 3, 2, 1, budget=0.1)
    cost = cmdp.excess if nature == "fixed" else None
    learner = replace(OMDPD.known_model(cmdp.transition, cmdp.reward, cost), alpha=0.1, w0=1.0, beta_root=5.0)
    history = run(cmdp, learner, nature, 200, 3)
    certificate = history.report.certificate
    assert history.scores.regret <= certificate.regret
    assert history.scores.violation <= certificate.violation
    assert certificate.regret <= certificate.bound < 3 * 200


def test_without_what_the_lemma_needs_there_is_no_certificate():
    setting = Setting(3, 2, 2, n_episodes=10)
    for learner in (
        OMDPD.tuned(),
        OMDPD.tuned(nested=True, hint="as-printed"),
        OMDPD.tuned(nested=True, divergence="kl"),
        OMDPD.tuned(nested=True, diameter=2.9),  # less than H
    ):
        assert learner.report(learner.init(setting)).certificate is None
    nested = OMDPD.tuned(nested=True)
    first = nested.report(nested.init(setting)).certificate
    assert first.bound == pytest.approx(math.sqrt(3) / 0.1)
