"""What any policy would earn and cost, from logs of others (off-policy evaluation), with intervals.

    by model            the empirical model's value, with its standard error (`learners/safe/supported.py`)
    by resampling       the same, and the spread over logs whose episodes are drawn anew with replacement, over the
                        share of the variance that so shows: of a row seen n times (n - 1) / n
    by weights          sum_h sum_k rho_kh x_kh / sum_k rho_kh,   rho_kh = prod_{j<=h} pi(a|s) / beta(a|s)
    doubly robust       by weights, of what the model does not explain: x + V(s') - Q(s, a), added to the model's V;
                        the model of an episode is made of the other seven of eight folds, which it did not shape

What the model does not know of pairs never tried is in both intervals.  Expected is the policy with its chances of such
actions given to the others of their states; the standard error also has, as one more independent error, by how much
the policy as it is differs where such pairs cost the most that was seen, earn the least, and lead nowhere else.

Weights need the propensities beta of the policy that played.  Estimates by weights are ratios with heavy tails: their
standard error is the jackknife's (one episode left out at a time), times Student's quantile for as many episodes as the
weights of the last step are worth.  The policy must not have been chosen with these logs: a
plan made of them flatters itself, and `plan_from_logs` forecasts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from omdpd.learners.safe.first_plan import check_confidence
from omdpd.learners.safe.supported import padded, supported
from omdpd.learners.safe.tally import FOLDS, Tally, Walks, folds_of
from omdpd.play.from_logs import tally_of
from omdpd.play.logs import Log, as_logged
from omdpd.play.policy import Policy, table_of
from omdpd.problem.arrays import Floats, Integers, InvalidInputError, whole_number
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.listed import listed_values
from omdpd.solvers.sweeps import lists_of

# A policy that is on pairs never tried for more than this share of its steps is not evaluated.
MOST_UNTRIED = 0.01
# Episodes that weights must be worth: of fewer, their spread says nothing.
LEAST_EFFECTIVE = 10.0


@dataclass(frozen=True, eq=False)
class OffPolicyEstimate:
    """Value and costs (1 + I,): expected, and the ends of an interval."""

    expected: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """What logs say of a policy; estimators that cannot be had are None.

    Attributes
    ----------
    by_model, by_resampling, by_weights, doubly_robust
        Estimates; each end of an interval holds with `confidence`.
    untried
        The share of its steps on pairs that were never tried.
    effective
        Episodes that the weights of the last step are worth; None without propensities.
    refusal
        Why there are no estimates; empty where there are.
    """

    by_model: OffPolicyEstimate | None
    by_resampling: OffPolicyEstimate | None
    by_weights: OffPolicyEstimate | None
    doubly_robust: OffPolicyEstimate | None
    untried: float
    effective: float | None
    budget: Floats
    names: tuple[str, ...]
    confidence: float
    refusal: str = ""

    @property
    def within(self) -> bool | None:
        """Whether every budget holds with the confidence, by the model; None where the logs cannot tell."""
        if self.by_model is None:
            return None
        if (self.by_model.high[1:] <= self.budget).all():
            return True
        return False if (self.by_model.low[1:] > self.budget).any() else None

    def lines(self) -> list[str]:
        """The verdict for a person."""
        if self.refusal:
            return [self.refusal]
        answer = {True: "within every budget", False: "over a budget", None: "the logs cannot tell"}[self.within]
        text = [f"{answer}, with {100 * self.confidence:.3g} % for each; {100 * self.untried:.2g} % of steps untried"]
        text.append(f"{'':<16}" + "".join(f"{name:>34}" for name in ("reward", *self.names)))
        for name in ("by_model", "by_resampling", "by_weights", "doubly_robust"):
            found: OffPolicyEstimate | None = getattr(self, name)
            if found is not None:
                ends = zip(found.expected, found.low, found.high, strict=True)
                cells = (f"{x:.5g} ({low:.5g} to {high:.5g})" for x, low, high in ends)
                text.append(f"{name.replace('_', ' '):<16}" + "".join(f"{cell:>34}" for cell in cells))
        text.append(f"{'budget':<16}{'':>34}" + "".join(f"{b:>34.5g}" for b in self.budget))
        if self.effective is not None:
            few = "" if self.by_weights else f", fewer than {LEAST_EFFECTIVE:g}: nothing is concluded from them"
            text.append(f"weights of the last step are worth {self.effective:.1f} episodes{few}")
        return text

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Verdict({self.refusal or f'within: {self.within}'})"


def verdict_from_logs(
    setting: Setting,
    log: Log,
    policy: Policy | npt.ArrayLike,
    confidence: float = 0.95,
    stationary: bool = True,
    resamples: int = 200,
    seed: int = 0,
) -> Verdict:
    """What a policy would earn and cost, and whether it is within its budgets, from logs of others.

    Logs that do not cover the policy are refused in words (`Verdict.refusal`).  `resamples=0` leaves out resampling.
    """
    check_confidence("confidence", confidence)
    whole_number("resamples", resamples, 0)
    tally, table = tally_of(setting, log, stationary), table_of(policy, setting.shape)
    setting = as_logged(setting, log, log.names)
    model = supported(tally, tally.sample(), setting.mu, 1)
    q = model.occupancy(table)
    untried = model.share(q, model.visits == 0.0)
    facts = (setting.limits, log.names, confidence)
    if untried > MOST_UNTRIED:
        why = (
            f"the logs do not cover this policy: {100 * untried:.3g} % of its steps are on pairs of state and action "
            "that were never tried"
        )
        return Verdict(None, None, None, None, untried, None, *facts, refusal=why)
    z, rng = NormalDist().inv_cdf(confidence), np.random.default_rng(whole_number("seed", seed, 0))
    tried = model.with_tried_only(table)
    totals = model.totals(model.occupancy(tried))
    unknown = totals - model.totals(q)
    by_model = _around(totals, z * np.hypot(model.errors(table, q, False)[0], unknown))
    spread = (
        _resampled(setting, log, tried, stationary, resamples, rng) / np.sqrt(model.shown(q)) if resamples else None
    )
    by_resampling = None if spread is None else _around(totals, z * np.hypot(spread, unknown))
    weighted = robust = effective = None
    if log.propensities is not None:
        rho = _ratios(log, table)
        effective = float(rho[:, -1].sum() ** 2 / max((rho[:, -1] ** 2).sum(), 1e-300))
        if effective >= LEAST_EFFECTIVE:
            student = float(stdtrit(effective - 1.0, confidence))
            wide = student * (len(log) - 1.0) / np.sqrt(len(log))  # of the jackknife
            met = _padded_steps(log, np.vstack([log.rewards[None], log.costs]), setting.horizon)
            weighted = _jackknifed(_weighted(met, rho), wide)
            robust = _jackknifed(_robust(log, tally, setting.mu, table, rho), wide)
    return Verdict(by_model, by_resampling, weighted, robust, untried, effective, *facts)


def _around(expected: Floats, width: Floats) -> OffPolicyEstimate:
    """An interval of a width to either side."""
    return OffPolicyEstimate(expected, expected - width, expected + width)


def _jackknifed(found: Floats, wide: float) -> OffPolicyEstimate:
    """An interval by the spread of what came of logs without one episode; found (1 + K, 1 + I), of all first."""
    return _around(found[0], wide * found[1:].std(axis=0, ddof=1))


def _resampled(
    setting: Setting, log: Log, policy: Floats, stationary: bool, resamples: int, rng: np.random.Generator
) -> Floats:
    """The spread of the model's totals (1 + I,), over logs whose episodes are drawn anew with replacement."""
    whole, found = tally_of(setting, log, stationary).sample(), []
    for _ in range(resamples):
        chosen = rng.integers(len(log), size=len(log))
        rows = np.concatenate([np.arange(log.starts[k], log.starts[k + 1]) for k in chosen])
        starts = np.r_[0, np.cumsum(log.lengths[chosen])]
        met = (starts, log.states[rows], log.actions[rows], log.rewards[rows], log.costs[:, rows])
        tally = Tally.empty(setting, stationary).add(Walks(*met, over=log.short == "over"))
        model = supported(tally, tally.sample().filled(whole), setting.mu, 1)
        found.append(model.totals(model.occupancy(policy)))
    return np.asarray(np.std(found, axis=0, ddof=1))


def _padded_steps(log: Log, values: Floats, H: int) -> Floats:
    """Values (J, N) as (J, K, H), zero after an episode that ended early; one that was cut is refused."""
    if log.short == "cut" and log.lengths.min() < H:
        raise InvalidInputError("episodes whose ends were not logged cannot be weighted: leave the propensities out")
    table = np.zeros((len(values), len(log), H))
    table[:, *_places(log)] = values
    return table


def _places(log: Log) -> tuple[Integers, Integers]:
    """The episode and the step of every row."""
    return np.nonzero(np.arange(log.lengths.max()) < log.lengths[:, None])  # type: ignore[return-value]


def _ratios(log: Log, policy: Floats) -> Floats:
    """rho_kh, (K, H): how much more likely the policy takes the actions up to step h than the one that played."""
    each = policy[_places(log)[1], log.states, log.actions] / np.asarray(log.propensities)
    return np.asarray(np.cumprod(1.0 + _padded_steps(log, each[None] - 1.0, len(policy))[0], axis=1), dtype=np.float64)


def _weighted(values: Floats, rho: Floats) -> Floats:
    """sum_h of the weighted means of values (J, K, H): of all episodes, and without each of them, (1 + K, J)."""
    below = np.maximum(_left_out(rho), 1e-300)
    return np.array([(_left_out(rho * each) / below).sum(axis=1) for each in values]).T


def _left_out(terms: Floats) -> Floats:
    """The sum of terms (K, H) over episodes, and the sums without each of them, (1 + K, H)."""
    total = terms.sum(axis=0)
    return np.concatenate([total[None], total - terms])


def _robust(log: Log, tally: Tally, initial: Floats, policy: Floats, rho: Floats) -> Floats:
    """The weighted doubly robust estimate: of all episodes, and without each of them, (1 + K, 1 + I)."""
    H, (episode, step), fold = len(policy), _places(log), folds_of(0, len(log))
    before = np.concatenate([np.ones((len(log), 1)), rho[:, :-1]], axis=1)
    surprise = np.vstack([log.rewards[None], log.costs])
    ahead = np.zeros_like(surprise)
    for own in range(FOLDS):
        model, rows = supported(tally, tally.sample(tuple({*range(FOLDS)} - {own})), initial, 1), fold[episode] == own
        for j, table in enumerate(model.tables):
            togo = listed_values(*lists_of(model.laws), padded(policy), np.ascontiguousarray(table))
            expected = table + np.array([model.laws.backward(togo[h + 1], h) for h in range(H)])
            ahead[j, rows] = togo[step, log.states][rows]
            surprise[j, rows] -= expected[step, log.states, log.actions][rows]
    return _weighted(_padded_steps(log, surprise, H), rho) + _weighted(_padded_steps(log, ahead, H), before)
