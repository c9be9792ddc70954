"""Chains reduced state by state: nothing is ever subtracted, so every digit is kept.

States are taken out one by one (Grassmann, Taksar, Heyman), and those that one is tied to by a step are tied to each
other when it goes.  The k-th to go is then tied to `later[start[k]:start[k + 1]]`, which ascends: `up` has the chance
of a step to each of them, `down` that of a step from there to k, and `leak[k]`, which is positive, that of a step out
of the chain.  In `down` is left how often each comes to k before it comes to one that is still there:

    x_k = (r_k + sum_{j>k} p_kj x_j) / s_k,    s_k = leak_k + sum_{j>k} p_kj,    r_i += (p_ik / s_k) r_k  for i > k
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omdpd.jit.decorators import entry, inner
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.laws import Successors

Bools = npt.NDArray[np.bool_]


# The ties of states that are still there have room for so many times those at first.  They grow less than tenfold
# in a plane, on a ring or on a tree; where they fill more than this share of the room there is hardly an order.
ROOM_FOR_TIES, FULL = 12, 5.0 / 6.0


@entry
def fewest_ties_first(
    pointers: Integers, others: Successors, asked: Bools, most: float
) -> tuple[Integers, Integers, Successors]:
    """The states that are `asked` (n,) in an order in which each is tied to few others when it goes, and to whom.

    State i is tied to `others[pointers[i]:pointers[i + 1]]` at first.  Nobody is tied to anybody in an answer where the
    squares of ties would sum to more than `most`, or where ties outgrow their room.
    """
    n, n_asked = asked.size, int(asked.sum())
    rows = np.zeros((3, n), np.int64)  # of each state: where its ties begin, how many there are, and their room
    pool, end, mark = np.zeros(ROOM_FOR_TIES * others.size, others.dtype), others.size, np.zeros(n + 1, np.int64)
    pool[:end] = others
    queue = np.full((3, n + 1), -1)  # by number of ties: the first; of each state: the one after it, the one before it
    for i in range(n):
        if asked[i]:
            rows[0, i], rows[1:, i] = pointers[i], pointers[i + 1] - pointers[i]
            _join(queue, i, rows[1, i])
    order, start, later = np.empty(n_asked, np.int64), np.zeros(n_asked + 1, np.int64), np.empty_like(others)
    d, work = 0, 0.0
    for step in range(n_asked):
        while queue[0, d] < 0:
            d += 1
        k, begin = queue[0, d], start[step]
        _leave(queue, k, d)
        work += float(d) * d
        if work + float(n_asked - step - d) * d * d > most:  # those that are left will hardly have fewer
            return order, start, later[:0]
        if begin + d > later.size:
            later = np.append(later, np.empty(later.size + d, later.dtype))
        later[begin : begin + d] = pool[rows[0, k] : rows[0, k] + d]
        order[step], start[step + 1], rows[1, k] = k, begin + d, 0
        least = d
        for i in later[begin : begin + d]:
            if asked[i]:
                before = rows[1, i]
                end = _tie(pool, end, rows, mark, i, k, later[begin : begin + d])
                if end < 0:
                    return order, start, later[:0]
                _leave(queue, i, before)
                _join(queue, i, rows[1, i])
                least = min(least, rows[1, i])
        d = least
    return order, start, later[: start[n_asked]]


@inner
def _join(queue: Integers, i: int, d: int) -> None:
    """Put a state that has d ties first of these."""
    queue[1, i], queue[2, i] = queue[0, d], -1
    if queue[0, d] >= 0:
        queue[2, queue[0, d]] = i
    queue[0, d] = i


@inner
def _leave(queue: Integers, i: int, d: int) -> None:
    """Take a state that had d ties from these."""
    after, before = queue[1, i], queue[2, i]
    if before >= 0:
        queue[1, before] = after
    else:
        queue[0, d] = after
    if after >= 0:
        queue[2, after] = before


@inner
def _tie(pool: Successors, end: int, rows: Integers, mark: Integers, i: int, k: int, tied: Successors) -> int:
    """Tie state i to all of these in place of k; the end of all ties then, or -1 where they have no room."""
    begin, n = rows[0, i], rows[1, i] - 1
    mark[-1] += 1
    stamp = mark[-1]
    mark[i] = stamp
    for y in range(begin, begin + n + 1):
        mark[pool[y]] = stamp
        if pool[y] == k:
            pool[y] = pool[begin + n]
    fresh = 0
    for j in tied:
        fresh += mark[j] != stamp
    rows[1, i] = n
    if n + fresh > rows[2, i]:
        room = n + fresh + (n + fresh) // 2
        if end + room > pool.size:
            end = _compacted(pool, rows)
            if end + room > FULL * pool.size:
                return -1
            begin = rows[0, i]
        pool[end : end + n] = pool[begin : begin + n]
        rows[0, i], rows[2, i] = end, room
        begin, end = end, end + room
    for j in tied:
        if mark[j] != stamp:
            pool[begin + n] = j
            n += 1
    rows[1, i] = n
    return end


@inner
def _compacted(pool: Successors, rows: Integers) -> int:
    """Move all ties to the front, in place, without room between them; their end."""
    end = 0
    for i in np.argsort(rows[0]):  # as they lie
        begin, n = rows[0, i], rows[1, i]
        for y in range(n):
            pool[end + y] = pool[begin + y]
        rows[0, i], rows[2, i] = end, n
        end += n
    return end


@entry
def reduced(start: Integers, later: Successors, up: Floats, down: Floats, leak: Floats) -> Floats:
    """Take all states out, in place; s (n,)."""
    n = leak.size
    left = np.zeros(n)
    for k in range(n):
        first, end = start[k], start[k + 1]
        s = leak[k]
        for e in range(first, end):
            s += up[e]
        left[k] = s
        for e in range(first, end):
            down[e] /= s
            leak[later[e]] += down[e] * leak[k]
        for e in range(first, end):
            i = later[e]
            into, out, t = down[e], up[e], start[i]
            if into == 0.0 and out == 0.0:
                continue
            if start[i + 1] - t == end - e - 1:  # it is tied to the same ones
                for f in range(e + 1, end):
                    up[t + f - e - 1] += into * up[f]
                    down[t + f - e - 1] += out * down[f]
            else:
                for f in range(e + 1, end):
                    while later[t] != later[f]:
                        t += 1
                    up[t] += into * up[f]
                    down[t] += out * down[f]
    return left


@entry
def gathered(start: Integers, later: Successors, down: Floats, right: Floats) -> None:
    """What later states get of each that was taken out, in place (n,)."""
    for k in range(right.size):
        for e in range(start[k], start[k + 1]):
            right[later[e]] += down[e] * right[k]


@entry
def put_back(start: Integers, later: Successors, up: Floats, left: Floats, right: Floats) -> None:
    """The solution from what was gathered, in place (n,)."""
    for k in range(right.size - 1, -1, -1):
        total = right[k]
        for e in range(start[k], start[k + 1]):
            total += up[e] * right[later[e]]
        right[k] = total / left[k]


@entry
def flow(start: Integers, later: Successors, up: Floats, down: Floats, left: Floats, mass: Floats) -> None:
    """How often a chain that begins by `mass` (n,) is in each state before it leaves, in place."""
    for k in range(mass.size):
        mass[k] /= left[k]
        for e in range(start[k], start[k + 1]):
            mass[later[e]] += up[e] * mass[k]
    for k in range(mass.size - 1, -1, -1):
        for e in range(start[k], start[k + 1]):
            mass[k] += down[e] * mass[later[e]]
