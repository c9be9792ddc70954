"""The same problem under other budgets, or with other cost tables beside its own; `CMDP` has both as methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import InvalidInputError, as_table, one_step, over_steps
from omdpd.problem.labels import Scenarios
from omdpd.problem.tables import Budget, cost_scale, cost_with_steps, limits, reached_limits, stacked, wide

if TYPE_CHECKING:
    from omdpd.problem.cmdp import CMDP


def with_budget(cmdp: CMDP, budget: Budget, rescale: bool) -> CMDP:
    """The problem that `CMDP.from_arrays` would have built with this budget; its scenarios keep their costs."""
    H, old = cmdp.shape[0], cmdp.cost_scale
    limit = limits(budget, cmdp.labels.counted(n_constraints=cmdp.n_constraints).constraints, cmdp.limits)
    cost = one_step(cmdp.cost, 1) * wide(old)
    b, free = reached_limits(cost, limit, cmdp.steps), np.isinf(limit)
    scale = cost_scale(cost, b, cmdp.steps, free | rescale)
    changed = replace(
        cmdp, cost=over_steps(cost / wide(scale), H, 1), budget=b / scale, cost_scale=scale, scenarios=None,
        unlimited=free, _divided=None,
    )  # fmt: skip
    if cmdp.scenarios is None:
        return changed
    costs = (one_step(cmdp.scenarios.tables, 2) + wide(cmdp.budget / H)) * wide(old)
    named = {name: c if c.shape[1] == H else c[:, 0] for name, c in zip(cmdp.scenarios.names, costs, strict=True)}
    return with_scenarios(changed, named)


def with_scenarios(cmdp: CMDP, costs: Mapping[str, npt.ArrayLike]) -> CMDP:
    """The problem with these cost tables, divided together with its own where one of them does not fit."""
    if not costs:
        raise InvalidInputError("with_scenarios needs at least one cost table")
    H, S, A = cmdp.shape
    axes = ["scenario", "constraint", "step", "state", "action"]
    given = [cost_with_steps(cost, (H, S, A)) for cost in costs.values()]
    given = given if cmdp.mask is None else [cmdp.mask.everywhere(cost) for cost in given]
    excess = as_table("scenarios", stacked(given, H), axes, [None, cmdp.n_constraints, None, S, A])
    excess /= wide(cmdp.cost_scale)
    excess -= wide(cmdp.budget / H)
    more = np.maximum(np.maximum(excess.max(axis=(0, 2, 3, 4)), -excess.min(axis=(0, 2, 3, 4))), 1.0)
    more = np.where(more > 1.0 + 1e-12, more, 1.0)
    excess /= wide(more)
    return replace(
        cmdp, cost=over_steps(one_step(cmdp.cost, 1) / wide(more), H, 1), budget=cmdp.budget / more,
        cost_scale=cmdp.cost_scale * more, scenarios=Scenarios(tuple(costs), over_steps(excess, H, 2)),
        _divided=None,
    )  # fmt: skip
