import numpy as np
import pytest

from omdpd.solvers.penalised import penalised_plan
from tests.references.augmented_qp import by_general_solver, objective
from tests.references.instances import random_box, random_law

H, S, A, I = 3, 4, 2, 2  # noqa: E741


@pytest.mark.parametrize("n_tables", [1, 2, 3])
@pytest.mark.parametrize("eta", [0.3, 5.0, 1e3])
def test_the_plan_is_the_general_solvers(n_tables, eta):
    for seed in range(3):
        rng = np.random.default_rng((seed, n_tables))
        box, _ = random_box(rng, H, S, A, width=0.2)
        mu, r, tables = random_law(rng, S), rng.random((H, S, A)), rng.uniform(-1, 1, (n_tables, H, S, A))
        lam = rng.choice([0.0, 0.5], n_tables)
        plan = penalised_plan(box.lower, box.upper, mu, r, tables, lam, eta)
        assert plan.relative_gap <= 1e-9
        mine = objective(plan.occupancy, r, tables, lam, eta)
        theirs = objective(by_general_solver(box, mu, r, tables, lam, eta), r, tables, lam, eta)
        assert mine == pytest.approx(theirs, abs=1e-6)
        reached = np.maximum(lam + eta * np.tensordot(tables, plan.occupancy, axes=3), 0.0)
        assert plan.prices == pytest.approx(reached, abs=1e-4 * max(1.0, eta))
