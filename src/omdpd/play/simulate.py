"""The only door between the truth and a learner: play an episode, and say what may be seen of it."""

from __future__ import annotations

import numpy as np

from omdpd.play.compiled.episode import play_judge
from omdpd.play.compiled.rollout import listed_trajectory, trajectory
from omdpd.play.judging import Assessment, assess
from omdpd.problem.arrays import Floats, Integers, one_step
from omdpd.problem.cmdp import CMDP, Noise, Round
from omdpd.problem.laws import DenseLaws, Laws, SparseLaws
from omdpd.problem.setting import BanditFeedback, Feedback, FeedbackKind, FullFeedback, Trajectory
from omdpd.solvers.sweeps import lists_of

# A Beta observation with mean m keeps this many pseudo-counts, so its variance is m(1-m)/3 on the unit interval.
BETA_COUNTS = 2.0
# Laws that are lists are rolled out as lists where their table would have more entries (8 MB): there the few
# microseconds that one pass saves do not count.
MAX_TABLE = 2**20


def play_episode(cmdp: CMDP, round_: Round, policy: Floats, kind: FeedbackKind, rng: np.random.Generator) -> Feedback:
    """Play `policy` for one episode and reveal what feedback of this kind shows.

    The number of random numbers taken does not depend on the policy, so that two learners with one seed meet the same
    luck.
    """
    H = cmdp.shape[0]
    moves = rng.random((H, 2))
    draws = rng.random((1 + cmdp.n_constraints, H))
    states, actions = trajectory_under(cmdp.laws, policy, cmdp.initial, moves)
    episode = Trajectory(states, actions)
    steps = np.arange(H)
    rewards = observe(round_.reward[steps, states, actions], draws[0], 0.0, 1.0, round_.reward_noise)
    if kind == "full":
        return FullFeedback(episode, rewards, round_.cost)
    means = round_.cost[:, steps, states, actions]
    return BanditFeedback(episode, rewards, observe_costs(round_, means, draws[1:]))


def play_judged(
    cmdp: CMDP, round_: Round, policy: Floats, occupancy: Floats, kind: FeedbackKind, rng: np.random.Generator
) -> tuple[Feedback, Assessment]:
    """What feedback of this kind shows of one episode of `policy`, and how its true occupancy is judged, in one pass.

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


def trajectory_under(laws: Laws, policy: Floats, initial: Floats, uniforms: Floats) -> tuple[Integers, Integers]:
    """States and actions of one episode from the uniform numbers (H, 2)."""
    if isinstance(laws, DenseLaws):
        return trajectory(policy, laws.expand(), initial, uniforms)
    return listed_trajectory(*lists_of(laws), np.ascontiguousarray(policy), initial, uniforms)


def observe_costs(round_: Round, means: Floats, uniforms: Floats) -> Floats:
    """Draw observed costs (I, H): in [-1, 1], or between the least and the largest of a constraint's table."""
    if round_.cost_noise != "own-range":
        return observe(means, uniforms, -1.0, 1.0, round_.cost_noise)
    tables = one_step(round_.cost, 1)
    low, high = tables.min(axis=(1, 2, 3))[:, None], tables.max(axis=(1, 2, 3))[:, None]
    share = (means - low) / np.where(high > low, high - low, 1.0)
    return np.where(uniforms < share, high, low)


def observe(means: Floats, uniforms: Floats, low: float, high: float, noise: Noise) -> Floats:
    """Observations in [low, high] with the given means, one uniform number each.

    >>> observe(np.array([0.25, 0.25]), np.array([0.2, 0.3]), 0.0, 1.0, "two-point")
    array([1., 0.])
    """
    if noise == "exact":
        return means
    share = np.clip((means - low) / (high - low), 0.0, 1.0)
    if noise == "two-point":
        return np.where(uniforms < share, high, low)
    from scipy.stats import beta  # slow to import, and only this branch needs it

    inside = np.clip(share, 1e-9, 1.0 - 1e-9)
    drawn = beta.ppf(uniforms, BETA_COUNTS * inside, BETA_COUNTS * (1.0 - inside))
    return np.asarray(low + (high - low) * drawn)
