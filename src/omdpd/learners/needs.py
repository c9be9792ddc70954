"""What learners ask of a setting, each refused with one sentence; and what some of them must be told in advance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.counts import Counts
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import FeedbackKind, Setting
from omdpd.solvers.regions import Region

# Which strictly safe policy a learner is told: the one of least cost (with the largest room), or the uniform one.
SafeChoice = Literal["least-cost", "uniform"]
SAFE_CHOICES: dict[str, SafeChoice] = {"least-cost": "least-cost", "uniform": "uniform"}


@dataclass(frozen=True, eq=False)
class SafePolicy:
    """A policy (H, S, A) that is known to be strictly safe, and its expected costs V(d_i) < 0, (I,)."""

    policy: Floats
    cost: Floats

    @property
    def room(self) -> float:
        """How far the policy stays below every budget: min_i -V(d_i)."""
        return float(-self.cost.max())


@dataclass(frozen=True)
class ModelToBeGiven:
    """The estimator of a learner that is to know the model, until somebody who knows it puts a `KnownModel` here."""

    covers_truth = True

    def check(self, setting: Setting) -> None:
        """Refuse to start without the model."""
        raise InvalidInputError("a learner with known_model must be given the model: a run does so, or pass it")

    def estimate(self, setting: Setting, counts: Counts, k: int) -> Estimate[Region]:
        """Nothing is known yet."""
        raise InvalidInputError("the model is to be given before the first estimate")


def safe_policy_of(learner: object, safe: SafePolicy | SafeChoice, setting: Setting) -> SafePolicy:
    """The policy a learner was given, or the sentence that says what is wrong with it."""
    if isinstance(safe, str):
        raise InvalidInputError(f"{_name(learner)} must be given a strictly safe policy and its cost: set safe")
    if safe.policy.shape != setting.shape or safe.cost.shape != (setting.n_constraints,):
        raise InvalidInputError(
            f"{_name(learner)}'s safe policy has shape {safe.policy.shape} and cost {safe.cost.shape}, but the setting "
            f"asks for {setting.shape} and {(setting.n_constraints,)}"
        )
    if not safe.cost.max() < 0.0:
        raise InvalidInputError(
            f"{_name(learner)} needs a policy that is strictly safe, but constraint {int(np.argmax(safe.cost))} of the "
            f"one it was given costs {float(safe.cost.max()):.6g} above its budget"
        )
    return safe


def room_of(learner: object, room: float | None) -> float:
    """The Slater gap a learner was told, or the sentence that asks for it."""
    if room is None:
        raise InvalidInputError(
            f"{_name(learner)} must be told by how much some policy stays below every budget: set room"
        )
    return room


def episodes_of(learner: object, setting: Setting) -> int:
    """K, for learners whose constants depend on it."""
    if setting.n_episodes is None:
        raise InvalidInputError(f"{_name(learner)}'s constants need the number of episodes: set n_episodes")
    return setting.n_episodes


def require_feedback(learner: object, setting: Setting, kind: FeedbackKind) -> None:
    """Refuse feedback that a learner is not made for."""
    if setting.feedback == kind:
        return
    if kind == "full":
        raise InvalidInputError(
            f"{_name(learner)} needs the whole cost tables after every episode: feedback must be 'full'"
        )
    raise InvalidInputError(
        f"{_name(learner)} estimates a fixed mean cost from what it meets: feedback must be 'bandit'"
    )


def require_single_constraint(learner: object, setting: Setting) -> None:
    """Refuse several constraints."""
    if setting.n_constraints != 1:
        raise InvalidInputError(f"{_name(learner)} is stated for one constraint, but there are {setting.n_constraints}")


def _name(learner: object) -> str:
    """What a learner is called in a sentence."""
    return type(learner).__name__
