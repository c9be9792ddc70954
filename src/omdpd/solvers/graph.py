"""A layered graph of states and rows: one kernel whose laws are lists, with what is exchangeable kept once.

State i of layer h stands for `members[i]` true states that nothing tells apart, row r of it for `copies[r]` true
state-action pairs.  A row's law is a list of entries (state of the next layer, probability), and a share that is
uniform over the S true states of the next layer: it reaches class t with probability spread[r] members[t] / S besides.
Vectors over rows hold one number per true pair: the flow of a row is copies[r] q[r].
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Graph:
    """The arrays of a layered graph; N states in all, R rows, E entries.

    Attributes
    ----------
    layers : (H + 1,)
        States of layer h are ``layers[h]:layers[h + 1]``.
    rows : (N + 1,)
        Rows of state i are ``rows[i]:rows[i + 1]``; every state has one.
    entries : (R + 1,)
        Entries of row r are ``entries[r]:entries[r + 1]``.  Rows of the last layer have none.
    successors, probabilities : (E,)
        States (numbered over all layers) of the next layer, and how likely each is.
    members : (N,)
        True states behind a state.
    copies : (R,)
        True state-action pairs behind a row: `members` of its state times the actions that it stands for.
    initial : (layers[1],)
        The mass with which an episode starts in each state of the first layer (of all its members together).
    n_states : int
        S, the true states of a layer: `members` sum to it in every layer after the first.
    spread : (R,)
        The uniform share of a row's law; its entries hold the rest.  Unless given it is one where there are no entries,
        and zero elsewhere.
    states, actions : (N,), (R,)
        Which true state a state is, and which action a row: -1 where they stand for several.  Empty where nobody asks;
        numbers ascend within a layer and within a state, and -1 comes last.
    """

    layers: Indices
    rows: Indices
    entries: Indices
    successors: Indices
    probabilities: Floats
    members: Floats
    copies: Floats
    initial: Floats
    n_states: int
    spread: Floats = field(default_factory=lambda: np.zeros(0))
    states: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    actions: Indices = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        if self.spread.size != self.n_rows:
            object.__setattr__(self, "spread", np.where(np.diff(self.entries) == 0, 1.0, 0.0))

    @property
    def horizon(self) -> int:
        """H."""
        return len(self.layers) - 1

    @property
    def n_rows(self) -> int:
        """R."""
        return len(self.copies)
