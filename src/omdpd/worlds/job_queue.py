"""Jobs to be done while working is dear at midday: a constraint on progress.

| what | law |
|---|---|
| state | jobs left, 0 .. n_jobs - 1 (9); starts full |
| action 0, rest | a new job comes with probability `arrival` (0.1) unless the queue is full |
| action 1, work | a job is finished with probability `success` (0.9) |
| reward | 1 - 0.9 a in steps 3 .. 6 (counted from 0, of 10), 1 - 0.2 a outside: work is dear at midday |
| cost | -(jobs before - jobs after) / 2 in expectation: progress is a negative cost |
| budget | -`progress` (-3.5): the queue must shrink by 7 jobs in expectation |
| scenarios | when progress counts: 1.1 times in one half of the day (morning or evening), 0.9 times in the other |

Source: the job-queue example of Ghosh, Zhou and Shroff (2022, 2024) for the reward, the utility and the bound; the
chances of finishing and of arrivals are ours.
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import positive_integer
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.worlds.tables import dear_by_windows, one_hot, probability, walk_laws

MORE, LESS = 1.1, 0.9


def make(
    n_jobs: int = 10, horizon: int = 10, success: float = 0.9, arrival: float = 0.1, progress: float = 3.5
) -> CMDP:
    """Jobs to be done while working is dear at midday: a constraint on progress."""
    S, H = positive_integer("n_jobs", n_jobs), positive_integer("horizon", horizon)
    done, come = probability("success", success), probability("arrival", arrival)
    laws = walk_laws(S, H, [come, 0.0], [0.0, done])
    jobs = np.arange(S, dtype=np.float64)
    cost = -(jobs[:, None] - laws.backward(jobs, 0)) / 2.0
    steps = np.arange(H)
    dear = (steps >= 3 * H // 10) & (steps <= 6 * H // 10)
    price = np.where(dear, 0.9, 0.2)
    reward = 1.0 - price[:, None, None] * np.array([0.0, 1.0]) * np.ones((H, S, 1))
    labels = Labels(tuple(f"{s} jobs" for s in range(S)), ("rest", "work"), ("progress (negative)",))
    cmdp = CMDP.from_arrays(laws, reward, cost, -progress, one_hot(S, S - 1), H)
    halves = dear_by_windows(cost, H, ("morning counts", "evening counts"), MORE, LESS)
    return cmdp.labelled("job_queue", labels).with_scenarios(halves)
