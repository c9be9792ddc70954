import numpy as np
import pytest

from omdpd.problem.cmdp import CMDP
from omdpd.worlds.components import parts_of


def two_islands(n_steps, seed=0):
    """States 0, 2 and 4 lead to one another, so do 1 and 3, and 5 is never reached; `n_steps` steps of laws."""
    rng = np.random.default_rng(seed)
    p = np.zeros((n_steps, 6, 2, 6))
    for island in ([0, 2, 4], [1, 3], [5]):
        for s in island:
            p[:, s][..., island] = rng.dirichlet(np.ones(len(island)), (n_steps, 2))
    return p, rng.random((4, 6, 2)), rng.random((4, 6, 2)) / 2.0


START = [0.3, 0.4, 0.1, 0.0, 0.2, 0.0]


@pytest.mark.parametrize("by_step", [False, True])
def test_islands_are_parts_with_the_laws_of_the_whole(by_step):
    p, reward, cost = two_islands(4 if by_step else 1)
    if by_step:
        p[3, 0, 1] = [0.1, 0.9, 0.0, 0.0, 0.0, 0.0]  # the last step leads nowhere, so it joins nothing
        p[3, 2, 0] = [0.6, 0.4, 0.0, 0.0, 0.0, 0.0]
    whole = CMDP.from_arrays(p if by_step else p[0], reward, cost[None], 1.0, START, 4)
    first, second = parts_of(whole)
    assert first.states.tolist() == [0, 2, 4]
    assert second.states.tolist() == [1, 3]
    assert (first.weight, second.weight) == pytest.approx((0.6, 0.4))
    for part in (first, second):
        inside = np.ix_(range(3), part.states, range(2), part.states)
        assert np.allclose(part.cmdp.transition[:3], whole.transition[inside], rtol=0.0, atol=1e-15)
        assert np.array_equal(part.cmdp.reward, whole.reward[:, part.states])
    if by_step:
        assert first.cmdp.transition[3, 0, 1].tolist() == [1.0, 0.0, 0.0]  # most of it left the part: it stays
        assert first.cmdp.transition[3, 1, 0].tolist() == [1.0, 0.0, 0.0]  # most of it stayed: scaled
