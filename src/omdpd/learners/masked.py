"""A learner where some actions are forbidden: it plays a problem of its own, in which every action may be taken.

That problem has A' actions, the most that a state ever allows, under numbers of the learner's own (`Choices`).  A
number too many in a state is one more name of an action that is allowed there:

    played        pi(a|h,s)  =  sum of pi'(j|h,s) over the names j of a          zero at every forbidden action
    told          the name under which the action was done, drawn as pi' has it

So what the learner is told has the law of its own problem, whatever it does with it: averages, weights by its own
policy, exploration.  Its guarantee holds as it is stated, for A' actions.  Where every state allows as many actions
there is no second name, and it plays what it would play in the problem without the forbidden ones, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from omdpd.learners.needs import SafePolicy
from omdpd.learners.protocol import Card, Learner, Report, restored, shown_of, stored_classes
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.masks import Choices, as_mask
from omdpd.problem.setting import BanditFeedback, Feedback, Setting, Trajectory

# Beside (seed, k), from which a learner draws numbers of its own: where the names of an episode come from.
NAMES = 1


@dataclass(frozen=True, eq=False)
class MaskedState:
    """The setting with its mask, the choices, the learner's own state, and how many episodes it has seen."""

    setting: Setting
    choices: Choices
    k: int
    inner: Any


@dataclass(frozen=True, eq=False)
class Masked:
    """Any learner, `inner`, where a setting forbids actions: none of them is ever played."""

    inner: Learner[Any]

    draws = True

    @property
    def card(self) -> Card:
        """The learner's own."""
        return self.inner.card

    def init(self, setting: Setting) -> MaskedState:
        """The first state of the learner in its own problem."""
        choices = choices_of(setting)
        if len(choices.action) > 1 and pools_steps(self.inner):
            raise InvalidInputError(
                f"allowed differs by step, but {type(self.inner).__name__} takes all steps for one: give allowed by "
                "state and action, or say stationary=False"
            )
        return MaskedState(setting, choices, 0, self.inner.init(own_setting(setting, choices)))

    def policy(self, state: MaskedState) -> Floats:
        """The learner's policy by actions."""
        return state.choices.outward(self.inner.policy(state.inner))

    def update(self, state: MaskedState, feedback: Feedback) -> MaskedState:
        """Give the learner the episode, by its own numbers."""
        met = told(state.setting, state.choices, feedback, self.inner.policy(state.inner), state.k)
        return replace(state, k=state.k + 1, inner=self.inner.update(state.inner, met))

    def report(self, state: MaskedState) -> Report:
        """The learner's own; what it believes and plans is about its own problem, and stays there."""
        return replace(self.inner.report(state.inner), believed=None, plan=None)

    def visits(self, state: MaskedState) -> Floats | None:
        """How often each action was taken (H, S, A), where the learner counts."""
        seen = shown_of(self.inner, state.inner).visits
        return None if seen is None else state.choices.outward(seen)

    def restored(self, state: MaskedState) -> MaskedState:
        """Convert a stored state to the form of this version."""
        return replace(state, inner=restored(self.inner, state.inner))

    def stored_classes(self) -> dict[str, type]:
        """The classes that a stored state may hold."""
        own: tuple[type, ...] = (MaskedState, Choices, Setting)
        return stored_classes(self.inner) | {each.__name__: each for each in own}


def name_of(learner: Learner[Any]) -> str:
    """What a learner is called: by its class, also where it keeps to a mask."""
    return type(learner.inner if isinstance(learner, Masked) else learner).__name__


def masked(learner: Learner[Any], setting: Setting) -> Learner[Any]:
    """A learner that keeps to what the setting allows: itself where that is everything, or where it does so itself.

    A safe policy that it was given is told by its own numbers.
    """
    by_itself = getattr(learner, "keeps_to_mask", False)
    if setting.allowed is None or isinstance(learner, Masked):
        return learner
    safe: Any = getattr(learner, "safe", None)
    if isinstance(safe, SafePolicy) and safe.policy.shape == setting.shape:
        mask = as_mask(setting.allowed, setting.shape[1:])
        if mask is not None:
            mask.refuse(safe.policy)
        if by_itself:
            return learner
        policy = choices_of(setting).policy_inward(safe.policy)
        learner = replace(learner, safe=replace(safe, policy=policy))  # type: ignore[type-var]
    return learner if by_itself else Masked(learner)


def choices_of(setting: Setting) -> Choices:
    """What a learner may choose from."""
    return Choices.of(as_mask(setting.allowed, setting.shape[1:]), setting.shape)


def own_setting(setting: Setting, choices: Choices) -> Setting:
    """The setting of the learner's own problem."""
    return replace(setting, n_actions=choices.action.shape[2], allowed=None)


def told(setting: Setting, choices: Choices, feedback: Feedback, policy: Floats, k: int) -> Feedback:
    """What a learner of this policy is told of episode k."""
    walk = feedback.trajectory
    uniforms = np.random.default_rng((setting.seed or 0, k, NAMES)).random(setting.horizon)
    own = Trajectory(walk.states, choices.names(walk.states, walk.actions, policy, uniforms))
    if isinstance(feedback, BanditFeedback):
        return replace(feedback, trajectory=own)
    return replace(feedback, trajectory=own, cost=choices.inward(feedback.cost))


def pools_steps(learner: Any) -> bool:
    """Whether a learner takes all steps for one."""
    parts = (learner, *(getattr(learner, name, None) for name in ("estimator", "box", "bonus")))
    return any(bool(getattr(part, "stationary", False)) for part in parts)
