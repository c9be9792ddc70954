"""The procedure that tunes every learner with the same number of tries."""

import json
from pathlib import Path

import pytest

from omdpd.experiments.tuning import (
    RANGES,
    TRAINING_SEEDS,
    best_trial,
    factors_for,
    halton,
    judged,
    training_runs,
    tries,
)
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


def test_training_uses_instances_of_its_own_for_a_quarter_of_the_episodes():
    tried = tries(LEARNERS["OptCMDP"](), 3)
    planned = training_runs(WORLDS["random_dirichlet"](), NATURES["noisy"](), tried, 40)
    assert list(planned) == tried
    assert all(run.episodes == 10 for runs in planned.values() for run in runs)
    assert all(tuple(run.seed for run in runs) == TRAINING_SEEDS for runs in planned.values())


def summary(regret, violation):
    return {"regret": regret, "regret_positive": max(regret, 0.0), "violation": violation}


def test_the_least_criterion_is_taken_and_the_frontier_kept():
    a, b, c = tries(LEARNERS["OptCMDP"](), 3)
    trials = judged(
        {
            a: [summary(5.0, 9.0), summary(7.0, 1.0)],
            b: [summary(8.0, 1.0), summary(4.0, 1.0)],
            c: [summary(-4.0, 30.0), summary(-2.0, 20.0)],
        }
    )
    assert [trial.criterion for trial in trials] == [11.0, 7.0, 25.0]
    assert best_trial(trials).learner == b
    assert [trial.on_frontier for trial in trials] == [False, True, True]
