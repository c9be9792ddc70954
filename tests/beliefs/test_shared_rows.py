from dataclasses import replace

import numpy as np
import pytest
from expanded import expanded, expanded_kernel, rows_of_table

from omdpd.beliefs.counts import Counts
from omdpd.beliefs.layouts import Layout
from omdpd.beliefs.margins import Caution, standard_error
from omdpd.beliefs.shared_rows import Scores, lifted_rows, shared_row_estimate, shared_rows
from omdpd.beliefs.sharing import Evidence
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.beliefs.visits import Visits
from omdpd.play.simulate import play_episode
from omdpd.problem.cmdp import CMDP, Round

H, S, A, I = 5, 9, 3, 2  # noqa: E741
SHAPE = (H, S, A)


def episodes(kind, n, seed=0):
    """A world in which an episode starts in one of two states, and the feedback of some episodes in it."""
    rng = np.random.default_rng(seed)
    transition, cost = rng.dirichlet(np.full(S, 0.08), SHAPE), rng.uniform(-0.8, 0.8, (I, *SHAPE))
    initial = np.eye(S)[[2, 6]].mean(axis=0)
    cmdp = CMDP.from_arrays(transition, rng.random(SHAPE), cost, budget=0.2, initial=initial)
    round_ = Round(cmdp.reward, cmdp.excess, 0, "two-point", "two-point")
    policy = rng.dirichlet(np.full(A, 0.3), (H, S))
    return cmdp.setting(30, kind), [play_episode(cmdp, round_, policy, kind, rng) for _ in range(n)]


def learnt(kind, n, seed=0):
    """Counts and evidence, as tables and as lists."""
    setting, met = episodes(kind, n, seed)
    counts, evidence = Counts.empty(setting), Evidence.empty(setting)
    visits, scores = Visits.empty(setting, "pair"), Scores.empty(setting)
    for feedback in met:
        evidence, scores = evidence.after(counts, feedback), scores.after(visits, feedback)
        counts, visits = counts.add(feedback), visits.add(feedback)
    return setting, counts, evidence, visits, scores, Layout.of(setting, visits)


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_scores_are_those_of_the_tables(kind):
    _, _, evidence, _, scores, _ = learnt(kind, 12)
    assert np.allclose(scores.kernel, evidence.kernel_score, rtol=1e-12, atol=1e-12)
    assert np.allclose(scores.reward, evidence.reward_score, rtol=1e-12, atol=1e-12)
    assert np.allclose(scores.cost, evidence.cost_score, rtol=1e-12, atol=1e-12)
    assert scores.kernel.min() < scores.kernel.max()


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("kind", ["bandit", "full"])
@pytest.mark.parametrize("n", [0, 1, 4, 12])
def test_rows_say_what_the_tables_say(kind, stationary, n):
    setting, counts, evidence, visits, scores, layout = learnt(kind, n)
    estimator = SharingEstimator(z=1.3, exploration=0.7, stationary=stationary)
    rng = np.random.default_rng(3)
    R = layout.visited.size
    prices = Prices(rng.random(I), rng.uniform(-1.0, 1.0, (I, R)))
    caution = Caution(rng.random(R) / (S * A), 0.8)
    believed, shared = shared_row_estimate(estimator, setting, visits, scores, layout, prices, caution)
    graph = believed.region
    somewhere = rows_of_table(graph, SHAPE) >= 0

    def table(rows):
        return expanded(rows, graph, SHAPE)

    dense = estimator.beliefs(setting, counts, evidence)
    wanted = estimator.estimate(
        setting, counts, dense, Prices(prices.each, table(prices.tables)), replace(caution, plan=table(caution.plan))
    )
    for name in ("reward", "cost", "counted_cost", "margin"):
        found = table(getattr(believed, name))
        assert np.allclose(found, np.where(somewhere, getattr(wanted, name), 0.0), rtol=0.0, atol=1e-12), name
    assert np.allclose(expanded_kernel(graph, SHAPE)[somewhere], dense.kernel[somewhere], rtol=0.0, atol=1e-14)
    for name in ("own", "common"):
        found = table(getattr(shared, name))
        assert np.allclose(found, np.where(somewhere, getattr(dense, name), 0.0), rtol=1e-12, atol=0.0), name
    cost = rng.uniform(-1.0, 1.0, R)
    error = shared.standard_error(caution.plan, cost)
    assert np.isclose(error, standard_error(dense, table(caution.plan), table(cost)), rtol=1e-10)
    again = shared_rows(estimator, visits, scores, layout)
    assert np.array_equal(again.graph.probabilities, graph.probabilities)


def test_after_one_episode_most_pairs_are_still_lumped():
    _, _, _, _, _, layout = learnt("bandit", 1)
    assert layout.copies.max() > A
    assert layout.visited.size < layout.copies.sum() / 2


def test_revealed_tables_are_lifted_as_tables_are():
    setting, counts, evidence, visits, scores, layout = learnt("full", 6)
    estimator = SharingEstimator(z=0.9)
    rng = np.random.default_rng(4)
    plan, tables = rng.random(H * S * A) / (S * A), rng.uniform(-1.0, 1.0, (3, H * S * A))
    shared = shared_rows(estimator, visits, scores, layout)
    found = lifted_rows(estimator, setting, shared, Caution(plan, 0.6), (), tables)
    dense, caution = estimator.beliefs(setting, counts, evidence), Caution(plan.reshape(SHAPE), 0.6)
    lifts = [estimator.revealed_lift(setting, dense, caution, (), d.reshape(SHAPE)) for d in tables]
    assert np.allclose(found - tables, np.array(lifts)[:, None], rtol=1e-10, atol=1e-13)
    assert np.array_equal(lifted_rows(estimator, setting, shared, Caution(), (), tables), tables)
