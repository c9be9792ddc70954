"""States of every rival as version 0.2 kept them, what it made of them, and the fingerprints of sessions with them.

``python tests/recorded/rivals_0_2.py`` wrote the files, with the learners of that version.  They are not written again.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from omdpd.play.scene import with_known_facts
from omdpd.play.simulate import play_episode
from omdpd.play.start import fingerprint_of
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.packing import pack
from tests.references.named import LEARNERS, NATURES, WORLDS

FOLDER = Path(__file__).parent / "stored" / "rivals-0.2"
# Episodes before a state is kept, and after it.
BEFORE, AFTER, KNOWN = 6, 4, 40
KINDS = {"bandit": "noisy", "full": "pool"}


def world():
    """A small world with one constraint."""
    return WORLDS["random_dirichlet"](n_states=3, n_actions=2, horizon=3).build(np.random.default_rng(7))


def cases():
    """Every (learner, feedback) by name, but for the default learner and its presets, which have files of their own."""
    names = [name for name in LEARNERS if not name.startswith("ProximalOMDPD") and name != "PlanLP"]
    return [(name, kind) for name in names for kind in KINDS if kind in LEARNERS[name]().build().card.feedback]


def learner_of(name, kind):
    """The learner of a name, told what it must know; None where it refuses this kind of feedback."""
    try:
        return with_known_facts(LEARNERS[name]().build(), world(), kind)
    except InvalidInputError:
        return None


def played(learner, kind, state, start, episodes):
    """The state after some more episodes, met the same way whoever plays them."""
    cmdp = world()
    nature = NATURES[KINDS[kind]]().build(cmdp, 5)
    for k in range(start, start + episodes):
        rng = np.random.default_rng((11, k))
        policy = learner.policy(state)
        state = learner.update(state, play_episode(cmdp, nature.draw(k, None), policy, kind, rng))
    return state


def numbers(learner, state):
    """What a run would tell of a state."""
    report = learner.report(state)
    log = report.log
    return {
        "step_size": report.step_size, "weight": report.weight, "infeasible": report.infeasible,
        "saturations": report.saturations, "solves": log.solves, "policy": learner.policy(state).ravel().tolist(),
    }  # fmt: skip


def main() -> None:
    """Write the files."""
    arrays, facts = {}, {}
    for name, kind in cases():
        learner, setting = learner_of(name, kind), world().setting(KNOWN, kind)
        if learner is None:
            continue
        state = played(learner, kind, learner.init(setting), 0, BEFORE)
        tree, own = pack(state)
        arrays |= {f"{name} {kind} {key}": value for key, value in own.items()}
        end = played(learner, kind, state, BEFORE, AFTER)
        facts[f"{name} {kind}"] = {
            "state": tree, "then": numbers(learner, state), "end": numbers(learner, end),
            "fingerprint": fingerprint_of(learner, setting)[0],
        }  # fmt: skip
    np.savez_compressed(FOLDER / "arrays.npz", **arrays)
    (FOLDER / "states.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(f"wrote {len(facts)} states")


if __name__ == "__main__":
    main()
