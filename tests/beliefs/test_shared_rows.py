import numpy as np
import pytest

from omdpd.beliefs.counts import Counts
from omdpd.beliefs.evidence import Evidence, Scores, counted
from omdpd.beliefs.layouts import Layout
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.memory import TableMemory
from omdpd.beliefs.shared_rows import plan_variances, shared_row_estimate, shared_rows
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.beliefs.visits import Visits
from omdpd.learners.standard.believing import Dials
from omdpd.learners.standard.stored import believed_by
from omdpd.play.simulate import play_episode
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.setting import BanditFeedback
from tests.references import plain_beliefs as plain
from tests.references.expanded import expanded, expanded_kernel, rows_of_table

H, S, A, I = 5, 9, 3, 2  # noqa: E741
SHAPE = (H, S, A)


def episodes(kind, n, seed=0):
    """A world in which an episode starts in one of two states, and the feedback of some episodes in it."""
    rng = np.random.default_rng(seed)
    transition, cost = rng.dirichlet(np.full(S, 0.08), SHAPE), rng.uniform(-0.8, 0.8, (I, *SHAPE))
    initial = np.eye(S)[[2, 6]].mean(axis=0)
    cmdp = CMDP.from_arrays(transition, rng.random(SHAPE), cost, np.full(I, 0.2), initial=initial)
    round_ = Round(cmdp.reward, cmdp.excess, 0, "two-point", "two-point")
    policy = rng.dirichlet(np.full(A, 0.3), (H, S))
    return cmdp.setting(30, kind), [play_episode(cmdp, round_, policy, kind, rng) for _ in range(n)]


def learnt(kind, n, seed=0):
    """Counts and evidence in plain tables, and as lists; scores are the same, so that ties are broken alike."""
    setting, met = episodes(kind, n, seed)
    past, visits, scores = plain.Past(*SHAPE, I), Visits.empty(setting, "pair"), Scores.empty(setting)
    for feedback in met:
        scores, visits, walk = scores.after(visits, feedback), visits.add(feedback), feedback.trajectory
        costs = feedback.costs if isinstance(feedback, BanditFeedback) else ()
        past.add(walk.states, walk.actions, feedback.rewards, costs)
    for name in ("kernel", "reward", "cost"):
        found, expected = getattr(scores, name), getattr(past, f"{name}_score")
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-12)
        expected[...] = found
    return setting, past, visits, scores, Layout.of(setting, visits)


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_scores_are_those_of_the_tables(kind):
    setting, past, _, scores, _ = learnt(kind, 12)
    _, evidence = counted(Counts.empty(setting), Evidence.empty(setting), episodes(kind, 12)[1])
    assert np.allclose(scores.kernel, evidence.kernel_score, rtol=1e-12, atol=1e-12)
    assert np.allclose(scores.reward, evidence.reward_score, rtol=1e-12, atol=1e-12)
    assert np.allclose(scores.cost, evidence.cost_score, rtol=1e-12, atol=1e-12)
    assert scores.kernel.min() < scores.kernel.max()
    assert past.visits.sum() == 12 * H


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("kind", ["bandit", "full"])
@pytest.mark.parametrize("n", [0, 1, 4, 12, 200])
def test_rows_say_what_plain_tables_say(kind, stationary, n):
    setting, past, visits, scores, layout = learnt(kind, n)
    estimator = SharingEstimator(z=1.3, exploration=0.7, stationary=stationary, persistence=6.0, z_spending=0.5)
    rng = np.random.default_rng(3)
    R = layout.visited.size
    prices = Prices(rng.random(I), rng.uniform(-1.0, 1.0, (I, R)))
    caution = Caution(rng.random(R) / (S * A), 0.8)
    believed, shared = shared_row_estimate(estimator, setting, visits, scores, layout, prices, caution)
    graph = believed.region
    somewhere = rows_of_table(graph, SHAPE) >= 0

    def table(rows):
        return expanded(rows, graph, SHAPE)

    plan, b = table(caution.plan), past.beliefs(kind == "bandit", stationary, 6.0)
    cost = np.array([d.mean for d in b.costs]) if b.costs else np.zeros((I, *SHAPE))
    errors = [plain.standard_error(b, plan, d.mean, d) for d in b.costs] or [0.0] * I
    z, paid = 1.3 / np.sqrt(1 + np.log1p(n / 1000)), (prices.each, table(prices.tables))
    extra = plain.bonus(b, past.visits, *paid, past, 6.0)
    wanted = {
        "reward": b.reward.mean + 0.7 * extra,
        "cost": cost + z * 0.8 / H * np.reshape(errors, (I, 1, 1, 1)),
        "counted_cost": cost,
        "margin": np.zeros(SHAPE),
    }
    for name, each in wanted.items():
        found = table(getattr(believed, name))
        assert np.allclose(found, np.where(somewhere, each, 0.0), rtol=0.0, atol=1e-12), name
    assert np.allclose(expanded_kernel(graph, SHAPE)[somewhere], b.p[somewhere], rtol=0.0, atol=1e-14)
    for name in ("own", "common"):
        found = table(getattr(shared.errors, name))
        assert np.allclose(found, np.where(somewhere, getattr(b, name), 0.0), rtol=1e-12, atol=0.0), name
    known = rng.uniform(-1.0, 1.0, (4, R))
    variances = plan_variances(shared.lists, shared.errors, caution.plan, known)
    assert np.allclose(np.sqrt(variances), [plain.standard_error(b, plan, table(d)) for d in known], rtol=1e-10)
    again = shared_rows(estimator, visits, scores, layout)
    assert np.array_equal(again.graph.probabilities, graph.probabilities)


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_beliefs_of_tables_that_are_not_in_a_state_are_the_plain_ones_too(kind):
    """`PlanLP` asks in tables, with prices and a plan of its own."""
    setting, met = episodes(kind, 9)
    counts, evidence = counted(Counts.empty(setting), Evidence.empty(setting), met)
    past = learnt(kind, 9)[1]
    for name in ("kernel_score", "reward_score", "cost_score"):
        getattr(past, name)[...] = getattr(evidence, name)
    rng = np.random.default_rng(6)
    prices = Prices(rng.random(I), rng.uniform(-1.0, 1.0, (I, *SHAPE)))
    plan = rng.random(SHAPE) / (S * A)
    revealed = rng.uniform(-1.0, 1.0, (3, *SHAPE))
    memory = TableMemory(8).meet(revealed[0]).meet(revealed[1]), TableMemory(8).meet(revealed[2])
    memory = memory if kind == "full" else (TableMemory(8),) * I
    dials = Dials(kind == "bandit", 30, 1.3, 0.7, False, 10.0, 16.0, 1e6, True, 1 / 16, True, 8)
    args = (counts, evidence, Caution(plan, 0.8), memory, plain.conditional(plan), prices)
    believed, lifted = believed_by(dials, setting, *args)
    b = past.beliefs(kind == "bandit")
    reward = b.reward.mean + 0.7 * plain.bonus(b, past.visits, prices.each, prices.tables)
    assert np.allclose(believed.reward, reward, rtol=0.0, atol=1e-12)
    assert np.allclose(believed.region.transition, b.p, rtol=0.0, atol=1e-14)
    tables, z = [(d, None) for d in revealed], 1.5 * 1.3
    if kind == "bandit":
        tables, z = [(d.mean, d) for d in b.costs], 1.3
        assert np.allclose(believed.counted_cost, [d.mean for d in b.costs], rtol=0.0, atol=1e-12)
    raised = [d + z * 0.8 / H * plain.standard_error(b, plan, d, observed) for d, observed in tables]
    assert np.allclose(lifted, raised, rtol=0.0, atol=1e-12)


def test_after_one_episode_most_pairs_are_still_lumped():
    layout = learnt("bandit", 1)[-1]
    assert layout.copies.max() > A
    assert layout.visited.size < layout.copies.sum() / 2


def test_revealed_tables_are_lifted_as_tables_are():
    _, past, visits, scores, layout = learnt("full", 6)
    rng = np.random.default_rng(4)
    plan, tables = rng.random(H * S * A) / (S * A), rng.uniform(-1.0, 1.0, (3, H * S * A))
    estimator = SharingEstimator(z=0.9)
    shared = shared_rows(estimator, visits, scores, layout)
    found = shared.lifted(estimator, Caution(plan, 0.6), False, tables)
    b = past.beliefs(bandit=False)
    errors = [plain.standard_error(b, plan.reshape(SHAPE), d.reshape(SHAPE)) for d in tables]
    assert np.allclose(found - tables, 1.5 * 0.9 * 0.6 / H * np.array(errors)[:, None], rtol=1e-10, atol=1e-13)


def test_tables_are_lifted_by_nothing_before_a_plan_without_the_dial_and_where_they_never_repeat():
    _, _, visits, scores, layout = learnt("full", 6)
    rng = np.random.default_rng(5)
    plan, tables = rng.random(H * S * A) / (S * A), rng.uniform(-1.0, 1.0, (3, H * S * A))
    estimator = SharingEstimator(z=0.9)
    shared = shared_rows(estimator, visits, scores, layout)
    overflowed = TableMemory(2)
    for table in tables:
        overflowed = overflowed.meet(table)
    assert np.array_equal(shared.lifted(estimator, Caution(), False, tables), tables)
    assert np.array_equal(shared.lifted(SharingEstimator(z=0.0), Caution(plan), False, tables), tables)
    for caution, useless in ((Caution(plan, 1.0, 0.3), True), (Caution(plan, 1.0, 0.2), False)):
        assert caution.margin_is_useless((overflowed,)) == useless
        assert np.all((shared.lifted(estimator, caution, useless, tables) > tables) != useless)
