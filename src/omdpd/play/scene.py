"""What is played, and what a learner must be told of it in advance: a strictly safe policy, the Slater gap, the model.

A run hands these over before its first episode.  Where the truth does not grant what a learner assumes, the run is
refused with one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from omdpd.beliefs.confidence import KnownModel
from omdpd.learners.needs import SAFE_CHOICES, ModelToBeGiven, SafeChoice, SafePolicy, with_scaled_safe_policy
from omdpd.learners.oracle import Oracle
from omdpd.learners.protocol import Learner
from omdpd.natures.protocol import Nature
from omdpd.problem.arrays import Floats, InvalidInputError, named
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.setting import FeedbackKind, Setting
from omdpd.solvers.planning import safest_plan, written_out
from omdpd.solvers.sweeps import value_under

# A user's own number of an episode: a function of the world, the round and the policy that was played.
Metric = Callable[[CMDP, Round, Floats], float]

# A policy with less room than this below a budget is not strictly safe.
MIN_ROOM = 1e-9


@dataclass(frozen=True, eq=False)
class Scene:
    """What is played: the truth, nature, the learner, for how long, which extra numbers, and the learner's own seed.

    `episodes_known` is whether the learner is told for how long.
    """

    cmdp: CMDP
    nature: Nature
    learner: Learner[Any]
    episodes: int
    metrics: Mapping[str, Metric]
    learner_seed: int | None = None
    episodes_known: bool = True

    @property
    def setting(self) -> Setting:
        """What the learner is told before the first episode."""
        return self.cmdp.setting(self.episodes if self.episodes_known else None, self.nature.feedback)


def informed(learner: Any, cmdp: CMDP, feedback: FeedbackKind) -> Learner[Any]:
    """A learner told what it must know of this problem; refused where that does not exist.

    A field `safe` that names a choice is filled with such a strictly safe policy (one that was given is scaled from the
    user's units), a field `room` that is None with the Slater gap, and an `estimator` that waits for the model with the
    true one (its costs only where none are revealed).
    """
    name = type(learner).__name__
    card = getattr(learner, "card", None)
    if card is None:
        raise InvalidInputError(f"{name} has no card, which says what feedback it needs (omdpd.learners.protocol.Card)")
    if feedback not in card.feedback:
        wanted = " or ".join(repr(kind) for kind in card.feedback)
        raise InvalidInputError(f"{name} needs feedback {wanted}, but this nature gives {feedback!r}")
    if isinstance(learner, Oracle) and learner.transition is None:
        if feedback == "full":
            raise InvalidInputError("Oracle is told mean costs, but this nature picks its tables: pass them in Python")
        return Oracle(cmdp.transition if written_out(cmdp.laws) else cmdp.laws, cmdp.reward, cmdp.excess)
    if isinstance(getattr(learner, "estimator", None), ModelToBeGiven):
        return replace(learner, estimator=_known_model(cmdp, feedback))
    settings: set[str] = {field.name for field in fields(learner)} if is_dataclass(learner) else set()
    if "safe" in settings and isinstance(learner.safe, str | SafePolicy):
        if isinstance(learner.safe, str):
            safe = known_safe_policy(name, cmdp, named(SAFE_CHOICES, learner.safe, "safe policy"))
        else:
            safe = with_scaled_safe_policy(learner, cmdp.budget * cmdp.cost_scale, cmdp.cost_scale).safe
        return replace(learner, safe=replace(safe, scaled=True))
    if "room" in settings and learner.room is None:
        return replace(learner, room=known_safe_policy(name, cmdp, "least-cost").room)
    return learner


def _known_model(cmdp: CMDP, feedback: FeedbackKind) -> KnownModel:
    """Kernel, mean reward and, where they are not revealed anyway, mean costs."""
    return KnownModel(cmdp.transition, cmdp.reward, cmdp.excess if feedback == "bandit" else None)


def known_safe_policy(learner: str, cmdp: CMDP, choice: SafeChoice = "least-cost") -> SafePolicy:
    """The policy that a learner is told to be safe on average, with its exact costs; refused unless strictly safe.

    >>> two = CMDP.from_arrays(np.full((1, 2, 1), 1.0), [[0.0, 1.0]], [[0.0, 1.0]], budget=0.5, horizon=1)
    >>> known_safe_policy("SOPS", two).room
    0.5
    """
    H, S, A = cmdp.shape
    d = cmdp.excess
    policy = np.full((H, S, A), 1.0 / A) if choice == "uniform" else safest_plan(cmdp.laws, cmdp.initial, d)
    cost = np.array([value_under(cmdp.laws, policy, cmdp.initial, table) for table in d])
    if not cost.max() < -MIN_ROOM:
        which = "the uniform policy" if choice == "uniform" else "even the policy of least cost"
        raise InvalidInputError(
            f"{learner} must know a strictly safe policy, but {which} leaves no room below constraint "
            f"{int(np.argmax(cost))} (its cost less budget is {float(cost.max()):.6g})"
        )
    return SafePolicy(policy, cost)
