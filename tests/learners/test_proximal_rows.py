"""ProximalOMDPD on the graph of what was visited: the learner on tables, within the certificates of its solves."""

import inspect
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from omdpd.learners import tables_or_graph
from omdpd.learners.protocol import stored_classes
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.play.guards import check_footprint
from omdpd.play.session import Session
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.problem.machine_memory import TooLargeError
from omdpd.problem.setting import BanditFeedback, Setting, Trajectory
from omdpd.solvers import graph_step as graph_steps
from omdpd.solvers.graph import Graph
from omdpd.solvers.mirror import Hinges, mirror_step
from omdpd.solvers.regions import Kernel
from omdpd.storage.packing import pack, unpack
from omdpd.testing import check_learner
from omdpd.testing.common import frozen_copy
from omdpd.worlds import WORLDS
from tests.references.expanded import expanded, expanded_kernel
from tests.references.instances import bandit, revealed

H, S, A, I = 5, 9, 3, 2  # noqa: E741
PRESETS = {
    "cautious": ProximalOMDPD.cautious(layout="graph"),
    "cautious, pooled": ProximalOMDPD.cautious(stationary=True, layout="graph"),
    "balanced": ProximalOMDPD.balanced(layout="graph"),
    "standard": ProximalOMDPD.standard(layout="graph"),
    "standard, pooled": ProximalOMDPD.standard(stationary=True, layout="graph"),
}


def sparse_cmdp(seed=0):
    """Few successors, two states to start in: much is never visited."""
    rng = np.random.default_rng((seed, 1))
    transition, cost = rng.dirichlet(np.full(S, 0.1), (H, S, A)), rng.uniform(-0.8, 0.8, (I, H, S, A))
    initial = np.eye(S)[[2, 6]].mean(axis=0)
    return CMDP.from_arrays(transition, rng.random((H, S, A)), cost, np.full(I, -0.1), initial=initial)


def met_in(cmdp, kind, policy, k, rng):
    """Feedback of one episode; revealed tables change from episode to episode."""
    return (
        bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, cmdp.excess * (1, -0.5)[k % 2])
    )


def states_of(learner, cmdp, kind, episodes, n_episodes=60):
    """The states of a run, the first one included, and the feedback."""
    rng, states, feedback = np.random.default_rng(5), [learner.init(cmdp.setting(n_episodes, kind))], []
    for k in range(episodes):
        feedback.append(met_in(cmdp, kind, learner.policy(states[-1]), k, rng))
        states.append(learner.update(states[-1], feedback[-1]))
    return states, feedback


def reach(step_gap):
    """How far a solve of this gap may be from the minimiser."""
    return np.sqrt(2.0 * step_gap)


def hold_to_tables(learner, state, shape):
    """Check a state on a graph against one solve by tables of what the graph stands for.

    Both answers are within the square root of twice their gaps of the one minimiser.
    """
    graph = state.believed.region
    assert isinstance(graph, Graph)

    def table(rows):
        return expanded(rows, graph, shape)

    m, eta = state.predicted, state.eta
    dense = mirror_step(
        Kernel(expanded_kernel(graph, shape)), state.setting.mu, table(state.q_hat), -table(m.reward), eta,
        Hinges(table(m.hinges.tables), m.hinges.weights),
    )  # fmt: skip
    on_graph = mirror_step(graph, state.setting.mu, state.q_hat, -m.reward, eta, m.hinges)
    allowed = reach(dense.gap) + reach(on_graph.gap)
    assert np.linalg.norm(table(state.q) - dense.occupancy) <= allowed + 1e-9
    return allowed


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_every_plan_on_the_graph_is_the_plan_by_tables(name, kind):
    learner = PRESETS[name]
    states, _ = states_of(learner, sparse_cmdp(), kind, 16)
    for state in states[::3]:
        hold_to_tables(learner, state, (H, S, A))


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_a_run_on_the_graph_stays_beside_the_run_by_tables(monkeypatch, name, kind):
    # Solves to the tolerance of those by tables, so that two whole runs can be told to agree.
    monkeypatch.setattr(graph_steps, "graph_step", partial(graph_steps.graph_step, tolerance=1e-12))
    cmdp, learner = sparse_cmdp(), PRESETS[name]
    states, feedback = states_of(learner, cmdp, kind, 16)
    tables = replace(learner, layout="dense")
    state = tables.init(cmdp.setting(60, kind))
    for k, met in enumerate(feedback):
        on_graph = states[k]
        assert np.abs(expanded(on_graph.q, on_graph.believed.region, (H, S, A)) - state.q).max() < 1e-5
        assert np.allclose(on_graph.V, state.V, rtol=0.0, atol=1e-6)
        assert np.isclose(on_graph.eta, state.eta, rtol=1e-6)
        state = tables.update(state, met)
    found, wanted = learner.report(states[-1]), tables.report(state)
    assert found.log.solves == wanted.log.solves
    assert found.log.failures == 0
    assert (found.certificate is None) == (wanted.certificate is None)
    if wanted.certificate is not None and found.certificate is not None:
        # Rows that no episode starts in do not count at the first step: the bound by rows is no larger.
        assert found.certificate.bound <= wanted.certificate.bound * (1.0 + 1e-6)


def test_what_was_never_visited_takes_no_room():
    states, _ = states_of(PRESETS["cautious"], sparse_cmdp(), "bandit", 3)
    graphs = [state.believed.region for state in states]
    assert graphs[0].n_rows == 2 + (H - 1)
    assert all(graph.n_rows < H * S * A / 2 for graph in graphs)
    assert all(graph.copies.sum() == (2 + (H - 1) * S) * A for graph in graphs)


@pytest.mark.parametrize("name", PRESETS)
def test_it_keeps_to_what_every_learner_keeps_to(name):
    check_learner(PRESETS[name])


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_a_state_from_a_file_goes_on_to_the_last_bit(name, kind):
    learner, cmdp = PRESETS[name], sparse_cmdp()
    states, feedback = states_of(learner, cmdp, kind, 10)
    again = unpack(*pack(states[6]), stored_classes(learner))
    for met in feedback[6:]:
        again = learner.update(again, met)
    assert frozen_copy(again) == frozen_copy(states[-1])


def test_a_session_on_disk_goes_on_with_the_same_policy(tmp_path):
    learner, cmdp = PRESETS["standard"], sparse_cmdp()
    setting, rng = cmdp.setting(30, "bandit"), np.random.default_rng(2)
    with Session.open(tmp_path, learner, setting, snapshot_every=3) as session:
        for k in range(5):
            session.update(met_in(cmdp, "bandit", session.policy(), k, rng))
        kept = session.policy()
    with Session.open(tmp_path, learner, setting, snapshot_every=3) as session:
        assert session.episodes == 5
        assert np.array_equal(session.policy(), kept)


def goes_over_at(monkeypatch, share):
    """Let every problem begin on the graph, and go over to tables at this share of all entries."""
    monkeypatch.setattr(tables_or_graph, "SMALL", 0)
    monkeypatch.setattr(tables_or_graph, "DENSE", share)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_a_run_goes_over_to_tables_where_the_laws_turn_out_dense(monkeypatch, name, kind):
    monkeypatch.setattr(graph_steps, "graph_step", partial(graph_steps.graph_step, tolerance=1e-12))
    cmdp, stays = sparse_cmdp(), PRESETS[name]
    states, feedback = states_of(stays, cmdp, kind, 16)
    at = [state.believed.region.entries[-1] / (H * S * A * S) for state in states]
    goes_over_at(monkeypatch, at[8])
    learner = replace(stays, layout=None)
    found = [learner.init(cmdp.setting(60, kind))]
    for met in feedback:
        found.append(learner.update(found[-1], met))
    shares = np.array(at) > at[8]
    assert [not isinstance(state.believed.region, Graph) for state in found] == shares.tolist()
    for on_graph, state in zip(states, found, strict=True):
        q = state.q if state.q.ndim == 3 else expanded(state.q, state.believed.region, (H, S, A))
        assert np.abs(expanded(on_graph.q, on_graph.believed.region, (H, S, A)) - q).max() < 1e-5
        assert np.allclose(on_graph.V, state.V, rtol=0.0, atol=1e-6)
    told, wanted = learner.report(found[-1]), stays.report(states[-1])
    assert (told.log.solves, told.log.failures) == (wanted.log.solves, 0)
    assert told.promise.value == pytest.approx(wanted.promise.value, rel=1e-6)


@pytest.mark.parametrize("name", PRESETS)
def test_a_state_in_tables_says_what_it_said_on_the_graph(name):
    learner, cmdp = PRESETS[name], sparse_cmdp()
    for kind in ("bandit", "full"):
        states, _ = states_of(learner, cmdp, kind, 9)
        graph, tables = states[-1], learner.in_tables(states[-1])
        p, stated = tables.believed.region.transition, expanded_kernel(graph.believed.region, (H, S, A))
        reached = np.flatnonzero(cmdp.initial)  # nothing starts in the other states
        assert np.allclose(p[1:], stated[1:], rtol=0.0, atol=1e-12)
        assert np.allclose(p[0, reached], stated[0, reached], rtol=0.0, atol=1e-12)
        assert np.allclose(learner.policy(tables), learner.policy(graph), rtol=0.0, atol=1e-12)
        assert tables.counts.visits.sum() == graph.counts.visits.sum() == 9 * H
        assert tables.counts.reward_sum.sum() == pytest.approx(graph.counts.reward_sum.sum())
        assert learner.regret_bound(tables) == pytest.approx(learner.regret_bound(graph))
        (ours,), (theirs,) = ([each.certificate for each in [learner.report(state)]] for state in (tables, graph))
        assert (ours is None) == (theirs is None)


def test_the_middle_begins_on_the_graph_and_may_come_to_need_tables():
    small, middle, large = Setting(10, 30, 5), Setting(20, 100, 5), Setting(100, 2500, 4)
    learner = ProximalOMDPD.standard()
    begun = [tables_or_graph.begins_as(learner.estimator, each) for each in (small, middle, large)]
    assert begun == ["dense", "graph", "graph"]
    assert [learner.keeps_tables(each) for each in (small, middle, large)] == [True, True, False]
    assert isinstance(learner.init(middle).believed.region, Graph)


def test_a_large_problem_is_laid_out_on_a_graph_and_a_small_one_on_tables():
    small, large = Setting(10, 40, 4), Setting(100, 2500, 4, initial=np.eye(2500)[0], n_episodes=50)
    assert 10 * 40 * 4 * 40 <= tables_or_graph.SMALL < tables_or_graph.MAX_TABLE < 100 * 2500 * 4 * 2500
    learner = ProximalOMDPD.standard()
    assert learner.keeps_tables(small)
    assert not learner.keeps_tables(large)
    assert ProximalOMDPD.optimistic().keeps_tables(large)
    assert ProximalOMDPD.standard(layout="dense").keeps_tables(large)
    assert not ProximalOMDPD.standard(layout="graph").keeps_tables(small)
    state = learner.init(large)
    assert isinstance(state.believed.region, Graph)
    met = Trajectory(np.arange(100), np.zeros(100, dtype=np.int64))
    state = learner.update(state, BanditFeedback(met, np.full(100, 0.5), np.full((1, 100), 0.1)))
    policy = learner.policy(state)
    asked = learner.row_policy(state)
    assert policy.shape == (100, 2500, 4)
    for step, seen in ((0, 0), (50, 50), (50, 7), (50, 2000), (99, 99)):
        assert np.array_equal(asked.at(step, seen), policy[step, seen])
    assert learner.report(state).log.failures == 0


def test_a_large_problem_is_not_refused_for_the_tables_that_nobody_makes():
    huge = Setting(1000, 10_000, 4, initial=np.eye(10_000)[0])
    check_footprint(ProximalOMDPD.standard(), huge)
    with pytest.raises(TooLargeError, match="needs about"):
        check_footprint(ProximalOMDPD.standard(layout="dense"), huge)


def test_only_one_kernel_made_of_counts_can_be_laid_out_on_a_graph():
    with pytest.raises(InvalidInputError, match="layout is 'graph'"):
        replace(ProximalOMDPD.optimistic(), layout="graph").init(Setting(2, 2, 2))
    tables = ProximalOMDPD.standard()
    with pytest.raises(InvalidInputError, match="small problem"):
        tables.row_policy(tables.init(Setting(2, 2, 2)))


def test_a_layout_that_nobody_set_is_not_part_of_what_a_learner_is_called():
    tree, _ = pack(ProximalOMDPD.standard())
    assert "layout" not in tree["fields"]
    tree, _ = pack(ProximalOMDPD.standard(layout="dense"))
    assert tree["fields"]["layout"] == "dense"


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["cautious", "cautious, pooled", "standard"])
@pytest.mark.parametrize("world", WORLDS)
def test_plans_by_graph_are_plans_by_tables_on_every_world_for_300_episodes(world, preset):
    factory = WORLDS[world]
    random = "rng" in inspect.signature(factory).parameters
    cmdp = factory(np.random.default_rng(0)) if random else factory()
    learner = PRESETS[preset]
    rng, state = np.random.default_rng(7), learner.init(cmdp.setting(300, "bandit"))
    for k in range(300):
        if k % 25 == 0 or k == 299:
            hold_to_tables(learner, state, cmdp.shape)
        state = learner.update(state, met_in(cmdp, "bandit", learner.policy(state), k, rng))
    assert learner.report(state).log.failures == 0
