import numpy as np
import pytest

from omdpd.beliefs.counting import iterated_log_width
from omdpd.learners.policy_steps import policy_of_logits, tilted, truncated_values
from omdpd.solvers.compiled.boxes import dilated_bonus, occupancy_range
from omdpd.solvers.compiled.flow import occupancy_of_policy
from tests.references.instances import kernel_inside, random_box, random_kernel, random_law, random_policy
from tests.references.policy_by_hand import evaluate, exponential
from tests.references.upper_occupancy import most_occupancy

H, S, A = 4, 3, 2


@pytest.mark.parametrize(("tau", "least", "most"), [(0.0, -1.0, 1.0), (0.3, 0.0, 1.2), (0.0, 0.0, 0.4)])
def test_truncated_values_match_their_twin(tau, least, most):
    rng = np.random.default_rng(0)
    policy, p, table = random_policy(rng, H, S, A), random_kernel(rng, H, S, A), rng.uniform(-1, 2, (H, S, A))
    Q, V = truncated_values(policy, p, table, tau, least, most)
    expected, first = evaluate(policy, p, table, tau, least, most)
    assert np.allclose(Q, expected, rtol=0, atol=1e-13)
    assert np.allclose(V[0], first, rtol=0, atol=1e-13)


def test_without_cuts_the_value_is_the_occupancys():
    rng = np.random.default_rng(1)
    policy, p, mu = random_policy(rng, H, S, A), random_kernel(rng, H, S, A), random_law(rng, S)
    table = rng.uniform(0, 1, (H, S, A))
    _, V = truncated_values(policy, p, table, 0.0, 0.0, 1.0)
    assert mu @ V[0] == pytest.approx((table * occupancy_of_policy(policy, p, mu)).sum(), abs=1e-13)


def test_tilting_is_exponential_weights_and_survives_huge_gains():
    rng = np.random.default_rng(2)
    policy, gains = random_policy(rng, H, S, A), rng.normal(size=(H, S, A))
    new = policy_of_logits(tilted(np.log(policy), gains, 0.7, 0.9))
    assert np.allclose(new, exponential(policy, gains, 0.7, 0.9), rtol=1e-12, atol=0)
    extreme = policy_of_logits(tilted(np.log(policy), 1e6 * gains, 1.0, 1.0))
    assert np.array_equal(extreme.argmax(-1), gains.argmax(-1))
    assert np.array_equal(extreme.sum(-1), np.ones((H, S)))


def test_occupancy_bounds_hold_for_kernels_of_the_box_and_the_upper_one_is_reached():
    rng = np.random.default_rng(3)
    box, inside = random_box(rng, H, S, A)
    policy, mu = random_policy(rng, H, S, A), random_law(rng, S)
    least, most = occupancy_range(policy, box.lower, box.upper, mu)
    assert np.allclose(most, most_occupancy(policy, box, mu), rtol=0, atol=1e-14)
    for p in (inside, *(kernel_inside(rng, box) for _ in range(30))):
        q = occupancy_of_policy(policy, p, mu)
        assert np.all(q <= most + 1e-12)
        assert np.all(q >= least - 1e-12)


def test_a_box_of_one_kernel_has_one_occupancy():
    rng = np.random.default_rng(4)
    p, policy, mu = random_kernel(rng, H, S, A), random_policy(rng, H, S, A), random_law(rng, S)
    least, most = occupancy_range(policy, p, p, mu)
    q = occupancy_of_policy(policy, p, mu)
    assert np.allclose(least, q, rtol=0, atol=1e-14)
    assert np.allclose(most, q, rtol=0, atol=1e-14)


def test_dilated_bonus_of_one_kernel_by_hand():
    rng = np.random.default_rng(5)
    p, policy, bonus = random_kernel(rng, H, S, A), random_policy(rng, H, S, A), rng.random((H, S))
    B = dilated_bonus(policy, p, p, bonus, 1.25)
    expected = np.repeat(bonus[:, :, None], A, axis=2)
    for h in reversed(range(H - 1)):
        expected[h] += 1.25 * p[h] @ (policy[h + 1] * expected[h + 1]).sum(-1)
    assert np.allclose(B, expected, rtol=0, atol=1e-13)


def test_the_iterated_logarithm_width_by_hand():
    n, p = np.full((1, 4, 1), 8.0), np.full((1, 4, 1, 4), 0.25)
    square = (2 * np.log(np.log(16.0)) + 3.0) / 8.0
    assert iterated_log_width(n, p, 3.0)[0, 0, 0] == pytest.approx(2.0 * np.sqrt(square) + 5 * square)
