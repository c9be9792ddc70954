"""Gymnasium's taxi with a fuel budget, for the passengers of one destination (101 of its 500 states).

An episode takes seconds: see docs/worlds.md for why.
"""

from omdpd import ProximalOMDPD, plot, run
from omdpd.parts import parts_of
from omdpd.worlds.gymnasium import from_gymnasium

fuel = lambda state, action, next_state: float(action < 4)  # noqa: E731  (moving burns one unit)
taxi = from_gymnasium("Taxi-v4", horizon=15, cost=fuel, budget=9.0)
part = parts_of(taxi)[0]  # the destination never changes within an episode: four problems, not one
history = run(part.cmdp, ProximalOMDPD.cautious(stationary=True), n_episodes=200)
plot([history], "taxi.png", "Taxi-v4, one destination")
