"""Runs of the default learner that version 0.2 left at several episodes, and what it made of the next sixty.

Its code wrote `stored/standard-0.2` once, with ``python -m tests.recorded.standard_0_2``; later code keeps states of
another form, and only reads them.
"""

from __future__ import annotations

import json
import math
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from omdpd import CMDP
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.natures.fixed import Fixed
from omdpd.natures.pool import Pool, draw_pool
from omdpd.play.loop import Progress, play, start_of_run
from omdpd.play.scene import Scene
from omdpd.storage.packing import pack

FOLDER = Path(__file__).with_name("stored") / "standard-0.2"
EPISODES, MORE, SEED = 400, 60, 20
# Before the first episode, while tables and margins are new, and late.
LEFT_AT = (0, 1, 9, 300)
NUMBERS = (
    "value_sum", "violation_sum", "step_size", "weight", "certified_regret", "certified_violation",
    "planned_value_sum", "planned_violation_sum",
)  # fmt: skip


def scenes() -> dict[str, Scene]:
    """Costs that are met on the way, and more tables of two constraints than are remembered."""
    rng, found = np.random.default_rng(11), {}
    S, A, H = 2, 2, 3
    transition, reward, cost = rng.dirichlet(np.ones(S), (H, S, A)), rng.random((H, S, A)), rng.random((2, H, S, A))
    one = CMDP.from_arrays(transition, reward, cost[:1], 0.4 * H)
    two = CMDP.from_arrays(transition, reward, cost, np.full(2, 0.5 * H))
    met, revealed = Fixed(one, "two-point", "two-point"), Pool(two, 3, draw_pool(two, 3, 4))
    found["bandit"] = Scene(one, met, ProximalOMDPD.settling(), EPISODES, {})
    found["pool"] = Scene(two, revealed, ProximalOMDPD.settling(memory=2), EPISODES, {})
    return found


def continued(scene: Scene, start: Progress) -> dict[str, Any]:
    """The values of the next episodes, and the numbers of the last row; random numbers are of that start alone."""
    played = list(islice(play(scene, start, np.random.default_rng(start.k), bool), MORE))
    row = played[-1][1]
    return {"values": [value for value, _, _ in played], **{name: getattr(row, name) for name in NUMBERS}}


def stored(name: str, k: int) -> tuple[Any, dict[str, np.ndarray]]:
    """The tree and the arrays of (state, totals) that were left at episode k."""
    with np.load(FOLDER / f"{name}.npz") as file:
        form, numbers = json.loads(file[f"form {k}"].tobytes()), file[f"numbers {k}"]
    sizes = [math.prod(shape) for _, shape, _ in form["arrays"]]
    parts = np.split(numbers, np.cumsum(sizes)[:-1])
    arrays = {
        key: part.reshape(shape).astype(kind) for (key, shape, kind), part in zip(form["arrays"], parts, strict=True)
    }
    return form["tree"], arrays


def main() -> None:
    """Write the files: all numbers of a state as one array, so that they are small."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, scene in scenes().items():
        told, every, now, rng = {}, {}, start_of_run(scene), np.random.default_rng(SEED)
        for k in LEFT_AT:
            for _, _, after in islice(play(scene, now, rng, bool), k - now.k):
                now = after
            tree, arrays = pack((now.learner_state, now.totals))
            form = {"tree": tree, "arrays": [(key, each.shape, each.dtype.str) for key, each in arrays.items()]}
            every[f"form {k}"] = np.frombuffer(json.dumps(form).encode(), np.uint8)
            every[f"numbers {k}"] = np.concatenate([np.ravel(each).astype(float) for each in arrays.values()])
            told[k] = continued(scene, Progress(now.learner_state, now.totals, (), 0.0))
        np.savez_compressed(FOLDER / f"{name}.npz", **every)
        (FOLDER / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
