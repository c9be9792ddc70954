"""A learner of your own: it plans for reward less priced cost; prices rise by dual ascent.

In Python it goes wherever a learner goes; as a plugin it has a name in experiments, too:

    omdpd run experiment.toml --plugin examples/own_learner.py

with `learners = [{name = "DualAscent", step = 0.2}]` in the file.
"""

from dataclasses import dataclass, replace

import numpy as np

from omdpd import BanditFeedback, Setting
from omdpd.learners import Card, Counts, Factor, Report, Settings, greedy_policy, positive, value_of_policy


@dataclass(frozen=True, eq=False)
class State:
    """What it carries between episodes: arrays, numbers and dataclasses of them."""

    setting: Setting
    counts: Counts
    prices: np.ndarray
    policy: np.ndarray


@dataclass(frozen=True)
class DualAscent(Settings):
    """Plan for reward less priced cost; a price rises while its budget is violated."""

    step: float = positive(0.1)

    card = Card("greedy for reward less priced cost", ("bandit",), "none", "an example")
    factors = (Factor("step", "step"),)  # what a fair comparison tunes

    def init(self, setting: Setting) -> State:
        """Nothing is known and nothing costs."""
        H, S, A = setting.shape
        uniform = np.full((H, S, A), 1.0 / A)
        return State(setting, Counts.empty(setting), np.zeros(setting.n_constraints), uniform)

    def policy(self, state: State) -> np.ndarray:
        """The plan of the last update."""
        return state.policy.copy()

    def update(self, state: State, feedback: BanditFeedback) -> State:
        """Count, move the prices by the cost of the policy that was played, plan again."""
        counts = state.counts.add(feedback)
        p, cost = counts.transition_mean(), counts.cost_mean()
        paid = np.array([value_of_policy(state.policy, p, state.setting.mu, d) for d in cost])
        prices = np.maximum(state.prices + self.step * paid, 0.0)
        hopeful = counts.reward_mean() + 1.0 / np.sqrt(np.maximum(counts.visits, 1.0))
        policy, _ = greedy_policy(p, hopeful - np.tensordot(prices, cost, axes=1))
        return replace(state, counts=counts, prices=prices, policy=policy)

    def report(self, state: State) -> Report:
        """The largest price, for the record."""
        return Report(weight=float(state.prices.max()))


LEARNERS = {"DualAscent": DualAscent}

if __name__ == "__main__":
    from omdpd import ProximalOMDPD, plot, run
    from omdpd.testing import check_learner
    from omdpd.worlds import WORLDS

    check_learner(DualAscent())
    world = WORLDS["streaming"]()
    learners = (DualAscent(), ProximalOMDPD.standard())
    histories = [run(world, learner, "noisy", n_episodes=500) for learner in learners]
    for history in histories:
        print(history)
    plot(histories, "own_learner.png", "an own learner beside ours")
