"""The loss of every pair from one trajectory, with implicit exploration, and the step that goes with it.

    lhat_k(h,s,a) = (1 - r) 1{visited} / (u_k(h,s,a) + gamma),   u_k = largest occupancy of the played policy in the box
    eta = gamma   = sqrt(H u / (K |X| A)),   u = ln(8 I |X|^2 A K / delta),   |X| = H S

Where the box holds the truth the mean of lhat is at most the loss, since u_k is then no smaller than the occupancy;
gamma keeps lhat from exploding at pairs that are rarely reached.  The published method has one number for both; a
longer step with the same exploration, or less exploration at the same step, may serve better within a few thousand
episodes, so that learners may set the two apart.
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.boxes import visited_bound
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
