"""A world that every learner must solve: three actions that lead nowhere, one of them too dear to be played always.

Action 0 earns little, action 1 earns well and is safe, action 2 earns most and exceeds the budget: per step
r = (.1, .6, 1), d = (-.4, -.2, .6).  The best safe policy plays action 2 a quarter of the time and earns .7 a step.
"""

from __future__ import annotations

import numpy as np

from omdpd.learners.needs import SafePolicy
from omdpd.problem.cmdp import CMDP
from omdpd.problem.setting import BanditFeedback, FullFeedback, Trajectory
from omdpd.solvers.compiled.flow import occupancy_of_policy

HORIZON, STATES, ACTIONS = 3, 2, 3
REWARD, COST = np.array([0.1, 0.6, 1.0]), np.array([-0.4, -0.2, 0.6])
BEST = 0.7 * HORIZON


def trivial_world():
    """Both states alike; the next state is drawn evenly."""
    p = np.full((STATES, ACTIONS, STATES), 1.0 / STATES)
    tables = np.tile(REWARD, (STATES, 1)), np.tile(COST, (STATES, 1))
    return CMDP.from_arrays(p, *tables, budget=0.0, horizon=HORIZON)


def known_safe():
    """Action 0 always."""
    policy = np.zeros((HORIZON, STATES, ACTIONS))
    policy[..., 0] = 1.0
    return SafePolicy(policy, np.array([COST[0] * HORIZON]))


def late_averages(learner, kind, episodes, seed=0):
    """Mean value, mean excess and mean violation over the last quarter of a run."""
    cmdp = trivial_world()
    rng = np.random.default_rng(seed)
    state = learner.init(cmdp.setting(episodes, kind))
    values, excesses = [], []
    for _ in range(episodes):
        policy = learner.policy(state)
        q = occupancy_of_policy(policy, cmdp.transition, cmdp.initial)
        values.append(float((cmdp.reward * q).sum()))
        excesses.append(float((cmdp.excess[0] * q).sum()))
        state = learner.update(state, _met(cmdp, policy, kind, rng))
    late = episodes // 4
    return np.mean(values[-late:]), np.mean(excesses[-late:]), np.mean(np.maximum(excesses[-late:], 0.0))


def _met(cmdp, policy, kind, rng):
    states = rng.integers(STATES, size=HORIZON)
    actions = np.array([rng.choice(ACTIONS, p=policy[h, s]) for h, s in enumerate(states)])
    met = Trajectory(states, actions)
    at = (np.arange(HORIZON), states, actions)
    if kind == "full":
        return FullFeedback(met, cmdp.reward[at], cmdp.excess)
    return BanditFeedback(met, cmdp.reward[at], cmdp.excess[(slice(None), *at)])
