"""What a session starts from, and whose it is: learner, setting and logs, checked and as a fingerprint with words."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from omdpd.learners.needs import with_scaled_safe_policy
from omdpd.learners.protocol import Learner
from omdpd.play.logs import Log
from omdpd.play.start import Before
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Feedback, Setting
from omdpd.storage.owners import NOTHING, Facts, Owner
from omdpd.storage.packing import in_words, pack


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
    return Owner(fingerprint, fingerprint_of(learner, setting)[0], facts, before.logged, before.start, before.names)


def whole_episodes(logged: Sequence[Feedback] | Log, setting: Setting) -> Sequence[Feedback] | Log:
    """What was logged, if no episode is shorter than the horizon."""
    lengths = logged.lengths if isinstance(logged, Log) else np.zeros(0)
    for k in np.flatnonzero(lengths < setting.horizon):
        raise InvalidInputError(
            f"episode {k} of the log has {lengths[k]} of {setting.horizon} steps, but a learner needs whole "
            "episodes: plan_from_logs and verdict_from_logs take short ones (log.with_short)"
        )
    return logged


def in_learner_units(learner: Learner[Any], setting: Setting) -> Learner[Any]:
    """The learner with a safe policy in its own units, where one was given in those of the setting."""
    scaled: Learner[Any] = with_scaled_safe_policy(learner, setting.limits, setting.scales)
    return scaled
