import numpy as np
import pytest

from omdpd.solvers.compiled.boxes import occupancy_range, visited_bound
from tests.references.instances import random_box, random_law, random_policy
from tests.references.upper_occupancy import most_mass

H, S, A = 4, 3, 2


@pytest.mark.parametrize("seed", range(4))
def test_upper_occupancies_of_a_trajectory(seed):
    rng = np.random.default_rng(seed)
    box, _ = random_box(rng, H, S, A)
    policy, mu = random_policy(rng, H, S, A), random_law(rng, S)
    states, actions = rng.integers(S, size=H), rng.integers(A, size=H)
    found = visited_bound(policy, box.lower, box.upper, mu, states, actions)
    for h in range(H):
        assert found[h] == pytest.approx(most_mass(policy, box, mu, h, states[h], actions[h]))
    _, everywhere = occupancy_range(policy, box.lower, box.upper, mu)
    assert np.allclose(found, everywhere[np.arange(H), states, actions])
