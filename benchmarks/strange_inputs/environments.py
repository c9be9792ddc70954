"""Gymnasium environments that misbehave: one answer of theirs, at reset or at some step, is something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from benchmarks.strange_inputs import Case
from omdpd import Uniform
from omdpd.gym import Bins, Learned, Task, learn, learn_by_context
from omdpd.play.policy import Policy


class Shy:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("not shown")


class Lazy:
    """A value that raises as soon as somebody makes a number or an array of it."""

    def __array__(self, *words: object, **named: object) -> Any:
        raise RuntimeError("no array")

    def __float__(self) -> float:
        raise SystemExit(0)

    __int__ = __index__ = __len__ = __iter__ = __float__  # type: ignore[assignment]


def raises(error: BaseException) -> Callable[..., Any]:
    """A function that raises it."""

    def call(*words: object, **named: object) -> Any:
        raise error

    return call


VALUES: tuple[Any, ...] = (
    None, 1.7, "1", b"1", "0.5", "x", "", -1, 7, 10**30, -(10**5000), float("nan"), float("inf"), -0.0, True, 1 + 2j,
    [], [0], [0, 1], [[0], [1, 2]], (), {}, {"a": 1}, np.array([1.5]), np.array([]), np.array([0, 1]), np.array("x"),
    np.array(None), np.array(1, dtype=np.uint8), np.float32(0.5), np.datetime64("2020-01-01"), np.ma.masked, object(),
    Shy(), Lazy(), len, int, np.full(100_000, 7.0), "x" * 100_000,
)  # fmt: skip
ERRORS = (
    ValueError("x"), KeyError("x"), SystemExit(0), StopIteration(), OSError("no disk"), RecursionError(),
    TypeError("a\nb"), AttributeError("x"), AssertionError(), GeneratorExit(), ImportError("x"), IndexError(),
    ZeroDivisionError("x" * 10_000),
)  # fmt: skip
ANSWERS: tuple[Any, ...] = (
    None, 0, "", (), [], (0,), (0, 0.0), (0, 0.0, False), (0, 0.0, False, {}), (0, 0.0, False, False),
    (0, 0.0, False, False, None), (0, 0.0, 0.0, False, False, {}, {}), {"observation": 0}, [0, 0.0, False, False, {}],
    "12345", np.zeros(5), iter((0, 0.0, False, False, {})),
)  # fmt: skip
SPACES: tuple[Any, ...] = (
    None, 3, "Discrete(3)", Discrete(10**9), Discrete(2**62), Box(0.0, 1.0, (2,)), MultiDiscrete([2, 2]),
    SimpleNamespace(n=0, start=0), SimpleNamespace(n=-3, start=0), SimpleNamespace(n=2.0, start=0),
    SimpleNamespace(n=3), SimpleNamespace(n=3, start="0"), SimpleNamespace(n=3, start=None),
    SimpleNamespace(n="3", start=0), SimpleNamespace(n=10**30, start=0), Shy(), Lazy(),
)  # fmt: skip
PLACES = ("observation", "reward", "terminated", "truncated", "info", "cost")


class Env:
    """Three states, two actions; `spoilt` says what is put where at which step (-1: reset)."""

    def __init__(self, when: int = -2, place: str = "", what: Any = None, **attributes: Any) -> None:
        self.when, self.place, self.what, self.h = when, place, what, 0
        self.observation_space, self.action_space = Discrete(3), Discrete(2)
        for name, value in attributes.items():
            setattr(self, name, value)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.h = 0
        spoilt = self.when == -1
        if spoilt and self.place == "raise":
            raise self.what
        if spoilt and self.place == "answer":
            return self.what
        good = {"observation": 0, "info": {}} | ({self.place: self.what} if spoilt else {})
        return good["observation"], good["info"]

    def step(self, action: int) -> Any:
        spoilt, self.h = self.h == self.when, self.h + 1
        if spoilt and self.place == "raise":
            raise self.what
        if spoilt and self.place == "answer":
            return self.what
        good = {"observation": action, "reward": 0.5, "terminated": False, "truncated": False, "cost": 0.1}
        told = good | ({self.place: self.what} if spoilt else {})
        info = self.what if spoilt and self.place == "info" else {"cost": told["cost"]}
        return told["observation"], told["reward"], told["terminated"], told["truncated"], info


def cases(folder: Path) -> Iterator[Case]:
    """Wrong answers, exceptions, shapes of answers, spaces, and functions of the user's own."""
    for when in (-1, 0, 2):
        for place in PLACES if when >= 0 else ("observation", "info"):
            for i, value in enumerate(VALUES):
                yield Case(f"{place} {i} at {when}", lambda w=when, p=place, v=value: _learn(Env(w, p, v)))
        for error in ERRORS:
            yield Case(f"{type(error).__name__} at {when}", lambda w=when, e=error: _learn(Env(w, "raise", e)))
        for i, answer in enumerate(ANSWERS):
            yield Case(f"answer {i} at {when}", lambda w=when, a=answer: _learn(Env(w, "answer", a)))
    for name in ("observation_space", "action_space", "spec", "unwrapped", "reset", "step", "num_envs"):
        for i, space in enumerate(SPACES):
            yield Case(f"{name} is {i}", lambda n=name, s=space: _learn(Env(**{n: s})))
    yield Case("an old reset", lambda: _learn(Env(reset=lambda: 0)))
    yield from _functions()
    yield from _settings()
    for i, thing in enumerate(
        (Env(), "Nowhere-v7", "x:y-v0", None, 3, Shy(), Lazy(), Env(0, "reward", 9.0), Env(0, "observation", None))
    ):
        yield Case(f"a loaded policy is played in {i}", lambda t=thing: _loaded(folder).evaluate(t, n_episodes=2))


def _functions() -> Iterator[Case]:
    """state_of, cost, observation_cost and context_of that misbehave."""
    calls = [*((f"gives {i}", lambda *_, v=v: v) for i, v in enumerate(VALUES))]
    calls += [(f"raises {type(error).__name__}", raises(error)) for error in ERRORS]
    for what, call in calls:
        yield Case(f"state_of {what}", lambda c=call: _learn(Env(), state_of=c, n_states=3))
        yield Case(f"cost {what}", lambda c=call: _learn(Env(), cost=c))
        yield Case(f"observation_cost {what}", lambda c=call: _learn(Env(), observation_cost=c))
        yield Case(f"context_of {what}", lambda c=call: learn_by_context(Task(Env(), 3, 1.0), Uniform(), 2, c, 2))
    bins = Bins.even([0.0], [1.0], 4)
    for i, value in enumerate(VALUES):
        yield Case(
            f"bins of {i}",
            lambda v=value: _learn(Env(1, "observation", v, observation_space=Box(0, 1, (1,))), state_of=bins),
        )


def _settings() -> Iterator[Case]:
    """What is said beside the environment."""
    for name in (
        "cost",
        "initial",
        "reward_range",
        "cost_scale",
        "n_states",
        "state_of",
        "truncation",
        "horizon",
        "budget",
    ):
        for i, value in enumerate(VALUES):
            if not (name == "horizon" and value is True):
                yield Case(f"{name} is {i}", lambda n=name, v=value: _learn(Env(), **{n: v}))


def _learn(env: Any, **settings: Any) -> None:
    learn(env, Uniform(), 2, **({"horizon": 4, "budget": 1.0} | settings), progress=False)


def _loaded(folder: Path) -> Learned:
    file = folder / "learned.npz"
    if not file.exists():
        policy = Policy(np.full((4, 3, 2), 0.5))
        Learned(policy, np.zeros(1), np.zeros((1, 1)), np.ones(1, dtype=np.int64), np.ones(1)).save(file)
    return Learned.load(file)
