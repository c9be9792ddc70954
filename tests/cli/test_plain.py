"""Where the terminal cannot show more than ASCII, everything is shown in ASCII."""

import os
import subprocess
import sys

import pytest

from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.spec import Experiment
from tests.references.named import LEARNERS, NATURES, WORLDS
from tests.references.real_commands import PATIENCE

ASCII = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C", "TERM": "dumb"}


def command(*words):
    words = [sys.executable, "-m", "omdpd", *map(str, words)]
    return subprocess.run(words, capture_output=True, env=os.environ | ASCII, timeout=PATIENCE, check=False)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    parts = (WORLDS["cyclic"](),), (NATURES["noisy"](),), (LEARNERS["Uniform"](),)
    run_experiment(Experiment(*parts, episodes=5, seeds=3), folder, InProcess())
    return folder


@pytest.mark.parametrize("word", ["table", "ls"])
def test_tables_are_plain(results, word):
    done = command(word, results)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("ascii")
    assert "Uniform" in text
    assert word == "ls" or "+- 95 %" in text


def test_an_error_with_a_strange_name_is_one_sentence(tmp_path):
    done = command("check", tmp_path / "näme-\udcff.npz")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    done.stderr.decode("ascii")


def test_a_reader_that_goes_ends_a_command_without_a_word():
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "omdpd", "learners"]
    found = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    os.close(writer)
    assert found.returncode == 1
    assert not found.stderr
