"""The boundary line: by simulation, by hand, and beside the table of docs/dials.md."""

import math

import numpy as np
import pytest

from omdpd.problem.arrays import InvalidInputError
from omdpd.theory.limits import boundary


def test_without_a_margin_it_is_the_mean_of_half_a_normal_error():
    found = boundary(2, 0.0, 3.0, 0.5)
    assert found.regret == 0.0
    assert found.violation == pytest.approx(3.0 * (1.0 + 1.0 / math.sqrt(2.0)) / math.sqrt(2.0 * math.pi), rel=1e-12)


@pytest.mark.parametrize("z", [0.0, 0.5, 1.5])
def test_it_is_what_drawn_errors_exceed_a_margin_by(z):
    errors = np.random.default_rng(0).standard_normal(400_000)
    excess = np.maximum(errors - z, 0.0)
    found = boundary(1, z, 1.0, 1.0)
    assert abs(found.violation - excess.mean()) <= 4.0 * excess.std() / math.sqrt(errors.size)
    assert found.regret == pytest.approx(z, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(("K", "z", "regret", "violation"), [(3000, 0.5, 15, 45), (100_000, 1.0, 172, 110)])
def test_the_page_has_its_numbers(K, z, regret, violation):
    found = boundary(K, z, 2.1, 0.13)
    assert (round(found.regret), round(found.violation)) == (regret, violation)


@pytest.mark.parametrize(("episodes", "z", "name"), [(0, 1.0, "episodes"), (5, -1.0, "z"), (5, math.nan, "z")])
def test_bad_input_is_named(episodes, z, name):
    with pytest.raises(InvalidInputError, match=name):
        boundary(episodes, z, 1.0, 1.0)
