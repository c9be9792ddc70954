"""Rare rewards: when is a learner near the best safe policy, and within its budget from then on?

`python -m benchmarks.rare [--nature fixed] [--seeds FIRST:COUNT] [--episodes K]` plays worlds in which nearly no step
pays, the default learner (also told that steps are alike) and an R-max that ignores costs.  It prints the table of
docs/dials.md: the first episode from which on twenty have 90 % of the best safe value on average, and by how much the
episodes after it were above their budget, of the horizon; "-" is never.  Besides, from which episode on a margin of one
standard error costs less than the other 10 % of who knows all but the costs, by the formula of docs/theory.md.  The
nature `own-range` is `noisy` with costs that are met as the least or the largest that the world has.  `taxi` is
Gymnasium's, which pays for a passenger who is set down where he wants to be and for nothing else, on a limit of moves.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from benchmarks.standard import print_markdown
from omdpd import CMDP, ProximalOMDPD, run
from omdpd.gym import from_gymnasium
from omdpd.learners import Card, Report
from omdpd.natures import NATURES
from omdpd.natures.fixed import make_noisy
from omdpd.theory.limits import boundary_in
from omdpd.worlds import WORLDS

NAMES, TAXI = ("chain", "gathering", "mars_rover"), "taxi"
NEAR, WINDOW, OWN = 0.9, 20, "own-range"


@dataclass(frozen=True, eq=False)
class State:
    """Visits of pairs, those that another step followed, what followed, and rewards: (S, A), and `moves` (S, A, S)."""

    visits: np.ndarray
    left: np.ndarray
    moves: np.ndarray
    reward: np.ndarray
    policy: np.ndarray


@dataclass(frozen=True)
class RMax:
    """The best policy of a model in which a pair that was tried less than `known` times is paid for ever after."""

    known: int = 5
    card = Card("R-max over all steps", ("bandit", "full"), "none here", "Brafman and Tennenholtz (2002)")

    def init(self, setting: Any) -> State:
        H, S, A = setting.shape
        return self._planned(*np.zeros((3, S, A)), np.zeros((S, A, S)), H)

    def policy(self, state: State) -> np.ndarray:
        return state.policy.copy()

    def update(self, state: State, feedback: Any) -> State:
        s, a = feedback.trajectory.states, feedback.trajectory.actions
        visits, left, reward, moves = (x.copy() for x in (state.visits, state.left, state.reward, state.moves))
        np.add.at(visits, (s, a), 1.0)
        np.add.at(reward, (s, a), feedback.rewards)
        np.add.at(left, (s[:-1], a[:-1]), 1.0)
        np.add.at(moves, (s[:-1], a[:-1], s[1:]), 1.0)
        return self._planned(visits, left, reward, moves, len(s))

    def report(self, state: State) -> Report:
        return Report()

    def _planned(self, n: Any, left: Any, reward: Any, moves: Any, H: int) -> State:
        law, mean = moves / np.maximum(left, 1.0)[..., None], reward / np.maximum(n, 1.0)
        policy, V = np.zeros((H, *n.shape)), np.zeros(len(n))
        for h in reversed(range(H)):
            Q = np.where((left if h < H - 1 else n) >= self.known, mean + law @ V, float(H - h))
            best = Q.argmax(axis=1)
            policy[h, np.arange(len(best)), best] = 1.0
            V = Q.max(axis=1)
        return State(n, left, moves, reward, policy)


def make_taxi(horizon: int = 15, moves: float = 7.0) -> CMDP:
    """Gymnasium's taxi with a reward of 1 for a passenger at the destination, and a limit of moves."""
    env = gymnasium.make("Taxi-v4")
    for actions in env.unwrapped.P.values():
        for a, outcomes in actions.items():
            actions[a] = [(chance, to, float(reward > 0), ends) for chance, to, reward, ends in outcomes]
    return from_gymnasium(env, horizon, lambda state, action, to: float(action < 4), moves)


def reached(history: Any, best: float) -> tuple[float, float]:
    """The first episode from which on a window has most of the best safe value, and the mean violation after it."""
    values = np.array([row.value for row in history.rows])
    excess = np.array([max(0.0, *row.excess) for row in history.rows])
    means = np.convolve(values, np.ones(WINDOW) / WINDOW, "valid")
    near = np.flatnonzero(means >= NEAR * best)
    return (np.inf, np.nan) if not near.size else (float(near[0] + 1), float(excess[near[0] :].mean()))


def affordable(cmdp: Any, nature: Any, best: float) -> float:
    """The episode from which on a margin of one standard error costs less than may be missed."""
    least = boundary_in(cmdp, nature, 1)
    return 0.0 if least is None else (least.regret / ((1.0 - NEAR) * best)) ** 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nature", default="fixed", choices=[*NATURES, OWN])
    parser.add_argument("--seeds", default="0:5", help="FIRST:COUNT")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--worlds", nargs="*", default=list(NAMES))
    parser.add_argument("--learners", nargs="*", help="some of the lines")
    options = parser.parse_args()
    first, count = (int(part) for part in options.seeds.split(":"))
    learners = {
        "R-max": RMax(),
        "`standard`": ProximalOMDPD.standard(),
        "`standard(stationary=True)`": ProximalOMDPD.standard(stationary=True),
        "`settling`": ProximalOMDPD.settling(),
    }
    make = NATURES.get(options.nature, partial(make_noisy, noise=OWN))
    lines = [("world", "learner", "near from episode on, by seed", "median", "violation after, % of H")]
    for name in options.worlds:
        cmdp = make_taxi() if name == TAXI else WORLDS[name]()
        best = float(cmdp.solve().value)
        lines.append((name, "margin, by formula", f"{affordable(cmdp, make(cmdp, 0), best):.0f}", "", ""))
        for who, learner in learners.items():
            if options.learners and not any(part in who for part in options.learners):
                continue
            found = []
            for seed in range(first, first + count):
                nature = make(cmdp, 0) if options.nature == OWN else options.nature
                found.append(reached(run(cmdp, replace(learner), nature, options.episodes, seed=seed), best))
            when, over = np.array(found).T
            shown = ["-" if np.isinf(each) else f"{each:.0f}" for each in when]
            median = np.median(when)
            over = f"{100.0 * np.nanmean(over) / cmdp.shape[0]:.2f}" if np.isfinite(when).any() else "-"
            lines.append((name, who, ", ".join(shown), "-" if np.isinf(median) else f"{median:.0f}", over))
            print(lines[-1], flush=True)
    print_markdown(lines)


if __name__ == "__main__":
    main()
