"""The learner to start with."""

from __future__ import annotations

from omdpd.learners.proximal import ProximalOMDPD


def default(z: float = 1.0, *, stationary: bool = False) -> ProximalOMDPD:
    """Give the learner to start with, `ProximalOMDPD.standard`.

    `z` is its safety margin in standard errors; `stationary` says that the same rules hold at every step.
    """
    return ProximalOMDPD.standard(z=z, stationary=stationary)
