"""Episodes under laws of either form: occupancies, values, best responses.

Over a table they are the sweeps of `compiled/flow.py`, over lists those of `compiled/listed.py`, with the same bits.
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats, Integers, one_step
from omdpd.problem.laws import DenseLaws, Laws, SparseLaws
from omdpd.solvers.compiled import flow
from omdpd.solvers.compiled.listed import Codes, listed_choices, listed_occupancy, listed_values
from omdpd.solvers.packed import room_for

Lists = tuple[Integers, np.ndarray[tuple[int, ...], np.dtype[np.int32]], Floats]


def lists_of(laws: SparseLaws) -> Lists:
    """The three arrays of listed laws, as compiled functions take them."""
    return laws.pointers, laws.successors, laws.probabilities


def once(table: Floats, axis: int = 0) -> Floats:
    """A table as compiled functions take it: contiguous, with one step where all steps are one."""
    return np.ascontiguousarray(one_step(table, axis))


def occupancy_under(laws: Laws, policy: Floats, initial: Floats) -> Floats:
    """q_h(s,a), (H, S, A), of a policy under the laws, by one forward pass."""
    if isinstance(laws, DenseLaws):
        return flow.occupancy_of_policy(policy, laws.expand(), initial)
    return listed_occupancy(*lists_of(laws), np.ascontiguousarray(policy), initial)


def residual_under(laws: Laws, occupancy: Floats, initial: Floats) -> float:
    """Largest violation of the flow equations and of q >= 0 under the laws."""
    lists = laws.listed()
    inflow = np.array([initial, *(lists.forward(q, h) for h, q in enumerate(occupancy[:-1]))])
    return float(max(np.abs(occupancy.sum(axis=2) - inflow).max(), -occupancy.min()))


def value_under(laws: Laws, policy: Floats, initial: Floats, table: Floats) -> float:
    """V^pi(table): the expected total of a table (H, S, A) over an episode."""
    if isinstance(laws, DenseLaws):
        return float(flow.value_of_policy(policy, laws.expand(), initial, _every_step(table, laws)))
    values = listed_values(*lists_of(laws), np.ascontiguousarray(policy), once(table))[0]
    return _expected(initial, values)


def greedy_under(laws: Laws, table: Floats) -> tuple[Floats, Floats]:
    """argmax_pi V^pi(table): a deterministic policy (H, S, A), first action on ties, and its values V_0 (S,).

    The table may be that of one step, for all of them.
    """
    if isinstance(laws, DenseLaws):
        policy, values = flow.greedy_policy(laws.expand(), _every_step(table, laws))
        return policy, values[0]
    H, S, A = laws.shape
    codes, start = _greedy(laws, table)
    chosen = np.zeros((H, S, A))
    np.put_along_axis(chosen, codes[:, :, None].astype(np.int64) >> 1, 1.0, axis=2)
    return chosen, start


def best_value_under(laws: Laws, initial: Floats, table: Floats) -> float:
    """max_pi V^pi(table)."""
    if isinstance(laws, DenseLaws):
        return float(initial @ flow.greedy_policy(laws.expand(), _every_step(table, laws))[1][0])
    return float(initial @ _greedy(laws, table)[1])


def _greedy(laws: SparseLaws, table: Floats) -> tuple[Codes, Floats]:
    """Codes (H, S) and values V_0 (S,) of the policy that earns most by a table."""
    H, S, A = laws.shape
    codes = room_for((H, S), A)
    return codes, listed_choices(*lists_of(laws), once(table), np.zeros((0, 1, S, A)), np.ones(1), codes)


def _every_step(table: Floats, laws: Laws) -> Floats:
    return np.ascontiguousarray(np.broadcast_to(table, laws.shape))


def _expected(initial: Floats, values: Floats) -> float:
    """sum_s mu(s) V(s), added in the order of the states."""
    total = 0.0
    for chance, value in zip(initial[initial > 0.0].tolist(), values[initial > 0.0].tolist(), strict=True):
        total += chance * value
    return total
