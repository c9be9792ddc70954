"""The frozen lake without its table: what is seen of an episode is all there is."""

import gymnasium

from omdpd import ProximalOMDPD
from omdpd.gym import learn, plot_learned

env = gymnasium.make("FrozenLake-v1", is_slippery=False)
fall = lambda state, action, next_state: float(next_state in (5, 7, 11, 12))  # noqa: E731
learned = learn(env, ProximalOMDPD.cautious(stationary=True), n_episodes=1000, horizon=12, budget=0.05, cost=fall)
reached, fell = learned.rewards[-100:].mean(), learned.costs[-100:].mean()
print(f"of the last 100 episodes {reached:.0%} reached the goal, {fell:.0%} fell")
plot_learned(learned, "frozen_lake_unknown.png", "FrozenLake-v1 without its table")
