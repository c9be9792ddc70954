import hashlib
import io
import json

import numpy as np
import pytest

from omdpd.storage.atomic import RecordError, write_atomically
from omdpd.storage.manifest import Commit
from omdpd.storage.npz import arrays_of_npz, npz_of_arrays
from omdpd.storage.run_folder import RunFolder


def rows(first, n):
    return {"episode": np.arange(first, first + n)}


def values(n):
    return np.full(n, 0.5)


def done(episodes):
    return Commit(episodes, {"k": episodes}, {"a0": np.full(3, float(episodes))})


def two_commits(folder):
    folder.commit(rows(1, 4), values(4), done(4))
    folder.commit(rows(5, 3), values(3), done(7))


def test_a_folder_without_a_commit_holds_nothing(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.episodes == 0
    assert folder.last_commit() is None
    assert folder.rows() is None
    assert folder.summary is None
    assert folder.error is None


def test_commits_add_rows_and_replace_the_state(tmp_path):
    folder = RunFolder(tmp_path)
    two_commits(folder)
    assert folder.episodes == 7
    assert folder.rows()["episode"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert folder.values().tolist() == [0.5] * 7
    last = folder.last_commit()
    assert last.tree == {"k": 7}
    assert np.array_equal(last.arrays["a0"], np.full(3, 7.0))
    assert len(list(tmp_path.glob("state-*.npz"))) == 1


def test_a_folder_that_was_removed_while_its_run_is_played_does_not_come_back_in_part(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create("episodes = 9\n", {})
    two_commits(folder)
    for file in folder.path.iterdir():
        file.unlink()
    with pytest.raises(RecordError, match="was removed or changed while its run was played"):
        folder.commit(rows(8, 1), values(1), done(8))
    assert list(folder.path.iterdir()) == []


def test_compacting_changes_the_number_of_files_and_nothing_else(tmp_path):
    folder = RunFolder(tmp_path)
    two_commits(folder)
    folder.compact()
    assert folder.rows()["episode"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert folder.values().tolist() == [0.5] * 7
    assert folder.last_commit().tree == {"k": 7}
    assert len(list(tmp_path.glob("rows-*.npz"))) == 1


@pytest.mark.parametrize("reached", ["rows", "values", "state"])
def test_a_commit_that_died_half_way_leaves_the_one_before(tmp_path, monkeypatch, reached):
    """Whichever file was the last to be written, the commit before still counts, whole."""
    folder = RunFolder(tmp_path)
    folder.commit(rows(1, 4), values(4), done(4))
    import omdpd.storage.run_folder as records

    real = records.write_atomically

    def write_atomically(file, content):
        if file.name == "commit.json" or (reached == "rows" and not file.name.startswith("rows")):
            raise OSError("the machine stopped")
        if reached == "values" and file.name.startswith("state"):
            raise OSError("the machine stopped")
        return real(file, content)

    with monkeypatch.context() as patch:
        patch.setattr(records, "write_atomically", write_atomically)
        with pytest.raises(OSError, match="the machine stopped"):
            folder.commit(rows(5, 3), values(3), done(7))
    assert folder.episodes == 4
    assert folder.rows()["episode"].tolist() == [1, 2, 3, 4]
    assert folder.last_commit().tree == {"k": 4}
    folder.commit(rows(5, 3), values(3), done(7))
    assert folder.rows()["episode"].tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "x.json"
    write_atomically(file, b"old")
    import os

    def refuse(*_):
        raise OSError("no")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(OSError, match="no"):
            write_atomically(file, b"new")
    assert file.read_bytes() == b"old"


def test_writing_returns_the_checksum_of_what_was_written(tmp_path):
    assert write_atomically(tmp_path / "x", b"abc") == hashlib.sha256(b"abc").hexdigest()


def test_arrays_come_back_to_the_last_bit():
    arrays = {"a0": np.array([0.1, -0.0, 1e-310]), "a1": np.zeros((0, 3)), "file": np.array([True, False])}
    again = arrays_of_npz(npz_of_arrays(arrays), "state.npz")
    assert list(again) == list(arrays)
    for name, array in arrays.items():
        assert again[name].tobytes() == array.tobytes()
        assert again[name].dtype == array.dtype
        assert again[name].shape == array.shape


def test_pickled_objects_are_refused():
    stream = io.BytesIO()
    np.savez(stream, a0=np.array([{"anything": 1}], dtype=object))
    with pytest.raises(RecordError, match=r"state\.npz"):
        arrays_of_npz(stream.getvalue(), "state.npz")


def test_arrays_with_objects_are_not_written_either():
    with pytest.raises(ValueError, match="allow_pickle"):
        npz_of_arrays({"a0": np.array([object()], dtype=object)})


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"\x00" * 100])
def test_what_is_no_npz_file_is_refused_with_a_sentence(content):
    with pytest.raises(RecordError, match=r"state\.npz"):
        arrays_of_npz(content, "state.npz")


@pytest.mark.parametrize("content", ["[1, 2]", "not json", ""])
def test_a_commit_that_is_no_record_is_refused_by_name(tmp_path, content):
    (tmp_path / "commit.json").write_text(content)
    with pytest.raises(RecordError, match=r"commit\.json"):
        RunFolder(tmp_path).last_commit()


def test_a_commit_cannot_name_a_file_outside_its_folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    two_commits(folder)
    secret = tmp_path / "secret.npz"
    secret.write_bytes(npz_of_arrays({"a0": np.ones(1)}))
    content = json.loads((folder.path / "commit.json").read_text())
    content["state"]["file"] = "../secret.npz"
    content["state"]["sha256"] = hashlib.sha256(secret.read_bytes()).hexdigest()
    (folder.path / "commit.json").write_text(json.dumps(content))
    with pytest.raises(RecordError):
        folder.last_commit()


def test_a_number_that_is_not_finite_is_never_written_as_json(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        RunFolder(tmp_path).finish({"regret": float("nan")})
    assert RunFolder(tmp_path).summary is None


def test_finishing_removes_the_error_and_removing_keeps_the_lock(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create("episodes = 3\n", {})
    folder.fail({"error": "x"})
    folder.finish({"regret": 1.0})
    assert folder.error is None
    assert folder.summary == {"regret": 1.0}
    with folder.owned_now():
        folder.remove()
    assert [file.name for file in tmp_path.iterdir()] == ["lock"]


def test_provenance_names_the_versions_a_result_may_depend_on(tmp_path):
    RunFolder(tmp_path).create("episodes = 3\n", {})
    stored = json.loads((tmp_path / "provenance.json").read_text())
    assert {"omdpd", "numpy", "numba", "highspy"} <= set(stored["packages"])
    assert stored["python"].count(".") == 2
