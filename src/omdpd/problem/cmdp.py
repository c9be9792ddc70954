"""The truth: a constrained Markov decision process, and what one episode of it holds.  Closed to learners.

A policy is safe in an episode when V(d_i) <= 0 for every constraint i, where d_i = c_i - b_i / H is the cost
table with its budget spread over the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import (
    Floats,
    InvalidInputError,
    as_law,
    as_range,
    as_table,
    numbers,
    one_step,
    over_steps,
    positive_integer,
    within,
)
from omdpd.problem.changed import with_budget, with_scenarios
from omdpd.problem.forms import Axes, LawFunction, filled_tables, read_laws
from omdpd.problem.labels import Labels as Labels
from omdpd.problem.labels import Scenarios as Scenarios
from omdpd.problem.laws import Laws
from omdpd.problem.markup import facts_html, table_html
from omdpd.problem.masks import Allowed, Mask, as_mask, fitted
from omdpd.problem.records import fast_init
from omdpd.problem.setting import FeedbackKind, Setting
from omdpd.problem.tables import (
    ASKED_FOR,
    Budget,
    as_discount,
    cost_scale,
    limit_name,
    limits,
    long_run_name,
    long_run_steps,
    reached_limits,
    sizes,
    spanned,
    wide,
    with_steps,
)

if TYPE_CHECKING:
    from omdpd.play.curve import Curve
    from omdpd.play.solution import Solution

Noise = Literal["exact", "two-point", "beta", "own-range"]


@dataclass(frozen=True, eq=False)
class CMDP:
    """A finite-horizon constrained MDP with mean tables; build one with `from_arrays`, which checks them.

    Large tables that are the same at every step are views of one step.

    Attributes
    ----------
    laws : Laws
        p_h(s'|s,a), as lists of successors or as a table; the last step's rows lead nowhere and are kept for a uniform
        shape.
    initial : (S,)
        The law of the first state.
    reward : (H, S, A)
        Mean rewards in [0, 1].
    cost : (I, H, S, A)
        Mean costs, divided by `cost_scale`.
    budget : (I,)
        What an episode may cost in expectation, divided too; `limits` are the user's, and `with_budget` takes them.
    cost_scale : (I,)
        The number by which the user's costs and budgets were divided to fit; 1 if they fitted.
    reward_range : (float, float)
        What rewards of 0 and 1 are in the user's units.
    range_given : bool
        Whether that range was given or is [0, 1]; otherwise it is what the table spans, enough to plan.
    labels, scenarios
        Names for people; other cost tables that a natural adversary may pick.
    discount : float, optional
        In a problem without an end, whose tables are of one step: below 1 of discounted totals, 1 of averages per step.
    mask : Mask, optional
        Which actions are allowed; the rows of those that are not are copies of the first that is.
    unlimited : (I,)
        Which constraints have no limit: their `budget` is far above what an episode can cost.
    """

    laws: Laws
    initial: Floats
    reward: Floats
    cost: Floats
    budget: Floats
    cost_scale: Floats
    name: str = "own"
    reward_range: tuple[float, float] = (0.0, 1.0)
    range_given: bool = True
    labels: Labels = Labels()
    scenarios: Scenarios | None = None
    discount: float | None = None
    mask: Mask | None = None
    unlimited: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1, bool))
    _divided: tuple[Floats, Floats] | None = None

    def __post_init__(self) -> None:
        """Refuse costs or budgets that were replaced without their scale: their units are unknown."""
        kept = (self.cost, self.budget)
        if self._divided is not None and any(new is not old for new, old in zip(kept, self._divided, strict=True)):
            raise InvalidInputError(
                "cost and budget of a problem are kept divided by its cost_scale and cannot be replaced: give budgets "
                "in your units to cmdp.with_budget, and other costs to CMDP.from_arrays"
            )
        if self.scenarios is not None and self.discount is not None:
            raise InvalidInputError("scenarios are costs of episodes, but this problem has no end: it cannot have any")
        object.__setattr__(self, "_divided", kept)
        object.__setattr__(self, "unlimited", np.broadcast_to(self.unlimited, self.budget.shape))

    @staticmethod
    def from_arrays(
        transition: Any,
        reward: npt.ArrayLike,
        cost: npt.ArrayLike,
        budget: Budget = ASKED_FOR,
        initial: npt.ArrayLike | None = None,
        horizon: int | None = None,
        rescale: bool = True,
        *,
        axes: Axes | None = None,
        reward_range: npt.ArrayLike | None = None,
        discount: float | None = None,
        criterion: Literal["average"] | None = None,
        allowed: Allowed = None,
        labels: Labels | None = None,
    ) -> CMDP:
        """Build a CMDP from tables, and say which entry is wrong if one is.

        Step-dependent: transition (H, S, A, S), reward (H, S, A), cost (H, S, A) or (I, H, S, A).
        Stationary: transition (S, A, S) with `horizon`, reward (S, A), cost (S, A) or (I, S, A).
        `budget`, which is always asked for, has a number for each constraint, in a list or by name (None: no limit, the
        cost is only reported); `initial` is uniform if not given.
        Rewards, costs and budgets may be in any units, and are shown in them again.  Costs and budget of a constraint
        that do not fit into [-1, 1] per step are kept divided by what makes them fit (see `cost_scale`), or refused
        with ``rescale=False``.  To learn, rewards outside [0, 1] need `reward_range`, the least and the largest that a
        step can earn.  `labels` name states, actions and constraints:
        ``Labels(states=..., actions=..., constraints=...)``.

        `transition` may also be a sparse matrix (S A, S), a list of A sparse matrices (S, S), or a list of either per
        step.  It may be lists ``laws[s][a] = [(probability, next state), ...]``, a function of state and action that
        gives such a list, or `Laws` (see `omdpd.problem.forms`).  Nothing of size S A S is made then.  Say
        ``axes="ASS"`` of a table with the action first (``"HASS"`` by step).

        `allowed` (S, A) or (H, S, A), or a function of state and action, says which actions exist; every state needs
        one.  What the tables hold for the others does not matter.

        Without a horizon: `discount` below 1 makes values, costs and budgets discounted totals,
        ``criterion="average"`` makes them averages per step in the long run.  Such a problem is solved, not learnt.

        >>> p = np.full((2, 2, 2), 0.5)
        >>> cmdp = CMDP.from_arrays(p, [[0, 1], [0, 1]], [[0, 1], [0, 1]], budget=1.5, horizon=3)
        >>> cmdp.shape, float(cmdp.excess.max())
        ((3, 2, 2), 0.5)
        """
        r, c = numbers("reward", reward), numbers("cost", cost)
        mask = as_mask(allowed, sizes(r, transition))
        gamma = as_discount(discount, criterion, horizon)
        seen = None if mask is None else mask.allowed
        laws, once = read_laws(transition, sizes(r, transition), horizon if gamma is None else 1, axes, seen)
        H, S, A = laws.shape
        steps, mask = long_run_steps(gamma, H), fitted(mask, H)
        r, c = with_steps(r, c, laws.shape, once)
        if mask is not None:
            laws, r, c = mask.laws(laws), mask.everywhere(r), mask.everywhere(c)
        r = as_table("reward", r, ["step", "state", "action"], [r.shape[0], S, A])
        low, high = as_range("reward_range", spanned(r) if reward_range is None else reward_range)
        within("reward", r, low, high, ["step", "state", "action"], "give the range of rewards as reward_range")
        r = (r - low) / (high - low)
        c = as_table("cost", c, ["constraint", "step", "state", "action"], [None, None, S, A])
        names = Labels() if labels is None else labels
        names.check(S, A, c.shape[0])
        start = np.full(S, 1.0 / S) if initial is None else initial
        mu = as_law("initial", start, ["state"], [S])
        limit = limits(budget, names.counted(n_constraints=c.shape[0]).constraints)
        b, free = reached_limits(c, limit, steps), np.isinf(limit)
        scale = cost_scale(c, b, steps, free | rescale)
        c = over_steps(c / wide(scale), H, 1)
        return CMDP(
            laws, mu, over_steps(r, H, 0), c, b / scale, scale, unlimited=free, reward_range=(low, high),
            discount=gamma, mask=mask, range_given=reward_range is not None or (low, high) == (0.0, 1.0), labels=names,
        )  # fmt: skip

    @staticmethod
    def from_functions(
        sizes: tuple[int, int, int],
        law: LawFunction,
        reward: Callable[[int, int], float],
        cost: Callable[[int, int], Any],
        budget: Budget = ASKED_FOR,
        initial: npt.ArrayLike | None = None,
        rescale: bool = True,
        *,
        reward_range: npt.ArrayLike | None = None,
        allowed: Allowed = None,
        labels: Labels | None = None,
    ) -> CMDP:
        """Build a stationary CMDP of `sizes` (H, S, A) from functions of state and action.

        `law` gives pairs (probability, next state), `cost` one number or one per constraint.

        >>> fair = [(0.5, 0), (0.5, 1)]
        >>> coin = CMDP.from_functions((4, 2, 1), lambda s, a: fair, lambda s, a: s, lambda s, a: [0, s], [1, 1])
        >>> coin.shape, coin.n_constraints
        ((4, 2, 1), 2)
        """
        names = ("horizon", "n_states", "n_actions")
        H, *pair = (positive_integer(name, n) for name, n in zip(names, sizes, strict=True))
        S, A = pair
        mask = as_mask(allowed, (S, A))
        ever = np.ones((S, A), bool) if mask is None else mask.ever
        asked = np.where(ever, np.arange(A), ever.argmax(axis=1)[:, None])  # of others nothing is asked
        rewards, costs = (
            filled_tables(lambda s, a, f=f: f(s, int(asked[s, a])), (S, A), name)
            for name, f in (("reward", reward), ("cost", cost))
        )
        given = None if mask is None else mask.allowed
        return CMDP.from_arrays(
            law, rewards, costs, budget, initial, H, rescale, reward_range=reward_range, allowed=given, labels=labels
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        H, S, A = self.reward.shape
        return (H, S, A)

    @property
    def n_constraints(self) -> int:
        """I."""
        return int(self.cost.shape[0])

    @property
    def steps(self) -> float:
        """Over how many steps a budget is spread: H; in the long run 1 / (1 - discount), or 1 of an average."""
        return long_run_steps(self.discount, self.shape[0])

    @property
    def limits(self) -> Floats:
        """The budgets in the user's units, infinite where there is no limit, (I,)."""
        return np.where(self.unlimited, np.inf, self.budget * self.cost_scale)

    @property
    def excess(self) -> Floats:
        """d_i = c_i - b_i / H, ``(I, H, S, A)``: an episode is safe when its expected sum is at most zero."""
        return over_steps(one_step(self.cost, 1) - wide(self.budget / self.steps), self.shape[0], 1)

    @property
    def transition(self) -> Floats:
        """The laws as a table (H, S, A, S); refused with its size where it would be too large."""
        return self.laws.expand()

    @property
    def stationary(self) -> bool:
        """Whether the dynamics are the same at every step."""
        return self.laws.stationary

    def labelled(self, name: str, labels: Labels | None = None) -> CMDP:
        """The same problem with a name and labels; a list of the wrong length is refused."""
        labels = Labels() if labels is None else labels
        labels.check(*self.shape[1:], self.n_constraints)
        return replace(self, name=name, labels=labels)

    def with_budget(self, budget: Budget, rescale: bool = True) -> CMDP:
        """The same problem with another budget in the user's units, given as to `from_arrays`, which would build it.

        Of budgets by name those that are not named stay: ``with_budget({"staff hours": 30})``.

        >>> one = CMDP.from_arrays(np.ones((1, 2, 1)), [[0, 1]], [[0, 30]], budget=45, horizon=3)
        >>> one.with_budget(60)
        CMDP(own: 1 states, 2 actions, 3 steps, budget 60)
        """
        return with_budget(self, budget, rescale)

    def with_spent(
        self,
        constraint: int | str,
        levels: npt.ArrayLike,
        chance: float = 0.0,
        *,
        round_up: bool = False,
        outcomes: Any = None,
    ) -> CMDP:
        """The same problem with what a constraint has cost so far in its state, and a limit at the last level.

        The constraint is named, or counted from 0.  The problem has one more: the chance that an episode ever costs
        more than ``levels[-1]`` (in the user's units) is at most `chance`; 0 is a hard limit.  It is exact where every
        sum of costs up to there is a level; with ``round_up=True`` sums between levels count as the upper one, which is
        safe.  State s after spending level i is state ``i S + s``; scenarios are left behind.  What does not fit into
        this machine is refused before it is built; `omdpd.problem.spent.size_with_spent` says how large it would be.

        The cost table is taken for what is paid.  Where it is the mean of a random cost, such as the chance of an
        event, its sums are not what an episode spends.  Then give ``outcomes[s][a] = [(probability, next state, cost),
        ...]``, or a function of state and action that gives such a list.  Where laws or costs change by step, it is
        ``outcomes[h][s][a]``, or a function of all three.  Beyond the limit an episode has none any more.

        >>> two = CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.0, 1.0]], budget=None, horizon=3)
        >>> round(two.with_spent(0, [0, 1, 2], chance=0.25).solve().value, 9)
        2.25
        """
        from omdpd.problem.spent import with_spent

        return with_spent(self, constraint, levels, chance, round_up, outcomes)

    def with_scenarios(self, costs: Mapping[str, npt.ArrayLike]) -> CMDP:
        """The same problem with other cost tables in the user's units, each of the shape that `from_arrays` takes.

        They keep the budgets.  Where one of them leaves [-1, 1] per step, the constraint is divided once more, here
        and in the means, so that all of them share one scale.
        """
        return with_scenarios(self, costs)

    def __repr__(self) -> str:
        H, S, A = self.shape
        length = f"{H} steps" if self.discount is None else long_run_name(self.discount)
        return f"CMDP({self.name}: {S} states, {A} actions, {length}, budget {', '.join(map(limit_name, self.limits))})"

    def _repr_html_(self) -> str:
        """The problem in a notebook: sizes and budgets; `omdpd.worlds.card.problem_card` solves it."""
        H, S, A = self.shape
        names = self.labels.counted(n_constraints=self.n_constraints).constraints
        rows = [(name, limit_name(b)) for name, b in zip(names, self.limits, strict=True)]
        steps = H if self.discount is None else f"without an end, {long_run_name(self.discount)}"
        facts = {"states": S, "actions": A, "steps": steps, "dynamics": "stationary" if self.stationary else "by step"}
        budget = "budget per episode" if self.discount is None else "budget"
        return facts_html(f"problem {self.name}", facts, table_html(("constraint", budget), rows))

    def solve(self) -> Solution:
        """The optimum under the budgets with its policy and shadow prices; or that none exists, and what comes nearest.

        >>> two = CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.0, 1.0]], budget=1.5, horizon=3)
        >>> two.solve().value, two.solve().shadow_prices.tolist()
        (1.5, [1.0])
        """
        # What goes up (see the contract in pyproject.toml): who has a problem looks here for its answers.
        from omdpd.play.solution import solve

        return solve(self)

    def curve(self, constraint: int | str = 0, most: int = 1000) -> Curve:
        """The best value at every budget of a constraint: breakpoints and prices, exact (at most `most` of them).

        >>> two = CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.0, 1.0]], budget=1.5, horizon=3)
        >>> two.curve().budgets.tolist(), two.curve().prices.tolist()
        ([0.0, 3.0], [1.0])
        """
        from omdpd.play.curve import curve

        return curve(self, constraint, most)

    def setting(self, n_episodes: int | None, feedback: FeedbackKind) -> Setting:
        """What a learner is told about this problem."""
        H, S, A = self.shape
        if self.discount is not None:
            raise InvalidInputError("learners play episodes, but this problem has no end: build it with a horizon")
        if not self.range_given:
            low, high = self.reward_range
            raise InvalidInputError(
                f"mean rewards lie in [{low:g}, {high:g}]: to learn, give from_arrays the least and the largest reward "
                "that a step can earn, as reward_range"
            )
        allowed = None if self.mask is None else self.mask.allowed
        return Setting(H, S, A, self.n_constraints, self.initial, n_episodes, feedback, allowed=allowed)

    def copied(self, tables: Floats) -> Floats:
        """Tables (..., H, S, A) of this problem, with what stands at forbidden actions replaced (see `Mask`)."""
        return tables if self.mask is None else np.asarray(self.mask.everywhere(tables))


@fast_init
@dataclass(frozen=True, eq=False)
class Round:
    """One episode's mean tables: `reward` (H, S, A), `cost` (I, H, S, A, budget taken off), and how they are observed.

    `key` names the cost table among nature's distinct ones: `cost` is `factor`, a positive number, times the table of
    that name.
    """

    reward: Floats
    cost: Floats
    key: int = 0
    reward_noise: Noise = "exact"
    cost_noise: Noise = "exact"
    factor: float = 1.0
