"""Gymnasium's taxi, all of its 500 states, with a fuel budget.

An episode takes tens of milliseconds, because only what was visited is kept; tables take seconds (docs/sizes.md).
"""

from omdpd import ProximalOMDPD, Uniform, plot, run
from omdpd.gym import from_gymnasium

fuel = lambda state, action, next_state: float(action < 4)  # noqa: E731  (moving burns one unit)
taxi = from_gymnasium("Taxi-v4", horizon=15, cost=fuel, budget=9.0)
history = run(taxi, ProximalOMDPD.standard(stationary=True), n_episodes=1500)
best, at_random = taxi.solve().value, run(taxi, Uniform(), n_episodes=1).values[0]
print(f"best safe value {best:.2f}; last episodes {history.values[-100:].mean():.2f}; at random {at_random:.2f}")
plot([history], "taxi.png", "Taxi-v4 on nine units of fuel")
