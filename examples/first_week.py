"""A workshop with a queue: from sixty logged weeks of a safe policy to a plan for the next one.

Up to 29 orders wait.  Every shift 0 to 5 orders arrive; one takes all of them, half or none.  An accepted order earns
10 euros; a long queue costs overtime, a refused order may bring a complaint.  `logs.csv` has sixty weeks of fourteen
shifts; only this file, which made them, knows the truth.
"""

from pathlib import Path

import numpy as np

from omdpd import CMDP, Log, plan_from_logs

STATES, SHIFTS, SERVED = 30, 14, 2
ARRIVALS = {0: 0.15, 1: 0.2, 2: 0.25, 3: 0.2, 5: 0.2}
SHARES = (1.0, 0.5, 0.0)
BUDGET = (16.0, 6.0)  # overtime and complaints of a week


def accepted(arrivals: int, action: int) -> int:
    """How many of the arriving orders are taken."""
    return int(np.ceil(SHARES[action] * arrivals))


def law(queue: int, action: int) -> list[tuple[float, int]]:
    """Where the queue goes."""
    left = max(queue - SERVED, 0)
    return [(chance, min(left + accepted(n, action), STATES - 1)) for n, chance in ARRIVALS.items()]


def earned(queue: int, action: int) -> float:
    """Euros of a shift, in expectation."""
    return sum(chance * 10.0 * accepted(n, action) for n, chance in ARRIVALS.items())


def spent(queue: int, action: int) -> tuple[float, float]:
    """Overtime, and complaints in expectation: every other refused order, and some where many wait."""
    refused = sum(chance * (n - accepted(n, action)) for n, chance in ARRIVALS.items())
    return max(queue - 3.0, 0.0), 0.5 * refused + 0.02 * queue


def workshop() -> CMDP:
    """The truth."""
    start = np.r_[np.full(6, 1.0 / 6.0), np.zeros(STATES - 6)]
    sizes = (SHIFTS, STATES, 3)
    world = CMDP.from_functions(sizes, law, earned, spent, BUDGET, start, reward_range=(0.0, 50.0))
    return world.labelled("workshop")


def logged_policy() -> np.ndarray:
    """What was played: mostly everything while few wait, less when many do."""
    policy = np.empty((SHIFTS, STATES, 3))
    policy[:, :5], policy[:, 5:9], policy[:, 9:] = [0.6, 0.3, 0.1], [0.25, 0.5, 0.25], [0.1, 0.3, 0.6]
    return policy


def weeks(n: int, seed: int) -> list[str]:
    """Lines of logged weeks; complaints are whole, with their mean."""
    rng, policy = np.random.default_rng(seed), logged_policy()
    lines = ["week,shift,queue,action,euros,overtime,complaints,chance"]
    for week in range(n):
        queue = int(rng.integers(6))
        for shift in range(SHIFTS):
            action = int(rng.choice(3, p=policy[shift, queue]))
            arrivals = int(rng.choice(list(ARRIVALS), p=list(ARRIVALS.values())))
            taken = accepted(arrivals, action)
            complaints = rng.poisson(0.5 * (arrivals - taken) + 0.02 * queue)
            overtime = max(queue - 3, 0)
            chance = policy[shift, queue, action]
            lines.append(f"{week},{shift},{queue},{action},{10 * taken},{overtime},{complaints},{chance}")
            queue = min(max(queue - SERVED, 0) + taken, STATES - 1)
    return lines


def read() -> Log:
    """The logged weeks."""
    return Log.from_csv(
        Path(__file__).with_name("logs.csv"), costs=("overtime", "complaints"), episode="week", state="queue",
        action="action", reward="euros", step="shift", propensity="chance",
    )  # fmt: skip


if __name__ == "__main__":
    log = read()
    found = plan_from_logs(log.setting(BUDGET, n_states=STATES), log)
    print(log, found.forecast, sep="\n\n")
    print("in truth the plan", found.policy.evaluate(workshop()))
