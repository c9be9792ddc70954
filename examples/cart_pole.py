"""Cart and pole, cut into cells: keep the pole up, and leave the middle of the track in at most 3 of 30 steps."""

import gymnasium

from omdpd import ProximalOMDPD
from omdpd.gym import Bins, learn, plot_learned

cells = Bins.even(low=[-0.6, -0.15, -1.5], high=[0.6, 0.15, 1.5], counts=[3, 6, 6])
learned = learn(
    gymnasium.make("CartPole-v1"),
    ProximalOMDPD.standard(stationary=True),
    n_episodes=150,
    horizon=30,
    budget=3.0,
    state_of=lambda seen: cells(seen[[0, 2, 3]]),
    n_states=cells.n_states,
    observation_cost=lambda seen, action, then: float(abs(then[0]) > 0.2),
    checkpoint="cart_pole",
)
print(learned)
print("without learning:", learned.evaluate(n_episodes=50))
learned.save("cart_pole.npz")
plot_learned(learned, "cart_pole.png", "CartPole-v1 in 108 cells")
