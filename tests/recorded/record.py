"""Record the seeded numbers that `test_numbers.py` compares with: ``python -m tests.recorded.record [LEARNER ...]``.

One entry per learner and nature: a short run on a world of the paper's size.  Run it only when a change of these
numbers is intended, and read the difference before keeping it.  With names only those learners' numbers are renewed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from omdpd import run
from omdpd.experiments.spec import left_out
from omdpd.play.scene import with_known_facts
from omdpd.problem.arrays import InvalidInputError
from tests.references.named import LEARNERS, NATURES, WORLDS

FILE = Path(__file__).with_name("numbers.json")
EPISODES = 60
SEED = 20
# Enough digits to see any change of an algorithm, few enough to be read.
DIGITS = 9
# One nature for each way costs reach a learner: met exactly, met through noise, revealed.
RECORDED_NATURES = (NATURES["fixed"], NATURES["noisy"], NATURES["pool"])


def world():
    """A world of the paper's size, drawn as the paper's command draws it."""
    return WORLDS["random_dirichlet"]().build(np.random.default_rng(SEED))


def cases():
    """Every (learner, nature) by name, but for those that a learner refuses."""
    cmdp, found = world(), []
    for learner in LEARNERS:
        for nature in (spec() for spec in RECORDED_NATURES):
            spec = LEARNERS[learner]()
            try:
                with_known_facts(spec.build(), cmdp, nature.build(cmdp, SEED).feedback)
            except InvalidInputError:
                continue
            if not left_out(nature, spec):
                found.append((learner, nature.name))
    return found


def numbers(learner: str, nature: str) -> dict[str, float | None]:
    """Final numbers of the run."""
    cmdp = world()
    kind = NATURES[nature]().build(cmdp, SEED).feedback
    history = run(cmdp, with_known_facts(LEARNERS[learner]().build(), cmdp, kind), nature, EPISODES, SEED)
    found = {
        "regret": history.scores.regret,
        "violation": history.scores.violation,
        "weak_violation": history.scores.weak_violation,
        "last_value": float(history.values[-1]),
        "comparator": history.comparator.value,
        "step_size": history.report.step_size,
        "weight": history.report.weight,
    }
    return {key: None if value is None else float(f"{value:.{DIGITS}g}") for key, value in found.items()}


def main() -> None:
    """Write the file."""
    wanted, kept = sys.argv[1:], json.loads(FILE.read_text()) if FILE.exists() else {}
    found = {
        f"{learner} {nature}": numbers(learner, nature)
        if not wanted or learner in wanted
        else kept[f"{learner} {nature}"]
        for learner, nature in cases()
    }
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    print(f"wrote {len(found)} entries to {FILE.name}")


if __name__ == "__main__":
    main()
