"""The short version of `make fuzz-files`, and every input that it ever found trouble with."""

import math

from fuzz_files import fuzz, replayed


def test_what_once_went_wrong_is_refused_with_a_sentence():
    assert replayed() == []


def test_files_that_were_spoilt_at_random_are_read_or_refused():
    n, found = fuzz(seconds=math.inf, seed=1, most=12)
    assert found == []
    assert n >= 100
