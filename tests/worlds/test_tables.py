"""Rows of the worlds' tables, worked out by hand."""

import numpy as np
import pytest

from omdpd.problem.arrays import InvalidInputError
from omdpd.worlds import (
    cyclic,
    frozen_lake,
    garnet,
    grid,
    intrusion,
    inventory,
    job_queue,
    paradox,
    queue,
    rare,
    streaming,
)
from omdpd.worlds.maps import Map


def test_streaming_rows():
    cmdp = streaming.make()
    # fast, buffer 3: up .9 * .2 = .18, down .1 * .8 = .08, stay .74
    assert cmdp.transition[0, 3, 0, 2:5] == pytest.approx([0.08, 0.74, 0.18])
    # slow, buffer 3: up .1 * .2 = .02, down .9 * .8 = .72, stay .26
    assert cmdp.transition[9, 3, 1, 2:5] == pytest.approx([0.72, 0.26, 0.02])
    # empty: what would go down stays; full: what would go up stays
    assert cmdp.transition[0, 0, 1, :2] == pytest.approx([0.98, 0.02])
    assert cmdp.transition[0, 9, 0, 8:] == pytest.approx([0.08, 0.92])
    assert cmdp.initial.tolist() == [1.0] + 9 * [0.0]
    assert cmdp.reward[4, :, 0].tolist() == [0.0] + 9 * [1.0]
    assert cmdp.cost[0, 2].tolist() == 10 * [[1.0, 0.0]]
    assert cmdp.budget.tolist() == [5.0]
    # midday peak: steps 4, 5, 6 of 10 fall into the middle third; excess 1.4 - .5 inside, .8 - .5 outside
    assert cmdp.scenarios.names[1] == "midday peak"
    assert cmdp.scenarios.tables[1, 0, :, 0, 0] == pytest.approx([0.3] * 4 + [0.9] * 3 + [0.3] * 3)


def test_inventory_rows():
    cmdp = inventory.make()
    # stock 2, order 1: 3 on the shelf; demand 0, 1, 2 leave 3, 2, 1, and three or more (.3 together) leave none
    assert cmdp.transition[0, 2, 1] == pytest.approx([0.3, 0.2, 0.2, 0.3, 0.0, 0.0])
    # stock 4, order 3 is cut to 1: the same as ordering 1
    assert np.array_equal(cmdp.transition[0, 4, 3], cmdp.transition[0, 4, 1])
    assert cmdp.cost[0, 0, 4, 3] == cmdp.cost[0, 0, 4, 1]
    # expected demand is .2 + .4 + .6 + .2 + .25 = 1.65; with 3 on the shelf .2 + .4 + .9 = 1.5 are sold
    assert cmdp.reward[0, 2, 1] == pytest.approx(1.5 / 1.65)
    assert cmdp.reward[0, 0, 5] == pytest.approx(1.0)
    # costs: order 1 at stock 2: 4 + 2 + 3 = 9; order 5 at stock 0: 14 + 5 = 19; nothing at stock 3: 3
    natural = cmdp.cost[0, 0] * cmdp.cost_scale[0]
    assert [natural[2, 1], natural[0, 5], natural[3, 0]] == pytest.approx([9.0, 19.0, 3.0])
    assert cmdp.budget * cmdp.cost_scale == pytest.approx([66.5])
    # dearest step: 1.3 * 14 + 5 = 23.2 less 9.5 a step, which sets the scale
    assert cmdp.cost_scale == pytest.approx([13.7])


def test_queue_rows():
    cmdp = queue.make()
    # action 3: serve .5, admit .9: down .1 * .5 = .05, up .9 * .5 = .45
    assert cmdp.labels.actions[3] == "serve 0.5, admit 0.9"
    assert cmdp.transition[0, 2, 3, 1:4] == pytest.approx([0.05, 0.5, 0.45])
    assert cmdp.transition[0, 0, 3, :2] == pytest.approx([0.55, 0.45])
    assert cmdp.transition[0, 5, 3, 4:] == pytest.approx([0.05, 0.95])
    assert cmdp.cost[:, 0, 2, 3] == pytest.approx([0.5, 0.1])
    assert cmdp.reward[0, :, 0] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.0])
    assert cmdp.budget.tolist() == [4.0, 3.0]


def test_job_queue_rows():
    cmdp = job_queue.make()
    assert cmdp.transition[0, 4, 1, 3:5] == pytest.approx([0.9, 0.1])
    assert cmdp.transition[0, 4, 0, 4:6] == pytest.approx([0.9, 0.1])
    assert cmdp.transition[0, 9, 0, 9] == 1.0
    # work finishes .9 jobs, half of which is progress; rest lets .1 jobs in
    assert cmdp.cost[0, 0, 4] == pytest.approx([0.05, -0.45])
    assert cmdp.cost[0, 0, 0] == pytest.approx([0.05, 0.0])
    assert cmdp.reward[:, 5, 1] == pytest.approx([0.8] * 3 + [0.1] * 4 + [0.8] * 3)
    assert cmdp.budget.tolist() == [-3.5]
    assert cmdp.initial[9] == 1.0


def test_paradox_rows():
    cmdp = paradox.make()
    assert cmdp.transition[0].tolist() == [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    assert cmdp.reward[3].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert np.array_equal(cmdp.cost[0], cmdp.reward)


def test_cyclic_rows():
    cmdp = cyclic.make()
    assert cmdp.transition[0, :, 1].tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    assert cmdp.reward[0, :, 1] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert cmdp.cost[0, 0].tolist() == [[0.0, 1.0]] * 3
    assert cmdp.scenarios.tables[2, 0, 0, :, 1] == pytest.approx([0.35, 0.35, 0.8])


def test_intrusion_rows():
    cmdp = intrusion.make()
    assert cmdp.transition[0, 1, 0] == pytest.approx([0.0, 0.6, 0.4, 0.0, 0.0])
    # scanning: found with .6; else .4 * .2 = .08 onward and .32 stays
    assert cmdp.transition[0, 1, 1] == pytest.approx([0.6, 0.32, 0.08, 0.0, 0.0])
    assert cmdp.transition[0, 4, 0] == pytest.approx([0.0, 0.0, 0.0, 0.0, 1.0])
    assert cmdp.transition[0, 4, 2] == pytest.approx([1.0, 0.0, 0.0, 0.0, 0.0])
    assert cmdp.cost[0, 0, 3] == pytest.approx([0.75, 0.75, 0.0])
    assert cmdp.reward[0, 2] == pytest.approx([1.0, 0.7, 0.2])


def test_chain_rows():
    cmdp = rare.make_chain(n_places=3, walk=0.5, run=0.75)
    assert cmdp.transition[0, 1] == pytest.approx(np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.25, 0.75]]))
    assert cmdp.transition[0, 2] == pytest.approx(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]))
    assert cmdp.reward[0].tolist() == [[0.0] * 3, [0.0] * 3, [1.0] * 3]
    assert cmdp.cost[0, 0, 1] * cmdp.cost_scale == pytest.approx([0.0, 0.0, 1.0])


def test_gathering_rows():
    """Cells by rows; 16 more states with the load.  Right from home is an enemy's cell, 3 is far."""
    cmdp = rare.make_gathering(slip=0.2, attack=0.25)
    right, down, left = cmdp.transition[0, 0, 2], cmdp.transition[0, 7, 3], cmdp.transition[0, 17, 0]
    # meant with .8, of which a quarter is an attack (home); up bounces (home), down is cell 4
    assert {s: right[s] for s in np.flatnonzero(right)} == pytest.approx({1: 0.6, 0: 0.3, 4: 0.1})
    assert {s: down[s] for s in np.flatnonzero(down)} == pytest.approx({3 + 16: 0.8, 6: 0.1, 7: 0.1})
    # loaded, next to home: left brings it home; up bounces onto the enemy's cell, and may be attacked
    assert {s: left[s] for s in np.flatnonzero(left)} == pytest.approx({0: 0.8 + 0.025, 17: 0.075, 21: 0.1})
    assert cmdp.reward[0, 17] == pytest.approx([0.8, 0.1, 0.0, 0.1])
    assert cmdp.cost[0, 0, 0] * cmdp.cost_scale == pytest.approx([0.0, 0.025, 0.2, 0.025])


def test_moves_on_a_map():
    cells = Map(("S.#", ".HG"))
    laws = cells.laws(0.2, 3)
    p = laws.expand()[0]
    # right from S: .8 right, .1 up bounces, .1 down
    assert p[0, 2] == pytest.approx([0.1, 0.8, 0.0, 0.1, 0.0, 0.0])
    # right from (0, 1): .8 + .1 bounce off the wall and the edge, .1 down into the pit
    assert p[1, 2] == pytest.approx([0.0, 0.9, 0.0, 0.0, 0.1, 0.0])
    assert p[4, 0, 4] == 1.0
    assert p[5, 3, 5] == 1.0
    assert cells.entering(laws, "H")[1, 2] == pytest.approx(0.1)
    assert cells.entering(laws, "H")[4, 0] == 0.0
    assert cells.start.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_grid_rows():
    cmdp = grid.make()
    # the goal is cell (0, 4); the largest distance to it is 8, from (4, 0)
    assert cmdp.reward[0, 4].tolist() == 4 * [1.0]
    assert cmdp.reward[0, 0, 0] == pytest.approx(0.2 * (1.0 - 4.0 / 8.0))
    assert cmdp.reward[0, 20, 0] == 0.0
    natural = cmdp.cost[0, 0, :, 0] * cmdp.cost_scale[0]
    assert np.flatnonzero(natural).tolist() == [2, 7, 12, 13, 17, 18]
    assert natural[2] == pytest.approx(1.0)


@pytest.mark.parametrize(("map", "cells", "horizon", "budget"), [("4x4", 16, 10, 0.1), ("8x8", 64, 18, 0.15)])
def test_rover_rows(map, cells, horizon, budget):
    cmdp = grid.make_rover(map)
    assert cmdp.shape == (horizon, cells, 4)
    assert cmdp.budget * cmdp.cost_scale == pytest.approx([budget])
    if map == "4x4":
        # left of the goal (cell 14), going right: .9 reach it; above it is (2, 2), below the edge
        assert cmdp.reward[0, 14] == pytest.approx([0.0, 0.05, 0.9, 0.05])
        # cell 4, going right: .9 fall into the pit at cell 5
        assert cmdp.cost[0, 0, 4] * cmdp.cost_scale[0] == pytest.approx([0.0, 0.05, 0.9, 0.05])


def test_frozen_lake_rows():
    cmdp = frozen_lake.make()
    assert np.flatnonzero(cmdp.cost[0, 0, :, 0]).tolist() == [0, 4, 5, 7, 8, 11, 12]
    assert cmdp.reward[0, 14] == pytest.approx([0.0, 0.05, 0.9, 0.05])
    assert cmdp.reward[0, 15].tolist() == 4 * [0.0]
    top = cmdp.scenarios.tables[1, 0, 0, :, 0] + 2.5 / 9
    assert top[[0, 3, 5, 8, 15]] == pytest.approx([0.8, 0.8, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("slack", [0.2, 0.8])
def test_a_garnet_budget_lies_where_the_slack_says(slack):
    from omdpd.worlds.card import problem_card

    cmdp = garnet.make(np.random.default_rng(5), 7, 3, 4, branching=3, slack=slack)
    assert ((cmdp.transition > 0.0).sum(axis=-1) == 3).all()
    constraint = problem_card(cmdp).constraints[0]
    assert constraint.share == pytest.approx(slack, abs=1e-9)
    assert constraint.binds


def test_a_garnet_with_several_constraints_has_room():
    from omdpd.worlds.card import slater_gap

    assert slater_gap(garnet.make(np.random.default_rng(1), 6, 4, 3, n_constraints=2)) > 0.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: streaming.make(fast=1.2), "fast is 1.2"),
        (lambda: streaming.make(n_levels=0), "n_levels is 0"),
        (lambda: inventory.make(demand=(0.5, 0.4)), "demand = 0.9 is the sum"),
        (lambda: inventory.make(demand=(1.0, 0.0)), "never asks"),
        (lambda: garnet.make(np.random.default_rng(0), 3, 2, 2, branching=4), "only 3 states"),
        (lambda: garnet.make(np.random.default_rng(0), slack=1.0), "slack is 1.0"),
        (lambda: grid.make(rows=("S.", "O")), "row 1 of the map has 1 cells"),
        (lambda: grid.make(rows=("SX", "OG")), "row 0, column 1 of the map is 'X'"),
        (lambda: grid.make(rows=("..", "OG")), "no start"),
        (lambda: grid.make(rows=("S.", "..")), "the map has no G"),
        (lambda: grid.make(rows=()), "at least one cell"),
        (lambda: grid.make_rover("9x9"), "no rover map '9x9'"),
        (lambda: grid.make(slip=-0.1), "slip is -0.1"),
    ],
)
def test_wrong_settings_are_named(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make()
