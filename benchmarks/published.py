"""What others published about their methods, and what ours do with their settings: ``python -m benchmarks.published``.

Three experiments whose environment is known: random media streaming (Kitamura et al. 2025), a random world of 30 states
(Kitamura et al. 2024) and DOPE's media control (Bura et al. 2022).  Instances are drawn by NumPy, not by the authors'
generators: levels are compared, not curves point by point.  What it prints is in docs/published.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from omdpd import CMDP, run
from omdpd.learners import DOPE, EpisodeSafe, GhoshZhouShroff, OptCMDP, OptPrimalDual, Uniform, UOptRPGPD
from omdpd.problem.arrays import Floats
from omdpd.worlds import streaming

# Kitamura et al. 2025: buffer of five, four steps; bonus 2 / sqrt n, temperature 0.1.
LEVELS, STEPS, BONUS, ALPHA = 6, 4, 2.0, 10.0


def random_streaming(seed: int) -> CMDP:
    """A buffer of random rates: a step with something in it earns 1, and at least 0.6 of the steps must be slow."""
    rng = np.random.default_rng(seed)
    fast, leaves = rng.uniform(0.5, 0.9), rng.uniform(0.1, 0.4)
    laws = np.zeros((LEVELS, 2, LEVELS))
    for s in range(LEVELS):
        for a, arrives in enumerate((fast, 1.0 - fast)):
            up, down = (1.0 - leaves) * arrives, leaves * (1.0 - arrives)
            for t, chance in ((s + 1, up), (s - 1, down), (s, 1.0 - up - down)):
                laws[s, a, min(max(t, 0), LEVELS - 1)] += chance
    reward = np.repeat((np.arange(LEVELS) >= 1).astype(float)[:, None], 2, axis=1)
    cost = np.tile([1.0, 0.0], (LEVELS, 1))
    return CMDP.from_arrays(laws, reward, cost, 0.4 * STEPS, np.eye(LEVELS)[0], STEPS)


def streaming_learners(episodes: int) -> dict[str, Any]:
    """The learners of that figure; bonuses of 2 / sqrt n in our scales of sqrt(L / n)."""
    L = math.log(12.0 * LEVELS * 2 * STEPS * episodes / 0.01)
    scale, room = BONUS / math.sqrt(L), 0.4 * STEPS
    alpha = ALPHA * 2.0 * (1.0 + 2.0 * STEPS / room + STEPS) / (math.log(2.0) * math.sqrt(episodes))
    return {
        "EpisodeSafe": EpisodeSafe(scale, scale, 0.0, cost_transition_scale=0.0, alpha=ALPHA, compensation=1.0),
        "EpisodeSafe as it comes": EpisodeSafe(),
        "GhoshZhouShroff.hard": GhoshZhouShroff.hard(scale, scale, 0.0, alpha_scale=alpha),
        "DOPE.released": DOPE.released(transition_scale=0.05),
        "Uniform": Uniform(),
    }


def random_thirty(seed: int = 12, n_states: int = 30) -> CMDP:
    """30 states, 3 actions, 10 steps; utility is what reward is not, and half of the most of it is asked for."""
    rng = np.random.default_rng(seed)
    S, A, H = n_states, 3, 10
    laws = rng.dirichlet(np.full(S, 0.1), (H, S, A))
    reward = (rng.random((H, S, A)) < 0.5).astype(float)
    initial = np.eye(S)[rng.integers(S)]
    free = CMDP.from_arrays(laws, 1.0 - reward, np.zeros((H, S, A)), float(H), initial, H)
    most = float(free.solve().value)
    # utility >= most / 2, where utility = 1 - reward: the cost is the reward itself
    return CMDP.from_arrays(laws, reward, reward, H - 0.5 * most, initial, H)


def around(values: Floats, at: int) -> float:
    """The mean of a tenth of the episodes before `at`."""
    return float(values[at - max(at // 10, 1) : at].mean())


def streaming_numbers(episodes: int, seeds: Sequence[int]) -> None:
    for name, learner in streaming_learners(episodes).items():
        found = [run(random_streaming(seed), learner, "fixed", episodes, seed).scores for seed in seeds]
        cells = "  ".join(f"{each.regret:.0f} / {each.violation:.0f}" for each in found)
        means = np.mean([(each.regret_positive, each.violation) for each in found], axis=0)
        print(f"{name:28}{means[0]:8.0f} /{means[1]:6.0f}    {cells}", flush=True)


def thirty_numbers(episodes: int, seeds: Sequence[int]) -> None:
    cmdp = random_thirty()
    learners = {
        "UOptRPGPD.published": UOptRPGPD.published(reward_scale=0.0),
        "OptPrimalDual": OptPrimalDual(reward_scale=0.0, transition_scale=0.001, primal_scale=1.0),
    }
    for name, learner in learners.items():
        history = run(cmdp, learner, "fixed", episodes, 0)
        gap, cost = np.diff(history.regret, prepend=0.0), history.excess[:, 0]
        for at in (episodes // 4, episodes // 2, episodes):
            print(f"{name:28} at {at}: gap {around(gap, at):+.3f}, violation {around(cost, at):+.3f}", flush=True)
        print(f"{name:28} largest violation {cost.max():.2f}, largest gap {gap.max():.2f}", flush=True)


def control_numbers(episodes: int, seeds: Sequence[int]) -> None:
    learner = OptCMDP(1.0, 1.0, 1.0, True)
    found = [run(streaming.make(), learner, "fixed", episodes, seed) for seed in seeds]
    for at in (episodes // 6, episodes // 3, 2 * episodes // 3, episodes):
        gaps = np.mean([np.abs(np.diff(each.regret, prepend=0.0))[:at].sum() for each in found])
        over = np.mean([each.violation[at - 1] for each in found])
        print(f"OptCMDP after {at}: sum of |gap| {gaps:.0f}, violation {over:.0f}", flush=True)


PARTS: dict[str, tuple[Callable[[int, Sequence[int]], None], int]] = {
    "streaming": (streaming_numbers, 10_000),
    "thirty": (thirty_numbers, 40_000),
    "control": (control_numbers, 600),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--episodes", type=int)
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    for part in options.parts or PARTS:
        play, episodes = PARTS[part]
        print(part)
        play(options.episodes or episodes, range(options.seeds))


if __name__ == "__main__":
    main()
