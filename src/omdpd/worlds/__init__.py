"""Worlds to play in.  `WORLDS` names them; a factory takes settings, and first `rng` where the world is drawn."""

from __future__ import annotations

from collections.abc import Callable

from omdpd.problem.cmdp import CMDP
from omdpd.worlds import (
    cyclic,
    frozen_lake,
    garnet,
    grid,
    intrusion,
    inventory,
    job_queue,
    paradox,
    queue,
    random_dirichlet,
    rare,
    streaming,
)

WORLDS: dict[str, Callable[..., CMDP]] = {
    "random_dirichlet": random_dirichlet.make,
    "correlated": random_dirichlet.make_correlated,
    "garnet": garnet.make,
    "streaming": streaming.make,
    "inventory": inventory.make,
    "queue": queue.make,
    "job_queue": job_queue.make,
    "grid": grid.make,
    "mars_rover": grid.make_rover,
    "frozen_lake": frozen_lake.make,
    "paradox": paradox.make,
    "cyclic": cyclic.make,
    "intrusion": intrusion.make,
    "chain": rare.make_chain,
    "gathering": rare.make_gathering,
}
