"""A machine of one's own: run it fast or slow, repair it, and keep its noise within a budget."""

import numpy as np

from omdpd import CMDP, ProximalOMDPD, plot, run

fast, slow, repair = [[0.6, 0.4], [0.0, 1.0]], [[0.9, 0.1], [0.0, 1.0]], [[1.0, 0.0], [0.8, 0.2]]
transition = np.stack([fast, slow, repair], axis=1)  # (state, action, next state); states: well, worn
reward, noise = [[1.0, 0.6, 0.0], [0.3, 0.2, 0.0]], [[3.0, 1.0, 2.0], [4.0, 2.0, 2.0]]
cmdp = CMDP.from_arrays(transition, reward, noise, budget=12.0, initial=[1, 0], horizon=8)
history = run(cmdp, ProximalOMDPD.standard(), n_episodes=1000)
print(history.policy[0].round(2), history.scores)
plot([history], "own_arrays.png", "A machine of one's own")
