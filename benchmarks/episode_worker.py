"""A process of `episodes.py` that plays runs of one version of the package, an older one too: public names only.

A line in is a request, a line out its answer, both JSON.
"""

from __future__ import annotations

import gc
import json
import sys
from importlib import import_module
from time import process_time
from typing import Any

import numpy as np

from omdpd import CMDP, run


def main() -> None:
    """Answer requests until there are none."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def answer(asked: dict[str, Any]) -> float | None:
    """Seconds of CPU per episode of a run; None if this version has no such learner, or it refuses the problem.

    What a run does once (its comparator, its first plan) is in the short run too, and is taken off.
    """
    try:
        learner = learner_of(asked["learner"])
    except (ImportError, AttributeError):
        return None
    problem = {name: np.array(table) for name, table in asked["problem"].items()}
    cmdp = CMDP.from_arrays(**problem)
    try:
        spent = [seconds(cmdp, learner, asked["nature"], k, asked["seed"]) for k in (asked["short"], asked["long"])]
    except ValueError:
        return None
    return (spent[1] - spent[0]) / (asked["long"] - asked["short"])


def learner_of(name: str) -> Any:
    """``module:Class`` or ``module:Class.preset`` of the folder of learners, with its defaults."""
    module, _, path = name.partition(":")
    found: Any = import_module(f"omdpd.learners.{module}")
    for part in path.split("."):
        found = getattr(found, part)
    return found()


def seconds(cmdp: CMDP, learner: Any, nature: str, episodes: int, seed: int) -> float:
    """CPU seconds of one run."""
    gc.collect()
    began = process_time()
    run(cmdp, learner, nature, episodes, seed)
    return process_time() - began


if __name__ == "__main__":
    main()
