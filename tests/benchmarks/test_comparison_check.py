"""The conclusions of docs/comparison.md stand on it, and the command that tests them can say no."""

import re

import numpy as np
import pytest

from benchmarks import comparison_check, hand_settings
from benchmarks.comparison_check import CHOICES, Claim, Sentence, chosen, holds, sentences, survivors
from omdpd.learners import LEARNERS
from omdpd.learners.needs import Needs
from tools.agreement import rows
from tools.comparison import PAGE

TEXT = " ".join(PAGE.read_text().split())


@pytest.mark.parametrize("sentence", sentences(), ids=lambda sentence: sentence.text[:40])
def test_a_conclusion_that_is_tested_stands_on_the_page(sentence):
    assert sentence.text in TEXT


def test_the_settings_that_are_tested_are_those_that_the_page_prints():
    assert chosen("noisy")["DOPE"].startswith("DOPE(reward_scale=")
    assert len(chosen("noisy")) > 30
    assert chosen("adaptive") == chosen("pool")


@pytest.mark.parametrize("what", ["safe", "room", "episodes"])
def test_who_is_told_more_is_named_in_full(what):
    told = {name.split(".")[0] for name, make in LEARNERS.items() if getattr(getattr(make(), "needs", Needs()), what)}
    row = {"safe": "a policy that is known", "room": "the Slater gap", "episodes": "the number of episodes"}[what]
    (line,) = re.findall(rf"^\| {row}.*", PAGE.read_text(), re.MULTILINE)
    assert {name for name in told if f"`{name}`" not in line} == set()


@pytest.mark.parametrize("nature", ["noisy", "pool", "adaptive"])
def test_only_who_is_told_the_model_has_less_of_both_than_ours(nature):
    table = rows(CHOICES.with_name(f"random_dirichlet-{nature}.md").read_text())
    found = {
        name: tuple(float(cells[column].split(" ")[0]) for column in ("regret", "strong violation"))
        for name, cells in table.items()
        if name.startswith("`")
    }
    regret, violation = found[f"`{comparison_check.OURS}`"]
    assert {name for name, (x, y) in found.items() if x < regret and y < violation} <= {"`AlwaysSafe`"}


def test_a_claim_holds_if_its_differences_are_positive_beyond_chance():
    assert holds(np.array([3.0, 4.0, 5.0, 4.0]))
    assert not holds(np.array([30.0, -20.0, 5.0, -10.0]))
    assert not holds(np.zeros(4))
    assert holds(np.full(4, 2.0))


def test_a_sentence_falls_with_one_of_its_claims(monkeypatch):
    monkeypatch.setattr(comparison_check, "played", lambda *place: {"regret": {"a": 3.0, "b": 1.0}[place[2]]})
    right = Claim("w", "n", "regret", "a", "b", factor=2.0, by=0.5)
    wrong = Claim("w", "n", "regret", "a", "b", factor=3.0)
    said = []
    kept = survivors([Sentence("Good.", (right,)), Sentence("Bad.", (right, wrong))], [1, 2], 5, said.append)
    assert [each.text for each in kept] == ["Good."]
    assert said[1].startswith("FALLS")


def test_the_settings_by_hand_are_of_learners_that_training_chose_for():
    assert set(hand_settings.SETTINGS) <= set(chosen("noisy"))
    assert len(hand_settings.SETTINGS) == 5
    for name, label in hand_settings.SETTINGS.items():
        assert label.startswith(f"{name}(")


def test_the_error_of_a_mean_by_leaving_each_out_is_the_usual_one():
    numbers = np.array([3.0, 8.0, 1.0, 6.0, 7.0])
    runs = [{"episodes": 100, "regret_positive": each, "violation": 0.0} for each in numbers]
    found = hand_settings.without_each("DOPE", runs)
    assert hand_settings.error(found) == pytest.approx(numbers.std(ddof=1) / np.sqrt(5))


def test_a_small_run_plays_what_is_claimed():
    found = comparison_check.played("random_dirichlet", "noisy", "OptCMDP(transition_scale=0.001)", 16_000, 3)
    assert found["violation"] >= 0.0
