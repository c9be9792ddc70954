"""One episode played, shown and judged in one compiled pass: what `play_episode` and `assess` say one by one."""

from __future__ import annotations

import numpy as np

from omdpd.play.compiled.episode import play_judge
from omdpd.play.judging import Assessment, assess
from omdpd.play.simulate import observe, observe_costs, play_episode
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.laws import SparseLaws
from omdpd.problem.setting import BanditFeedback, Feedback, FeedbackKind, FullFeedback, Trajectory

# Laws that are lists are rolled out as lists where their table would have more entries (8 MB): there the few
# microseconds that one pass saves do not count.
MAX_TABLE = 2**20


def play_judged(
    cmdp: CMDP, round_: Round, policy: Floats, occupancy: Floats, kind: FeedbackKind, rng: np.random.Generator
) -> tuple[Feedback, Assessment]:
    """What feedback of this kind shows of one episode of `policy`, and how its true occupancy is judged.

    As in `play_episode` the number of random numbers taken depends on the sizes alone; they are the same ones.
    """
    if not has_tables(cmdp, round_):
        return play_episode(cmdp, round_, policy, kind, rng), assess(round_, occupancy)
    n, H, _, _ = round_.cost.shape
    uniforms = rng.random((3 + n) * H)
    reward_noise, cost_noise = round_.reward_noise, round_.cost_noise
    states, actions = np.empty(H, np.int64), np.empty(H, np.int64)
    rewards, costs, excess = np.empty(H), np.empty((n, H)), np.empty(n)
    value = play_judge(
        policy, occupancy, cmdp.transition, cmdp.initial, round_.reward, round_.cost, uniforms,
        reward_noise == "two-point", cost_noise == "two-point", states, actions, rewards, costs, excess,
    )  # fmt: skip
    if reward_noise == "beta":
        rewards = observe(rewards, uniforms[2 * H : 3 * H], 0.0, 1.0, reward_noise)
    judged, walk = Assessment(value, excess), Trajectory(states, actions)
    if kind == "full":
        return FullFeedback(walk, rewards, round_.cost), judged
    if cost_noise in ("beta", "own-range"):
        costs = observe_costs(round_, costs, uniforms[3 * H :].reshape(-1, H))
    return BanditFeedback(walk, rewards, costs), judged


def has_tables(cmdp: CMDP, round_: Round) -> bool:
    """Whether the truth and the round are plain tables that one pass can read."""
    H, S, A = cmdp.shape
    if isinstance(cmdp.laws, SparseLaws) and H * S * A * S > MAX_TABLE:
        return False
    return bool(round_.reward.flags.c_contiguous and round_.cost.flags.c_contiguous)
