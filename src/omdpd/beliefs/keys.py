"""Sorted whole numbers that stand for what was visited: joined with those of one more episode, and looked up."""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import checked_entry
from omdpd.problem.arrays import Integers


@checked_entry
def joined(old: Integers, new: Integers) -> tuple[Integers, Integers, Integers]:
    """(keys, place, at): `old` (sorted, distinct) with `new` (any order, repeats) as one sorted list of distinct keys.

    ``keys[place]`` is `old` and ``keys[at]`` is `new`.
    """
    order = np.argsort(new)
    keys = np.empty(old.size + new.size, np.int64)
    place, at = np.empty(old.size, np.int64), np.empty(new.size, np.int64)
    i, j, n = 0, 0, 0
    while i < old.size or j < new.size:
        if j == new.size or (i < old.size and old[i] <= new[order[j]]):
            keys[n] = old[i]
        else:
            keys[n] = new[order[j]]
        if i < old.size and old[i] == keys[n]:
            place[i] = n
            i += 1
        while j < new.size and new[order[j]] == keys[n]:
            at[order[j]] = n
            j += 1
        n += 1
    return keys[:n].copy(), place, at


@checked_entry
def bounds(keys: Integers, width: int, groups: Integers) -> Integers:
    """(len(groups) + 1,): the keys of group g, those with key // width == groups[g], are ``bounds[g]:bounds[g + 1]``.

    Both lists are sorted, and every key is in a group.
    """
    ends = np.empty(groups.size + 1, np.int64)
    ends[0] = 0
    at = 0
    for g in range(groups.size):
        while at < keys.size and keys[at] // width == groups[g]:
            at += 1
        ends[g + 1] = at
    return ends


@checked_entry
def distinct(keys: Integers, width: int) -> Integers:
    """The distinct key // width of sorted keys."""
    found = np.empty(keys.size, np.int64)
    n = 0
    for key in keys:
        if n == 0 or found[n - 1] != key // width:
            found[n] = key // width
            n += 1
    return found[:n].copy()
