import numpy as np
import pytest

from omdpd.natures.anchor import SLACK, Anchor
from omdpd.solvers.compiled.flow import greedy_policy
from tests.references.instances import forward, random_cmdp

H, S, A = 4, 3, 2


def world(seed):
    return random_cmdp(np.random.default_rng(seed), H, S, A)


@pytest.mark.parametrize("seed", range(3))
def test_the_anchor_is_half_the_optimum_and_half_the_uniform_policy(seed):
    cmdp = world(seed)
    anchor = Anchor.of(cmdp)
    optimum = forward(greedy_policy(cmdp.transition, cmdp.reward)[0], cmdp.transition, cmdp.initial)
    uniform = forward(np.full((H, S, A), 1.0 / A), cmdp.transition, cmdp.initial)
    assert np.allclose(anchor.occupancy, 0.5 * optimum + 0.5 * uniform, rtol=0.0, atol=1e-14)
    assert np.allclose(anchor.optimum, optimum, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_a_binding_table_is_the_stated_transformation_of_uniform_numbers(seed):
    anchor = Anchor.of(world(seed))
    table = anchor.binding_table(np.random.default_rng(seed))
    w = np.random.default_rng(seed).uniform(-1.0, 1.0, (H, S, A))
    w = w - (w * anchor.occupancy).sum() / H
    w = w if (w * anchor.optimum).sum() >= 0.0 else -w
    w = w - 0.02
    assert np.allclose(table, w / np.abs(w).max(), rtol=0.0, atol=1e-14)


def test_binding_tables_leave_the_anchor_room_and_fill_their_range():
    anchor = Anchor.of(world(1))
    rng = np.random.default_rng(2)
    tables = np.array([anchor.binding_table(rng) for _ in range(100)])
    assert np.tensordot(tables, anchor.occupancy, axes=3).max() <= -SLACK * H / 3.1
    assert np.abs(tables).reshape(100, -1).max(axis=1) == pytest.approx(np.ones(100))
    # Before the slack is taken off the reward-optimal policy never gains by the table.
    assert np.median(np.tensordot(tables, anchor.optimum, axes=3)) > 0.0


def test_anchored_tables_are_shifted_only_where_the_anchor_would_pay():
    anchor = Anchor.of(world(3))
    tight = 0
    for seed in range(200):
        table = anchor.table(np.random.default_rng(seed))
        w = np.random.default_rng(seed).uniform(-1.0, 1.0, (H, S, A))
        paid = (w * anchor.occupancy).sum()
        w = w - max(paid / H, 0.0)
        assert np.allclose(table, w / np.abs(w).max(), rtol=0.0, atol=1e-14)
        assert (table * anchor.occupancy).sum() <= 1e-12
        tight += paid > 0.0
    # About half are tight: within six standard deviations of a fair coin thrown 200 times.
    assert abs(tight - 100) <= 6 * np.sqrt(50)
