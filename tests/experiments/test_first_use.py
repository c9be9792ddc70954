"""What runs need is compiled before they start, once, and nothing else is."""

import subprocess
import sys
from pathlib import Path

import pytest

from omdpd.experiments import first_use
from omdpd.experiments.first_use import runs_of
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import RunSpec
from omdpd.jit.announce import ANNOUNCER
from omdpd.jit.cache import kernel_folder
from tests.references.named import LEARNERS, NATURES, WORLDS


@pytest.fixture
def played(monkeypatch):
    """The learners that were let play."""
    names = []
    play = first_use._play
    monkeypatch.setattr(first_use, "_play", lambda run: (names.append(run.learner.name), play(run)))
    return names


def runs(*learners, nature="noisy", seeds=2):
    world = WORLDS["cyclic"]()
    return [RunSpec(world, NATURES[nature](), LEARNERS[name](), 10, seed) for name in learners for seed in range(seeds)]


def test_every_kind_of_run_plays_once(played):
    first_use.compile_for(runs("Uniform", "SinhaVaze", seeds=5), print)
    assert played == ["Uniform", "SinhaVaze"]
    assert ANNOUNCER.say is None


def test_a_nature_that_does_not_suit_the_tiny_world_is_stood_in_for(played):
    first_use.compile_for(runs("Uniform", nature="natural"), print)
    assert played == ["Uniform"]


def test_what_is_wrong_with_a_run_is_not_said_here(played):
    first_use.compile_for(runs("UCPD"), print)  # needs revealed tables, which noisy does not give
    assert played == ["UCPD"]


def test_the_command_says_where_the_code_is_kept():
    command = [Path(sys.executable).with_name("omdpd"), "warm-up", "--learners", "Uniform"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert str(kernel_folder().parent.parent) in said.replace("\n", "")


class Helper:
    """A process that ends with a code."""

    def __init__(self, code):
        self.code = code

    def wait(self):
        return self.code


@pytest.mark.parametrize(("cores", "code"), [(1, None), (2, 0), (2, 1)])
def test_everything_is_compiled_whether_or_not_a_second_process_helps(monkeypatch, tmp_path, cores, code):
    here, there = [], []
    monkeypatch.setattr(first_use.os, "cpu_count", lambda: cores)
    monkeypatch.setattr(first_use, "kernel_folder", lambda: tmp_path)  # where nothing was compiled yet
    monkeypatch.setattr(first_use, "shipped_code", lambda: None)
    monkeypatch.setattr(first_use, "runs_of", lambda registry, names: names)
    monkeypatch.setattr(first_use, "compile_for", lambda runs, say: here.extend(runs))
    monkeypatch.setattr(first_use, "_elsewhere", lambda names: (there.extend(names), Helper(code))[1])
    registry = Registry.installed()
    first_use.compile_all(registry, print)
    learners = list(registry.complete("learners"))
    assert there == ([] if cores == 1 else learners[len(learners) // 2 :])
    assert here + (there if code == 0 else []) == learners


def test_everything_ahead_includes_what_large_problems_call():
    """A learner that keeps large problems by a graph calls other functions there, and is a kind of its own."""
    runs = runs_of(Registry.installed(), ["ProximalOMDPD.standard", "Uniform"])
    kinds = [(run.learner.name, run.learner.settings.get("layout")) for run in runs]
    assert (
        kinds
        == [("ProximalOMDPD.standard", None)] * 2 + [("ProximalOMDPD.standard", "graph")] * 2 + [("Uniform", None)] * 2
    )
    assert len({first_use._kind(run) for run in runs}) == len(runs)
