"""Every world keeps to these rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature

import numpy as np

from omdpd.problem.cmdp import CMDP
from omdpd.problem.laws import Laws
from omdpd.solvers.planning import best_plan
from omdpd.solvers.sweeps import best_value_under, occupancy_under, residual_under
from omdpd.testing.common import require, require_law


@dataclass(frozen=True, eq=False)
class WorldCase:
    """A world, drawn twice with the same random numbers where it is drawn."""

    cmdp: CMDP
    again: CMDP


def check_world(world: CMDP | Callable[..., CMDP]) -> None:
    """Check a world: a CMDP, or a factory of one (with `rng` as its first parameter where it is drawn)."""
    case = world_case(world)
    for rule in WORLD_RULES.values():
        rule(case)


def world_case(world: CMDP | Callable[..., CMDP]) -> WorldCase:
    """The world, and the same once more."""
    if isinstance(world, CMDP):
        return WorldCase(world, world)
    drawn = next(iter(signature(world).parameters), "") == "rng"
    first, second = (world(np.random.default_rng(1)) if drawn else world() for _ in range(2))
    require(isinstance(first, CMDP), f"the factory made a {type(first).__name__}, but must make a CMDP")
    return WorldCase(first, second)


def tables_are_valid(case: WorldCase) -> None:
    """Laws are laws, rewards lie in [0, 1], costs less budget per step in [-1, 1], and the shapes agree."""
    cmdp = case.cmdp
    H, S, A = cmdp.shape
    require(cmdp.laws.shape == (H, S, A), f"the laws have shape {cmdp.laws.shape}")
    lists = cmdp.laws.listed()
    totals = np.add.reduceat(lists.probabilities, lists.pointers[:-1])
    require(bool(np.all(lists.probabilities > 0.0)), "transition holds a probability that is not positive")
    require(bool(np.all(np.abs(totals - 1.0) < 1e-12)), "a row of transition does not sum to one")
    require_law(cmdp.initial, (S,), "initial")
    require(cmdp.reward.min() >= -1e-12 and cmdp.reward.max() <= 1.0 + 1e-12, "a reward is outside [0, 1]")
    require(cmdp.cost.shape == (cmdp.n_constraints, H, S, A), f"cost has shape {cmdp.cost.shape}")
    require(float(np.abs(cmdp.excess).max()) <= 1.0 + 1e-12, "a cost less its budget per step is outside [-1, 1]")


def the_same_random_numbers_give_the_same_world(case: WorldCase) -> None:
    """Every table agrees to the last bit."""
    require(_same_laws(case.cmdp.laws, case.again.laws), "the same random numbers gave another transition")
    for name in ("initial", "reward", "cost", "budget", "cost_scale"):
        same = np.array_equal(getattr(case.cmdp, name), getattr(case.again, name))
        require(same, f"the same random numbers gave another {name}")


def some_policy_is_safe(case: WorldCase) -> None:
    """A linear program finds a policy that meets every budget."""
    cmdp = case.cmdp
    plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess)
    require(plan.feasible, f"no policy meets every budget: the least excess is {plan.violation:.6g}")
    q = occupancy_under(cmdp.laws, plan.policy, cmdp.initial)
    require(residual_under(cmdp.laws, q, cmdp.initial) < 1e-10, "the best policy's flow does not add up")


def the_constraints_cost_something(case: WorldCase) -> None:
    """Where the reward-optimal policy is safe nothing can be learnt about safety."""
    cmdp = case.cmdp
    plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess)
    free = best_value_under(cmdp.laws, cmdp.initial, cmdp.reward)
    require(plan.value < free - 1e-6, "no budget binds: the best policy without constraints meets them all")


def _same_laws(one: Laws, other: Laws) -> bool:
    first, second = one.listed(), other.listed()
    names = ("pointers", "successors", "probabilities")
    return one.shape == other.shape and all(np.array_equal(getattr(first, n), getattr(second, n)) for n in names)


WORLD_RULES: dict[str, Callable[[WorldCase], None]] = {
    rule.__name__: rule
    for rule in (
        tables_are_valid, the_same_random_numbers_give_the_same_world, some_policy_is_safe,
        the_constraints_cost_something,
    )
}  # fmt: skip
