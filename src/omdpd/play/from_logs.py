"""From logs to a policy for the next episode, with a forecast of it.

A plan uses what was tried often enough, and stays below every budget by what is not known of it and by what choosing
the best plan flatters itself.  Where the logs certify nothing, the baseline is the answer, and it is said why.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omdpd.learners.needs import SafePolicy
from omdpd.learners.safe.first_plan import (
    FEWEST,
    Rules,
    allowed_rows,
    check_confidence,
    cloned,
    first_plan,
    measured_margin,
)
from omdpd.learners.safe.supported import Flags
from omdpd.learners.safe.tally import Tally, Walks
from omdpd.play.forecast import Forecast, forecast_of
from omdpd.play.logs import KNOWN, Log, as_logged
from omdpd.play.policy import Policy, table_of
from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer
from omdpd.problem.setting import Setting


@dataclass(frozen=True, eq=False)
class Planned:
    """A policy for the next episode and what is forecast of it; `certified` is False where it is the baseline."""

    policy: Policy
    forecast: Forecast
    certified: bool

    def __str__(self) -> str:
        return str(self.forecast)


def plan_from_logs(
    setting: Setting,
    log: Log,
    baseline: Policy | SafePolicy | npt.ArrayLike | None = None,
    confidence: float = 0.95,
    least: int = KNOWN,
    stationary: bool = True,
) -> Planned:
    """The best policy that logs certify to be within every budget, or the baseline; with a forecast in their units.

    Parameters
    ----------
    setting
        Sizes, the law of the first state (that of the logs if it was not said), the budgets (0 if it has none: costs
        come less their budget), and the actions that are allowed, to the baseline too.
    log
        Episodes of any policies.
    baseline
        What is played where the logs certify nothing, and in states they never saw; cloned from the logs if None.
    confidence
        With which each budget is to hold, above 0.5.
    least
        Tries from which on a state-action pair may be planned with.
    stationary
        Whether the world is the same at every step, so that all steps tell of each; if not, every step needs its own.
    """
    check_confidence("confidence", confidence)
    if len(log) < FEWEST:
        raise InvalidInputError(f"the log has {len(log)} episodes, but at least {FEWEST} are needed to judge plans by")
    tally, setting = tally_of(setting, log, stationary), as_logged(setting, log, log.names)
    rules = Rules(setting.limits, confidence, positive_integer("least", least), allowed_rows(setting, tally))
    played = cloned(tally, rules.allowed) if baseline is None else _table(setting, baseline, rules.allowed)
    margin = measured_margin(tally, setting.mu, played, rules)
    found = first_plan(tally, setting.mu, played, rules, margin)
    forecast = forecast_of(found, tally, rules, log.names, baseline is not None)
    return Planned(Policy(found.judged.policy), forecast, found.certified)


def tally_of(setting: Setting, log: Log, stationary: bool) -> Tally:
    """The counts of a log; one that does not fit is refused."""
    log.checked(setting)
    met = (log.starts, log.states, log.actions, log.rewards, log.costs)
    return Tally.empty(setting, stationary).add(Walks(*met, over=log.short == "over"))


def _table(setting: Setting, baseline: Policy | SafePolicy | npt.ArrayLike, allowed: Flags | None) -> Floats:
    """A baseline that was given, (H, S, A); one that plays what is not allowed is refused."""
    table = table_of(baseline.policy if isinstance(baseline, SafePolicy) else baseline, setting.shape)
    for h, s, a in np.argwhere((table > 0.0) & ~allowed) if allowed is not None else ():
        raise InvalidInputError(f"the baseline plays action {a} in state {s} at step {h}, which is not allowed")
    return table
