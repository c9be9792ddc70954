"""Gymnasium's frozen lake, judged exactly: reach the goal, and fall into a hole in at most 5 % of the episodes."""

from omdpd import ProximalOMDPD, plot, run
from omdpd.gym import from_gymnasium


def fall(state: int, action: int, next_state: int) -> float:
    """1 when the step ends in one of the four holes."""
    return float(next_state in (5, 7, 11, 12))


lake = from_gymnasium("FrozenLake-v1", horizon=20, cost=fall, budget=0.05)
history = run(lake, ProximalOMDPD.balanced(stationary=True), n_episodes=1000)
print(f"best safe value {lake.solve().value:.4f}; last episodes {history.values[-100:].mean():.4f}")
plot([history], "frozen_lake.png", "FrozenLake-v1")
