"""The first number of a stream is the one that NumPy draws, whatever the seed, the episode and the range."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omdpd.jit.decorators import COMPILED
from omdpd.natures.protocol import episode_choice
from omdpd.natures.streams import first_below

# Seeds and episodes of one word of 32 bits, of two, and at their ends.
wholes = st.one_of(st.integers(0, 2**63 - 1), st.integers(0, 5000), st.sampled_from([2**32 - 1, 2**32, 2**63 - 1]))


def drawn(seed: int, k: int, n: int) -> int:
    return int(np.random.default_rng((seed, k)).integers(n))


@pytest.mark.skipif(not COMPILED, reason="whole numbers of 64 bits overflow with a warning outside compiled code")
@given(wholes, wholes, st.one_of(st.integers(1, 12), st.integers(1, 2**32 - 1)))
def test_the_first_number_is_the_one_that_numpy_draws(seed, k, n):
    found = first_below(seed, k, n)
    assert type(found) is int
    assert found == drawn(seed, k, n)


@pytest.mark.skipif(not COMPILED, reason="whole numbers of 64 bits overflow with a warning outside compiled code")
def test_numbers_that_are_drawn_again_are_numpys_too():
    # A range just above half of all numbers refuses almost every second draw.
    n = 2**31 + 1
    assert [first_below(7, k, n) for k in range(300)] == [drawn(7, k, n) for k in range(300)]


@pytest.mark.parametrize(("seed", "n"), [(2**63, 4), (2**70, 3), (5, 2**33), (5, 1)])
def test_a_choice_outside_the_compiled_ranges_is_numpys(seed, n):
    assert episode_choice(seed, 3, n) == drawn(seed, 3, n)
