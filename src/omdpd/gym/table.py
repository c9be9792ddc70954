"""From a Gymnasium environment with a table to the exact CMDP.

Toy-text environments (FrozenLake, CliffWalking, Taxi) publish ``env.unwrapped.P[s][a] = [(prob, next, reward, ends)]``.
That table has no horizon, no cost and no budget, so these are asked for; a reward outside [0, 1] is mapped into it.
An action that ``P[s]`` does not have is not allowed in s.  Others publish ``get_transition_matrix()``, an array
(S', S, A); then rewards are asked for, too, and nothing ends.  An action without successors is not allowed.

What ends an episode: a state that is only ever entered by transitions that end the episode absorbs, with reward 0 and
cost 0 from then on (only what can be reached from the start counts).  If some state is entered both ways, one more
state "ended" (the last one) takes the ending transitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.gym.contact import flag, number, published, refuse_class, reset, whole
from omdpd.gym.task import MAX_ENTRIES
from omdpd.problem.arrays import (
    Floats,
    Integers,
    InvalidInputError,
    as_range,
    as_table,
    not_installed,
    numbers,
    positive_integer,
    shown,
)
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.problem.laws import SparseLaws, laws_of_entries
from omdpd.problem.masks import Allowed, as_mask
from omdpd.problem.strangers import strangers_code
from omdpd.problem.tables import ASKED_FOR, Budget

# cost(state, action, next_state): one number, or one per constraint.
TableCost = Callable[[int, int, int], Any]
# Probability, next state, reward, and whether the episode ends.
Outcome = tuple[float, int, float, bool]
Table = Mapping[int, Mapping[int, Sequence[Outcome]]]


@dataclass(frozen=True, eq=False)
class _Step:
    """One stationary step: laws, expected reward (S, A), expected costs (I, S, A), and which actions exist (S, A)."""

    laws: SparseLaws
    reward: Floats
    cost: Floats
    allowed: npt.NDArray[np.bool_]


def from_gymnasium(
    env: Any,
    horizon: int,
    cost: TableCost | npt.ArrayLike,
    budget: Budget = ASKED_FOR,
    initial: npt.ArrayLike | None = None,
    reward_range: tuple[float, float] | None = None,
    reward: TableCost | npt.ArrayLike | None = None,
    allowed: Allowed = None,
) -> CMDP:
    """The exact CMDP of an environment that publishes its table.

    Parameters
    ----------
    env
        An environment, or its id (then Gymnasium must be installed).
    horizon
        Steps per episode; the environment's own time limit plays no part.
    cost
        ``cost(state, action, next_state)`` giving one number or one per constraint, or a table (S, A) or (I, S, A).
    budget
        What an episode may cost in expectation, one number or one per constraint, in the units of the cost; None is no
        limit.
    initial
        The law of the first state; if not given, ``initial_state_distrib`` of the environment, else the states that
        1000 seeded resets meet, with their frequencies.
    reward_range
        The rewards that become 0 and 1; if not given, the least (or 0) and the largest (or 0) of the table.  It must
        contain 0, because an ended episode earns 0.
    reward
        ``reward(state, action, next_state)`` or a table (S, A), of an environment that publishes
        ``get_transition_matrix()`` and therefore no rewards.
    allowed
        Which of the actions that exist are allowed, as for `CMDP.from_arrays`: (S, A), (H, S, A), or a function.
    """
    env = opened(env)
    H = positive_integer("horizon", horizon)
    with strangers_code("the environment raised"):
        name = str(getattr(getattr(env, "spec", None), "id", None) or type(env).__name__)
        table, S, A = _table(env, name, reward)
    if H * S * A > MAX_ENTRIES:
        raise InvalidInputError(f"{S} states, {A} actions and {shown(H)} steps need a policy of more than 1 GiB")
    law = _initial(env, initial, S)
    ends, n_states = _ends(table, law)
    low, high = _reward_range(table, reward_range)
    step = _step(table, cost, ends, (S, n_states, A), H)
    start = np.zeros(n_states)
    start[:S] = law
    reward = np.clip((step.reward - low) / (high - low), 0.0, 1.0)
    mask = as_mask(allowed, (S, A))
    exist = step.allowed[None] if mask is None else step.allowed & _padded(mask.allowed, n_states)
    cmdp = CMDP.from_arrays(step.laws, reward, step.cost, budget, start, H, allowed=exist)
    labels = Labels(layout=_layout(env, n_states), actions=_action_names(env, A))
    return replace(cmdp.labelled(name, labels), reward_range=(low, high))


def _padded(allowed: npt.NDArray[np.bool_], n_states: int) -> npt.NDArray[np.bool_]:
    """A mask (n, S, A) with the added state, in which everything is allowed."""
    n, S, A = allowed.shape
    return np.concatenate([allowed, np.ones((n, n_states - S, A), bool)], axis=1)


def opened(env: Any) -> Any:
    """An environment from its id; anything else is taken for an environment, except a class."""
    refuse_class(env)
    if not isinstance(env, str):
        return env
    try:
        import gymnasium
    except ImportError:
        raise not_installed(f"opening {env!r} by its id", "gymnasium") from None
    if env.startswith("omdpd/"):
        import omdpd.gym.env  # noqa: F401  # registers our worlds
    with strangers_code(f"Gymnasium cannot make {env!r}:"):
        return gymnasium.make(env)


def _table(env: Any, name: str, reward: TableCost | npt.ArrayLike | None) -> tuple[Table, int, int]:
    """P, S and A; or the sentence that says what is missing or cannot be."""
    table, matrix = published(env, "P"), published(env, "get_transition_matrix")
    if table is None and callable(matrix):
        return _of_matrix(numbers(f"the transition matrix of {name}", matrix()), name, reward)
    if reward is not None:
        raise InvalidInputError(f"{name} publishes its rewards in a table P: leave reward out")
    if not isinstance(table, Mapping) or not table:
        raise InvalidInputError(
            f"{name} publishes no table P of its transitions, so its CMDP cannot be built; learn from it with `learn`"
        )
    S, A = len(table), max((len(row) for row in table.values() if isinstance(row, Mapping)), default=0)
    A = int(getattr(getattr(env, "action_space", None), "n", A))
    checked = {}
    for s in range(S):
        if not isinstance(table.get(s), Mapping) or not table[s] or not set(table[s]) <= set(range(A)):
            raise InvalidInputError(f"P[{s}] of {name} does not have actions among 0 .. {max(A - 1, 0)}")
        checked[s] = {a: _outcomes(f"P[{s}][{a}] of {name}", table[s][a], S) for a in sorted(table[s])}
    return checked, S, A


def _of_matrix(
    matrix: npt.NDArray[np.generic], name: str, reward: TableCost | npt.ArrayLike | None
) -> tuple[Table, int, int]:
    """The table of a matrix (S', S, A), which ends nowhere."""
    if matrix.ndim != 3 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(f"the transition matrix of {name} has shape {matrix.shape}, but needs (S, S, A)")
    if reward is None:
        raise InvalidInputError(f"{name} publishes a transition matrix, but no rewards: give them as reward")
    S, A = matrix.shape[1:]
    earned = None if callable(reward) else _cost_table(reward, S, A, "reward")[0]
    table: dict[int, dict[int, list[Outcome]]] = {s: {} for s in range(S)}
    for s, a, t in np.argwhere(np.moveaxis(matrix, 0, 2) != 0).tolist():
        paid = float(_paid(reward, s, a, t, "reward")[0]) if earned is None else float(earned[s, a])  # type: ignore[arg-type]
        table[s].setdefault(a, []).append((float(matrix[t, s, a]), t, paid, False))
    for s in range(S):
        if not table[s]:
            raise InvalidInputError(f"state {s} has no successor in the transition matrix of {name}")
    return table, S, A


def _outcomes(where: str, outcomes: Any, n_states: int) -> list[Outcome]:
    """What a state and an action lead to, refused by its place in the table if it cannot be."""
    if not isinstance(outcomes, Sequence) or not outcomes:
        raise InvalidInputError(f"{where} is {shown(outcomes)}, but must list its outcomes")
    checked = []
    for outcome in outcomes:
        if not isinstance(outcome, Sequence) or len(outcome) != 4:
            raise InvalidInputError(f"{where} has {shown(outcome)}, no (probability, next state, reward, ends)")
        chance, t = number(f"a probability in {where}", outcome[0]), whole(f"a next state in {where}", outcome[1])
        if chance < 0.0 or not 0 <= t < n_states:
            raise InvalidInputError(
                f"{where} leads to state {shown(t)} with probability {chance:g}, but states go from 0 to "
                f"{n_states - 1} and probabilities from 0 to 1"
            )
        checked.append((chance, t, number(f"a reward in {where}", outcome[2]), flag(f"an end in {where}", outcome[3])))
    return checked


def _ends(table: Table, initial: Floats) -> tuple[Integers, int]:
    """Where an ending transition to each state leads (-1: none does), (S,), and how many states there are then."""
    S = initial.size
    entered, ended = np.zeros(S, dtype=bool), np.zeros(S, dtype=bool)
    waiting = [int(s) for s in np.flatnonzero(initial > 0.0)]
    entered[waiting] = True
    while waiting:
        for outcomes in table[waiting.pop()].values():
            for chance, t, _, over in outcomes:
                if chance > 0.0 and over:
                    ended[t] = True
                elif chance > 0.0 and not entered[t]:
                    entered[t] = True
                    waiting.append(int(t))
    mixed = bool((ended & entered).any())
    leads = np.full(S, S) if mixed else np.arange(S)
    return np.where(ended, leads, -1), S + int(mixed)


def _step(
    table: Table, cost: TableCost | npt.ArrayLike, ends: Integers, sizes: tuple[int, int, int], horizon: int
) -> _Step:
    """Expected tables of one step; absorbing states earn and cost nothing."""
    S, n, A = sizes
    given = None if callable(cost) else _cost_table(cost, S, A)
    reward = np.zeros((n, A))
    entries: list[tuple[int, int, float]] = []
    costs: list[Floats] = []
    absorbing = np.zeros(n, dtype=bool)
    absorbing[S:] = True
    absorbing[:S] = ends == np.arange(S)
    for s in range(S):
        for a, outcomes in table[s].items():
            if absorbing[s]:
                continue
            paid: Any = 0.0
            for chance, t, earned, over in outcomes:
                where = int(ends[t]) if over and ends[t] >= 0 else int(t)  # -1: from a state that cannot be reached
                entries.append((s * A + a, where, chance))
                reward[s, a] += chance * earned
                if callable(cost) and chance > 0.0:
                    told = _paid(cost, s, a, t)
                    if np.ndim(paid) and np.size(paid) != told.size:
                        raise InvalidInputError(f"cost({s}, {a}, {t}) gave {told.size} numbers, not {np.size(paid)}")
                    paid = paid + chance * told
            if given is None:
                costs = costs or [np.zeros((n, A)) for _ in range(np.size(paid))]
                if np.size(paid) != len(costs):
                    raise InvalidInputError(f"cost gave {np.size(paid)} numbers in state {s}, but {len(costs)} before")
                for i, value in enumerate(np.atleast_1d(paid)):
                    costs[i][s, a] = value
    # Actions that a state does not have stand there as if they stayed: they are masked.
    allowed = np.array([[absorbing[s] or a in table[s] for a in range(A)] for s in range(n)])
    entries += [(s * A + a, s, 1.0) for s in range(n) for a in range(A) if absorbing[s] or not allowed[s, a]]
    rows, following, chances = zip(*entries, strict=True)
    laws = laws_of_entries(rows, following, chances, (horizon, n, A))
    if given is not None:
        costs = [np.where(absorbing[:, None], 0.0, np.pad(c, ((0, n - S), (0, 0)))) for c in given]
    return _Step(laws, reward, np.stack(costs or [np.zeros((n, A))]), allowed)


def _paid(cost: TableCost, s: int, a: int, t: int, what: str = "cost") -> Floats:
    """What a transition costs, (I,)."""
    name = f"{what}({s}, {a}, {t})"
    with strangers_code(f"{name} raised"):
        return as_table(name, np.atleast_1d(numbers(name, cost(s, a, t))), ["constraint"], [None])


def _cost_table(cost: npt.ArrayLike, S: int, A: int, name: str = "cost") -> Floats:
    """A given table as (I, S, A)."""
    table = numbers(name, cost)
    if table.ndim not in (2, 3) or table.shape[-2:] != (S, A):
        raise InvalidInputError(f"{name} has shape {table.shape}, but needs {(S, A)} or (constraints, {S}, {A})")
    table = table[None] if table.ndim == 2 else table
    return as_table(name, table, ["constraint", "state", "action"], [None, S, A])


def _reward_range(table: Table, given: tuple[float, float] | None) -> tuple[float, float]:
    """What becomes 0 and 1; holds every reward of the table, and 0."""
    rewards = [o[2] for actions in table.values() for outcomes in actions.values() for o in outcomes if o[0] > 0.0]
    if given is None:
        low, high = min([*rewards, 0.0]), max([*rewards, 0.0])
        return (low, high) if low < high else (0.0, 1.0)
    low, high = as_range("reward_range", given)
    if not low <= 0.0 <= high:
        raise InvalidInputError(f"reward_range is {given}, but must be two numbers with 0 between them")
    if min(rewards) < low or max(rewards) > high:
        raise InvalidInputError(
            f"the table's rewards go from {min(rewards):g} to {max(rewards):g}, outside {(low, high)}"
        )
    return as_range("reward_range", (low, high))


def _initial(env: Any, given: npt.ArrayLike | None, S: int) -> Floats:
    """The law of the first state: as given, as published, or as met by resets."""
    law = published(env, "initial_state_distrib") if given is None else given
    if law is None:
        met = [whole("the observation of reset", reset(env, seed)[0]) for seed in range(1000)]
        if not 0 <= min(met) <= max(met) < S:
            raise InvalidInputError(f"reset gives states from {min(met)} to {max(met)}, but P has 0 to {S - 1}")
        law = np.bincount(met, minlength=S) / len(met)
    return as_table("initial", law, ["state"], [S])


def _layout(env: Any, n_states: int) -> tuple[str, ...]:
    """The map of an environment that publishes one as `desc`, if its cells are the states."""
    desc = published(env, "desc")
    if not isinstance(desc, np.ndarray) or desc.ndim != 2 or desc.size != n_states or desc.dtype.kind != "S":
        return ()
    return tuple("".join(cell.decode("ascii", "replace") for cell in row) for row in desc)


def _action_names(env: Any, A: int) -> tuple[str, ...]:
    """Names of the actions of Gymnasium's own toy environments."""
    known = {
        "FrozenLakeEnv": ("left", "down", "right", "up"),
        "CliffWalkingEnv": ("up", "right", "down", "left"),
        "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
    }
    names = known.get(type(getattr(env, "unwrapped", env)).__name__, ())
    return names if len(names) == A else ()
