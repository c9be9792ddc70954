import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omdpd.learners.potential import Potential, positive_part

POTENTIALS = st.builds(Potential, w0=st.floats(1e-3, 10.0), beta=st.floats(1e-3, 5.0), w_max=st.floats(1e2, 1e6))


def test_values_and_slopes_by_hand():
    phi = Potential(w0=2.0, beta=0.5)
    assert phi.slope(np.array([0.0, 2.0])) == pytest.approx([2.0, 2.0 * math.e])
    assert phi.value(np.array([0.0, 2.0])) == pytest.approx([0.0, 4.0 * (math.e - 1.0)])


def test_the_papers_potential_has_w0_equal_to_beta():
    phi = Potential(w0=0.3, beta=0.3)
    assert phi.value(np.array([1.0]))[0] == pytest.approx(math.expm1(0.3))


@given(POTENTIALS, st.floats(0.0, 1e9))
def test_nothing_overflows_and_the_cap_holds(phi, x):
    assert phi.slope(np.array([x]))[0] <= phi.w_max
    assert math.isfinite(phi.value(np.array([x]))[0])


@given(POTENTIALS, st.floats(0.0, 100.0))
def test_the_inverse_undoes_the_value(phi, x):
    y = float(phi.value(np.array([x]))[0])
    assert phi.inverse(y) == pytest.approx(x, rel=1e-9, abs=1e-9)


@given(POTENTIALS, st.floats(0.0, 50.0), st.floats(0.0, 5.0))
def test_the_value_is_convex_with_the_stated_slope(phi, x, step):
    here, there = phi.value(np.array([x]))[0], phi.value(np.array([x + step]))[0]
    slack = 1e-9 * max(1.0, abs(there))
    assert there - here >= phi.slope(np.array([x]))[0] * step - slack
    assert there - here <= phi.slope(np.array([x + step]))[0] * step + slack


def test_beyond_the_cap_the_value_goes_on_linearly_without_a_jump():
    phi = Potential(w0=1.0, beta=1.0, w_max=math.exp(2.0))
    assert phi.kink == pytest.approx(2.0)
    below, at, above = phi.value(np.array([2.0 - 1e-9, 2.0, 3.0]))
    assert at - below < 1e-7
    assert above - at == pytest.approx(math.exp(2.0))


def test_saturation_is_told():
    phi = Potential(w0=1.0, beta=1.0, w_max=math.exp(2.0))
    assert not phi.saturated(np.array([1.9, 0.0]))
    assert phi.saturated(np.array([0.0, 2.1]))


def test_a_first_weight_above_the_cap_is_capped_from_the_start():
    phi = Potential(w0=10.0, beta=1.0, w_max=5.0)
    assert phi.slope(np.array([0.0, 7.0])) == pytest.approx([5.0, 5.0])
    assert phi.value(np.array([2.0]))[0] == pytest.approx(10.0)


def test_a_negative_target_is_reached_at_zero():
    assert Potential(1.0, 1.0).inverse(-3.0) == 0.0


def test_the_positive_part():
    assert np.array_equal(positive_part(np.array([-1.0, 0.0, 2.0])), [0.0, 0.0, 2.0])
