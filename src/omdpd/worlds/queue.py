"""A single-server queue with admission and service control: two constraints.

| what | law |
|---|---|
| state | customers waiting, 0 .. capacity (5); starts empty |
| action | a service probability (0.2, 0.5 or 0.8) and an admission probability (0.3 or 0.9): action = 2 * service + admission |
| transition | with service u and admission v: down by one with (1 - v) u, up by one with v (1 - u), else unchanged; cut off at both ends |
| reward | 1 - customers / capacity (short queues are good) |
| cost 0, service effort | u; budget `service_budget` (4.0) |
| cost 1, refusals | 1 - v; budget `refusal_budget` (3.0) |
| scenarios | the tariff of effort and refusals: effort dear and refusals cheap early, the other way round, or both dear late |

Source: the control problem of chapter 5 of Altman's book on constrained Markov decision processes, with a finite horizon.
"""  # noqa: E501

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import positive_integer
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.worlds.tables import by_windows, one_hot, walk_laws

SERVICE = (0.2, 0.5, 0.8)
ADMISSION = (0.3, 0.9)
DEAR, CHEAP = 1.2, 0.8


def make(capacity: int = 5, horizon: int = 10, service_budget: float = 4.0, refusal_budget: float = 3.0) -> CMDP:
    """Admission and service in a single-server queue: two constraints."""
    S, H = positive_integer("capacity", capacity) + 1, positive_integer("horizon", horizon)
    pairs = [(u, v) for u in SERVICE for v in ADMISSION]
    A = len(pairs)
    laws = walk_laws(S, H, [v * (1.0 - u) for u, v in pairs], [(1.0 - v) * u for u, v in pairs])
    reward = np.repeat(1.0 - np.arange(S)[:, None] / (S - 1.0), A, axis=1)
    effort = np.tile([u for u, _ in pairs], (S, 1))
    refusal = np.tile([1.0 - v for _, v in pairs], (S, 1))
    labels = Labels(
        tuple(f"{s} waiting" for s in range(S)),
        tuple(f"serve {u:g}, admit {v:g}" for u, v in pairs),
        ("service effort", "refusals"),
    )
    cmdp = CMDP.from_arrays(laws, reward, [effort, refusal], [service_budget, refusal_budget], one_hot(S, 0), H)
    first, second = by_windows(H, ("first", "second"), DEAR, CHEAP).values()
    tariffs = {
        "dear effort early": (first, second),
        "dear refusals early": (second, first),
        "dear late": (second, second),
    }
    return cmdp.labelled("queue", labels).with_scenarios(
        {name: np.stack([e[:, None, None] * effort, f[:, None, None] * refusal]) for name, (e, f) in tariffs.items()}
    )
