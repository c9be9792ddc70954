"""What an environment answers, checked: what is not as Gymnasium asks for ends in a sentence that says when it came.

reset(seed) -> observation, info
step(action) -> observation, reward, terminated, truncated, info        (safety-gymnasium: cost after reward)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import InvalidInputError, numbers, shown
from omdpd.problem.strangers import strangers_code

# Episodes that nothing is learnt from, and those that ranges are found with, have luck of their own.
EVALUATED, TRIED = 0, 1


@dataclass(frozen=True, eq=False)
class StepAnswer:
    """What a step came to; `cost` is None unless the environment gave six values."""

    observation: Any
    reward: float
    cost: Any
    terminated: bool
    truncated: bool
    info: Mapping[Any, Any]


def episode_seeds(seed: int, *key: int) -> tuple[np.random.Generator, int]:
    """Draw numbers for an episode's actions, and a seed for the environment's reset.

    The key is the episode's number k in learning, (`EVALUATED`, k) or (`TRIED`, k).  An environment makes its random
    numbers from the seed of its reset as NumPy does: actions drawn with that very seed would follow its luck.
    """
    stream = np.random.SeedSequence(seed, spawn_key=key)
    return np.random.default_rng(stream), int(stream.generate_state(1)[0] >> 1)


@contextmanager
def during(when: str) -> Iterator[None]:
    """Let every refusal inside begin with when it came."""
    try:
        yield
    except InvalidInputError as error:
        error.args = (f"{when}: {error}",)
        raise


@contextmanager
def at(when: str) -> Iterator[None]:
    """Let every refusal inside begin with when it came; what the environment raises is one."""
    with during(when), strangers_code("it raised"):
        yield


def reset(env: Any, seed: int | None) -> tuple[Any, Mapping[Any, Any]]:
    """The first observation of an episode, and what the environment says beside it."""
    with at("reset of the environment"):
        answer = env.reset(seed=seed)
        if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], Mapping):
            raise InvalidInputError(f"it gave {shown(answer)}, but must give an observation and a dictionary")
        return answer[0], answer[1]


def action_mask(env: Any, info: Mapping[Any, Any], n_actions: int) -> npt.NDArray[np.bool_] | None:
    """Which actions may be taken next, (A,): ``info["action_mask"]``, or what ``env.action_masks()`` says.

    None of an environment that says neither.  To be called inside `at`.
    """
    given = info.get("action_mask")
    if given is None:
        asked = getattr(env, "action_masks", None)
        if not callable(asked):
            return None
        given = asked()
    return as_action_mask(given, n_actions)


def as_action_mask(given: Any, n_actions: int) -> npt.NDArray[np.bool_]:
    """Check a mask, (A,): true or false of every action, and true of one at least."""
    mask = numbers("action_mask", given)
    if mask.shape != (n_actions,) or not np.isin(mask, (0, 1)).all():
        raise InvalidInputError(f"action_mask is {shown(given)}, but must hold {n_actions} times true or false")
    if not mask.any():
        raise InvalidInputError("action_mask allows no action")
    return mask.astype(bool)


def allowed_action(a: int, mask: npt.NDArray[np.bool_]) -> int:
    """The action that a policy's action stands for: itself where it is allowed, else one of those that are, in turn.

    >>> [allowed_action(a, np.array([False, True, True, False])) for a in range(4)]
    [1, 1, 2, 2]
    """
    return int(a) if mask[a] else int(np.flatnonzero(mask)[a % mask.sum()])


def step(env: Any, action: int) -> StepAnswer:
    """One step, to be called inside `at`."""
    answer = env.step(action)
    if not isinstance(answer, tuple) or len(answer) not in (5, 6):
        raise InvalidInputError(f"it gave {shown(answer)}, but must give 5 or 6 values")
    observation, reward, *cost, terminated, truncated, info = answer
    if not isinstance(info, Mapping):
        raise InvalidInputError(f"info is {shown(info)}, but must be a dictionary")
    return StepAnswer(
        observation, number("the reward", reward), cost[0] if cost else None,
        flag("terminated", terminated), flag("truncated", truncated), info,
    )  # fmt: skip


def number(name: str, value: Any) -> float:
    """One finite number; what Python would turn into one, such as text, is refused."""
    found = _scalar(value)
    if found is None or not np.isfinite(found):
        raise InvalidInputError(f"{name} is {shown(value)}, but must be one finite number")
    return float(found)


def whole(name: str, value: Any) -> int:
    """One whole number, refused if it is not whole: cut, all that is near 0 would be 0."""
    found = _scalar(value)
    if found is None or not float(found).is_integer():
        raise InvalidInputError(f"{name} is {shown(value)}, but must be a whole number")
    return int(found)


def flag(name: str, value: Any) -> bool:
    """True or false, or 1 or 0."""
    found = _scalar(value)
    if found is None or found not in (0, 1):
        raise InvalidInputError(f"{name} is {shown(value)}, but must be true or false")
    return bool(found)


def _scalar(value: Any) -> Any:
    """The only number that a value holds; None if it holds none or several."""
    if type(value) in (float, bool):  # most of them
        return value
    try:
        array = np.asarray(value)
    except Exception:  # what is no array may raise anything when asked for one
        return None
    return array.flat[0] if array.size == 1 and array.dtype.kind in "iubf" else None


def single_environment(env: Any) -> Any:
    """An environment unchanged; what is none, or a vector of them, is refused.

    A vector plays several episodes at once, but the next policy depends on the last episode.
    """
    n = getattr(env, "num_envs", None)
    if isinstance(n, int | np.integer):
        raise InvalidInputError(
            f"the environment is a vector of {n} environments, but episodes are learnt from one after the other, "
            "because each policy depends on the episode before: give a single environment"
        )
    refuse_class(env)
    if isinstance(env, str) or not (callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))):
        hint = ": give what it returns" if callable(env) else ", as gymnasium.make gives"
        raise InvalidInputError(f"env is {shown(env)}, but must be an environment with reset and step{hint}")
    return env


def refuse_class(env: Any) -> None:
    """Refuse a class where an environment of it is meant."""
    if isinstance(env, type):
        raise InvalidInputError(f"env is the class {env.__name__}, but must be an object of it: {env.__name__}(...)")


def as_function(name: str, value: Any, of: str, other: type | tuple[()] = ()) -> None:
    """Refuse a setting that is given, cannot be called, and is nothing other that it may be."""
    if value is not None and not callable(value) and not isinstance(value, other):
        raise InvalidInputError(f"{name} is {shown(value)}, but must be a function of {of}")


def time_limit(env: Any) -> int | None:
    """The steps after which an environment, or a wrapper of it such as `TimeLimit`, cuts its episodes."""
    limits = [getattr(getattr(env, "spec", None), "max_episode_steps", None)]
    while env is not getattr(env, "unwrapped", env):
        limits.append(getattr(env, "_max_episode_steps", None))
        env = env.env
    return min((int(n) for n in limits if isinstance(n, int | np.integer)), default=None)


def published(env: Any, name: str) -> Any:
    """What an environment itself, inside its wrappers, has under a name; None if nothing."""
    return getattr(getattr(env, "unwrapped", env), name, None)


def discrete(env: Any, attribute: str, what: str, hint: str) -> int:
    """The size of a discrete space."""
    space = getattr(env, attribute, None)
    n, start = getattr(space, "n", None), getattr(space, "start", None)
    if not (isinstance(n, int | np.integer) and isinstance(start, int | np.integer) and n >= 1):
        raise InvalidInputError(f"the environment's {what} are {shown(space)}, not Discrete(n){hint}")
    return int(n)


def first_number(env: Any, attribute: str) -> int:
    """The number of the first observation or action of a space whose numbers go on from there."""
    start = getattr(getattr(env, attribute), "start", 0)
    return int(start)
