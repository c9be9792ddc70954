"""A learner for somebody's own loop: ask for a policy, tell what happened."""

from __future__ import annotations

from typing import Any

from omdpd.arrays import Floats
from omdpd.learners.protocol import Learner, Report
from omdpd.problem import Feedback, Setting, checked_feedback


class Session:
    """Ask and tell: `policy()` before an episode, `update(feedback)` after it.

    >>> import numpy as np
    >>> from omdpd import BanditFeedback, ProximalOMDPD, Session, Setting, Trajectory
    >>> session = Session(ProximalOMDPD.cautious(), Setting(horizon=2, n_states=2, n_actions=2))
    >>> session.policy().shape
    (2, 2, 2)
    >>> met = Trajectory(states=np.array([0, 1]), actions=np.array([1, 0]))
    >>> session.update(BanditFeedback(met, rewards=np.array([1.0, 0.0]), costs=np.array([[0.2, -0.1]])))
    >>> session.episodes
    1
    """

    def __init__(self, learner: Learner[Any], setting: Setting) -> None:
        self.learner = learner
        self.setting = setting
        self.episodes = 0
        self._state = learner.init(setting)

    def policy(self) -> Floats:
        """The policy (H, S, A) to play in the next episode: probabilities of actions by step and state."""
        return self.learner.policy(self._state)

    def update(self, feedback: Feedback) -> None:
        """Learn from one episode; wrong feedback is refused with a sentence and changes nothing."""
        self._state = self.learner.update(self._state, checked_feedback(self.setting, feedback))
        self.episodes += 1

    def report(self) -> Report:
        """The learner's numbers: step size, weight, certificates of its solves."""
        return self.learner.report(self._state)
