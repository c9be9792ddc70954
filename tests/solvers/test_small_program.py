"""The tiny quadratic program, against a general solver and by hand."""

import numpy as np
import piqp
import pytest

from omdpd.solvers.small_program import small_program


def by_piqp(p, c, G, h):
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-11
    solver.setup(np.diag(p), c, None, None, G, np.full(len(h), -np.inf), h, None, None)
    assert solver.solve() == piqp.PIQP_SOLVED
    return np.asarray(solver.result.x)


def test_a_square_and_its_bound_by_hand():
    """min x^2/2 - 3x with x <= 2: at 2, with multiplier 1."""
    x, z = small_program(np.ones(1), np.array([-3.0]), np.ones((1, 1)), np.array([2.0]), np.zeros(1))
    assert x == pytest.approx([2.0], abs=1e-11)
    assert z == pytest.approx([1.0], abs=1e-10)


def test_a_row_that_does_not_bind_has_no_multiplier():
    x, z = small_program(np.ones(1), np.array([-3.0]), np.ones((1, 1)), np.array([7.0]), np.zeros(1))
    assert x == pytest.approx([3.0], abs=1e-11)
    assert abs(z[0]) < 1e-11


@pytest.mark.parametrize("eta", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("n_rows", [1, 7, 150])
def test_the_objective_is_the_general_solvers_and_optimality_holds(eta, n_rows):
    """The programs that `penalised` asks for: prices y >= 0 and the height z above n planes."""
    for seed in range(4):
        rng = np.random.default_rng((seed, n_rows))
        m, values, costs = 3, rng.uniform(0.0, 5.0, n_rows), rng.uniform(-3.0, 3.0, (n_rows, 3))
        lam = rng.choice([0.0, 0.5], m)
        p, c = np.r_[np.full(m, 1.0 / eta), 0.0], np.r_[-lam / eta, 1.0]
        G = np.block([[-costs, -np.ones((n_rows, 1))], [-np.eye(m), np.zeros((m, 1))]])
        h = np.r_[-values, np.zeros(m)]
        start = np.r_[np.ones(m), (values - costs @ np.ones(m)).max() + 1.0]
        x, z = small_program(p, c, G, h, start)
        size = 1.0 + np.abs(x).max()
        assert (G @ x - h).max() <= 1e-10 * size
        assert z.min() >= 0.0
        assert np.abs(p * x + c + G.T @ z).max() <= 1e-9
        assert abs(z @ (h - G @ x)) <= 1e-9 * size
        theirs = by_piqp(p, c, G, h)
        mine, other = (0.5 * (p * v * v).sum() + c @ v for v in (x, theirs))
        assert mine == pytest.approx(other, rel=1e-8, abs=1e-8)


def test_a_late_step_without_digits_is_not_taken_for_the_answer():
    """Prices of nearly nothing: Newton's system loses its digits near the end, and the best point so far counts."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        m, n = int(rng.integers(2, 5)), int(rng.integers(1, 30))
        eta, lam = 10.0 ** rng.uniform(-2, 4), rng.choice([0.0, 1e-13, 0.5, 50.0], m)
        values, costs = rng.uniform(0.0, 5.0, n), rng.uniform(-3.0, 3.0, (n, m))
        p, c = np.r_[np.full(m, 1.0 / eta), 0.0], np.r_[-lam / eta, 1.0]
        G = np.block([[-costs, -np.ones((n, 1))], [-np.eye(m), np.zeros((m, 1))]])
        h = np.r_[-values, np.zeros(m)]
        inside = lam + 1.0
        x, z = small_program(p, c, G, h, np.r_[inside, (values - costs @ inside).max() + 1.0])
        assert z[:n].sum() == pytest.approx(1.0, abs=1e-9)
        assert (G @ x - h).max() <= 1e-10 * (1.0 + np.abs(x).max())
