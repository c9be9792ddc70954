"""Learners ask things of a setting, each refused with one sentence, and some must be told more in advance."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.counts import Counts
from omdpd.problem.arrays import Floats, InvalidInputError, as_policy, as_table, numbers
from omdpd.problem.setting import FeedbackKind, Setting
from omdpd.solvers.regions import Region
from omdpd.storage.packing import WHERE_SET

# Which strictly safe policy a learner is told: the one of least cost (with the largest room), or the uniform one.
SafeChoice = Literal["least-cost", "uniform"]
# What is said of a learner of averages where it is to play episodes.
OF_AVERAGES = (
    'learns averages per step without an end, not episodes: build the problem with criterion="average", and play the '
    "learner with omdpd.play.windows.learn_windows"
)
SAFE_CHOICES: dict[str, SafeChoice] = {"least-cost": "least-cost", "uniform": "uniform"}


@dataclass(frozen=True, eq=False)
class SafePolicy:
    """A policy that is known to be strictly safe, and what an episode with it costs in expectation.

    Parameters
    ----------
    policy : (H, S, A)
        Probabilities of actions by step and state: a table, lists, or a `Policy`.
    cost : (I,)
        One number, or one per constraint, in the units of the budget: 150 of 300.  Where a session's setting has no
        budget, because costs come with budgets taken off, the cost less its budget.
    scaled
        Whether `cost` is V(d_i), less its budget and in a learner's units, whatever the problem's units are.

    >>> SafePolicy([[[0.5, 0.5]]], 150).cost
    array([150.])
    """

    policy: Floats
    cost: Floats
    scaled: bool | None = field(default=None, metadata=WHERE_SET)

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", as_policy("the safe policy", self.policy))
        cost = np.atleast_1d(numbers("the safe policy's cost", self.cost))
        object.__setattr__(self, "cost", as_table("the safe policy's cost", cost, ["constraint"], [None]))

    @property
    def room(self) -> float:
        """How far the policy stays below every budget: min_i -V(d_i), of one that is scaled."""
        return float(-self.cost.max())


def with_scaled_safe_policy(learner: Any, budget: Floats, cost_scale: Floats) -> Any:
    """A learner whose safe policy, if it was given one, costs what a learner sees: V(d) = (cost - budget) / cost_scale.

    What is over its budget is refused in the units it was given in.
    """
    safe = getattr(learner, "safe", None)
    if not isinstance(safe, SafePolicy):
        return learner
    if safe.scaled:
        return replace(learner, safe=replace(safe, scaled=None))
    if safe.cost.shape != budget.shape:
        raise InvalidInputError(
            f"the cost of {_name(learner)}'s safe policy has {len(safe.cost)} entries, but there are {len(budget)} "
            "constraints: give one number per constraint"
        )
    for i in np.flatnonzero(safe.cost >= budget):
        raise InvalidInputError(
            f"{_name(learner)} needs a policy that is strictly safe, but the one it was given costs {safe.cost[i]:.6g} "
            f"of a budget of {budget[i]:.6g} (constraint {i})"
        )
    return replace(learner, safe=replace(safe, cost=(safe.cost - budget) / cost_scale))


@dataclass(frozen=True)
class ModelToBeGiven:
    """The estimator of a learner that is to know the model, until a run puts a `KnownModel` in its place."""

    covers_truth = True

    def check(self, setting: Setting) -> None:
        """Refuse to start without the model."""
        raise InvalidInputError("a learner with known_model must be given the model: a run does so, or pass it")

    def estimate(self, setting: Setting, counts: Counts, k: int) -> Estimate[Region]:
        """Nothing is known yet."""
        raise InvalidInputError("the model is to be given before the first estimate")


@dataclass(frozen=True)
class Needs:
    """What a learner must be told, and what it asks of a setting besides the feedback of its card."""

    episodes: bool = False
    room: bool = False
    safe: bool = False
    single_constraint: bool = False
    windows: bool = False


def check_needs(learner: Any, setting: Setting) -> None:
    """Refuse a setting that lacks something, or a learner that was not told something, with one sentence."""
    needs: Needs = learner.needs
    if len(learner.card.feedback) == 1:
        require_feedback(learner, setting, learner.card.feedback[0])
    if needs.windows and not setting.windows:
        raise InvalidInputError(f"{_name(learner)} {OF_AVERAGES}")
    if needs.single_constraint:
        require_single_constraint(learner, setting)
    if needs.episodes:
        episodes_of(learner, setting)
    if needs.room:
        room_of(learner, learner.room)
    if needs.safe:
        safe_policy_of(learner, learner.safe, setting)


def safe_policy_of(learner: object, safe: SafePolicy | SafeChoice | None, setting: Setting) -> SafePolicy:
    """The policy a learner was given, or the sentence that says what is wrong with it."""
    if not isinstance(safe, SafePolicy):
        raise InvalidInputError(
            f"{_name(learner)} must be given a strictly safe policy and its cost: set safe=SafePolicy(policy, cost)"
        )
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
    if safe.cost.min() < -setting.horizon * (1.0 + 1e-9):
        raise InvalidInputError(
            f"{_name(learner)}'s safe policy stays {-float(safe.cost.min()):.6g} below a budget in its units, but "
            f"{setting.horizon} steps save {setting.horizon} at most: give its expected cost in the units of the budget"
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
