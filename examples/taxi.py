"""Gymnasium's taxi (500 states) with a fuel budget.

The destination never changes within an episode, so it is four problems of 101 states.  An episode takes about 0.1 s:
docs/worlds.md says why.
"""

from omdpd import ProximalOMDPD, plot, run
from omdpd.gym import from_gymnasium
from omdpd.worlds.components import parts_of

fuel = lambda state, action, next_state: float(action < 4)  # noqa: E731  (moving burns one unit)
taxi = from_gymnasium("Taxi-v4", horizon=15, cost=fuel, budget=9.0)
learner = ProximalOMDPD.cautious(stationary=True)
histories = [run(part.cmdp, learner, n_episodes=200, label=f"destination {i}") for i, part in enumerate(parts_of(taxi))]
plot(histories, "taxi.png", "Taxi-v4 on nine units of fuel")
