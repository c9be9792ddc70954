"""The good event and the split of losses, against a plain loop over the same run."""

import math
from dataclasses import replace

import numpy as np
import pytest

from omdpd.beliefs.counts import Counts
from omdpd.learners.omdpd import OMDPD
from omdpd.learners.optcmdp import OptCMDP
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.standard.state import PLANNED
from omdpd.natures import NATURES
from omdpd.play.compiled.event import inverse_visits
from omdpd.play.ledger import ROUNDING, Ledger, all_within, visit_bounds
from omdpd.play.loop import play, start_of_run
from omdpd.play.scene import Scene
from omdpd.problem.cmdp import CMDP
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.theory.estimates import cost_errors, reward_errors, transition_errors
from tests.references.instances import random_cmdp
from tests.references.opened import with_number
from tests.references.plain_loop import PlainCounts

H, S, A, I, K = 4, 3, 2, 2, 25  # noqa: E741
DELTA = 0.01


def scene(nature="noisy", learner=None):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.4)
    return Scene(cmdp, NATURES[nature](cmdp, 7), learner or OMDPD.tuned(), K, {})


def within_widths(counts, cmdp, setting):
    """Neither F^p nor F^r nor (where costs are estimated) F^d: both sides of every width."""
    events = [reward_errors, cost_errors, transition_errors] if setting.feedback == "bandit" else [
        reward_errors, transition_errors,
    ]  # fmt: skip
    for errors in events:
        error, width = errors(counts, cmdp, setting)
        if np.any(error > width + ROUNDING):
            return False
    return True


def plain_within(counts, cmdp):
    """One entry at a time."""
    L, Lp = (math.log(c * S * A * H * K / DELTA) for c in (6 * (I + 1), 6))
    for h, s, a in np.ndindex(H, S, A):
        n = max(counts.n[h, s, a], 1)
        if abs(cmdp.reward[h, s, a] - counts.reward[h, s, a] / n) > math.sqrt(L / n):
            return False
        for i in range(I):
            if abs(cmdp.excess[i, h, s, a] - counts.cost[i, h, s, a] / n) > math.sqrt(2 * L / n):
                return False
        for t in range(S) if h + 1 < H else ():
            m = max(counts.moves[h, s, a].sum(), 1)
            p = counts.moves[h, s, a, t] / m if counts.moves[h, s, a].sum() > 0 else 1 / S
            if abs(cmdp.transition[h, s, a, t] - p) > 2 * math.sqrt(p * (1 - p) * Lp / m) + 14 / 3 * Lp / m:
                return False
    return True


def test_sums_and_promises_are_those_of_a_plain_loop():
    played = scene()
    cmdp, learner = played.cmdp, played.learner
    state = start_of_run(played).learner_state
    counts, earlier = PlainCounts(H, S, A, I), PlainCounts(H, S, A, I)
    inverse = root = promised = violated = 0.0

    class Watching:
        """The learner, with an eye on what it is given."""

        def __getattr__(self, name):
            return getattr(learner, name)

        def update(self, state, feedback):
            counts.add(feedback)
            return learner.update(state, feedback)

    watched = Scene(cmdp, played.nature, Watching(), K, {})
    for k, (_, row, now) in enumerate(play(watched, start_of_run(played), np.random.default_rng(3), lambda k: True)):
        believed = learner.report(state).believed
        q = occupancy_of_policy(learner.policy(state), cmdp.transition, cmdp.initial)
        n = np.maximum(earlier.n, 1)
        inverse, root = inverse + (q / n).sum(), root + (q / np.sqrt(n)).sum()
        promised += (believed.reward * state.q).sum()
        violated += max(max((believed.cost[i] * state.q).sum() for i in range(I)), 0.0)
        assert now.ledger.inverse == pytest.approx(inverse)
        assert now.ledger.inverse_root == pytest.approx(root)
        assert row.planned_value_sum == pytest.approx(promised)
        assert row.planned_violation_sum == pytest.approx(violated)
        assert now.ledger.within == plain_within(earlier, cmdp)
        assert row.good_event == (now.ledger.within and inverse <= visit_bounds(watched_setting(cmdp), k + 1)[0])
        state, earlier = now.learner_state, copied(counts)


def watched_setting(cmdp):
    return cmdp.setting(K, "bandit")


def copied(counts):
    other = PlainCounts(H, S, A, I)
    other.n, other.moves = counts.n.copy(), counts.moves.copy()
    other.reward, other.cost = counts.reward.copy(), counts.cost.copy()
    return other


def test_the_event_is_two_sided():
    played = scene()
    cmdp, setting = played.cmdp, played.cmdp.setting(K, "bandit")
    counts = Ledger.empty(setting).counts
    many = type(counts)(
        np.full((H, S, A), 1e6), 1e6 * cmdp.transition, 1e6 * cmdp.reward, 1e6 * cmdp.excess
    )  # fmt: skip
    assert within_widths(many, cmdp, setting)
    for sign in (0.5, -0.5):
        off = type(counts)(many.visits, many.transitions, many.reward_sum + sign * 1e6, many.cost_sum)
        assert not within_widths(off, cmdp, setting)
        dear = type(counts)(many.visits, many.transitions, many.reward_sum, many.cost_sum + sign * 1e6)
        assert not within_widths(dear, cmdp, setting)
        assert within_widths(dear, cmdp, cmdp.setting(K, "full"))  # revealed, and so not estimated


def test_the_compiled_event_is_the_readable_one():
    played, seen = scene(), set()
    cmdp = played.cmdp
    rng = np.random.default_rng(5)
    for trial in range(300):
        # Means that are off by about their width: small and large counts, one table or all of them, some rows unseen.
        n = np.floor(10.0 ** rng.uniform(0.0, 5.0, (H, S, A))) * (rng.random((H, S, A)) < 0.9)
        off = 10.0 ** rng.uniform(-1.0, 0.5) * (rng.random(3) < 0.5)
        width = np.sqrt(12.0 / np.maximum(n, 1.0))
        moves = rng.multinomial(n.astype(np.int64), cmdp.transition)
        moves = moves + off[2] * (0.3 * n * rng.random((H, S, A)))[..., None] * np.eye(S)[0]
        counts = Counts(
            n, moves, n * (cmdp.reward + off[0] * width * rng.uniform(-1, 1, (H, S, A))),
            n * (cmdp.excess + off[1] * width * rng.uniform(-1, 1, (I, H, S, A))),
        )  # fmt: skip
        for kind in ("bandit", "full"):
            setting = cmdp.setting(K, kind)
            expected = within_widths(counts, cmdp, setting)
            assert all_within(counts, cmdp, setting) == expected, (trial, kind)
            seen.add((kind, expected))
        q = rng.random((H, S, A))
        m = np.maximum(n, 1.0)
        assert inverse_visits(q, n) == pytest.approx(((q / m).sum(), (q / np.sqrt(m)).sum()), rel=1e-13)
    assert len(seen) == 4


def test_two_point_costs_leave_the_event_no_more_often_than_they_may():
    """+-1 with mean zero at the paper's size: the worst n of each of 300 runs; costs may take delta/3."""
    shape, runs, most, left = (5, 5, 3), 300, 600, 0
    tables = random_cmdp(np.random.default_rng(1), *shape, 1)
    cmdp = CMDP.from_arrays(tables.transition, tables.reward, np.zeros((1, *shape)), [0.0])
    setting, rng = cmdp.setting(3000, "bandit"), np.random.default_rng(2)
    for _ in range(runs):
        walks = np.cumsum(2 * rng.integers(0, 2, (most, 75)) - 1, axis=0)
        n = 1 + int((np.abs(walks).max(1) / np.sqrt(np.arange(1, most + 1))).argmax())
        visits, costs = np.full(shape, float(n)), walks[n - 1].reshape(1, *shape).astype(float)
        counts = Counts(visits, n * cmdp.transition, n * cmdp.reward, costs)
        left += not all_within(counts, cmdp, setting)
    assert left <= DELTA / 3 * runs


def test_too_many_first_visits_are_no_good_event():
    setting = scene().cmdp.setting(K, "bandit")
    start = Ledger.empty(setting)
    assert start.good(setting, 1)
    far = Ledger(start.counts, 1e9, 0.0, 0.0, 0.0, True), Ledger(start.counts, 0.0, 1e9, 0.0, 0.0, True)
    assert not any(ledger.good(setting, K) for ledger in far)


def test_revealed_costs_count_as_they_were_revealed():
    played = scene("pool")
    *_, (_, row, now) = play(played, start_of_run(played), np.random.default_rng(3), lambda k: True)
    assert now.ledger.planned_violation >= 0.0
    assert row.good_event is True


def test_a_learner_that_reports_no_plan_is_not_followed():
    played = scene(learner=OptCMDP())
    *_, (_, row, now) = play(played, start_of_run(played), np.random.default_rng(3), lambda k: True)
    assert now.ledger is None
    assert (row.good_event, row.planned_value_sum) == (None, None)


@pytest.mark.parametrize("nature", ["noisy", "independent"])
@pytest.mark.parametrize("layout", ["dense", "graph"])
def test_the_default_learner_says_what_its_plans_promised(nature, layout):
    """Against the state before every episode, with plain sums; costs that are revealed count as they were revealed."""
    played = scene(nature, ProximalOMDPD.standard(layout=layout))
    dense = scene(nature, ProximalOMDPD.standard(layout="dense"))
    state, promised, violated = start_of_run(dense).learner_state, 0.0, 0.0
    runs = (play(each, start_of_run(each), np.random.default_rng(3), lambda k: True) for each in (played, dense))
    for k, ((_, row, _), (_, _, now)) in enumerate(zip(*runs, strict=True)):
        q = occupancy_of_policy(dense.learner.policy(state), dense.cmdp.transition, dense.cmdp.initial)
        cost = state.believed.counted_cost if nature == "noisy" else dense.nature.draw(k, q).cost
        promised += (state.believed.reward * state.q).sum()
        violated += max(max((cost[i] * state.q).sum() for i in range(I)), 0.0)
        assert row.planned_value_sum == pytest.approx(promised, rel=1e-5)
        # What is below the solver's noise counts as nothing.
        assert row.planned_violation_sum == pytest.approx(violated, abs=1e-4)
        assert row.good_event is None
        state = now.learner_state
    assert violated > 0.0


def test_nothing_is_promised_about_rewards_that_change_or_by_a_run_of_an_earlier_version():
    moved = scene("switching_rewards", ProximalOMDPD.standard())
    *_, (_, row, _) = play(moved, start_of_run(moved), np.random.default_rng(3), lambda k: True)
    assert (row.planned_value_sum, row.planned_violation_sum) == (None, None)
    played = scene(learner=ProximalOMDPD.standard())
    start = start_of_run(played)
    earlier = replace(start, learner_state=with_number(start.learner_state, PLANNED, np.nan))
    *_, (_, row, _) = play(played, earlier, np.random.default_rng(3), lambda k: True)
    assert row.planned_value_sum is None
