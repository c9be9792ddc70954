"""Gymnasium's taxi, all of its 500 states, with a fuel budget.

An episode takes tens of milliseconds, because only what was visited is kept; tables take seconds (docs/sizes.md).
"""

from omdpd import ProximalOMDPD, plot, run
from omdpd.gym import from_gymnasium

fuel = lambda state, action, next_state: float(action < 4)  # noqa: E731  (moving burns one unit)
taxi = from_gymnasium("Taxi-v4", horizon=15, cost=fuel, budget=9.0)
history = run(taxi, ProximalOMDPD.standard(stationary=True), n_episodes=1500)
print(f"best safe value {history.comparator.value:.2f}; last episodes {history.values[-100:].mean():.2f}")
plot([history], "taxi.png", "Taxi-v4 on nine units of fuel")
