"""Seeded numbers must not move unless somebody means them to.

The tolerance is 1e-6, not equality: solvers stop at a relative gap of 1e-12, so an occupancy is known to about 1e-6,
and another processor or a reordered sum may end anywhere within that.  Trajectories follow the occupancies, so a change
above it shows up as a different run, not as a slightly different number.
"""

import json

import pytest

from tests.recorded.record import FILE, cases, numbers

TOLERANCE = 1e-6
RECORDED = json.loads(FILE.read_text()) if FILE.exists() else {}


def test_every_learner_and_nature_has_recorded_numbers():
    assert set(RECORDED) == {f"{learner} {nature}" for learner, nature in cases()}


@pytest.mark.parametrize("case", RECORDED)
def test_a_run_ends_with_the_recorded_numbers(case):
    found, recorded = numbers(*case.split(" ")), RECORDED[case]
    assert set(found) == set(recorded)
    for key, value in recorded.items():
        assert found[key] == (value if value is None else pytest.approx(value, rel=TOLERANCE, abs=TOLERANCE)), key
