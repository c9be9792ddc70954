"""The loss of every pair from one trajectory, with implicit exploration, and the step that goes with it.

    lhat_k(h,s,a) = (1 - r) 1{visited} / (u_k(h,s,a) + gamma),   u_k = largest occupancy of the played policy in the box
    eta = gamma   = sqrt(H u / (K |X| A)),   u = ln(8 I |X|^2 A K / delta),   |X| = H S

Where the box holds the truth the mean of lhat is at most the loss, since u_k is then no smaller than the occupancy;
gamma keeps lhat from exploding at pairs that are rarely reached.  The published method has one number for both; a
longer step with the same exploration, or less exploration at the same step, may serve better within a few thousand
episodes, so that learners may set the two apart.

Policy optimisation (PO-DB of Luo, Wei, Lee, 2021) takes the loss to go, and a bonus for what u leaves open:

    gains(h,s,a) = B(h,s,a) - (loss to go) 1{visited} / (u + gamma),    B = b + (1 + 1/H) max_{p in box} E_{p, pi} B'
    b(h,s)       = sum_a pi(a|s) (3 gamma H + H (u - w)) / (u + gamma),   w = least occupancy of the policy in the box
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.boxes import dilated_bonus, occupancy_range, visited_bound
from omdpd.solvers.regions import Box


def exploring_loss(setting: Setting, box: Box, policy: Floats, feedback: Feedback, gamma: float) -> Floats:
    """lhat_k of the policy that was played, under the box of the data before it; zero where the episode did not go."""
    states, actions = feedback.trajectory.states, feedback.trajectory.actions
    bound = visited_bound(policy, box.lower, box.upper, setting.mu, states, actions)
    loss = np.zeros(setting.shape)
    loss[np.arange(setting.horizon), states, actions] = (1.0 - feedback.rewards) / (bound + gamma)
    return loss


def exploring_step(setting: Setting, n_episodes: int, delta: float) -> float:
    """eta = gamma of K episodes."""
    H, S, A = setting.shape
    u = np.log(8.0 * setting.n_constraints * (H * S) ** 2 * A * n_episodes / delta)
    return float(np.sqrt(u / (n_episodes * S * A)))


def dilated_gains(
    setting: Setting, box: Box, policy: Floats, feedback: Feedback, loss: Floats, gamma: float, bonus_scale: float
) -> Floats:
    """What PO-DB moves a policy by after an episode with these losses (H,) in [0, 1]; `bonus_scale` multiplies b."""
    H, states, actions = setting.horizon, feedback.trajectory.states, feedback.trajectory.actions
    w, u = occupancy_range(policy, box.lower, box.upper, setting.mu)
    bonus = bonus_scale * (policy * (3.0 * gamma * H + H * (u - w)) / (u + gamma)).sum(axis=-1)
    gains = dilated_bonus(policy, box.lower, box.upper, bonus, 1.0 + 1.0 / H)
    at = (np.arange(H), states, actions)
    gains[at] -= np.cumsum(loss[::-1])[::-1] / (u[at] + gamma)
    return gains
