"""What is compiled ahead is what is used."""

import gc

import pytest

from omdpd.solvers import warmup


@pytest.mark.parametrize(("function", "signature"), warmup.LATE, ids=[f.__name__ for f, _ in warmup.LATE])
def test_the_helper_compiles_what_the_solver_calls(function, signature):
    warmup.call_box()
    if function.signatures:
        assert [tuple(one) for one in function.signatures] == [signature]
    else:
        # The solver came from the cache on disk; what it called is there too.
        function.compile(signature)
        assert not function.stats.cache_misses


def test_garbage_is_collected_again():
    lines = []
    warmup.warm_up(lines.append)
    assert gc.isenabled()
    assert lines == []
