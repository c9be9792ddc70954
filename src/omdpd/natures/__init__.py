"""Natures: what picks the costs, and sometimes the rewards or the kernel, of every episode.

`NATURES` names them; a factory takes (cmdp, seed, settings).
"""

from __future__ import annotations

from collections.abc import Callable

from omdpd.natures import fixed, moving, pool, revealed, rewards
from omdpd.natures.protocol import Nature
from omdpd.problem.cmdp import CMDP

NATURES: dict[str, Callable[..., Nature]] = {
    "fixed": fixed.make,
    "noisy": fixed.make_noisy,
    "scaled": revealed.make_scaled,
    "pool": pool.make,
    "adaptive": pool.make_adaptive,
    "anchored": revealed.make_anchored,
    "drifting": pool.make_drifting,
    "independent": revealed.make_independent,
    "natural": pool.make_natural,
    "hostile": pool.make_hostile,
    "switching_rewards": rewards.make_switching,
    "drifting_rewards": rewards.make_drifting,
    "adaptive_rewards": rewards.make_adaptive,
    "unrevealed": pool.make_unrevealed,
    "moving": moving.make,
}


def natures_for(cmdp: CMDP) -> tuple[str, ...]:
    """The natures that suit a world: stochastic costs, its own scenarios if it names some, and the pools."""
    own = () if cmdp.scenarios is None else ("natural", "hostile")
    return ("fixed", "noisy", *own, "pool", "adaptive", "drifting", "anchored")
