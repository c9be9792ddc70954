"""A session in operation: other budgets, policies of before, alarms, shadows, and what is known of its policy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omdpd.learners.protocol import Report
from omdpd.learners.safe_start import SafeStart
from omdpd.play.alarms import Alarm
from omdpd.play.episodes import Entry, checked_budget, within_budget
from omdpd.play.forecast import Forecast, forecast_of_state
from omdpd.play.logs import Log
from omdpd.play.policy import Policy
from omdpd.play.session_entries import Entries
from omdpd.play.start import with_next_start
from omdpd.play.verdict import Verdict, verdict_from_logs
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import BanditFeedback, Feedback, Setting
from omdpd.storage.entries import Whole
from omdpd.storage.journal import SessionWarning

if TYPE_CHECKING:
    from omdpd.play.session import Session


class Operation(Entries):
    """What the owner of a session does beside playing."""

    def set_budget(self, budget: npt.ArrayLike) -> None:
        """Give the episodes that begin from now on another budget.

        The learner has a plan for it when this returns: `SafeStart` from what it counted, others from all that was
        told, counted again.  A session in memory does not keep that: there others come to keep it as they learn.  One
        for which `SafeStart` certifies no plan is warned of, if the baseline may go over it.
        """
        limit = checked_budget(self.setting, budget)
        with self._learning.taken(), self._keeping.taken():
            with self._turn.taken():
                self._check_open()
                if limit == self.books.budget:
                    return
                if not self._lags:
                    self.mind.learn()
            self._put_in_force({"do": "budget", "budget": limit}, lambda: self._planned(limit))
        if isinstance(self.learner, SafeStart) and self._state.forecast and (doubt := self.forecast().warning):
            warnings.warn(f"the budget {limit}: {doubt.removeprefix('WARNING: ')}", SessionWarning, stacklevel=2)

    def _put_in_force(self, entry: Entry, planned: Callable[[], Any]) -> None:
        """Plan while others act and tell, then enter what was planned for; again if an episode was learnt meanwhile."""
        while True:
            before, state = self.mind.state, planned()
            with self._turn.taken():
                self._check_open()
                if self.mind.state is before:
                    self._enter(entry | {"learnt": self.mind.learnt})
                    return self.mind.become_within(state)

    def _start_at(self, law: Floats) -> None:
        """Plan for another law of the first state at once."""
        with self._learning.taken(), self._keeping.taken():
            with self._turn.taken():
                if not self._lags:
                    self.mind.learn()
            if with_next_start(self._player, self.mind.state, law) is not self.mind.state:
                self._put_in_force({"do": "start", "law": law.tolist()}, lambda: self.mind.starting(law))

    def rollback(self, to: int | None) -> None:
        """Play a policy of before in the episodes that begin from now on: that of a snapshot after `to` episodes.

        The learner goes on learning; None plays its policy again.
        """
        name = None if to is None else f"kept {to}"
        if name is not None and to not in (known := self.kept_policies):
            raise InvalidInputError(f"no policy was kept after {to} episodes, but after {', '.join(map(str, known))}")
        with self._turn.taken():
            self._check_open()
            if name != self.books.playing:
                self._enter({"do": "play", "policy": name})

    @property
    def kept_policies(self) -> tuple[int, ...]:
        """After how many episodes policies were kept that `rollback` may go back to."""
        names = {name.split(" ")[1] for name in list(self.mind.kept) if name.startswith("kept ")}
        names |= set() if self._journal is None else set(self._journal.policies())
        return tuple(sorted(int(name) for name in names if name.isdecimal()))

    def keep_policy(self) -> int:
        """Keep the learner's policy to go back to; after how many episodes it is."""
        with self._turn.taken():
            self.mind.keep(f"kept {self.learnt}", self._player.policy(self.mind.state), self.books.playing)
        return self.learnt

    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms as they stand; `omdpd.play.alarms` says what each goes by."""
        return self.books.watch.alarms(self.setting.cost_names, sum(self.mind.capped))

    def follow(self, shadow: Session) -> None:
        """Tell another session all that this one is told, from the first episode on: a shadow, which plays nothing.

        Call it again after opening both: what the shadow missed is told to it then.
        """
        self._catch_up(shadow)
        self._followers.append(shadow)

    def judge(self, policy: Policy | npt.ArrayLike, resamples: int = 200) -> Verdict:
        """What a policy would have earned and cost in the last episodes, off-policy: a shadow's, say."""
        recent = [each for each in self.books.recent if each.how != "cut"]
        if not recent:
            raise InvalidInputError("no episode has ended yet, so nothing can be judged")
        log = Log.from_episodes((each.feedback for each in recent), self.setting.cost_names)
        chances = [each.chances for each in recent if each.chances is not None]
        if len(chances) == len(recent):
            log = replace(log, propensities=np.concatenate(chances))
        return verdict_from_logs(within_budget(self.setting, self.books.budget), log, policy, resamples=resamples)

    def _catch_up(self, other: Session) -> None:
        """Tell another session the episodes that it was not told yet."""
        if self._journal is None:
            raise InvalidInputError("a session in memory does not keep what it was told: open one in a folder")
        if other.episodes >= self.episodes:
            return
        with self._keeping.taken():  # no snapshot moves what is read
            for item in islice(self._told(self._journal), other.episodes, None):
                if isinstance(item, Whole):
                    other.update(_in_units(self.setting, item.feedback), item.initial)
                else:
                    other.take_over(item)
                    other.learn_next()

    def forecast(self) -> Forecast:
        """What the next episode will earn and cost, in the units of the setting: of sessions with `SafeStart`."""
        if not isinstance(self.learner, SafeStart):
            raise InvalidInputError(f"{type(self.learner).__name__} forecasts nothing: SafeStart does")
        found = forecast_of_state(self.setting, self._state, self.learner.confidence, self.base_budget())
        ringing = ", ".join(alarm.name for alarm in self.alarms() if alarm.rings)
        doubt = f" Do not rely on it while an alarm rings ({ringing})." if ringing else ""
        return replace(found, what=f"{found.what}{doubt}")

    def report(self) -> Report:
        """The learner's numbers: step size, weight, certificates of its solves."""
        return self._player.report(self.mind.state)


def _in_units(setting: Setting, feedback: Feedback) -> Feedback:
    """What was told, as it was before it was scaled for the learner."""
    low, high = setting.reward_range or (0.0, 1.0)
    rewards = low + (high - low) * feedback.rewards
    if setting.budget is None or not isinstance(feedback, BanditFeedback):
        return replace(feedback, rewards=rewards)
    share = setting.limits[:, None] / setting.horizon
    return BanditFeedback(feedback.trajectory, rewards, share + setting.scales[:, None] * feedback.costs)
