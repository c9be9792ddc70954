"""The compiled arithmetic of an episode is what plain NumPy says of it, in every episode of runs under every nature."""

from dataclasses import astuple, fields, replace

import numpy as np
import pytest

from omdpd.beliefs.confidence import BoxEstimator, EmpiricalEstimator, KnownModel, log_term, log_term_transition
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.evidence import Evidence, counted
from omdpd.beliefs.memory import KEPT
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.standard.believing import Dials
from omdpd.learners.standard.learn import beliefs_of
from omdpd.learners.standard.state import HINGES, NOVELTY, SHARE
from omdpd.natures import NATURES
from omdpd.play.judging import assess, optimism_holds
from omdpd.play.simulate import play_episode, play_judged
from omdpd.problem.setting import BanditFeedback
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.solvers.regions import Kernel
from omdpd.worlds import random_dirichlet
from tests.references import plain_beliefs as plain
from tests.references.instances import revealed
from tests.references.plain_loop import remember

# Rounding of sums in another order, as a share of a table's largest entry; and of a difference of such, as a variance
# is, under a root.
ROUNDING, UNDER_A_ROOT = 1e-13, 1e-11
MEMORY, W0 = 3, 10.0
# z, exploration, whether the world is stationary, persistence, and how z grows.
DIALS = (
    (1.0, 1.0, False, 1.0, 0.0), (0.0, 1.0, False, 9.0, 0.0), (2.0, 0.5, True, 0.0, 0.0), (1.0, 1.0, False, 0.6, 0.5),
)  # fmt: skip


def world(n_constraints=5):
    """A small world with all sizes different, and scenarios of its own."""
    rng = np.random.default_rng(3)
    cmdp = random_dirichlet.make(rng, 3, 2, 4, n_constraints=n_constraints, binding=False)
    shift = rng.uniform(-0.1, 0.1, (3, *cmdp.cost.shape))
    return cmdp.with_scenarios({f"scenario {i}": np.clip(cmdp.cost + d, -0.5, 0.5) for i, d in enumerate(shift)})


def close(found, expected, what="", rounding=ROUNDING):
    expected = np.asarray(expected)
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    found = np.reshape(found, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=rounding * scale, err_msg=what)


def same(found, expected):
    """Whether two records agree field by field, arrays to rounding."""
    assert type(found) is type(expected)
    for field, x, y in zip(fields(expected), astuple_once(found), astuple_once(expected), strict=True):
        if isinstance(y, np.ndarray | float):
            close(x, y, field.name)
        else:
            same(x, y)


def astuple_once(record):
    return [getattr(record, field.name) for field in fields(record)]


def check_estimators(setting, past, k):
    """The estimators of the other presets, from the counts of one moment."""
    apart = past.visits, past.transitions, past.reward_sum, past.cost_sum
    L, Lp = log_term(setting, k, 0.01), log_term_transition(setting, k, 0.01)
    for stationary, kappa in ((False, 0.02), (True, 0.3)):
        found = EmpiricalEstimator(kappa, stationary=stationary).estimate(setting, Counts(*apart), k)
        expected = plain.empirical(*(plain.pooled(*apart) if stationary else apart), L, kappa)
        names = ("reward", "cost", "counted_cost", "margin")
        for name, table in zip(names, expected, strict=False):
            close(getattr(found, name), table, name)
        close(found.region.transition, expected[-1], "kernel")
    for estimator, r, d, p in (
        (BoxEstimator(), 1.0, 1.0, 1.0),
        (BoxEstimator.practical(), 0.2, 0.0, 0.005),
        (BoxEstimator.practical(cost_scale=0.4, stationary=True), 0.2, 0.4, 0.005),
    ):
        found = estimator.estimate(setting, Counts(*apart), k)
        n, moves, rewards, costs = plain.pooled(*apart) if estimator.stationary else apart
        box = plain.bernstein_box(moves, p, Lp)
        tables = plain.optimistic(n, rewards, costs, L, r, d, practical=estimator.clip)
        close([found.region.lower, found.region.upper], box, "box")
        close(found.reward, tables[0], "reward")
        close([found.cost, found.counted_cost], [tables[1]] * 2, "cost")
        same(estimator.estimate_with(found.region, setting, Counts(*apart), k), found)
        alone = estimator.region(setting, Counts(*apart), k)
        close([alone.lower, alone.upper], box)


class Believing:
    """What a run should believe, kept beside it from what it met."""

    def __init__(self, setting):
        self.setting, self.bandit = setting, setting.feedback == "bandit"
        self.past = plain.Past(*setting.shape, setting.n_constraints)
        self.kept, self.stored = [[] for _ in range(setting.n_constraints)], np.zeros(setting.n_constraints)
        self.novelty = 0.0

    def add(self, feedback):
        """One more episode."""
        walk = feedback.trajectory
        costs = feedback.costs if isinstance(feedback, BanditFeedback) else ()
        self.past.add(walk.states, walk.actions, feedback.rewards, costs)
        if not self.bandit:
            far = [plain.distance(kept, d) for kept, d in zip(self.kept, feedback.cost, strict=True) if kept]
            self.novelty = 0.875 * self.novelty + 0.125 * max(far) if far else self.novelty
            for i, table in enumerate(feedback.cost):
                self.kept[i] = remember(self.kept[i], table, MEMORY)
                self.stored[i] += any(each is table for each in self.kept[i])

    def prices(self, state):
        """What its plan would pay for a little more of each cost; at most w0 in all if it meets what was revealed."""
        each, tables = hinges(state, "multipliers")
        each, q = each / state.eta, state.q
        met = not self.bandit and all((d * q).sum() <= 1e-6 * len(q) for kept in self.kept for d in kept)
        return (each * W0 / each.sum() if met and each.sum() > W0 else each), tables

    def check_past(self, state):
        """Counts, scores and tables remembered; scores are taken over, so that ties are broken alike."""
        for name, table in vars(self.past).items():
            close(getattr(state.parts.past, name), table, name)
        for name in ("kernel_score", "reward_score", "cost_score"):
            getattr(self.past, name)[...] = getattr(state.parts.past, name)
        assert state.parts.account[NOVELTY] == pytest.approx(self.novelty, rel=1e-12)
        for i, kept in enumerate(self.kept):
            mine = slice(i * state.room, i * state.room + len(kept))
            in_order = state.parts.kept[mine][np.argsort(state.parts.kept_met[mine])]
            assert len(kept) == state.parts.tally[i, KEPT]
            assert all(np.array_equal(found, table.ravel()) for found, table in zip(in_order, kept, strict=True))

    def check(self, state, plan, prices, tables, dials):
        """Everything that is believed, from the past and the last plan."""
        z, exploration, stationary, persistence, growth = dials
        z *= (1 + np.log1p(self.past.visits[0].sum() / 1000)) ** growth
        share = state.parts.account[SHARE]
        b = self.past.beliefs(self.bandit, stationary, persistence)
        for name, table in (("kernel", b.p), ("own", b.own), ("common", b.common)):
            close(getattr(state.parts, name), table, name)
        extra = plain.bonus(b, self.past.visits, prices, tables, self.past, persistence)
        close(state.parts.reward, b.reward.mean + exploration * extra, "reward", UNDER_A_ROOT)
        if self.bandit:
            close(state.parts.cost, [d.mean for d in b.costs], "cost")
            raw, factor = [(d.mean, d) for d in b.costs], z * share
        else:
            useless = (self.stored > MEMORY).any() and self.novelty > 0.25
            kept = [state.parts.kept[i * state.room + j] for i, own in enumerate(self.kept) for j in range(len(own))]
            raw, factor = [(d.reshape(plan.shape), None) for d in kept], 0.0 if useless else 1.5 * z * share
        lifted = [d + factor / len(plan) * plain.standard_error(b, plan, d, observed) for d, observed in raw]
        close(hinges(state)[1], np.reshape(lifted, (-1, *plan.shape)), "lifted", UNDER_A_ROOT)


def hinges(state, weights="hinge_weights"):
    """Numbers of the hinges that count, and their tables."""
    n = int(state.parts.account[HINGES])
    return getattr(state.parts, weights)[:n].copy(), state.parts.tables[:n].reshape(n, *state.setting.shape).copy()


def asked_again(state, prices, dials):
    """A state whose beliefs are those of other dials, before an episode after the one that it plans."""
    z, exploration, stationary, persistence, growth = dials
    new, setting = state.copy(), state.setting
    new.parts.plan[:] = new.parts.q
    told = Dials(
        bandit=setting.feedback == "bandit", episodes=setting.n_episodes, z=z, exploration=exploration,
        stationary=stationary, w0=W0, gamma_scale=16.0, w_max=1e6, lagged=True, c_prime=1 / 16, patient=True,
        capacity=MEMORY, persistence=persistence, z_power=growth,
    )  # fmt: skip
    assert beliefs_of(np.array(told, dtype=float), new.at, new.vector, prices) == new.parts.account[HINGES]
    return new


def check_run(nature, episodes, check_every):
    """Play a run; hold what is counted, remembered and believed to the plain version of it on the way."""
    cmdp, learner = world(), ProximalOMDPD.standard(memory=MEMORY, w0=W0)
    nature = NATURES[nature](cmdp, 7)
    state = learner.init(cmdp.setting(episodes, nature.feedback))
    mine = Believing(state.setting)
    rng, twin = np.random.default_rng(8), np.random.default_rng(8)
    for k in range(episodes):
        policy = learner.policy(state)
        q = occupancy_of_policy(policy, cmdp.transition, cmdp.initial)
        round_ = nature.draw(k, q)
        readable = play_episode(cmdp, round_, policy, nature.feedback, rng), assess(round_, q)
        for found, expected in zip(play_judged(cmdp, round_, policy, q, nature.feedback, twin), readable, strict=True):
            same(found, expected)
        before, paid = state, mine.prices(state)
        state = learner.update(state, readable[0])
        mine.add(readable[0])
        mine.check_past(state)
        exceeded = max([(d * before.q).sum() for d in hinges(before)[1]], default=0.0) > 1e-6 * len(q)
        share = plain.share_after(before.parts.account[SHARE], exceeded, not mine.bandit)
        assert state.parts.account[SHARE] == pytest.approx(share, rel=1e-12, abs=1e-12)
        if k % check_every == 0:
            mine.check(state, before.q, *paid, DIALS[0])
            check_estimators(state.setting, mine.past, state.k)
            for dials in DIALS:
                prices, tables = mine.prices(state)
                mine.check(asked_again(state, prices, dials), state.q, prices, tables, dials)
        check_good_event(state.believed, cmdp)
    assert rng.random() == twin.random()
    return mine


def check_good_event(believed, cmdp):
    """`optimism_holds` against its definition in NumPy."""
    optimistic = np.all(believed.reward >= cmdp.reward - 1e-12) and np.all(believed.cost <= cmdp.excess + 1e-12)
    inside = np.all(np.abs(believed.region.transition - cmdp.transition)[:-1] <= 1e-12)
    assert optimism_holds(believed, cmdp, cmdp.excess) == bool(optimistic and inside)


@pytest.mark.parametrize("nature", NATURES)
def test_the_compiled_arithmetic_of_an_episode_is_the_plain_one(nature):
    check_run(nature, 24, check_every=3)


@pytest.mark.slow
@pytest.mark.parametrize("nature", NATURES)
def test_it_stays_so_over_thousands_of_episodes(nature):
    check_run(nature, 2000, check_every=10)


def test_a_belief_that_is_the_truth_is_a_good_event_and_one_that_is_less_is_not():
    cmdp = world()
    believed = KnownModel(cmdp.transition, cmdp.reward, cmdp.excess).estimate(cmdp.setting(5, "bandit"), None, 0)
    assert optimism_holds(believed, cmdp, cmdp.excess)
    assert optimism_holds(replace(believed, cost=believed.cost + 1e-3), cmdp, None)
    for wrong in (
        replace(believed, reward=believed.reward - 1e-3),
        replace(believed, cost=believed.cost + 1e-3),
        replace(believed, region=Kernel(np.full(cmdp.transition.shape, 1 / 3))),
    ):
        assert not optimism_holds(wrong, cmdp, cmdp.excess)


def test_observations_through_a_beta_law_are_the_readable_ones():
    cmdp = world()
    nature = NATURES["noisy"](cmdp, 7, noise="beta")
    policy = np.full(cmdp.shape, 0.5)
    q = occupancy_of_policy(policy, cmdp.transition, cmdp.initial)
    rng, twin = np.random.default_rng(9), np.random.default_rng(9)
    for k in range(20):
        round_ = nature.draw(k, q)
        feedback, judged = play_judged(cmdp, round_, policy, q, "bandit", twin)
        same(feedback, play_episode(cmdp, round_, policy, "bandit", rng))
        same(judged, assess(round_, q))


def test_observations_between_their_bounds_are_scored_and_squared_as_they_are():
    """A beta law shows few zeros and ones, whose scores are summed another way."""
    cmdp = world()
    nature = NATURES["noisy"](cmdp, 7, noise="beta")
    learner, rng = ProximalOMDPD.standard(), np.random.default_rng(10)
    state = learner.init(cmdp.setting(20, "bandit"))
    mine = Believing(state.setting)
    for k in range(8):
        policy = learner.policy(state)
        q = occupancy_of_policy(policy, cmdp.transition, cmdp.initial)
        feedback = play_episode(cmdp, nature.draw(k, q), policy, "bandit", rng)
        assert np.mean(np.abs(feedback.costs) < 1.0) > 0.5
        before, paid = state, mine.prices(state)
        state = learner.update(state, feedback)
        mine.add(feedback)
        mine.check_past(state)
        mine.check(state, before.q, *paid, DIALS[0])


def test_one_constraint_whose_tables_never_repeat_ends_the_margins_of_all():
    cmdp, learner, rng = world(), ProximalOMDPD.standard(memory=MEMORY, w0=W0), np.random.default_rng(11)
    state = learner.init(cmdp.setting(20, "full"))
    mine, lifted = Believing(state.setting), []
    for _ in range(10):
        tables = cmdp.excess.copy()
        tables[1] = rng.uniform(-1.0, 1.0, cmdp.shape)
        before, paid = state, mine.prices(state)
        feedback = revealed(rng, cmdp, learner.policy(state), tables)
        state = learner.update(state, feedback)
        mine.add(feedback)
        mine.check_past(state)
        mine.check(state, before.q, *paid, DIALS[0])
        lifted.append(hinges(state)[1][0] - cmdp.excess[0])
    assert np.abs(lifted[1]).max() > 0.0
    assert not lifted[-1].any()


def test_learning_changes_no_array_that_it_was_given():
    cmdp = world()
    nature, learner = NATURES["noisy"](cmdp, 7), ProximalOMDPD.standard()
    setting = cmdp.setting(20, "bandit")
    counts, evidence, rng = Counts.empty(setting), Evidence.empty(setting), np.random.default_rng(1)
    policy, state = np.full(cmdp.shape, 0.5), learner.init(setting)
    for k in range(5):
        feedback = play_episode(cmdp, nature.draw(k, policy), policy, "bandit", rng)
        before = [array.copy() for array in (*astuple(counts), *astuple(evidence), state.vector)]
        after = counted(counts, evidence, [feedback])
        learnt = learner.update(state, feedback)
        arrays = (*astuple_once(counts), *astuple_once(evidence), state.vector)
        assert all(np.array_equal(array, copy) for array, copy in zip(arrays, before, strict=True))
        (counts, evidence), state = after, learnt
        for name, array in (vars(counts) | vars(evidence)).items():
            assert np.array_equal(array.ravel(), getattr(state.parts.past, name).ravel()), name
