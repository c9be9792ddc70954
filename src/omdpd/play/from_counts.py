"""Episodes that would have left given counts, for a start from counts where the episodes themselves were not kept.

Counts of whole episodes are a flow: as many come into a state as leave it.  So they can be taken apart into episodes
with exactly these counts.  Which reward was met when is not in them: every row gets as many of the largest and of the
smallest as its sum allows, so that a learner believes it to be as noisy as it may be, and no more certain than it is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, InvalidInputError, as_table, refuse_where, whole_number, within
from omdpd.problem.setting import BanditFeedback, Setting, Trajectory

ROW = ("step", "state", "action")


def episodes_of_counts(
    setting: Setting,
    visits: npt.ArrayLike,
    transitions: npt.ArrayLike,
    reward_sum: npt.ArrayLike,
    cost_sum: npt.ArrayLike,
    seed: int = 0,
) -> list[BanditFeedback]:
    """Episodes with these counts, for `Session(..., logged=...)`; rewards and costs in the units of the setting.

    Parameters
    ----------
    visits : (H, S, A)
        How often each action was taken in each state at each step.
    transitions : (H, S, A, S)
        How often each next state followed; nothing follows the last step.
    reward_sum, cost_sum : (H, S, A), (I, H, S, A)
        The sums of what was met there (I may be left out for one constraint).
    seed
        The same seed gives the same episodes.

    >>> import numpy as np
    >>> from omdpd import Setting
    >>> visits = np.array([[[3.0]], [[3.0]]])  # two steps, one state, one action, three episodes
    >>> moves = np.array([[[[3.0]]], [[[0.0]]]])
    >>> logged = episodes_of_counts(Setting(2, 1, 1), visits, moves, visits / 3.0, -visits)
    >>> len(logged), float(sum(episode.rewards[0] for episode in logged))
    (3, 1.0)
    """
    H, S, A = setting.shape
    if setting.feedback != "bandit":
        raise InvalidInputError(
            "counts hold no cost tables, so only a setting with bandit feedback can start from them"
        )
    n = _whole("visits", visits, ROW, (H, S, A))
    moves = _whole("transitions", transitions, (*ROW, "next state"), (H, S, A, S))
    _check_flow(n, moves)
    axes, shape = ["constraint", *ROW], [setting.n_constraints, H, S, A]
    costs = as_table("cost_sum", _per_constraint(cost_sum), axes, shape)
    rng = np.random.default_rng(whole_number("seed", seed, 0))
    states, actions = _paths(rng, n, moves)
    rewards = as_table("reward_sum", reward_sum, list(ROW), [H, S, A])
    observed = [_shared_out(rng, "reward_sum", rewards, n, setting.reward_range or (0.0, 1.0), states, actions)]
    for i in range(setting.n_constraints):
        observed.append(_shared_out(rng, f"cost_sum[{i}]", costs[i], n, _cost_range(setting, i), states, actions))
    return [
        BanditFeedback(Trajectory(states[k], actions[k]), observed[0][k], np.array([each[k] for each in observed[1:]]))
        for k in range(len(states))
    ]


def _per_constraint(values: npt.ArrayLike) -> npt.ArrayLike:
    """The same with the axis of the constraints, if it was left out; what is no array is left to whoever reads it."""
    try:
        return np.asarray(values)[None] if np.ndim(values) == 3 else values
    except ValueError:
        return values


def _whole(name: str, values: npt.ArrayLike, axes: tuple[str, ...], shape: tuple[int, ...]) -> Floats:
    """Counts: whole numbers that are not negative."""
    table = as_table(name, values, list(axes), list(shape))
    refuse_where((table < 0.0) | (table != np.round(table)), name, table, "is no count", axes)
    return table


def _check_flow(visits: Floats, moves: Floats) -> None:
    """Refuse counts that are not those of whole episodes."""
    refuse_where(
        moves[-1] > 0.0, "transitions[-1]", moves[-1], "follows the last step", ("state", "action", "next state")
    )
    why = "times taken, but another number of times followed by a next state"
    refuse_where(visits[:-1] != moves[:-1].sum(axis=-1), "visits", visits[:-1], why, ROW)
    arrived, left = moves[:-1].sum(axis=(1, 2)), visits[1:].sum(axis=-1)
    why = "times reached, but left another number of times at the next step: counts must be those of whole episodes"
    refuse_where(arrived != left, "arrivals", arrived, why, ("step", "next state"))


def _paths(rng: np.random.Generator, visits: Floats, moves: Floats) -> tuple[npt.NDArray[np.int64], ...]:
    """States and actions (K, H) of episodes with these counts."""
    H, S, A = visits.shape
    n = visits.astype(np.int64)
    states = [rng.permutation(np.repeat(np.arange(S), n[0].sum(axis=-1)))]
    actions = []
    for h in range(H):
        here, chosen, following = states[-1], np.empty_like(states[-1]), np.empty_like(states[-1])
        for s in range(S):
            at = np.flatnonzero(here == s)
            chosen[at] = rng.permutation(np.repeat(np.arange(A), n[h, s]))
            for a in range(A) if h + 1 < H else ():
                went = at[chosen[at] == a]
                following[went] = rng.permutation(np.repeat(np.arange(S), moves[h, s, a].astype(np.int64)))
        actions.append(chosen)
        states.append(following)
    return np.stack(states[:H], axis=1), np.stack(actions, axis=1)


def _shared_out(
    rng: np.random.Generator,
    name: str,
    sums: Floats,
    visits: Floats,
    bounds: tuple[float, float],
    states: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int64],
) -> Floats:
    """Values (K, H) with these sums by row: ends of the range, and one number between them per row."""
    low, high = bounds
    share = np.where(visits > 0.0, sums / np.maximum(visits, 1.0), low)
    refuse_where((visits == 0.0) & (sums != 0.0), name, sums, "is a sum of no visits", ROW)
    within(f"{name} / visits", share, low, high, ROW)
    total = np.clip((sums - visits * low) / (high - low), 0.0, visits)
    values = np.zeros(states.shape)
    for h, s, a in np.argwhere(visits > 0.0):
        at = rng.permutation(np.flatnonzero((states[:, h] == s) & (actions[:, h] == a)))
        whole = int(total[h, s, a])
        values[at[:whole], h] = 1.0
        if whole < at.size:
            values[at[whole], h] = total[h, s, a] - whole
    return low + (high - low) * values


def _cost_range(setting: Setting, i: int) -> tuple[float, float]:
    """The costs of a step that a learner sees as -1 and 1."""
    if setting.budget is None:
        return -1.0, 1.0
    scale = np.broadcast_to(1.0 if setting.cost_scale is None else setting.cost_scale, (setting.n_constraints,))
    middle = float(np.atleast_1d(setting.budget)[i]) / setting.horizon
    return middle - float(scale[i]), middle + float(scale[i])
