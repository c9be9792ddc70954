"""Every learner keeps to these rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np

from omdpd.learners.factors import Factor
from omdpd.learners.masked import pools_steps
from omdpd.learners.needs import Needs
from omdpd.learners.protocol import Card, Learner, Report, stored_classes
from omdpd.play.scene import with_known_facts
from omdpd.play.simulate import play_episode
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.setting import Feedback, FeedbackKind, Setting
from omdpd.problem.strangers import strangers_code
from omdpd.storage.packing import pack, unpack
from omdpd.testing.common import ConformanceError, frozen_copy, require, require_law, small_world

# Two constraints are tried first, and one where a learner refuses two.
MAX_CONSTRAINTS = 2
# The number of episodes that learners are told, and how many are played.
K, EPISODES = 30, 8


@dataclass(frozen=True, eq=False)
class LearnerCase:
    """A learner under one kind of feedback, in a small world that it accepts."""

    learner: Any
    feedback: FeedbackKind

    @cached_property
    def cmdp(self) -> CMDP:
        """A world with as many constraints as the learner takes; refused worlds are its right, all of them are not."""
        refusal: InvalidInputError | None = None
        for n_constraints in range(MAX_CONSTRAINTS, 0, -1):
            cmdp = small_world(n_constraints)
            try:
                self.in_world(cmdp).init(self.setting(cmdp))
            except InvalidInputError as error:
                refusal = error
            else:
                return cmdp
        raise ConformanceError(f"its card names {self.feedback!r} feedback, but it refuses every world: {refusal}")

    def setting(self, cmdp: CMDP, n_episodes: int | None = K) -> Setting:
        """What the learner is told; one of averages plays windows."""
        windows = getattr(self.learner, "needs", Needs()).windows or None
        return replace(cmdp.setting(n_episodes, self.feedback), windows=windows)

    def in_world(self, cmdp: CMDP) -> Learner[Any]:
        """The learner, told what it must know of a world."""
        return with_known_facts(self.learner, cmdp, self.feedback)

    def states(self, cmdp: CMDP | None = None, episodes: int = EPISODES, seed: int = 0) -> list[Any]:
        """The states of a short run, the first one included."""
        cmdp = self.cmdp if cmdp is None else cmdp
        learner, rng = self.in_world(cmdp), np.random.default_rng(seed)
        states = [learner.init(self.setting(cmdp))]
        for k in range(episodes):
            policy = learner.policy(states[-1])
            states.append(learner.update(states[-1], self.observe(cmdp, policy, k, rng)))
        return states

    def observe(self, cmdp: CMDP, policy: Floats, k: int, rng: np.random.Generator) -> Feedback:
        """The feedback of one episode; where costs are revealed they change from episode to episode."""
        sign = 1.0 if self.feedback == "bandit" else (1.0, -0.5, 0.25)[k % 3]
        round_ = Round(cmdp.reward, cmdp.excess * sign, k, "two-point", "two-point")
        return play_episode(cmdp, round_, np.array(policy), self.feedback, rng)


def check_learner(learner: Any) -> None:
    """Check a learner under every kind of feedback that its card names."""
    for case in learner_cases(learner):
        for rule in LEARNER_RULES.values():
            try:
                with strangers_code(f"its own code raised, where {rule.__name__} was checked,", (ConformanceError,)):
                    rule(case)
            except InvalidInputError as error:
                raise ConformanceError(str(error)) from error


def learner_cases(learner: Any) -> list[LearnerCase]:
    """The learner once for every kind of feedback on its card."""
    for verb in ("init", "policy", "update", "report"):
        require(callable(getattr(learner, verb, None)), f"a learner has a method {verb!r}, but this one has none")
    card: Any = getattr(learner, "card", None)
    require(isinstance(card, Card), "a learner has a `card` that says what it needs and promises")
    known = [kind for kind in get_args(FeedbackKind) if kind in card.feedback]
    require(bool(known), f"its card names the feedback {card.feedback}, but must name 'bandit' or 'full'")
    return [LearnerCase(learner, kind) for kind in known]


def a_card_says_what_it_is(case: LearnerCase) -> None:
    """Summary, guarantee and source are not empty, and `factors` are factors."""
    card = case.learner.card
    for factor in getattr(case.learner, "factors", ()):
        require(isinstance(factor, Factor), f"`factors` holds {factor!r}, but must hold objects of the class Factor")
    for name in ("summary", "guarantee", "source"):
        require(bool(getattr(card, name).strip()), f"its card has no {name}")


def a_state_is_plain_data(case: LearnerCase) -> None:
    """It is a frozen dataclass of arrays, numbers, strings and tuples: what a file can hold."""
    state = case.in_world(case.cmdp).init(case.setting(case.cmdp))
    try:
        pack(state)
    except TypeError as error:
        what = f"init gives a {type(state).__name__}"
        raise ConformanceError(f"{what}, but a state is a frozen dataclass of arrays and numbers: {error}") from None


def policies_are_laws(case: LearnerCase) -> None:
    """Every policy is a table (H, S, A) of probabilities of actions."""
    learner = case.in_world(case.cmdp)
    for k, state in enumerate(case.states()):
        require_law(learner.policy(state), case.cmdp.shape, f"the policy of episode {k}")


def the_same_feedback_gives_the_same_states(case: LearnerCase) -> None:
    """To the last bit: a run must not depend on anything else."""
    first, second = case.states(), case.states()
    same = [frozen_copy(state) for state in first] == [frozen_copy(state) for state in second]
    require(same, "the same feedback gave other states the second time")


def no_random_number_is_taken(case: LearnerCase) -> None:
    """Numpy's global random state is neither read nor moved."""
    before = np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
    case.states(episodes=2)
    after = np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
    require(before == after, "it takes random numbers from numpy's global state; a run could not be repeated")


def an_update_changes_nothing_it_was_given(case: LearnerCase) -> None:
    """Neither the state before it nor the feedback."""
    learner, state = case.in_world(case.cmdp), case.states(episodes=3)[-1]
    feedback = case.observe(case.cmdp, learner.policy(state), 1, np.random.default_rng(5))
    before, given = frozen_copy(state), frozen_copy(feedback)
    learner.update(state, feedback)
    learner.report(state)
    require(frozen_copy(state) == before, "update (or report) changed the state that it was given")
    require(frozen_copy(feedback) == given, "update changed the feedback that it was given")


def a_policy_can_be_kept(case: LearnerCase) -> None:
    """A write into a policy must not reach the state: the policy is a copy, or read-only."""
    learner, state = case.in_world(case.cmdp), case.states(episodes=2)[-1]
    before = frozen_copy(state)
    policy = learner.policy(state)
    if policy.flags.writeable:
        policy[:] = -1.0
    require(frozen_copy(state) == before, "the policy is a part of the state and can be written into: copy it")


def reports_are_finite_and_count_upwards(case: LearnerCase) -> None:
    """Numbers for the record are finite and not negative, solves are counted, none failed, all are certified."""
    learner, solves = case.in_world(case.cmdp), 0
    for state in case.states():
        report = learner.report(state)
        require(isinstance(report, Report), f"report is a {type(report).__name__}, but must be a Report")
        log = report.log
        require(log.solves >= solves, "the number of solves went down")
        require(log.failures == 0, f"{log.failures} solves failed in a small world")
        require(0.0 <= log.max_gap <= 1e-8 and 0.0 <= log.max_residual <= 1e-9, "a solve is not certified")
        for name in ("step_size", "weight", "ignored"):
            number = getattr(report, name)
            fine = number is None or (math.isfinite(number) and number >= 0.0)
            require(fine, f"its report's {name} is {number}, but must be finite and not negative")
        solves = log.solves


def a_state_survives_a_file(case: LearnerCase) -> None:
    """What the type hints promise is what the state holds, and a state from a file goes on to the last bit."""
    learner, rng = case.in_world(case.cmdp), np.random.default_rng(2)
    try:
        classes = stored_classes(learner)
        for state in case.states():
            tree, arrays = pack(state)
            again = unpack(tree, arrays, classes)
            require(frozen_copy(again) == frozen_copy(state), "its state comes back from a file as another one")
    except (InvalidInputError, TypeError) as error:
        raise ConformanceError(f"its state cannot be kept in a file: {error}") from None
    feedback = case.observe(case.cmdp, learner.policy(state), 0, rng)
    same = frozen_copy(learner.update(again, feedback)) == frozen_copy(learner.update(state, feedback))
    require(same, "a state from a file goes on in another way")


def small_sizes_are_served(case: LearnerCase) -> None:
    """A horizon of one, a single state, a single action."""
    rng = np.random.default_rng(3)
    for shape in ((1, 3, 2), (3, 1, 2), (3, 2, 1), (1, 1, 1)):
        cost = -rng.random((case.cmdp.n_constraints, *shape))  # every policy is strictly safe
        cmdp = CMDP.from_arrays(rng.dirichlet(np.ones(shape[1]), shape), rng.random(shape), cost, np.zeros(len(cost)))
        for state in case.states(cmdp, episodes=3):
            require_law(case.in_world(cmdp).policy(state), shape, f"a policy with H, S, A = {shape}")


def states_that_cannot_come_first_are_served(case: LearnerCase) -> None:
    """The initial law may leave states out."""
    cmdp = replace(case.cmdp, initial=np.array([0.0, 1.0, 0.0]))
    learner = case.in_world(cmdp)
    for state in case.states(cmdp, episodes=4):
        require_law(learner.policy(state), cmdp.shape, "a policy where some states cannot come first")
        require(learner.report(state).log.failures == 0, "a solve failed where some states cannot come first")


def an_unknown_number_of_episodes_is_served_or_refused(case: LearnerCase) -> None:
    """Without K a learner plays, or says that it needs `n_episodes`."""
    learner, setting = case.in_world(case.cmdp), case.setting(case.cmdp, None)
    try:
        policy = learner.policy(learner.init(setting))
    except InvalidInputError as error:
        require("n_episodes" in str(error), f"without a number of episodes it says {str(error)!r}, not n_episodes")
    else:
        require_law(policy, case.cmdp.shape, "the first policy without a number of episodes")


def forbidden_actions_are_never_played(case: LearnerCase) -> None:
    """In thirty worlds, where every state allows some actions, at every step or at some."""
    for seed in range(30):
        rng, A = np.random.default_rng((seed, 2)), 2 + seed % 3
        allowed = rng.random((4, 3, A) if seed % 2 and not pools_steps(case.learner) else (3, A)) < 0.5
        np.put_along_axis(allowed, rng.integers(0, A, (*allowed.shape[:-1], 1)), True, axis=-1)
        cost = rng.uniform(-1.0, -0.1, (case.cmdp.n_constraints, 4, 3, A))  # every policy is strictly safe
        law, reward = rng.dirichlet(np.ones(3), (4, 3, A)), rng.random((4, 3, A))
        cmdp = CMDP.from_arrays(law, reward, cost, np.zeros(len(cost)), allowed=np.broadcast_to(allowed, (4, 3, A)))
        learner = case.in_world(cmdp)
        for state in case.states(cmdp, episodes=2, seed=seed):
            policy = learner.policy(state)
            require_law(policy, cmdp.shape, "a policy where actions are forbidden")
            played = bool((policy[np.broadcast_to(~allowed, policy.shape)] > 0.0).any())
            require(not played, f"it plays a forbidden action in world {seed}")


LEARNER_RULES: dict[str, Callable[[LearnerCase], None]] = {
    rule.__name__: rule
    for rule in (
        a_card_says_what_it_is, a_state_is_plain_data, policies_are_laws, the_same_feedback_gives_the_same_states,
        no_random_number_is_taken,
        an_update_changes_nothing_it_was_given, a_policy_can_be_kept, reports_are_finite_and_count_upwards,
        a_state_survives_a_file, small_sizes_are_served, states_that_cannot_come_first_are_served,
        an_unknown_number_of_episodes_is_served_or_refused, forbidden_actions_are_never_played,
    )
}  # fmt: skip
