"""Problem files of a stranger: each is refused with one sentence, in bounded memory; see `hostile_npz`."""

import os
import resource

import numpy as np
import pytest

from omdpd.problem.arrays import InvalidInputError
from omdpd.worlds.files import load_problem
from tests.references.hostile_npz import hostile_files, npz

FILES = hostile_files()
# A field that no reader needs may be anything, as long as the numbers that are read are the good file's.
UNREAD = ("directory 4 name length", "directory 4 extra length", "directory 4 comment length", "local flags",
          "end count", "end disk", "end comment")  # fmt: skip
# The bar: a gigabyte in all, of which this test's own process takes some before it begins.
MAX_GROWTH_MB = 700


@pytest.fixture(scope="module", autouse=True)
def memory_stays_bounded():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MAX_GROWTH_MB


def test_there_are_many_of_them_and_the_file_they_are_made_of_is_good(tmp_path):
    assert len(FILES) >= 250
    (tmp_path / "good.npz").write_bytes(npz())
    assert load_problem(tmp_path / "good.npz").shape == (3, 2, 2)


@pytest.mark.parametrize("hostile", [h for h in FILES if h.name not in UNREAD], ids=lambda hostile: ascii(hostile.name))
def test_a_hostile_problem_file_is_refused_with_one_sentence(tmp_path, hostile):
    file = tmp_path / "stranger.npz"
    file.write_bytes(hostile.build())
    with pytest.raises(InvalidInputError) as caught:
        load_problem(file)
    said = str(caught.value)
    assert len(said) < 1000 + len(str(file))
    assert "\n" not in said
    assert said.isprintable()


@pytest.mark.parametrize("hostile", [h for h in FILES if h.name in UNREAD], ids=lambda hostile: hostile.name)
def test_a_field_that_nobody_reads_changes_no_number(tmp_path, hostile):
    (tmp_path / "good.npz").write_bytes(npz())
    (tmp_path / "stranger.npz").write_bytes(hostile.build())
    good, read = load_problem(tmp_path / "good.npz"), load_problem(tmp_path / "stranger.npz")
    for field in ("transition", "initial", "reward", "cost", "budget"):
        assert np.array_equal(getattr(good, field), getattr(read, field))


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_not_waited_for(tmp_path, kind):
    file = tmp_path / "x.npz"
    os.mkfifo(file) if kind == "pipe" else file.mkdir()
    with pytest.raises(InvalidInputError, match="not a plain file"):
        load_problem(file)


def test_a_link_to_a_problem_is_a_problem(tmp_path):
    (tmp_path / "real.npz").write_bytes(npz())
    (tmp_path / "link.npz").symlink_to(tmp_path / "real.npz")
    assert load_problem(tmp_path / "link.npz").name == "link"
