"""The compiled arithmetic of an episode is the readable one, in every episode of runs under every nature."""

from dataclasses import astuple, fields, replace

import numpy as np
import pytest

from omdpd.beliefs import learning
from omdpd.beliefs.confidence import BoxEstimator, EmpiricalEstimator, KnownModel
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.sharing import Evidence
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.natures import NATURES
from omdpd.play.episode import play_judged
from omdpd.play.judging import assess, optimism_holds
from omdpd.play.simulate import play_episode
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.solvers.regions import Box, Kernel
from omdpd.worlds import random_dirichlet

# Rounding of sums in another order, as a share of a table's largest entry.
ROUNDING = 1e-13
ESTIMATORS = (
    EmpiricalEstimator(),
    EmpiricalEstimator(stationary=True, kappa=0.3),
    BoxEstimator(),
    BoxEstimator.practical(),
    BoxEstimator.practical(cost_scale=0.4, stationary=True),
)
SHARING = (SharingEstimator(), SharingEstimator(z=0.0), SharingEstimator(2.0, 0.5, stationary=True))


def world(n_constraints=2):
    """A small world with all sizes different, and scenarios of its own."""
    rng = np.random.default_rng(3)
    cmdp = random_dirichlet.make(rng, 3, 2, 4, n_constraints=n_constraints, binding=False)
    shift = rng.uniform(-0.1, 0.1, (3, *cmdp.cost.shape))
    return cmdp.with_scenarios({f"scenario {i}": np.clip(cmdp.cost + d, -0.5, 0.5) for i, d in enumerate(shift)})


def close(found, readable, what=""):
    scale = max(1.0, np.abs(readable).max(initial=0.0))
    np.testing.assert_allclose(found, readable, rtol=0.0, atol=ROUNDING * scale, err_msg=what)


def same(found, readable):
    """Whether two records agree field by field, arrays to rounding."""
    assert type(found) is type(readable)
    for field, x, y in zip(fields(readable), astuple_once(found), astuple_once(readable), strict=True):
        if isinstance(y, np.ndarray | float):
            close(x, np.asarray(y), field.name)
        else:
            same(x, y)


def astuple_once(record):
    return [getattr(record, field.name) for field in fields(record)]


def check_beliefs(state, counts, evidence, memory):
    """Every estimator's compiled belief against its readable one, from the counts of one moment."""
    setting, k = state.setting, state.k + 1
    for estimator in ESTIMATORS:
        readable = estimator.estimate(setting, counts, k)
        same(learning.estimate(estimator, setting, counts, k), readable)
        if isinstance(readable.region, Box):
            same(learning.estimate_with(readable.region, estimator, setting, counts, k), readable)
            found = learning.region_of(estimator, setting, counts, k)
            close(found.lower, readable.region.lower)
            close(found.upper, readable.region.upper)
    prices = Prices(state.multipliers / state.eta, state.predicted.hinges.tables)
    for estimator in SHARING:
        beliefs = estimator.beliefs(setting, counts, evidence)
        believed, shared = learning.shared_estimate(estimator, setting, counts, evidence, prices, state.caution)
        same(believed, estimator.estimate(setting, counts, beliefs, prices, state.caution))
        alone = learning.kernel_with_error(estimator, counts, evidence)
        for found in (shared, alone):
            for name in ("kernel", "own", "common"):
                close(getattr(found, name), getattr(beliefs, name), name)
        for kept in memory:
            if kept.tables:
                lifted = estimator.lifted(setting, shared, state.caution, memory, kept.stack)
                raised = [d + estimator.revealed_lift(setting, beliefs, state.caution, memory, d) for d in kept.stack]
                close(lifted, np.array(raised))


def check_run(nature, episodes, check_every):
    """Play a run by the readable functions; hold the compiled ones to them on the way."""
    cmdp, learner = world(), ProximalOMDPD.standard(memory=3)
    nature = NATURES[nature](cmdp, 7)
    state = learner.init(cmdp.setting(episodes, nature.feedback))
    rng, twin = np.random.default_rng(8), np.random.default_rng(8)
    for k in range(episodes):
        policy = learner.policy(state)
        q = occupancy_of_policy(policy, cmdp.transition, cmdp.initial)
        round_ = nature.draw(k, q)
        readable = play_episode(cmdp, round_, policy, nature.feedback, rng), assess(round_, q)
        for found, expected in zip(play_judged(cmdp, round_, policy, q, nature.feedback, twin), readable, strict=True):
            same(found, expected)
        counts = state.counts.add(readable[0])
        same(learning.counts_after(state.counts, readable[0]), counts)
        evidence = state.evidence.after(state.counts, readable[0])
        same(learning.evidence_after(state.evidence, state.counts, readable[0]), evidence)
        state = learner.update(state, readable[0])
        same(state.counts, counts)
        same(state.evidence, evidence)
        if k % check_every == 0:
            check_beliefs(state, counts, evidence, state.memory)
        check_good_event(state.believed, cmdp)
    assert rng.random() == twin.random()


def check_good_event(believed, cmdp):
    """`optimism_holds` against its definition in NumPy."""
    optimistic = np.all(believed.reward >= cmdp.reward - 1e-12) and np.all(believed.cost <= cmdp.excess + 1e-12)
    inside = np.all(np.abs(believed.region.transition - cmdp.transition)[:-1] <= 1e-12)
    assert optimism_holds(believed, cmdp.transition, cmdp.reward, cmdp.excess) == bool(optimistic and inside)


@pytest.mark.parametrize("nature", NATURES)
def test_the_compiled_arithmetic_of_an_episode_is_the_readable_one(nature):
    check_run(nature, 60, check_every=4)


@pytest.mark.slow
@pytest.mark.parametrize("nature", NATURES)
def test_it_stays_so_over_thousands_of_episodes(nature):
    check_run(nature, 3000, check_every=10)


def test_a_belief_that_is_the_truth_is_a_good_event_and_one_that_is_less_is_not():
    cmdp = world()
    believed = KnownModel(cmdp.transition, cmdp.reward, cmdp.excess).estimate(cmdp.setting(5, "bandit"), None, 0)
    truth = cmdp.transition, cmdp.reward, cmdp.excess
    assert optimism_holds(believed, *truth)
    assert optimism_holds(replace(believed, cost=believed.cost + 1e-3), *truth[:2], None)
    for wrong in (
        replace(believed, reward=believed.reward - 1e-3),
        replace(believed, cost=believed.cost + 1e-3),
        replace(believed, region=Kernel(np.full(cmdp.transition.shape, 1 / 3))),
    ):
        assert not optimism_holds(wrong, *truth)


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


def test_learning_changes_no_array_that_it_was_given():
    cmdp = world()
    nature = NATURES["noisy"](cmdp, 7)
    setting = cmdp.setting(20, "bandit")
    counts, evidence, rng = Counts.empty(setting), Evidence.empty(setting), np.random.default_rng(1)
    policy = np.full(cmdp.shape, 0.5)
    for k in range(5):
        feedback = play_episode(cmdp, nature.draw(k, policy), policy, "bandit", rng)
        before = [array.copy() for array in (*astuple(counts), *astuple(evidence))]
        after = learning.counts_after(counts, feedback), learning.evidence_after(evidence, counts, feedback)
        for array, copy in zip((*astuple_once(counts), *astuple_once(evidence)), before, strict=True):
            assert np.array_equal(array, copy)
        counts, evidence = after


def test_an_estimator_without_a_compiled_version_is_asked_itself():
    cmdp = world()
    setting = cmdp.setting(20, "bandit")
    known = KnownModel(cmdp.transition, cmdp.reward, cmdp.excess)
    same(learning.estimate(known, setting, Counts.empty(setting), 0), known.estimate(setting, Counts.empty(setting), 0))
