"""Every world as a Gymnasium environment.

    import gymnasium, omdpd.gym.env                     # importing registers the ids
    env = gymnasium.make("omdpd/Streaming-v0")
    env = gymnasium.make("omdpd.gym.env:omdpd/Grid-v0", render_mode="rgb_array")      # or so, without the import
    env = gymnasium.make("omdpd/Grid-v0", budget=0.2, horizon=15)                     # with settings of the world

Observations and actions are the numbers of the world's states and actions.  `step` answers with the mean reward of the
pair in the world's units, ``info["costs"]`` (I,) and ``info["cost"]`` (their sum; with one constraint, its cost), both
in natural units; `reset` and `step` tell ``info["step"]``, because the best policies depend on it, and `reset` tells
``info["budget"]`` (I,).  The horizon is part of the problem, so an episode terminates there; it is never truncated.
Where a world forbids actions, both tell ``info["action_mask"]`` (A,), 1 where an action may be taken next; others are
refused.
"""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from omdpd.experiments.experiment import world_named
from omdpd.experiments.registry import Registry
from omdpd.gym.contact import whole
from omdpd.play.compiled.rollout import index_of_uniform
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.report.pictures import ansi, picture


class CMDPEnv(gymnasium.Env[np.int64, np.int64]):
    """A CMDP as an environment; `world` is a CMDP, or a world's name with its settings, such as ``budget=0.2``.

    Random worlds are drawn with `world_seed`.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, world: CMDP | str, render_mode: str | None = None, world_seed: int = 0, **settings: Any) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise InvalidInputError(f"render_mode is {render_mode!r}, but must be 'ansi' or 'rgb_array'")
        if isinstance(world, str):
            said = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
            world = world_named(Registry.installed(), world, said).build(np.random.default_rng(world_seed))
        elif settings:
            raise InvalidInputError(f"{next(iter(settings))} is given beside a CMDP, which says it itself")
        self.cmdp: CMDP = world
        self.render_mode = render_mode
        self.horizon = self.cmdp.shape[0]
        self.budget = self.cmdp.limits if np.isfinite(self.cmdp.limits).all() else None
        self.observation_space = gymnasium.spaces.Discrete(self.cmdp.shape[1])
        self.action_space = gymnasium.spaces.Discrete(self.cmdp.shape[2])
        self._state, self._step = 0, 0
        self._last_action: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """A first state from the world's initial law."""
        super().reset(seed=seed)
        self._state = index_of_uniform(self.cmdp.initial, self.np_random.random())
        self._step, self._last_action = 0, None
        return np.int64(self._state), {"step": 0, "budget": self.cmdp.budget * self.cmdp.cost_scale} | self._mask()

    def _mask(self) -> dict[str, Any]:
        """What may be done next, where not everything may; at the end of an episode nothing is asked any more."""
        mask = self.cmdp.mask
        if mask is None:
            return {}
        return {"action_mask": mask.allowed[min(self._step, len(mask.allowed) - 1), self._state].astype(np.int8)}

    def step(self, action: Any) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """One step; terminates at the horizon."""
        H, _, A = self.cmdp.shape
        a = whole("the action", action)
        if not 0 <= a < A:
            raise InvalidInputError(f"the action is {action}, but must lie between 0 and {A - 1}")
        if self._step >= H:
            raise InvalidInputError(f"the episode is over after {H} steps: call reset")
        h, s = self._step, self._state
        if not self._mask().get("action_mask", np.ones(A))[a]:
            raise InvalidInputError(f"action {a} is not allowed in state {s} at step {h} (see info['action_mask'])")
        low, high = self.cmdp.reward_range
        costs = self.cmdp.cost[:, h, s, a] * self.cmdp.cost_scale
        successors, chances = self.cmdp.laws.law(h, s, a)
        self._state = int(successors[index_of_uniform(chances, self.np_random.random())])
        self._step, self._last_action = h + 1, a
        reward = float(low + (high - low) * self.cmdp.reward[h, s, a])
        info = {"cost": float(costs.sum()), "costs": costs, "step": h + 1} | self._mask()
        return np.int64(self._state), reward, h + 1 == H, False, info

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Text, or a picture (rows, columns, 3): the map, or the states in a row."""
        if self.render_mode == "ansi":
            return ansi(self.cmdp, self._state, self._step, self._last_action)
        return picture(self.cmdp, self._state) if self.render_mode == "rgb_array" else None


def env_id(world: str) -> str:
    """The id of a world's environment.

    >>> env_id("mars_rover")
    'omdpd/MarsRover-v0'
    """
    return f"omdpd/{''.join(word.capitalize() for word in world.split('_'))}-v0"


def register() -> None:
    """Make every world's id known to Gymnasium; ids that are known already stay."""
    for world in Registry.installed().complete("worlds"):
        if env_id(world) not in gymnasium.registry:
            gymnasium.register(env_id(world), entry_point="omdpd.gym.env:CMDPEnv", kwargs={"world": world})


register()
