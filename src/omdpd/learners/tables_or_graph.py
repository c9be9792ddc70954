"""A rule decides whether tables or a graph of visits hold the beliefs; functions lead from one to the other.

Tables have H S A S entries whatever the laws are; a graph has those that were seen (`beliefs.layouts`).  By how many
entries there are:

    H S A S <= SMALL            tables: a graph costs more than it saves
    H S A S >  MAX_TABLE        the graph: tables would not fit
    between them                the graph, until more than DENSE of all entries stand in it; from then on tables

Nobody says at the start how dense laws are, and while few entries were seen the graph is the faster one in any case;
laws only ever gain entries, so a run goes over once at most.  A state in tables stays so, whoever began it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from omdpd.beliefs.confidence import EmpiricalEstimator, Estimate
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.evidence import Evidence, Scores
from omdpd.beliefs.layouts import laws_of_rows, rows_of_tables
from omdpd.beliefs.standard import SharingEstimator
from omdpd.beliefs.visits import Order, Visits
from omdpd.learners.proximal_state import State
from omdpd.learners.surrogate import Surrogate
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.graph import Graph
from omdpd.solvers.mirror import Hinges
from omdpd.solvers.regions import Kernel

Representation = Literal["dense", "graph"]
# Up to so many entries a step over tables takes less time than one over any graph (30 states, 5 actions, 10 steps).
SMALL = 100_000
# Entries of the largest tables (32 MB each).
MAX_TABLE = 4_000_000
# Share of all entries beyond which a step over tables is the faster one: it is equal at .2 with 50 states, .24 with 70,
# and .4 with 100.
DENSE = 0.25


def order_on_graph(estimator: object) -> Order | None:
    """How counts are kept that a graph is made of; None if the estimator has no kernel made of counts alone."""
    if isinstance(estimator, EmpiricalEstimator):
        return "pooled" if estimator.stationary else "step"
    return "pair" if isinstance(estimator, SharingEstimator) else None


def begins_as(estimator: object, setting: Setting, wanted: Representation | None = None) -> Representation:
    """How beliefs are held before the first episode; `wanted` is what a run of an earlier version said."""
    if order_on_graph(estimator) is None:
        return "dense"
    return wanted or ("dense" if _entries(setting) <= SMALL else "graph")


def may_need_tables(estimator: object, setting: Setting, wanted: Representation | None = None) -> bool:
    """Whether beliefs are, or may come to be, tables."""
    return begins_as(estimator, setting, wanted) == "dense" or (wanted is None and _entries(setting) <= MAX_TABLE)


def is_dense(state: State) -> bool:
    """Whether the graph of a state has so many entries that tables are better, and would fit."""
    region, entries = state.believed.region, _entries(state.setting)
    return isinstance(region, Graph) and entries <= MAX_TABLE and region.entries[-1] > DENSE * entries


def nothing_seen(
    estimator: object, setting: Setting, wanted: Representation | None
) -> tuple[Counts | Visits, Scores | None]:
    """No visit yet, and no evidence for or against sharing between steps (None where nothing is shared)."""
    order = order_on_graph(estimator)
    if order is None or begins_as(estimator, setting, wanted) == "dense":
        return Counts.empty(setting), None
    sharing = isinstance(estimator, SharingEstimator)
    return Visits.empty(setting, order), Scores.empty(setting) if sharing else None


def in_tables(state: State) -> State:
    """A state on a graph, in tables: every pair has the numbers of the row that stood for it."""
    visits, graph, setting, old = state.counts, state.believed.region, state.setting, state.believed
    assert isinstance(visits, Visits)
    assert isinstance(graph, Graph)
    rows, shape = rows_of_tables(graph, setting.n_actions), setting.shape

    def table(values: Floats) -> Floats:
        return values[..., rows].reshape(*values.shape[:-1], *shape)

    def occupancy(values: Floats) -> Floats:
        whole = table(values)
        whole[0, setting.mu == 0.0] = 0.0  # states that no episode starts in have no row in the first layer
        return whole

    scores, caution, hinges = state.evidence, state.caution, state.predicted.hinges
    evidence = None
    if isinstance(scores, Scores):
        evidence = Evidence(*visits.squares(), scores.kernel, scores.reward, scores.cost)
    if caution is not None and caution.plan is not None:
        caution = replace(caution, plan=occupancy(caution.plan))
    reward, lifted, cost, margin = (table(each) for each in (old.reward, old.cost, old.counted_cost, old.margin))
    kernel = Kernel(laws_of_rows(graph)[rows].reshape(*shape, setting.n_states))
    return replace(
        state, counts=visits.counts(), believed=Estimate(reward, lifted, cost, margin, kernel),
        memory=tuple(
            replace(kept, tables=tuple(each.reshape(shape) for each in kept.tables)) for kept in state.memory
        ),
        predicted=Surrogate(reward, Hinges(table(hinges.tables), hinges.weights, hinges.start)),
        q=occupancy(state.q), q_hat=occupancy(state.q_hat), evidence=evidence, caution=caution,
    )  # fmt: skip


def _entries(setting: Setting) -> int:
    H, S, A = setting.shape
    return H * S * A * S
