import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omdpd.beliefs.counting import has_doubled
from omdpd.beliefs.counts import Counts
from omdpd.problem.setting import BanditFeedback, FullFeedback, Setting, Trajectory
from tests.references.instances import SIZES

H, S, A, I = SIZES  # noqa: E741
SETTING = Setting(H, S, A, I)


def random_feedback(rng):
    walk = Trajectory(rng.integers(S, size=H), rng.integers(A, size=H))
    return BanditFeedback(walk, rng.random(H), rng.uniform(-1.0, 1.0, (I, H)))


def counts_of(rng, n):
    counts = Counts.empty(SETTING)
    for _ in range(n):
        counts = counts.add(random_feedback(rng))
    return counts


def test_two_episodes_by_hand():
    setting = Setting(2, 2, 1, 1)
    counts = Counts.empty(setting)
    counts = counts.add(
        BanditFeedback(Trajectory(np.array([0, 1]), np.array([0, 0])), np.array([1.0, 0.5]), np.array([[0.2, -0.4]]))
    )
    counts = counts.add(
        BanditFeedback(Trajectory(np.array([0, 0]), np.array([0, 0])), np.array([0.0, 1.0]), np.array([[0.4, 1.0]]))
    )
    assert np.array_equal(counts.visits[..., 0], [[2, 0], [1, 1]])
    assert np.array_equal(counts.transitions[0, 0, 0], [1, 1])
    assert np.array_equal(counts.transition_mean()[0, 0, 0], [0.5, 0.5])
    assert np.array_equal(counts.reward_mean()[..., 0], [[0.5, 0.0], [1.0, 0.5]])
    assert np.allclose(counts.cost_mean()[0, ..., 0], [[0.3, 0.0], [1.0, -0.4]], rtol=0.0, atol=1e-15)


def test_nothing_seen_means_zero_rewards_and_costs_and_uniform_laws():
    counts = Counts.empty(SETTING)
    assert np.array_equal(counts.reward_mean(), np.zeros((H, S, A)))
    assert np.array_equal(counts.cost_mean(), np.zeros((I, H, S, A)))
    assert np.array_equal(counts.transition_mean(), np.full((H, S, A, S), 1.0 / S))


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_sums_agree_with_their_numpy_twin(seed, n):
    counts = counts_of(np.random.default_rng(seed), n)
    rng = np.random.default_rng(seed)
    visits, moves = np.zeros((H, S, A)), np.zeros((H, S, A, S))
    rewards, costs = np.zeros((H, S, A)), np.zeros((I, H, S, A))
    for _ in range(n):
        met = random_feedback(rng)
        s, a = met.trajectory.states, met.trajectory.actions
        for h in range(H):
            visits[h, s[h], a[h]] += 1
            rewards[h, s[h], a[h]] += met.rewards[h]
            costs[:, h, s[h], a[h]] += met.costs[:, h]
            if h + 1 < H:
                moves[h, s[h], a[h], s[h + 1]] += 1
    assert np.array_equal(counts.visits, visits)
    assert np.array_equal(counts.transitions, moves)
    assert np.allclose(counts.reward_sum, rewards, rtol=0.0, atol=1e-12)
    assert np.allclose(counts.cost_sum, costs, rtol=0.0, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_every_step_is_visited_once_per_episode_and_the_last_departs_nowhere(seed, n):
    counts = counts_of(np.random.default_rng(seed), n)
    assert np.array_equal(counts.visits.sum(axis=(1, 2)), np.full(H, n))
    assert np.array_equal(counts.departures[:-1], counts.visits[:-1])
    assert not counts.departures[-1].any()
    assert np.allclose(counts.transition_mean().sum(axis=-1), 1.0, rtol=0.0, atol=1e-15)


def test_adding_an_episode_leaves_the_counts_before_it_alone():
    rng = np.random.default_rng(1)
    before = counts_of(rng, 3)
    kept = [getattr(before, name).copy() for name in ("visits", "transitions", "reward_sum", "cost_sum")]
    before.add(random_feedback(rng))
    for name, value in zip(("visits", "transitions", "reward_sum", "cost_sum"), kept, strict=True):
        assert np.array_equal(getattr(before, name), value)


def test_a_revealed_table_is_not_counted_as_met_cost():
    walk = Trajectory(np.zeros(H, dtype=np.int64), np.zeros(H, dtype=np.int64))
    counts = Counts.empty(SETTING).add(FullFeedback(walk, np.ones(H), np.ones((I, H, S, A))))
    assert not counts.cost_sum.any()
    assert np.array_equal(counts.reward_sum[:, 0, 0], np.ones(H))


def test_pooled_counts_show_every_step_the_sum_over_steps():
    counts = counts_of(np.random.default_rng(2), 20)
    pooled = counts.pooled()
    for h in range(H):
        assert np.array_equal(pooled.visits[h], counts.visits.sum(axis=0))
        assert np.array_equal(pooled.transitions[h], counts.transitions.sum(axis=0))
        assert np.allclose(pooled.reward_sum[h], counts.reward_sum.sum(axis=0), rtol=0.0, atol=1e-12)
        assert np.allclose(pooled.cost_sum[:, h], counts.cost_sum.sum(axis=1), rtol=0.0, atol=1e-12)
    # The last step's next state is never seen, so departures are fewer than visits.
    assert pooled.departures.sum() == H * (H - 1) * 20
    assert pooled.visits.sum() == H * H * 20


def test_counts_double():
    before = np.array([[0.0, 2.0]])
    assert not has_doubled(before, before)
    assert has_doubled(np.array([[1.0, 2.0]]), before)
    assert not has_doubled(np.array([[0.0, 3.0]]), before)
    assert has_doubled(np.array([[0.0, 4.0]]), before)
