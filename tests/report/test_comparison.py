"""Statistics of a comparison, against plain computations."""

import itertools
import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import spearmanr

import omdpd
from omdpd.learners import Uniform
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.report.comparison import bca_interval, differences, orders, ranks, sign_flip_p, tidy_csv
from tests.references.trivial_world import trivial_world


def record(learner, seed, regret, violation):
    return {
        "world": "w", "nature": "n", "learner": learner, "seed": seed, "regret": regret, "regret_positive": regret,
        "violation": violation,
    }  # fmt: skip


RNG = np.random.default_rng(0)
RECORDS = [
    record(name, seed, shift + 5.0 * seed + RNG.normal(), 1.0)
    for name, shift in (("ours", 0.0), ("theirs(x=1)", 10.0), ("same", 0.0))
    for seed in range(6)
]


def test_sign_flips_are_those_of_all_signs():
    values = np.array([0.5, -1.0, 2.0, 3.0, 0.1])
    means = [np.mean(np.array(signs) * values) for signs in itertools.product((1, -1), repeat=5)]
    assert sign_flip_p(values) == pytest.approx(np.mean(np.abs(means) >= abs(values.mean()) - 1e-12))


def test_too_few_seeds_have_neither_an_interval_nor_a_test():
    assert bca_interval(np.array([1.0, 2.0])) is None
    assert sign_flip_p(np.array([1.0, 2.0])) is None
    assert bca_interval(np.full(4, 3.0)) == (3.0, 3.0)


def test_an_interval_shifts_and_scales_with_the_numbers():
    values = np.random.default_rng(1).exponential(size=12)
    low, high = bca_interval(values)
    assert low < values.mean() < high
    assert bca_interval(7.0 + 2.0 * values) == pytest.approx((7.0 + 2.0 * low, 7.0 + 2.0 * high))


def test_differences_are_paired_by_seed_and_corrected_by_holm():
    found = {(each.learner, each.metric): each for each in differences(RECORDS, "ours")}
    far, near = found["theirs(x=1)", "regret"], found["same", "regret"]
    assert (far.n, far.against) == (6, "ours")
    assert 8.0 < far.low < far.mean < far.high < 12.0
    assert far.p == pytest.approx(2 / 2**6)
    assert far.p_holm == pytest.approx(2 * far.p)
    assert near.p_holm == pytest.approx(max(near.p, far.p_holm))


def test_any_learner_can_be_the_yardstick_and_a_stranger_is_refused():
    assert {each.against for each in differences(RECORDS, "theirs")} == {"theirs(x=1)"}
    with pytest.raises(InvalidInputError, match="no compared learner is called 'nobody'; there are ours"):
        differences(RECORDS, "nobody")


def test_a_rank_is_the_median_of_the_places_on_every_seed():
    places = {"a": (1, 1, 3, 1), "b": (2, 2, 1, 3), "c": (3, 3, 2, 2)}
    records = [record(name, seed, 10.0 * at, 1.0) for name, found in places.items() for seed, at in enumerate(found)]
    found = ranks(records)
    assert [each.learner for each in found] == ["a", "b", "c"]
    for each in found:
        at = places[each.learner]
        assert each.rank == np.median(at)
        assert (each.low, each.high) == tuple(np.percentile(at, [25, 75]))
        assert each.first == at.count(1) / 4


def test_an_order_is_claimed_where_halves_of_the_seeds_agree():
    rng = np.random.default_rng(0)
    apart = [record(f"l{i}", seed, 100.0 * i + rng.random(), 0.0) for i in range(12) for seed in range(8)]
    every, first = orders(apart)
    assert (every.among, every.learners, every.seeds, every.claimed) == ("all", 12, 8, True)
    assert every.spearman == pytest.approx(1.0)
    assert (first.among, first.learners, first.claimed) == ("the first", 10, True)
    assert "all 12 learners: Spearman 1.00 between halves of 8 seeds: an order is claimed" in repr(every)
    alike = [each | {"regret_positive": float(rng.random())} for each in apart]
    assert not any(each.claimed for each in orders(alike))
    assert all(abs(each.spearman) < 0.5 for each in orders(alike))


def test_two_seeds_and_two_learners_have_no_order():
    assert orders([each for each in RECORDS if each["seed"] < 2]) == []
    assert orders([each for each in RECORDS if each["learner"] != "same"]) == []


def test_the_agreement_of_two_halves_is_that_of_all_halvings():
    """Against all halvings of four seeds, counted one by one with scipy's own correlation."""
    table = np.random.default_rng(3).normal(size=(6, 4)) + np.arange(6.0)[:, None]
    records = [record(f"l{i}", seed, table[i, seed] + 50.0, 0.0) for i in range(6) for seed in range(4)]
    halves = [(list(half), [j for j in range(4) if j not in half]) for half in itertools.combinations(range(4), 2)]
    exact = np.mean([spearmanr(table[:, a].mean(axis=1), table[:, b].mean(axis=1)).statistic for a, b in halves])
    (found,) = orders(records)
    assert found.spearman == pytest.approx(exact, abs=0.02)


def test_csv_has_a_header_and_numbers_as_numbers():
    head, first, *_ = tidy_csv(differences(RECORDS, "ours")).splitlines()
    assert head == "world,nature,learner,against,metric,n,mean,low,high,p,p_holm"
    assert float(first.split(",")[6]) == pytest.approx(10.0, abs=1.5)


def test_learners_are_compared_on_a_problem_of_ones_own_in_memory():
    found = omdpd.compare(
        {"mine": trivial_world()}, ["Uniform", "OptCMDP", "CautiousLP"], seeds=3, episodes=300, nature="noisy"
    )
    assert {(r["world"], r["learner"]) for r in found.records} == {("mine", "Uniform"), ("mine", "OptCMDP")}
    assert "CautiousLP needs feedback 'full'" in found.left_out[0]
    assert [rank.learner for rank in found.ranks()] == ["OptCMDP", "Uniform"]
    assert found.csv("Uniform").startswith("world,nature,learner,against")
    assert re.search(r"mine, noisy: Uniform \(3 seeds\): regret \S+ ± \S+, violation \S+ ± \S+", str(found))
    first, second = str(found.differences("Uniform")).splitlines()
    assert re.fullmatch(
        r"OptCMDP - Uniform on mine, noisy: regret -\S+ \(3 seeds, 95 % -\S+ to -\S+, p = \S+ by Holm\)", first
    )
    assert second.startswith("OptCMDP - Uniform on mine, noisy: violation")
    assert "OptCMDP on mine, noisy: positive regret + violation" in str(found.ranks()).splitlines()[0]


def test_a_comparison_of_worlds_by_name_draws_each_seed_anew():
    found = omdpd.compare(["random_dirichlet"], [omdpd.Uniform()], seeds=2, episodes=5)
    assert found.records[0]["regret"] != found.records[1]["regret"]


def test_one_problem_and_one_learner_need_no_list():
    by_name = omdpd.compare("paradox", "Uniform", seeds=1, episodes=5)
    assert [(r["world"], r["learner"]) for r in by_name.records] == [("paradox", "Uniform")]
    given = omdpd.compare(trivial_world(), omdpd.Uniform(), seeds=1, episodes=5)
    assert [(r["world"], r["learner"]) for r in given.records] == [("own", "Uniform")]


@pytest.mark.parametrize(
    ("problem", "learner", "wrong"),
    [("paradox", "Unifrm", "learner 'Unifrm'"), ("paradx", "Uniform", "world 'paradx'")],
)
def test_a_name_that_is_none_is_refused_whatever_stands_beside_it(problem, learner, wrong):
    with pytest.raises(InvalidInputError, match=f"^there is no {wrong} .*; there are "):
        omdpd.compare([problem, "cyclic"], ["OptCMDP", learner], seeds=1, episodes=5)


def test_the_flips_of_twelve_seeds_are_counted_not_drawn():
    assert sign_flip_p(np.arange(1.0, 13.0)) == 2.0 ** (1 - 12)


@dataclass(frozen=True)
class Always(Uniform):
    """One action, whatever happens."""

    action: int = 0

    def policy(self, state):
        H, S, A = state.shape
        return np.broadcast_to(np.eye(A)[self.action], (H, S, A)).copy()


def test_ranks_do_not_depend_on_the_units_of_rewards():
    """One earns a little more and violates: dear rewards must not make its violation vanish."""
    p, cost = np.ones((1, 2, 1)), [[0.0, 1.0]]
    players = {"works": Always(1), "rests": Always(0)}
    found = [
        omdpd.compare(
            CMDP.from_arrays(p, [[0.0, 0.1 * unit]], cost, 0.5, horizon=2, reward_range=(0.0, unit)),
            players, seeds=2, episodes=5, nature="fixed",
        )
        for unit in (1.0, 1000.0)
    ]  # fmt: skip
    small, large = ([(rank.learner, rank.value) for rank in each.ranks()] for each in found)
    assert [name for name, _ in large] == ["rests", "works"]
    assert [value for _, value in large] == pytest.approx([value for _, value in small])
    assert found[1].records[1]["regret"] == pytest.approx(1000.0 * found[0].records[1]["regret"])


def test_ranks_say_what_they_add():
    (rank,) = ranks([record("a", 0, 5.0, 2.0) | {"regret_positive": 7.0}])
    assert (rank.metric, rank.value) == ("positive regret + violation", 9.0)
