import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omdpd.beliefs.memory import TableMemory

SHAPE = (2, 3, 4)


def tables(n, seed=0):
    return list(np.random.default_rng(seed).uniform(-1.0, 1.0, (n, *SHAPE)))


def met(capacity, sequence):
    memory = TableMemory(capacity)
    for table in sequence:
        memory = memory.meet(table)
    return memory


def same(stored, expected):
    return len(stored) == len(expected) and all(np.array_equal(a, b) for a, b in zip(stored, expected, strict=True))


def test_tables_are_kept_in_the_order_they_were_last_met():
    a, b, c = tables(3)
    assert same(met(8, [a, b, c, a]).tables, [b, c, a])


def test_the_least_recently_met_table_leaves_first():
    a, b, c = tables(3)
    assert same(met(2, [a, b, a, c]).tables, [a, c])


def test_capacity_zero_keeps_the_last_table_alone():
    a, b = tables(2)
    assert same(met(0, [a, b]).tables, [b])
    assert same(met(0, [a, 0.5 * a]).tables, [0.5 * a])
    assert met(0, [a, np.zeros(SHAPE)]).tables == ()


def test_no_capacity_keeps_every_distinct_table():
    many = tables(50)
    assert same(met(None, many + many).tables, many)


@pytest.mark.parametrize("capacity", [8, None])
def test_of_parallel_tables_the_larger_is_kept_whichever_came_first(capacity):
    (a,) = tables(1)
    assert same(met(capacity, [a, 0.5 * a]).tables, [a])
    assert same(met(capacity, [0.5 * a, a]).tables, [a])


def test_a_table_and_its_negative_are_different_constraints():
    (a,) = tables(1)
    assert same(met(8, [a, -a]).tables, [a, -a])


def test_an_all_zero_table_is_not_stored():
    (a,) = tables(1)
    assert same(met(8, [np.zeros(SHAPE), a, np.zeros(SHAPE)]).tables, [a])


def test_meeting_a_known_table_in_any_order_leaves_the_same_set():
    a, b, c = tables(3)
    memory = met(8, [a, b, c])
    assert memory.meet(a).same_as(memory)
    assert memory.meet(0.5 * b).same_as(memory)
    assert memory.meet(np.zeros(SHAPE)).same_as(memory)


def test_a_new_a_larger_and_a_leaving_table_change_the_set():
    a, b, c = tables(3)
    memory = met(2, [a, b])
    assert not memory.meet(c).same_as(memory)
    assert not memory.meet(2.0 * a).same_as(memory)
    assert not TableMemory(2).same_as(memory)


def test_a_table_that_left_and_came_back_is_new():
    a, b, c = tables(3)
    before = met(2, [a, b])
    assert not before.meet(c).meet(a).meet(b).same_as(before)


def test_the_memory_before_is_left_alone():
    a, b = tables(2)
    memory = met(1, [a])
    memory.meet(b)
    assert same(memory.tables, [a])


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.25, 0.5, 1.0])), max_size=30), st.integers(1, 4))
def test_the_memory_agrees_with_a_plain_list(sequence, capacity):
    pool = tables(5)
    expected: list[tuple[int, float]] = []
    for which, scale in sequence:
        larger = max([scale] + [s for w, s in expected if w == which])
        expected = [(w, s) for w, s in expected if w != which] + [(which, larger)]
        expected = expected[-capacity:]
    memory = met(capacity, [scale * pool[which] for which, scale in sequence])
    assert same(memory.tables, [s * pool[w] for w, s in expected])
    assert len(set(memory.labels)) == len(memory.labels)
