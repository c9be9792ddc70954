"""The inequalities of a monitored run: both sides against plain NumPy, and failures made on purpose."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import omdpd
from omdpd import CMDP, OMDPD, InvalidInputError, OptCMDP, ProximalOMDPD, monitor, run
from omdpd.beliefs.confidence import BoxEstimator
from omdpd.natures import NATURES
from omdpd.play.history import rollouts_of, scene_in_memory
from omdpd.play.loop import play, start_of_run
from omdpd.solvers.programs import best_policy
from omdpd.solvers.regions import Box
from omdpd.theory.bounds import theorem_terms, total
from omdpd.theory.inequalities import Inequality, Track, outside
from tests.references.instances import forward, random_cmdp
from tests.references.opened import opened

H, S, A, K = 4, 3, 2, 60
DELTA = 0.01
PRESETS = {
    "standard": ProximalOMDPD.standard(), "cautious": ProximalOMDPD.cautious(), "balanced": ProximalOMDPD.balanced(),
    "optimistic": ProximalOMDPD.optimistic(), "known": ProximalOMDPD.optimistic(known_model=True),
}  # fmt: skip


def world(seed=0, n_constraints=1):
    """A problem whose constraint binds, so that q* pays a price for it."""
    rng = np.random.default_rng((seed, 4))
    while True:
        cmdp = random_cmdp(rng, H, S, A, n_constraints)
        best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
        if best.feasible and best.multipliers.max() > 0.05:
            return cmdp


def states_of(cmdp, learner, nature, episodes=K):
    """The learner's states of the same run, before the first episode and after every one."""
    _, scene = scene_in_memory(cmdp, learner, nature, episodes, 0)
    start = start_of_run(scene)
    after = [now.learner_state for _, _, now in play(scene, start, rollouts_of(0), lambda k: False)]
    return scene, [start.learner_state, *after]


# An inequality by itself.


def test_an_inequality_knows_where_it_failed_first_and_how_often_it_held():
    two = Inequality("a", "Lemma", "x <= y", np.array([0.0, 2.0, 1.0, 3.0]), np.array([1.0, 1.0, 1.0, 1.0]))
    assert (two.held, two.first_failure, two.share, two.sides) == (False, 2, 0.5, (3.0, 1.0))
    assert two.verdict == "failed, first in episode 2"
    worst = replace(two, left=np.array([0.0, 5.0, 1.0, 3.0]), single=True)
    assert worst.sides == (5.0, 1.0)
    rounding = replace(two, left=np.full(4, 1.0 + 1e-9))
    assert (rounding.held, rounding.first_failure, rounding.share) == (True, None, 1.0)


def test_a_track_says_why_it_has_no_episodes_or_not_all():
    empty, short = Track("a", "b", "c"), Track("a", "b", "c", "a note")
    nothing = empty.done("because")
    assert (nothing.applies, nothing.held, nothing.share, nothing.verdict) == (False, None, None, "does not apply")
    assert nothing.reason == "because"
    short.add(1.0, 2.0)
    short.end("it was cut off")
    short.end("another reason")
    short.add(5.0, 2.0)
    found = short.done()
    assert (found.left.tolist(), found.right.tolist()) == ([1.0], [2.0])
    assert found.note == "a note; followed for 1 episodes: it was cut off"


def test_a_kernel_is_outside_a_box_by_its_worst_entry_on_the_rows_that_count():
    lower, upper = np.full((2, 1, 2, 1), 0.2), np.full((2, 1, 2, 1), 0.6)
    p = np.array([0.5, 0.9, 0.0, 0.0]).reshape(2, 1, 2, 1)  # the last step leads nowhere
    assert outside(Box(lower, upper), p) == pytest.approx(0.3)
    only_first = np.array([1.0, 0.0, 1.0, 0.0]).reshape(2, 1, 2)
    assert outside(Box(lower, upper), p, only_first) == 0.0


# One step, two actions: everything about it can be written down.


def bandit_of_two():
    """r = (0, 1), d = (-.5, .5) without noise and a budget of 0: q* = (1/2, 1/2) earns 1/2."""
    return CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[-0.5, 0.5]], budget=0.0, horizon=1)


def test_the_chain_of_a_bandit_with_two_arms_by_hand():
    """A known model: r~ = r and d~ = d, so that every side follows from q_k and lam_k alone."""
    cmdp, n = bandit_of_two(), 30
    learner = OMDPD.known_model(cmdp.transition, cmdp.reward, cmdp.excess)
    found = monitor(cmdp, learner, "fixed", n)
    assert not found.failed
    SAH, C = 2, 1.0
    L = math.log(6 * 2 * SAH * n / DELTA)
    alpha, beta = 1 / (2 * (1 + math.sqrt(L)) * SAH), 2 * SAH / (3.5 * math.sqrt(C) * math.sqrt(2 * SAH * n))
    _, states = states_of(cmdp, learner, "fixed", n)
    lam = grown = gained = surrogate = linear = variation = paid = 0.0
    before_gradient = np.zeros(2)
    for k, state in enumerate(states[:-1], 1):
        safe, dear = state.q.ravel()
        violated = max(0.5 * dear - 0.5 * safe, 0.0)
        earlier, lam = lam, lam + alpha * violated
        weight = beta * math.exp(beta * lam)
        grown = math.exp(beta * lam) - math.exp(beta * earlier)
        gradient = alpha * np.array([0.0, -1.0]) + (alpha * weight * np.array([-0.5, 0.5]) if violated > 0 else 0.0)
        gained += 0.5 - dear
        surrogate += alpha * (-dear + weight * violated) + alpha * 0.5
        linear += gradient @ (np.array([safe, dear]) - 0.5)
        variation += ((gradient - before_gradient) ** 2).sum()
        paid, before_gradient = paid + violated, gradient
        i = k - 1
        sides = {
            "drift": (grown, weight * alpha * violated),
            "key inequality": (math.exp(beta * lam) - 1 + alpha * gained, surrogate),
            "convexity of the surrogates": (surrogate, linear),
            "surrogate regret": (linear, 4.5 * math.sqrt(variation) + 1),
            "gradient variation": (
                math.sqrt(variation), 2 * alpha * (1 + math.sqrt(L)) * math.sqrt(6 * SAH * k) * (1 + weight),
            ),
            "constant regret": (gained, 2 * (1 + math.sqrt(L)) * SAH),
            "believed violation": (paid, found["believed violation"].right[0]),
            "regret": (gained, found["regret"].right[0]),
            "violation": (paid, found["violation"].right[0]),
            "violation split": (paid, paid),
        }  # fmt: skip
        for name, (left, right) in sides.items():
            assert found[name].left[i] == pytest.approx(left, abs=1e-8), (name, k)
            assert found[name].right[i] == pytest.approx(right, abs=1e-8), (name, k)
    assert paid > 0.0
    terms = theorem_terms(cmdp.setting(n, "bandit"))
    assert found["regret"].right[0] == total(terms, "regret")
    assert found["violation"].right[0] == total(terms, "violation")
    assert found["good event, transitions (F^p)"].reason == "episodes have one step: nothing is left to be reached"


# The estimates.


@pytest.mark.parametrize("nature", ["noisy", "pool"])
def test_the_parts_of_the_good_event_are_those_of_plain_sums(nature):
    cmdp = world()
    found = monitor(cmdp, OMDPD.tuned(), nature, K)
    scene, states = states_of(cmdp, OMDPD.tuned(), nature)
    L, Lp = (math.log(c * S * A * H * K / DELTA) for c in (12, 6))
    inverse = root = 0.0
    for k, state in enumerate(states[:-1], 1):
        n, p_hat = np.maximum(state.counts.visits, 1), state.counts.transition_mean()
        q = forward(scene.learner.policy(state), cmdp.transition, cmdp.initial)
        inverse, root = inverse + (q / n).sum(), root + (q / n**0.5).sum()
        radius = 2 * np.sqrt(p_hat * (1 - p_hat) * Lp / n[..., None]) + 14 / 3 * Lp / n[..., None]
        far = (np.abs(cmdp.transition - p_hat) / radius)[:-1].max()
        off = (np.abs(cmdp.reward - state.counts.reward_sum / n) / np.sqrt(L / n)).max()
        logs = 2 * H * S * A * math.log(k), math.log(2 * H * k / (DELTA / 3))
        for name, left, right in (
            ("transitions (F^p)", far, 1.0), ("rewards (F^r)", off, 1.0),
            ("visits (F^N)", inverse, 4 * H * S * A + logs[0] + 4 * logs[1]),
            ("roots of visits (F^N)", root, 6 * H * S * A + 2 * H * math.sqrt(S * A * k) + logs[0] + 5 * logs[1]),
        ):  # fmt: skip
            part = found[f"good event, {name}"]
            assert (part.left[k - 1], part.right[k - 1]) == pytest.approx((left, right), rel=1e-6), (name, k)
        if nature == "noisy":
            dear = (np.abs(cmdp.excess[0] - state.counts.cost_sum[0] / n) / np.sqrt(2 * L / n)).max()
            assert found["good event, costs (F^d)"].left[k - 1] == pytest.approx(dear, rel=1e-6)
    costs = found["good event, costs (F^d)"]
    assert costs.applies == (nature == "noisy")
    rows = found.rows.column("good_event")
    event = np.all([part.holds for part in found if part.name.startswith("good event") and part.applies], axis=0)
    assert rows == np.logical_and.accumulate(event).tolist()


def test_scales_that_are_too_small_are_found_out_in_the_first_episode_in_which_they_are():
    """A narrow box holds the truth until a law is estimated badly; q* leaves Q_k only where q* visits such a row."""
    cmdp = world(10)
    tiny = OMDPD(BoxEstimator(0.05, 0.0, 0.02, clip=True, trusting=True), 0.1, 1.0, 10.0)
    found = monitor(cmdp, tiny, "noisy", K)
    scene, states = states_of(cmdp, tiny, "noisy")
    best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess).occupancy
    expected = dict.fromkeys(
        ("true kernel in B_k", "comparator in Q_k", "optimistic rewards", "comparator believed safe")
    )
    for k, state in enumerate(states[1:], 1):
        believed = scene.learner.report(state).believed
        low, high = believed.region.lower[:-1], believed.region.upper[:-1]
        p = cmdp.transition[:-1]
        out = np.any((p < low - 1e-6) | (p > high + 1e-6), axis=-1)
        failed = {
            "true kernel in B_k": out.any(), "comparator in Q_k": out[best[:-1] > 0].any(),
            "optimistic rewards": (believed.reward < cmdp.reward - 1e-6).any(),
            "comparator believed safe": (believed.cost[0] * best).sum() > 1e-6,
        }  # fmt: skip
        for name in expected:
            expected[name] = k if expected[name] is None and failed[name] else expected[name]
    assert expected["true kernel in B_k"] < expected["comparator in Q_k"] < expected["comparator believed safe"]
    assert {name: found[name].first_failure for name in expected} == expected
    assert set(expected) <= {each.name for each in found.failed}
    # The event with the theorem's widths is about the data, and still holds.
    assert all(part.held for part in found if part.name.startswith("good event"))
    # The link of the chain that breaks is the one that takes the comparator for safe.
    assert found["key inequality"].first_failure >= found["comparator believed safe"].first_failure
    assert found["convexity of the surrogates"].held


def test_with_the_theorems_widths_and_shrinking_sets_the_whole_chain_holds():
    found = monitor(world(1), OMDPD.theory(nested=True), "noisy", K)
    assert not found.failed
    assert found["surrogate regret"].note == ""
    assert "trivial" in found["violation"].note
    assert "not proved" not in found["violation"].note
    assert found["constant regret"].reason.startswith("the remark is about a known model")


def test_nested_sets_that_had_to_begin_anew_are_no_premise_from_then_on():
    learner = OMDPD.tuned(nested=True)
    _, states = states_of(world(1), learner, "noisy")
    since = next(k for k, state in enumerate(states) if state.resets)
    found = monitor(world(1), learner, "noisy", K)
    for name in ("surrogate regret", "regret", "violation"):
        assert f"nothing in common in episode {since}" in found[name].note
    assert "nothing in common" not in found["optimism, Term 1"].note
    assert [row is None for row in found.rows.column("certified_regret")] == [k >= since for k in range(1, K + 1)]


def test_what_a_lemma_needs_and_a_learner_does_not_do_is_said():
    found = monitor(world(1), OMDPD.tuned(hint="as-printed", divergence="kl"), "noisy", 5)
    for needed in ("nested", "last gradient", "Euclidean"):
        assert needed in found["surrogate regret"].note
    assert "the theorem's alpha and w0 and beta_root" in found["regret"].note
    assert "needs" not in found["optimism, Term 1"].note
    narrow = monitor(world(1), OMDPD.theory(nested=True, diameter=0.5 * H), "noisy", 5)
    assert narrow["surrogate regret"].note == "not proved here: it needs C of at least H, no less than any distance"


@pytest.mark.parametrize("nature", ["fixed", "pool"])
def test_the_remark_is_followed_for_any_costs_and_what_it_drops_is_said(nature):
    found = monitor(world(1), OMDPD.theory(known_model=True), nature, 5)["constant regret"]
    assert found.applies
    assert found.note.startswith("not proved here: it needs (1 + sqrt C) / alpha")


def test_where_no_policy_is_safe_what_needs_one_does_not_apply():
    found = monitor(world(), OMDPD.tuned(), "independent", K)
    assert found.comparator.policy is None
    for name in ("comparator in Q_k", "key inequality", "surrogate regret", "regret", "optimisation, Term 2"):
        assert "no policy is safe" in found[name].reason
    assert found["violation"].applies
    assert found.losses.regret is None
    assert "violation" in repr(found.losses)


# The decomposition.


@pytest.mark.parametrize("n_constraints", [1, 2])
@pytest.mark.parametrize("learner", [OMDPD.tuned(), ProximalOMDPD.standard(), ProximalOMDPD.cautious()], ids=type)
def test_regret_and_violation_split_as_plain_sums_say(learner, n_constraints):
    cmdp = world(2, n_constraints)
    found = monitor(cmdp, learner, "noisy", K)
    losses = found.losses
    scene, states = states_of(cmdp, learner, "noisy")
    best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess).value
    regret, estimated, violation, planned, bound = np.zeros(5)
    for k, state in enumerate(states[:-1]):
        believed = scene.learner.report(state).believed
        q = forward(scene.learner.policy(state), cmdp.transition, cmdp.initial)
        true = (cmdp.excess * q).sum((1, 2, 3))
        plan = (believed.counted_cost * state.q).sum((1, 2, 3))
        regret += best - (cmdp.reward * q).sum()
        estimated += (believed.reward * state.q).sum() - (cmdp.reward * q).sum()
        violation, planned = violation + max(true.max(), 0), planned + max(plan.max(), 0)
        bound += max((true - plan).max(), 0) + max(plan.max(), 0)
        expected = regret, estimated, regret - estimated, violation, violation - planned, planned
        names = ("regret", "estimation_regret", "optimisation_regret")
        names += ("violation", "estimation_violation", "optimisation_violation")
        assert [getattr(losses, name)[k] for name in names] == pytest.approx(expected, abs=1e-5)
        assert found["violation split"].left[k] == pytest.approx(violation, abs=1e-9)
        assert found["violation split"].right[k] == pytest.approx(bound, abs=1e-9)
    assert violation > 0.0


# docs/theory.md.


@pytest.mark.parametrize("nature", ["noisy", "pool"])
@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_proved_of_every_preset_holds(preset, nature):
    found = monitor(world(3), PRESETS[preset], nature, K)
    for name in ("violation split", "potential"):
        assert found[name].held, found[name]
    if preset in ("standard", "cautious", "balanced"):
        assert found["surrogate regret"].held
        assert found["drift"].held
        assert found["comparator in Q_k"].reason.startswith("the learner plans under one estimated kernel")
    if preset in ("cautious", "balanced"):
        assert found["drift of the beliefs"].held
    if preset == "known":
        assert not found.failed
    assert not found["regret"].applies


@pytest.mark.parametrize("preset", ["standard", "cautious"])
def test_the_sides_of_the_proximal_lemmas_are_those_of_plain_sums(preset):
    cmdp, learner = world(), PRESETS[preset]
    found = monitor(cmdp, learner, "noisy", K)
    _, states = states_of(cmdp, learner, "noisy")
    policy = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess).policy
    lagged, gamma, w0 = learner.weighting.lagged, 16 / math.sqrt(H * K), learner.weighting.w0
    surrogate = gained = paid = drift_sum = 0.0
    for k, (before, after) in enumerate(pairwise(states)):
        p, p_next = before.believed.region.transition, after.believed.region.transition
        u, r, d = forward(policy, p, cmdp.initial), before.believed.reward, before.believed.cost[0]
        weight = before.weights[0] if lagged else w0 * math.exp(gamma * after.V[0])
        f = [-(r * q).sum() + weight * max((d * q).sum(), 0) for q in (before.q, u)]
        surrogate, gained = surrogate + f[0] - f[1], gained + (r * (u - before.q)).sum()
        paid += weight * (after.V[0] - before.V[0])
        delta = np.abs(p_next - p).sum(-1).max((1, 2))
        drift = sum((H - 1 - h) * delta[h] for h in range(H))
        drift_sum += drift
        moved = np.abs(forward(policy, p_next, cmdp.initial) - u).sum()
        bound = H * (1 + 1 / 16) / after.eta + opened(after).drift + opened(after).inexactness
        phi = w0 / gamma * math.expm1(gamma * after.V[0])
        sides = {
            "surrogate regret": (surrogate, bound),
            "drift": (moved, drift),
            "potential": (phi, (math.exp(gamma * H) if lagged else 1.0) * paid),
            "comparator meets the believed rows": (max((d * u).sum(), 0.0), 0.0),
            "comparator is believed good": (found.comparator.value, (r * u).sum()),
            "certified regret": (gained, learner.report(after).certificate.regret),
        }  # fmt: skip
        if preset == "cautious":
            sides["drift of the beliefs"] = (drift_sum, H * (H - 1) * S * A * (1 + math.log(k + 1)))
        for name, expected in sides.items():
            assert (found[name].left[k], found[name].right[k]) == pytest.approx(expected, abs=1e-8), (name, k)
    assert paid > 0.0


def test_a_certificate_is_not_promised_once_the_comparator_is_not_believed_safe():
    found = monitor(world(4), ProximalOMDPD.standard(), "noisy", K)
    first_failure = found["comparator meets the believed rows"].first_failure
    assert f"in episode {first_failure}" in found["certified regret"].note


# The object.


def test_a_monitor_plays_the_episodes_of_run():
    cmdp = world()
    found, history = monitor(cmdp, OMDPD.tuned(), "noisy", K, 3), run(cmdp, OMDPD.tuned(), "noisy", K, 3)
    assert found.rows.column("value") == history.rows.column("value")
    assert found.losses.regret[-1] == pytest.approx(history.scores.regret)
    assert found.losses.violation[-1] == pytest.approx(history.scores.violation)


def test_a_monitor_shows_itself(tmp_path):
    found = monitor(world(), OMDPD.tuned(), "noisy", K, label="mine")
    applied = [each for each in found if each.applies]
    assert repr(found).startswith(
        f"Monitor(mine, noisy, {K} episodes: {len(applied) - len(found.failed)} of {len(applied)}"
    )
    assert len(found.table) == len(found) == 24
    assert "surrogate regret" in found._repr_html_()
    assert repr(found["surrogate regret"]).startswith("Inequality(surrogate regret, Lemma 5.8, held: ")
    assert "the remark" in repr(found["constant regret"])
    omdpd.plot(found, tmp_path / "monitor.png")
    assert (tmp_path / "monitor.png").stat().st_size > 10_000
    omdpd.plot(monitor(world(), OMDPD.tuned(), "independent", 5), tmp_path / "unsafe.png", title="nobody is safe")


@pytest.mark.parametrize(
    ("learner", "nature", "message"),
    [
        (OptCMDP(), "noisy", "OptCMDP is not monitored: only the analyses of OMDPD and ProximalOMDPD"),
        (OMDPD.tuned(), "switching_rewards", "the nature changes reward"),
        (ProximalOMDPD.standard(layout="graph"), "noisy", "held on a graph"),
    ],
)
def test_what_cannot_be_monitored_is_refused_before_it_is_played(learner, nature, message):
    with pytest.raises(InvalidInputError, match=message):
        monitor(world(), learner, nature, K)


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(InvalidInputError, match=r"no inequality is called 'drft'.*key inequality"):
        monitor(world(), OMDPD.tuned(), NATURES["noisy"](world(), 1), 3)["drft"]


def test_arguments_are_checked():
    with pytest.raises(InvalidInputError, match="must be a CMDP"):
        monitor("world", OMDPD.tuned())
    with pytest.raises(InvalidInputError, match="n_episodes"):
        monitor(world(), OMDPD.tuned(), n_episodes=0)


# The links of Theorem D.

LINKS = (
    "a row's own word",
    "optimism but for a deficiency",
    "a step beside the greedy plan",
    "path of the greedy plan",
)


def theorem_d(found):
    """The five, by name; the last is the theorem's sum."""
    places = {f"theory.md, {part}" for part in ("(3)", "Lemma 5", "Lemma 6", "Theorem D")}
    return {each.name: each for each in found if each.where in places}


@pytest.mark.parametrize("n_constraints", [1, 2])
def test_every_link_of_theorem_d_holds_and_the_parts_add_up(n_constraints):
    cmdp = world(1, n_constraints)
    found = theorem_d(monitor(cmdp, ProximalOMDPD.standard(), "noisy", K))
    assert list(found) == [*LINKS, "regret of Theorem D"]
    assert [each.held for each in found.values()] == [True] * 5
    history = run(cmdp, ProximalOMDPD.standard(), "noisy", K)
    np.testing.assert_allclose(found["regret of Theorem D"].left[-1], history.scores.regret, rtol=1e-9)
    assert found["regret of Theorem D"].note.startswith("the right side is")


def test_the_first_optimistic_values_are_those_of_the_greedy_policy_by_hand():
    """Before anything was met there are no prices: W_0 - V* + D is what the first bonus hopes for, and more."""
    cmdp = world(1)
    _, states = states_of(cmdp, ProximalOMDPD.standard(), "noisy", 2)
    r, p = states[0].believed.reward, states[0].believed.region.transition
    V = np.zeros(S)
    for h in reversed(range(H)):
        V = (r[h] + p[h] @ V).max(-1)
    found = theorem_d(monitor(cmdp, ProximalOMDPD.standard(), "noisy", 2))
    optimism = found["optimism but for a deficiency"]
    assert optimism.right[0] >= cmdp.initial @ V - 1e-12
    assert optimism.left[0] == pytest.approx(cmdp.solve().value)


@pytest.mark.parametrize(
    ("learner", "nature", "why"),
    [
        (ProximalOMDPD.settling(), "noisy", "with persistence"),
        (ProximalOMDPD.standard(stationary=True), "noisy", "not pooled"),
        (ProximalOMDPD.cautious(), "noisy", "with persistence"),
        (ProximalOMDPD.standard(), "pool", "met on the way"),
    ],
)
def test_theorem_d_says_where_it_does_not_apply(learner, nature, why):
    found = theorem_d(monitor(world(1), learner, nature, 5))
    assert all(why in each.reason for each in found.values())


def test_a_rows_own_word_is_followed_where_rows_are_asked_and_half_a_bonus_does_not_keep_it():
    """A state that is met once in 500 episodes: its rows are overdue, and (3) is about them."""
    p = np.zeros((2, 2, 2))
    p[..., 0], p[..., 1] = 0.998, 0.002
    table = np.array([[0.4, 0.6], [0.1, 0.9]])
    cmdp = CMDP.from_arrays(p, table, table, budget=0.9, horizon=2)
    _, states = states_of(cmdp, ProximalOMDPD.standard(), "noisy", 700)
    n = [state.counts.visits for state in states]
    assert any(((each > 0) & (each[0].sum() > 30 * each.size * each)).any() for each in n)
    kept = theorem_d(monitor(cmdp, ProximalOMDPD.standard(), "noisy", 700))
    assert [each.held for each in kept.values()] == [True] * 5
    half = theorem_d(monitor(cmdp, ProximalOMDPD.standard(exploration=0.5), "noisy", 700))
    assert half["a row's own word"].held is False
