from dataclasses import replace

import numpy as np
import pytest

from omdpd.beliefs.confidence import EmpiricalEstimator
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.empirical_rows import empirical_rows
from omdpd.beliefs.layouts import Layout, RowPolicy, inherited, row_move, uniform_rows
from omdpd.beliefs.visits import Visits
from omdpd.learners.start import uniform_occupancy
from omdpd.play.simulate import play_episode
from omdpd.problem.cmdp import Round
from omdpd.solvers.compiled.flow import policy_of_occupancy
from tests.references.expanded import expanded, expanded_kernel, rows_of_table
from tests.references.instances import random_cmdp
from tests.references.plain_beliefs import drift

H, S, A, I = 4, 9, 3, 2  # noqa: E741
SHAPE = (H, S, A)


def episodes(kind, n, seed=0):
    """A sparse world in which an episode starts in one of two states, and the feedback of some episodes in it."""
    rng = np.random.default_rng(seed)
    cmdp = replace(random_cmdp(rng, H, S, A, I, 0.2), initial=np.eye(S)[[2, 6]].mean(axis=0))
    round_ = Round(cmdp.reward, cmdp.excess, 0, "two-point", "two-point")
    policy = rng.dirichlet(np.full(A, 0.3), (H, S))
    return cmdp.setting(30, kind), [play_episode(cmdp, round_, policy, kind, rng) for _ in range(n)]


def beliefs_of(kind, stationary, n):
    setting, met = episodes(kind, n)
    estimator = EmpiricalEstimator(kappa=0.1, stationary=stationary)
    visits, counts = Visits.empty(setting, "pooled" if stationary else "step"), Counts.empty(setting)
    for feedback in met:
        visits, counts = visits.add(feedback), counts.add(feedback)
    believed = empirical_rows(estimator, setting, visits, Layout.of(setting, visits), n)
    return setting, believed, estimator.estimate(setting, counts, n)


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("kind", ["bandit", "full"])
@pytest.mark.parametrize("n", [0, 1, 6])
def test_rows_say_what_the_tables_say(kind, stationary, n):
    setting, believed, dense = beliefs_of(kind, stationary, n)
    graph = believed.region
    somewhere = rows_of_table(graph, SHAPE) >= 0
    assert np.array_equal(somewhere[0], (setting.mu > 0)[:, None].repeat(A, 1) | (kind == "full"))
    assert somewhere[1:].all()
    for name in ("reward", "cost", "counted_cost", "margin"):
        found, wanted = expanded(getattr(believed, name), graph, SHAPE), getattr(dense, name)
        assert np.allclose(found, np.where(somewhere, wanted, 0.0), rtol=0.0, atol=1e-14), name
    wanted = np.where(somewhere[..., None], dense.region.transition, 1.0 / S)
    wanted[-1] = 1.0 / S
    assert np.allclose(expanded_kernel(graph, SHAPE), wanted, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("stationary", [False, True])
def test_copies_and_members_count_every_pair_and_state_once(stationary):
    setting, believed, _ = beliefs_of("bandit", stationary, 5)
    graph = believed.region
    steps = np.repeat(np.arange(H), np.diff(graph.layers))
    members = np.bincount(steps, graph.members)
    copies = np.bincount(np.repeat(steps, np.diff(graph.rows)), graph.copies)
    assert members.tolist() == [2] + [S] * (H - 1)
    assert copies.tolist() == (A * members).tolist()
    assert graph.initial.tolist() == setting.mu[setting.mu > 0].tolist()
    assert graph.n_rows < copies.sum()


def test_with_revealed_tables_rows_are_the_entries_of_a_table_in_order():
    _, believed, _ = beliefs_of("full", False, 5)
    assert np.array_equal(rows_of_table(believed.region, SHAPE).ravel(), np.arange(H * S * A))


@pytest.mark.parametrize("kind", ["bandit", "full"])
@pytest.mark.parametrize("stationary", [False, True])
def test_a_row_that_splits_leaves_its_number_to_all_its_parts(kind, stationary):
    setting, met = episodes(kind, 12)
    estimator = EmpiricalEstimator(stationary=stationary)
    visits = Visits.empty(setting, "pooled" if stationary else "step")
    graph = empirical_rows(estimator, setting, visits, Layout.of(setting, visits), 0).region
    rng = np.random.default_rng(4)
    for k, feedback in enumerate(met):
        numbers = rng.random(graph.n_rows)
        visits = visits.add(feedback)
        layout = Layout.of(setting, visits)
        after = empirical_rows(estimator, setting, visits, layout, k + 1).region
        parent = layout.parents(graph)
        assert np.array_equal(expanded(inherited(numbers, parent), after, SHAPE), expanded(numbers, graph, SHAPE))
        before, now = expanded_kernel(graph, SHAPE), expanded_kernel(after, SHAPE)
        assert np.isclose(row_move(graph, after, parent), drift(now, before), rtol=0.0, atol=1e-12)
        graph = after


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_the_first_occupancy_is_uniform_by_row_too(kind):
    setting, believed, _ = beliefs_of(kind, False, 0)
    rows = uniform_rows(setting, believed.region)
    assert np.allclose(expanded(rows, believed.region, SHAPE), uniform_occupancy(setting), rtol=0.0, atol=1e-16)


def test_a_policy_by_rows_is_the_policy_of_the_table_and_can_be_asked_one_state_at_a_time():
    _, believed, _ = beliefs_of("bandit", False, 6)
    q = np.random.default_rng(7).random(believed.region.n_rows)
    q[believed.region.rows[3] : believed.region.rows[4]] = 0.0
    policy = RowPolicy(believed.region, q, A)
    wanted = policy_of_occupancy(expanded(q, believed.region, SHAPE))
    assert np.allclose(policy.table(), wanted, rtol=0.0, atol=1e-15)
    asked = [[policy.at(h, s) for s in range(S)] for h in range(H)]
    assert np.array_equal(np.array(asked), policy.table())
