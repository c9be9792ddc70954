"""A session or a run starts from episodes that were logged before, and each episode from a start of its own.

**Safely**, unless told otherwise: with logs and no learner it is `SafeStart`; a learner around a safe policy (`DOPE`,
`OptPessLP`, `EpisodeSafe`) that was given none takes one that the logs certify; one that tries first what the logs
never tried is refused, until somebody says ``start="explore"``.

**Logged episodes**, whoever played them, tell what the world is like.  A learner that keeps counts has them counted;
the last one it learns from as if it had played it, so that its first policy is planned with all of them.  (Multipliers
and steps are about its own play, and begin anew.)  A learner without counts learns from all of them in turn.

**A start that carries over** is the law of the next episode's first state.  Learners plan the next episode in `update`,
with the law that their state's setting holds, so it is put there before; `SafeStart` plans for it at once.  Guarantees
are stated for one law.

**Whose a session is** says a fingerprint of learner, setting and logs, and the same in words.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import reduce
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from omdpd.beliefs.counts import Counts
from omdpd.learners.masked import Masked, MaskedState, own_setting, told
from omdpd.learners.needs import SafePolicy, with_scaled_safe_policy
from omdpd.learners.protocol import Learner
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.safe.first_plan import FEWEST, Rules, allowed_rows, cloned, first_plan, measured_margin
from omdpd.learners.safe.tally import Tally, Walks
from omdpd.learners.safe_start import SafeStart
from omdpd.natures.protocol import Nature, world_of
from omdpd.play.guards import as_learner
from omdpd.play.logs import Log
from omdpd.play.scene import logging_policy
from omdpd.play.simulate import play_episode
from omdpd.problem.arrays import Floats, InvalidInputError, as_law, shown
from omdpd.problem.cmdp import CMDP
from omdpd.problem.setting import BanditFeedback, Feedback, FeedbackKind, Setting
from omdpd.solvers.sweeps import occupancy_under
from omdpd.storage.owners import NOTHING, Facts, Owner
from omdpd.storage.packing import in_words, pack

# What is done with logs: play what they certify, or try first what they never tried.
Start = Literal["safe", "explore"]


@dataclass(frozen=True, eq=False)
class Before:
    """What was played before the first episode, in the units of a learner; how one starts from it; names of costs."""

    logged: tuple[Feedback, ...] = ()
    start: Start = "safe"
    names: tuple[str, ...] = ()


NOTHING_BEFORE = Before()
# With which a policy from logs is within every budget, for learners that ask for a safe one.
CONFIDENCE = 0.95


def starting(learner: Learner[Any] | None, setting: Setting, before: Before) -> Learner[Any]:
    """The learner that starts from what was logged; safely, unless `start` is "explore"."""
    logged, start = before.logged, before.start
    if start not in get_args(Start):
        raise InvalidInputError(f"start is {shown(start)}, but must be 'safe' or 'explore'")
    if not logged:
        return as_learner(learner)
    if start == "explore":
        return as_learner(ProximalOMDPD.standard() if learner is None else learner)
    chosen: Any = as_learner(SafeStart() if learner is None else learner)
    if not hasattr(chosen, "safe"):
        raise InvalidInputError(
            f"{type(chosen).__name__} may try first what the logs never tried, whatever it costs: leave the learner "
            "out (None) to start safely, or say start='explore'"
        )
    if isinstance(chosen.safe, SafePolicy):
        return as_learner(chosen)
    safe = None if isinstance(chosen, SafeStart) else _certified(chosen, setting, logged)
    return as_learner(replace(chosen, safe=safe))


def _certified(learner: Any, setting: Setting, logged: Sequence[Feedback]) -> SafePolicy:
    """Of the policy that was logged and the best plan that logs certify, the one with more room below its budgets."""
    name, episodes = type(learner).__name__, [each for each in logged if isinstance(each, BanditFeedback)]
    if len(episodes) < FEWEST:
        raise InvalidInputError(
            f"{name} needs a safe policy, and {len(episodes)} logged episodes with observed costs are too few "
            f"to certify one ({FEWEST} are needed): set safe=SafePolicy(policy, cost)"
        )
    tally = Tally.empty(setting, getattr(learner, "stationary", False)).add(Walks.of(*episodes))
    rules = Rules(np.zeros(setting.n_constraints), CONFIDENCE, 1, allowed_rows(setting, tally))
    baseline = cloned(tally, rules.allowed)
    margin = measured_margin(tally, setting.mu, baseline, rules)
    found = first_plan(tally, setting.mu, baseline, rules, margin)
    best = min((found.judged, found.baseline), key=lambda each: float(each.upper.max()))
    if best.upper.max() >= 0.0:
        raise InvalidInputError(
            f"{name} needs a policy that is strictly safe, but the {len(episodes)} logged episodes certify none: set "
            "safe=SafePolicy(policy, cost), or take SafeStart"
        )
    return SafePolicy(best.policy, np.maximum(best.upper, -setting.horizon), scaled=True)


def logged_by_a_safe_policy(cmdp: CMDP, nature: Nature, n: int, rng: np.random.Generator) -> tuple[Feedback, ...]:
    """Play the episodes that were logged before a run, by `logging_policy`, in the units of a learner."""
    if not n:
        return ()
    policy, found = logging_policy(cmdp), []
    for k in range(n):
        here = world_of(nature, cmdp, k)
        round_ = nature.draw(k, occupancy_under(here.laws, policy, here.initial))
        found.append(play_episode(here, round_, policy, nature.feedback, rng))
    return tuple(found)


def setting_in_units(cmdp: CMDP, feedback: FeedbackKind) -> Setting:
    """The setting of a problem whose feedback comes in the user's units."""
    told, scale = cmdp.setting(None, feedback), cmdp.cost_scale
    return replace(told, budget=cmdp.budget * scale, cost_scale=scale, reward_range=cmdp.reward_range)


def started(learner: Learner[Any], setting: Setting, logged: Sequence[Feedback]) -> Any:
    """The state before the first episode, with what logged episodes tell."""
    if isinstance(learner, Masked) and logged:
        first = learner.init(setting)
        blank = np.zeros(first.choices.inward(np.zeros(setting.shape)).shape)  # who played them is not known
        own = own_setting(setting, first.choices)
        named = [told(setting, first.choices, feedback, blank, k) for k, feedback in enumerate(logged)]
        return replace(first, inner=started(learner.inner, own, named))
    state = learner.init(setting)
    if not logged:
        return state
    *before, last = logged
    if hasattr(learner, "counted"):
        state = learner.counted(state, before)
    elif isinstance(getattr(state, "counts", None), Counts):
        state = replace(state, counts=reduce(Counts.add, before, state.counts))
    else:
        for feedback in before:
            state = learner.update(state, feedback)
    state = learner.update(state, last)
    return learner.like_logs(state) if isinstance(learner, SafeStart) else state


def updated(learner: Learner[Any], state: Any, feedback: Feedback, played: Floats | None) -> Any:
    """The state after an episode; a learner that weights by the policy it was played with is given that policy."""
    if played is not None and getattr(learner, "weights_by_policy", False):
        return learner.update(state, feedback, played)  # type: ignore[call-arg]
    return learner.update(state, feedback)


def learnt_in_part(learner: Learner[Any], state: Any, part: Feedback) -> Any | None:
    """The state after an episode's first steps; None for a learner that cannot count a part.

    `SafeStart` counts steps as it does those of logs, and so do learners that keep `Counts`: the last step without the
    state after it.  Learners that count in their own way take every visit but the last to have led somewhere.
    """
    if isinstance(learner, SafeStart) and isinstance(part, BanditFeedback):
        return learner.counted(state, [part])
    if not hasattr(learner, "counted") and isinstance(getattr(state, "counts", None), Counts):
        return replace(state, counts=state.counts.add(part))
    return None


def with_next_start(learner: Learner[Any], state: Any, initial: Floats) -> Any:
    """The state with the law of the next episode's first state."""
    if isinstance(learner, Masked):
        inner = with_next_start(learner.inner, state.inner, initial)
        return state if inner is state.inner else replace(state, inner=inner)
    if isinstance(learner, SafeStart):
        return learner.with_start(state, initial)
    if hasattr(state, "with_start"):
        return state.with_start(initial)
    setting = getattr(state, "setting", None)
    if not is_dataclass(state) or isinstance(state, type) or not isinstance(setting, Setting):
        raise InvalidInputError(
            f"{type(learner).__name__} does not keep its setting in its state, so an episode cannot start otherwise"
        )
    return replace(state, setting=replace(setting, initial=initial))


def start_of(state: Any) -> Floats | None:
    """The law of the first state that a learner plans for; None if it keeps none."""
    setting = getattr(state.inner if isinstance(state, MaskedState) else state, "setting", None)
    return setting.mu if isinstance(setting, Setting) else None


def replanned(learner: Learner[Any], state: Any) -> Any:
    """The state with a plan for its law of the first state, of learners that plan at once."""
    return learner.replanned(state) if isinstance(learner, SafeStart) else state


def takes_budget(learner: Learner[Any]) -> bool:
    """Whether a learner plans anew for another budget.

    It is told costs less the budget of the setting, also while another is in force.
    """
    return hasattr(learner, "with_budget")


def with_budget(learner: Learner[Any], state: Any, room: Floats) -> Any:
    """The state with a budget in force that is `room` more than the setting's, in the units of a learner."""
    return learner.with_budget(state, room)  # type: ignore[attr-defined]


def as_start(initial: npt.ArrayLike, setting: Setting) -> Floats:
    """The law of a first state."""
    return as_law("initial", initial, ["state"], [setting.n_states])


def fingerprint_of(learner: Learner[Any], setting: Setting, logged: Sequence[Feedback] | Log = ()) -> tuple[str, Facts]:
    """A hash of everything that learner, setting and what was logged before hold, and the same in words."""
    try:
        tree, arrays = pack((learner, setting, *logged))
        tree[1]["fields"].pop("names", None)  # what costs are called is for people to read: it may change
        facts = in_words(tree[0], arrays, "learner") | in_words(tree[1], arrays, "setting")
        # Sessions whose settings have no units and no seed keep the fingerprint they had before there were any.
        fields = tree[1]["fields"]
        for name in [name for name in ("budget", "cost_scale", "reward_range", "seed") if fields[name] is None]:
            del fields[name]
    except TypeError as error:
        raise InvalidInputError(
            f"a session on disk must be able to tell whose it is, so {type(learner).__name__} has to be a dataclass of "
            f"plain settings: {error}"
        ) from None
    # Numbers that JSON does not have are spelt in a fingerprint as they were before trees could hold them.
    text = re.sub(r'\{"number": "(NaN|-?Infinity)"\}', r"\1", json.dumps(tree, sort_keys=True))
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(arrays[name].tobytes())
    told = hashlib.sha256(b"".join(entry.encode() for entry in in_words(tree[2:], arrays, "logged").values()))
    facts["logged"] = f"{len(logged)} episodes ({told.hexdigest()[:10]})" if logged else NOTHING
    return digest.hexdigest(), facts


def owner_of(
    learner: Learner[Any], setting: Setting, given: Sequence[Feedback] | Log | Before, before: Before
) -> Owner:
    """Whose session it is, by the logs as they were given; and what they are to a learner."""
    fingerprint, facts = fingerprint_of(learner, setting, given.logged if isinstance(given, Before) else given)
    tree, arrays = pack((learner, setting))
    if not setting.says_starts:
        tree[1]["fields"]["initial"] = None
    alone = fingerprint_of(learner, setting)[0]
    return Owner(fingerprint, alone, facts, before.logged, before.start, before.names, (tree, arrays))


def whole_episodes(logged: Sequence[Feedback] | Log, setting: Setting) -> Sequence[Feedback] | Log:
    """What was logged, if no episode is shorter than the horizon."""
    lengths = logged.lengths if isinstance(logged, Log) else np.zeros(0)
    for k in np.flatnonzero(lengths < setting.horizon):
        raise InvalidInputError(
            f"episode {k} of the log has {lengths[k]} of {setting.horizon} steps, but a learner needs whole "
            "episodes: plan_from_logs and verdict_from_logs take short ones (log.with_short)"
        )
    return logged


def given_again(learner: Any, old: Setting, new: Setting) -> Any:
    """A session's learner as it is given to another session: a safe policy says in which units its cost is."""
    safe = getattr(learner, "safe", None)
    if not isinstance(safe, SafePolicy):
        return learner
    same = np.array_equal(old.limits, new.limits) and np.array_equal(old.scales, new.scales)
    cost = safe.cost if same else old.limits + old.scales * safe.cost
    return replace(learner, safe=replace(safe, cost=cost, scaled=same or None))


def in_learner_units(learner: Learner[Any], setting: Setting) -> Learner[Any]:
    """The learner with a safe policy in its own units, where one was given in those of the setting."""
    scaled: Learner[Any] = with_scaled_safe_policy(learner, setting.limits, setting.scales)
    return scaled
