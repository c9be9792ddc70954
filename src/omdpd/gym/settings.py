"""Settings of a task by name: an unknown one is refused with the one that was meant, and files ask for functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from omdpd.gym.measuring import no_cost
from omdpd.gym.task import Task
from omdpd.problem.arrays import InvalidInputError, suggestion

USUAL: dict[str, Any] = {field.name: field.default for field in fields(Task)} | {"horizon": None}
# What a file does not keep.
FUNCTIONS = ("cost", "observation_cost", "state_of")
# Names that other libraries have for a setting, or that our pages have for a value of it.
ELSEWHERE = dict.fromkeys(("cells", "bins", "discretize"), "state_of") | {
    "cost_limit": "budget", "cost_fn": "cost", "max_episode_steps": "horizon", "action_mask": "allowed"
}  # fmt: skip


def refuse_unknown(settings: Iterable[str]) -> None:
    """Refuse a name that no setting has, with the one that was meant where there is one."""
    for name in settings:
        if name not in USUAL:
            meant = suggestion(ELSEWHERE.get(name, name), USUAL)
            raise InvalidInputError(f"there is no setting of a task {name!r}{meant}; there are {', '.join(USUAL)}")


def functions_of(task: Task) -> list[str]:
    """The names of what a task was given that no file keeps."""
    return [name for name in FUNCTIONS if getattr(task, name) not in (None, no_cost)]


def ask_again(kept: Iterable[str], given: Mapping[str, Any] | Task, where: str) -> None:
    """Ask for what was given when a file was made, and is not given now."""
    names = functions_of(given) if isinstance(given, Task) else [n for n in given if given[n] is not None]
    for name in kept:
        if name not in names:
            raise InvalidInputError(
                f"{where} was made with {name}=..., which no file keeps: give the same {name} again"
            )
