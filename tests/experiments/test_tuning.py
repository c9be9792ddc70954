"""The procedure that tunes every learner with the same number of tries."""

import json
import math
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

from omdpd.experiments.spec import RunSpec
from omdpd.experiments.tuning import (
    RANGES,
    STRICT,
    TRAINING_SEEDS,
    criterion,
    factors_for,
    halton,
    judged,
    tries,
    tuned,
)
from omdpd.learners import LEARNERS as BUILDERS
from omdpd.learners.needs import Needs
from tests.references.named import LEARNERS, NATURES, WORLDS

# What a comparison tunes of every learner whose numbers are on the pages.
RECORDED = json.loads((Path(__file__).parents[1] / "recorded" / "factors.json").read_text())


@pytest.mark.parametrize("name", LEARNERS)
def test_what_may_be_tuned_are_settings_of_the_learner_with_one_of_each_role(name):
    spec = LEARNERS[name]()
    found = [(factor.role, factor.setting) for factor in factors_for(spec)]
    assert [list(each) for each in found] == RECORDED.get(name, [list(each) for each in found])
    assert len({role for role, _ in found}) == len(found)
    assert {setting for _, setting in found} <= set(spec.__struct_fields__)
    tried = tries(spec, 5)
    assert len(set(tried)) == (5 if found else 1)
    assert tried[0] == spec


def test_multiples_are_those_of_the_halton_sequence_between_the_ends_of_each_range():
    rows = [halton(i) for i in range(1, 9)]
    low, high = RANGES["reward width"]
    shares = [1 / 2, 1 / 4, 3 / 4, 1 / 8, 5 / 8, 3 / 8, 7 / 8, 1 / 16]
    assert [row["reward width"] for row in rows] == pytest.approx([low * (high / low) ** u for u in shares])
    low, high = RANGES["transition width"]
    thirds = [1 / 3, 2 / 3, 1 / 9, 4 / 9, 7 / 9, 2 / 9, 5 / 9, 8 / 9]
    assert [row["transition width"] for row in rows] == pytest.approx([low * (high / low) ** u for u in thirds])


def test_a_default_of_zero_and_a_later_setting_are_multiplied_too():
    assert all(spec.kappa > 0.0 for spec in tries(LEARNERS["GreedyLP"](), 4)[1:])
    spread = [spec.gamma_scale for spec in tries(LEARNERS["ProximalOMDPD.standard"](), 4)[1:]]
    assert spread == pytest.approx([16.0 * row["step"] for row in map(halton, (1, 2, 3))], rel=0.01)


@pytest.mark.parametrize("share", [1 / 3, 1 / 6])
def test_points_near_the_best_fill_a_share_of_every_range_around_one(share):
    rows = [halton(i, near=share) for i in range(1, 200)]
    for role, (low, high) in RANGES.items():
        found = np.log([row[role] for row in rows]) / math.log(high / low)
        assert np.all(np.abs(found) <= share / 2)
        assert np.ptp(found) > 0.9 * share


@pytest.mark.parametrize("name", ["SinhaVaze.published", "OMDPD.theory", "BVOPS.unconstrained"])
def test_what_others_published_and_cores_without_constraints_are_played_as_they_come(name):
    assert tries(LEARNERS[name]()) == [LEARNERS[name]()]


def best_at(setting, value):
    """A world in which a learner loses by how far a setting is from a value, in logarithms, and instances differ."""
    asked = []

    def play(runs):
        asked.extend(runs)
        for run in runs:
            loss = abs(math.log(getattr(run.learner, setting) / value)) + 0.001 * (run.seed % 7)
            yield {"run": run.id, "episodes": run.episodes} | summary(100.0 * loss, 0.0)

    return play, asked


def run_of(name, episodes=40):
    return RunSpec(WORLDS["random_dirichlet"](), NATURES["noisy"](), LEARNERS[name](), episodes, 0)


def test_fewer_tries_go_on_after_every_stage_and_the_best_is_found_near_its_corner():
    play, asked = best_at("transition_scale", 1.3e-4)
    found = tuned([run_of("OptCMDP")], 36, play)
    assert {run.episodes for run in asked} == {40}
    tried = Counter(run.learner for run in asked)
    assert sorted(Counter(tried.values()).items()) == [(1, 12), (3, 16), (6, 5), (12, 3)]
    assert {run.seed for run in asked} == set(TRAINING_SEEDS)
    assert abs(math.log(found.runs[0].learner.transition_scale / 1.3e-4)) < 0.1
    (choice,) = found.choices
    assert (choice.tries, choice.episodes) == (36, 40)
    assert [line.chosen for line in found.tries].count(True) == 1
    alike = [line for line in found.tries if line.instances >= 3]
    assert [line.shared_regret is not None for line in found.tries] == [line in alike for line in found.tries]
    best = min(line.shared_regret for line in alike)  # where nobody violates, the least regret beats all others
    assert [line.shared_regret for line in found.tries if line.on_frontier] == [best]
    first = {run.learner for run in asked[:18]}
    assert set(tries(LEARNERS["OptCMDP"](), 18)) == first


def test_who_meets_a_world_that_moves_is_tuned_for_it_apart():
    play, _ = best_at("transition_scale", 1.3e-4)
    still = run_of("OptCMDP")
    found = tuned([still, msgspec.structs.replace(still, nature=NATURES["moving"]())], 4, play)
    assert [choice.nature for choice in found.choices] == ["noisy", "moving"]


def test_a_learner_as_it_comes_plays_no_training():
    found = tuned([run_of("OptCMDP"), run_of("Uniform")], 1, lambda runs: pytest.fail("nothing is to be played"))
    assert [run.learner.label for run in found.runs] == ["OptCMDP", "Uniform"]
    assert not found.tries


def summary(regret, violation, lagrangian=None):
    lagrangian = regret if lagrangian is None else lagrangian
    positive = max(regret, 0.0)
    return {"regret": regret, "regret_positive": positive, "violation": violation, "lagrangian_regret": lagrangian}


def test_the_least_criterion_is_taken_and_the_frontier_kept():
    a, b, c = tries(LEARNERS["OptCMDP"](), 3)
    trials = judged(
        {
            a: [summary(5.0, 9.0, 6.0), summary(7.0, 1.0, 8.0)],
            b: [summary(8.0, 1.0, 7.0), summary(4.0, 1.0, 3.0)],
            c: [summary(-4.0, 30.0, 9.0), summary(-2.0, 20.0, 8.0)],
        }
    )
    assert [trial.criterion for trial in trials] == [7.0, 5.0, 8.5]
    assert [trial.on_frontier for trial in trials] == [False, True, True]


def test_who_promises_no_violation_is_tuned_for_regret_at_a_level_of_it():
    told = {type(factory()).__name__ for factory in BUILDERS.values() if getattr(factory(), "needs", Needs()).safe}
    assert told <= set(STRICT) <= {name.split(".")[0] for name in LEARNERS}
    assert criterion("DOPE", [summary(9.0, 0.5, 1.0) | {"episodes": 20}]) == 9.0
    assert criterion("DOPE", [summary(9.0, v, 1.0) | {"episodes": 20} for v in (1.5, 0.0)]) == pytest.approx(11.5)
    assert criterion("OptCMDP", [summary(9.0, 0.75, 1.0)]) == 1.0
    assert criterion("OptCMDP", [summary(9.0, 0.75) | {"lagrangian_regret": None}]) == 9.75
