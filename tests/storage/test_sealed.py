"""Every file of a run names its run and is checksummed: flipped bits, edited numbers and exchanged files are seen."""

import json
import random
import shutil

import numpy as np
import pytest

from omdpd.storage.atomic import RecordError
from omdpd.storage.manifest import Commit
from omdpd.storage.run_folder import RunFolder

FILES = ("spec.toml", "provenance.json", "commit.json", "summary.json", "rows-000001.npz", "values-000001.npz",
         "state-000001.npz")  # fmt: skip


def finished(path, run="one", seed=1):
    """A small finished run."""
    folder = RunFolder(path, run)
    folder.create(f"seed = {seed}\n", {})
    rows = {"episode": np.array([1, 2]), "value": np.array([0.5, seed])}
    values = np.array([0.5, 0.25])
    folder.commit(rows, values, Commit(2, {"rng": {"state": 2**100 + seed}}, {"a0": np.arange(3.0) + seed}))
    folder.finish({"regret": 1.5, "run": run})
    return folder


@pytest.fixture
def folder(tmp_path):
    return finished(tmp_path / "one")


def test_a_folder_as_it_was_written_checks(folder):
    folder.verify()
    assert folder.summary == {"regret": 1.5, "run": "one"}
    assert list(folder.summary) == ["regret", "run"]  # in the order in which it was written
    assert json.loads((folder.path / "summary.json").read_text())["regret"] == 1.5  # plain JSON for everybody


@pytest.mark.parametrize("name", FILES)
def test_no_flipped_bit_of_any_file_goes_unnoticed(folder, name):
    """Every byte of the small files, and every fourth of the larger ones, each with a bit of its own."""
    file = folder.path / name
    good, rng = file.read_bytes(), random.Random(name)
    unnoticed = []
    for place in range(0, len(good), 1 if len(good) < 2000 else 4):
        bit = rng.randrange(8)
        file.write_bytes(good[:place] + bytes([good[place] ^ (1 << bit)]) + good[place + 1 :])
        try:
            folder.check()
            unnoticed.append((place, bit))
        except RecordError as error:
            assert name in str(error) or name == "commit.json"  # noqa: PT017
    assert unnoticed == []


@pytest.mark.parametrize("name", ["error.json", "spec.toml", "provenance.json"])
def test_no_flipped_bit_goes_unnoticed_before_the_first_commit_either(tmp_path, name):
    folder = RunFolder(tmp_path, "one")
    folder.create("seed = 1\n", {})
    folder.fail({"error": "a bad day", "traceback": "here"})
    good = (tmp_path / name).read_bytes()
    unnoticed = []
    for place in range(len(good)):
        for bit in range(8):
            (tmp_path / name).write_bytes(good[:place] + bytes([good[place] ^ (1 << bit)]) + good[place + 1 :])
            try:
                folder.check()
                unnoticed.append((place, bit))
            except RecordError:
                pass
    assert unnoticed == []


def test_an_edited_number_is_refused(folder):
    file = folder.path / "summary.json"
    file.write_text(file.read_text().replace("1.5", "0.5"))
    with pytest.raises(RecordError, match=r"summary\.json is damaged: its checksum"):
        _ = folder.summary


def test_a_record_that_lost_its_checksum_is_refused(folder):
    file = folder.path / "summary.json"
    content = json.loads(file.read_text())
    del content["sha256"], content["format"]
    file.write_text(json.dumps(content))
    with pytest.raises(RecordError, match=r"summary\.json is damaged: its checksum is missing"):
        folder.check()


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_run_is_refused(tmp_path, folder, name):
    other = finished(tmp_path / "two", "two", seed=2)
    if (other.path / name).read_bytes() == (folder.path / name).read_bytes():
        return  # the values of both are the same
    shutil.copy(other.path / name, folder.path / name)
    with pytest.raises(RecordError):
        folder.check()


def test_folders_that_were_exchanged_are_refused(tmp_path):
    finished(tmp_path / "one", "one")
    with pytest.raises(RecordError, match="belongs to the run 'one', not to 'two'"):
        RunFolder((tmp_path / "one"), "two").check()


def test_a_summary_of_an_earlier_commit_is_refused(folder):
    kept = (folder.path / "summary.json").read_bytes()
    rows = {"episode": np.array([3]), "value": np.array([0.5])}
    folder.commit(rows, np.array([0.5]), Commit(3, {}, {"a0": np.zeros(1)}))
    (folder.path / "summary.json").write_bytes(kept)
    with pytest.raises(RecordError, match=r"sums up something else than commit\.json"):
        _ = folder.summary


def test_another_format_is_refused_with_a_sentence_that_says_what_to_do(folder):
    file = folder.path / "commit.json"
    content = json.loads(file.read_text())
    del content["sha256"]
    file.write_text(json.dumps(content | {"format": 1}))
    with pytest.raises(RecordError, match=r"commit\.json is damaged: its checksum is missing"):
        folder.manifest()


def test_a_reader_tries_again_while_somebody_else_replaces_the_files(tmp_path, monkeypatch):
    """A commit between reading commit.json and its parts is no damage."""
    folder = finished(tmp_path / "one")
    (folder.path / "summary.json").unlink()
    real, calls = RunFolder.manifest, []

    def manifest(self):
        found = real(self)
        if not calls:
            calls.append(1)
            rows = {"episode": np.array([3]), "value": np.array([0.5])}
            monkeypatch.setattr(RunFolder, "manifest", real)
            self.commit(rows, np.array([0.5]), Commit(3, {}, {"a0": np.zeros(1)}))
        return found

    monkeypatch.setattr(RunFolder, "manifest", manifest)
    folder.check()
    assert folder.episodes == 3


def test_a_resume_by_another_version_is_added_to_the_provenance(folder, monkeypatch):
    folder.create("seed = 1\n", {})
    assert "resumed" not in folder.provenance()
    monkeypatch.setattr("omdpd.storage.provenance.running_version", lambda name: "99.0")
    for _ in range(2):
        folder.create("seed = 1\n", {})
    (added,) = folder.provenance()["resumed"]
    assert added["packages"]["omdpd"] == "99.0"
    assert added["episodes"] == 2
    assert folder.provenance()["packages"]["omdpd"] != "99.0"
