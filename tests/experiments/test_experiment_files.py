"""Reading an experiment takes little memory, however large its worlds are."""

import tracemalloc

import pytest

from omdpd.experiments.files import load_experiment
from omdpd.problem.arrays import InvalidInputError

GRID = """\
episodes = 10
seeds = 1
worlds = [{ name = "random_dirichlet", n_states = [90, 91, 92, 93, 94, 95, 96, 97], n_actions = 40, horizon = 40 }]
natures = [{ name = "noisy" }]
learners = [{ name = "Uniform" }]
"""


def test_a_grid_of_large_worlds_is_not_built_to_be_validated(tmp_path):
    """Each of the eight kernels has a hundred megabytes."""
    (tmp_path / "grid.toml").write_text(GRID)
    tracemalloc.start()
    try:
        assert len(load_experiment(tmp_path / "grid.toml").runs()) == 8
        assert tracemalloc.get_traced_memory()[1] < 300e6
    finally:
        tracemalloc.stop()


def test_many_constraints_count_as_large(tmp_path):
    text = GRID.replace("n_states = [90, 91, 92, 93, 94, 95, 96, 97]", "n_states = 2, n_constraints = 1000000")
    (tmp_path / "wide.toml").write_text(text)
    with pytest.raises(InvalidInputError, match="transition probabilities or costs"):
        load_experiment(tmp_path / "wide.toml")


def test_all_learners_are_those_that_suit_every_world_and_nature_of_the_file(tmp_path):
    file = tmp_path / "all.toml"
    rest = 'episodes = 5\nseeds = 2\nlearners = "all"\n[[worlds]]\nname = "paradox"\n[[natures]]\nname = "fixed"\n'
    file.write_text(rest)
    found = {learner.name for learner in load_experiment(file).learners}
    assert {"OptCMDP", "Uniform", "DOPE"} <= found
    assert not {"CautiousLP", "UCPD", "Germano"} & found  # they need revealed tables
    file.write_text(rest + '[[natures]]\nname = "pool"\n')
    both = {learner.name for learner in load_experiment(file).learners}
    assert "OptCMDP" in both
    assert "DOPE" not in both
