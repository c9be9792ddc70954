"""A scene holds what is played, and what a learner is told in advance: a safe policy, the Slater gap, the model.

A run hands these over before its first episode.  Where the truth does not grant what a learner assumes, the run is
refused with one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from omdpd.beliefs.confidence import KnownModel
from omdpd.learners.informed import Informed
from omdpd.learners.masked import Masked, choices_of, masked
from omdpd.learners.needs import SAFE_CHOICES, ModelToBeGiven, Needs, SafeChoice, SafePolicy, with_scaled_safe_policy
from omdpd.learners.oracle import Oracle
from omdpd.learners.protocol import Learner
from omdpd.natures.protocol import Nature
from omdpd.problem.arrays import Floats, InvalidInputError, named
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.labels import Labels
from omdpd.problem.masks import Choices
from omdpd.problem.setting import Feedback, FeedbackKind, Setting
from omdpd.solvers.planning import best_plan, safest_plan
from omdpd.solvers.programs import written_out
from omdpd.solvers.sweeps import value_under

# A user's own number of an episode: a function of the world, the round and the policy that was played.
Metric = Callable[[CMDP, Round, Floats], float]

# A policy with less room than this below a budget is not strictly safe.
MIN_ROOM = 1e-9
# The most random actions of who plays logs, as a share.
RANDOM_ACTIONS = 0.3


@dataclass(frozen=True, eq=False)
class Scene:
    """What is played: the truth, nature, the learner, for how long, which extra numbers, and the learner's own seed.

    `episodes_known` is whether the learner is told for how long; `logged` are episodes from before, which it is told.
    """

    cmdp: CMDP
    nature: Nature
    learner: Learner[Any]
    episodes: int
    metrics: Mapping[str, Metric]
    learner_seed: int | None = None
    episodes_known: bool = True
    logged: tuple[Feedback, ...] = ()

    @property
    def setting(self) -> Setting:
        """What the learner is told before the first episode."""
        return self.cmdp.setting(self.episodes if self.episodes_known else None, self.nature.feedback)


def with_known_facts(learner: Any, cmdp: CMDP, feedback: FeedbackKind) -> Learner[Any]:
    """A learner told what it must know of this problem; refused where that does not exist.

    A field `safe` that names a choice, or is None beside a setting `safe_policy`, is filled with such a strictly safe
    policy (one that was given is scaled from the user's units), a field `room` that is None with the Slater gap if
    the learner needs it, a field `support` beside `known_support` with the next states of positive
    probability, and an `estimator` that waits for the model with the true one (its costs only where none are revealed).
    """
    if cmdp.mask is not None:
        setting = cmdp.setting(None, feedback)
        own: Any = masked(learner, setting)
        if own is learner:
            learner = with_known_facts(learner, replace(cmdp, mask=None, labels=Labels()), feedback)
            safe = learner.safe and replace(learner.safe, policy=cmdp.mask.played(learner.safe.policy))
            kept: Learner[Any] = replace(learner, safe=safe)
            return kept
        return Masked(with_known_facts(own.inner, chosen_world(cmdp, choices_of(setting)), feedback))
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
        return Oracle(cmdp.transition if written_out(cmdp.shape) else cmdp.laws, cmdp.reward, cmdp.excess)
    if isinstance(learner, Informed) and learner.transition is None:
        return Informed(transition=cmdp.transition, tables=cmdp.excess)
    if isinstance(getattr(learner, "estimator", None), ModelToBeGiven):
        return replace(learner, estimator=_known_model(cmdp, feedback))
    settings: set[str] = {field.name for field in fields(learner)} if is_dataclass(learner) else set()
    if getattr(learner, "known_support", False) and learner.support is None:
        learner = replace(learner, support=cmdp.transition > 0.0)
    choice = getattr(learner, "safe", None) or getattr(learner, "safe_policy", None)
    if "safe" in settings and isinstance(choice, str | SafePolicy):
        if isinstance(choice, str):
            safe = known_safe_policy(name, cmdp, named(SAFE_CHOICES, choice, "safe policy"))
        else:
            safe = with_scaled_safe_policy(learner, cmdp.budget * cmdp.cost_scale, cmdp.cost_scale).safe
        return replace(learner, safe=replace(safe, scaled=True))
    if "room" in settings and learner.room is None and getattr(learner, "needs", Needs(room=True)).room:
        return replace(learner, room=known_safe_policy(name, cmdp, "least-cost").room)
    return learner


def chosen_world(cmdp: CMDP, choices: Choices) -> CMDP:
    """The problem that a learner plays where actions are forbidden: every one of its numbers may be taken."""
    return replace(
        cmdp, laws=choices.laws(cmdp.laws), reward=choices.inward(cmdp.reward), cost=choices.inward(cmdp.cost),
        mask=None, scenarios=None, labels=Labels(), _divided=None,
    )  # fmt: skip


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


def logging_policy(cmdp: CMDP) -> Floats:
    """A policy as logs are made by: the best for half of the room below every budget, with some random actions.

    At most `RANDOM_ACTIONS` of them, and no more than leave a tenth of the room.
    """
    least = known_safe_policy("who plays the logs", cmdp).cost
    half = best_plan(
        cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess - (0.5 * least / cmdp.shape[0])[:, None, None, None]
    )
    uniform = np.full(cmdp.shape, 1.0 / cmdp.shape[2])

    def mixed(share: float) -> Floats:
        both = (1.0 - share) * half.policy + share * uniform
        return both if cmdp.mask is None else cmdp.mask.played(both)

    def within(share: float) -> bool:
        cost = [value_under(cmdp.laws, mixed(share), cmdp.initial, table) for table in cmdp.excess]
        return bool((np.array(cost) <= 0.1 * least).all())

    low, high = 0.0, RANDOM_ACTIONS
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if within(middle) else (low, middle)
    return mixed(low)
