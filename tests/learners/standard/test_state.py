"""The one vector of a state, and its parts."""

import numpy as np
import pytest
from numba import njit

from omdpd.learners.standard.state import NAMES, Learnt, Sizes, by_name, parts_of, places, shapes
from omdpd.problem.setting import Setting

H, S, A, I, C = 4, 3, 2, 5, 7  # noqa: E741
SIZES = Sizes(H, S, A, I, C)
SETTING = Setting(H, S, A, I, n_episodes=9, feedback="full")


@njit
def compiled_parts(vector, at):
    return parts_of(vector, at)


def numbered(room=C):
    """A state whose numbers are all different."""
    vector = np.arange(places(Sizes(H, S, A, I, room))[-1], dtype=float)
    return Learnt.of(SETTING, room, vector)


def test_compiled_code_finds_the_parts_where_they_are():
    vector = numbered().vector
    theirs = compiled_parts(vector, places(SIZES).copy())
    for name, x in by_name(vector, SIZES).items():
        y = getattr(theirs, name) if hasattr(theirs, name) else getattr(theirs.past, name)
        assert x.shape == y.shape == shapes(SIZES)[name], name
        assert np.array_equal(x, y), name
        y[...] = -1.0
    assert np.all(vector == -1.0)  # nothing is a copy, and nothing of the vector is left over


def test_the_parts_lie_in_the_order_of_their_names():
    flat = [each for part in numbered().parts for each in (part if isinstance(part, tuple) else (part,))]
    joined = np.concatenate([part.ravel() for part in flat])
    assert np.array_equal(joined, numbered().vector)


def test_a_copy_shares_nothing():
    state = numbered()
    other = state.copy()
    other.parts.V[:] = -1.0
    assert np.array_equal(state.vector, numbered().vector)
    assert np.all(other.V == -1.0)


def test_more_room_keeps_every_number_in_its_place():
    state, grown = numbered(2), numbered(2).with_room(C)
    for name, mine in by_name(state.vector, state.sizes).items():
        theirs = by_name(grown.vector, grown.sizes)[name]
        if name.startswith("kept"):
            theirs = theirs.reshape(I, C, -1)
            assert np.array_equal(theirs[:, :2], mine.reshape(I, 2, -1)), name
            assert not theirs[:, 2:].any(), name
        else:
            assert np.array_equal(theirs[: len(mine)], mine), name
            assert not theirs[len(mine) :].any(), name


def test_a_state_whose_parts_lie_otherwise_is_put_in_order():
    state = numbered()
    held = by_name(state.vector, state.sizes)
    names = [NAMES[i] for i in np.random.default_rng(0).permutation(len(NAMES))]
    parts = [held[name].ravel() for name in names]
    other = Learnt(SETTING, C, tuple(names), tuple(np.cumsum([x.size for x in parts]).tolist()), np.concatenate(parts))
    assert np.array_equal(other.as_now().vector, state.vector)
    assert other.as_now().names == NAMES
    assert state.as_now() is state


def test_a_state_of_other_sizes_than_its_setting_says_is_refused():
    state = numbered()
    wrong = Learnt(SETTING, C, state.names, tuple(end + 1 for end in state.ends), np.zeros(len(state.vector) + 1))
    with pytest.raises(ValueError, match="other sizes"):
        wrong.as_now()


def test_another_first_state_is_told_to_the_setting_and_to_the_vector():
    law = np.array([0.5, 0.25, 0.25])
    state = numbered()
    moved = state.with_start(law)
    assert np.array_equal(moved.parts.mu, law)
    assert np.array_equal(moved.setting.mu, law)
    assert np.array_equal(state.vector, numbered().vector)
