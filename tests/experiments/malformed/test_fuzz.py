"""The short version of `make fuzz-files`, and every input that it ever found trouble with."""

import math

from benchmarks.fuzz_files import fuzz, listed, replayed


def test_what_once_went_wrong_is_refused_with_a_sentence():
    assert replayed() == []


def test_files_that_were_spoilt_at_random_are_read_or_refused():
    n, found = fuzz(seconds=math.inf, seed=1, most=12)
    assert found == []
    assert n >= 100


def test_what_strangers_may_give_is_taken_or_refused_with_a_sentence():
    """Every 13th of the listed inputs: a prime, so that all of their patterns are met."""
    n, found = listed(every=13)
    assert found == []
    assert n >= 300
