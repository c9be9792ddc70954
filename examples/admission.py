"""Admission control of a server farm: 2000 states, 50 steps, two budgets, nothing written as a table.

A backlog of up to 1999 jobs.  Every step 0 to 60 jobs arrive; one admits all or half of them and runs one cluster (20
jobs a step) or both (50 jobs a step).  A short backlog earns; energy and refused jobs have a budget per episode.
"""

from omdpd import CMDP, Labels

CAPACITY, ARRIVALS = 1999, {0: 0.1, 20: 0.4, 40: 0.4, 60: 0.1}
ACTIONS = {"admit all, one cluster": (1.0, 20), "admit all, both": (1.0, 50), "admit half, one": (0.5, 20),
           "admit half, both": (0.5, 50)}  # fmt: skip
MEAN_ARRIVALS = sum(chance * jobs for jobs, chance in ARRIVALS.items())


def law(backlog: int, action: int) -> list[tuple[float, int]]:
    """Where the backlog goes, and how likely that is."""
    share, speed = list(ACTIONS.values())[action]
    left = max(backlog - speed, 0)
    return [(chance, min(left + int(share * jobs), CAPACITY)) for jobs, chance in ARRIVALS.items()]


def earned(backlog: int, action: int) -> float:
    """1 without a backlog, 0 with a full one."""
    return 1.0 - backlog / CAPACITY


def spent(backlog: int, action: int) -> tuple[float, float]:
    """Energy (a cluster takes 1 a step), and jobs refused in expectation."""
    share, speed = list(ACTIONS.values())[action]
    return (1.0 if speed == 20 else 2.0), (1.0 - share) * MEAN_ARRIVALS


start = [1.0 if backlog == 800 else 0.0 for backlog in range(CAPACITY + 1)]
farm = CMDP.from_functions((50, CAPACITY + 1, 4), law, earned, spent, [80.0, 400.0], start)
farm = farm.labelled("admission", Labels(actions=tuple(ACTIONS), constraints=("energy", "refused jobs")))
solution = farm.solve()
print(solution)
print(solution.policy.evaluate(farm))
for step, backlog in ((0, 800), (15, 500), (30, 200), (45, 40)):
    shares = zip(ACTIONS, solution.policy.at(step, backlog), strict=True)
    print(f"step {step}, {backlog} jobs:", ", ".join(f"{name} ({share:.3g})" for name, share in shares if share > 0.0))
