"""The commit that a result comes from is read without running anything that a stranger's folder names."""

import subprocess

import pytest

from omdpd.storage.provenance import commit_of


def git(folder, *words):
    names = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    done = subprocess.run(["git", "-C", str(folder), *names, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "file").write_text("x")
    git(folder, "add", "file")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_the_commit_is_the_one_that_is_checked_out(checkout):
    head = git(checkout, "rev-parse", "HEAD")
    (checkout / "below").mkdir()
    assert commit_of(checkout) == head
    assert commit_of(checkout / "below") == head
    git(checkout, "checkout", "-q", "--detach")
    assert commit_of(checkout) == head


def test_packed_references_and_worktrees_are_followed(checkout):
    head = git(checkout, "rev-parse", "HEAD")
    git(checkout, "worktree", "add", "-q", "../other", "-b", "feature/x")
    git(checkout, "pack-refs", "--all")
    assert commit_of(checkout) == head
    assert commit_of(checkout.parent / "other") == head
    git(checkout.parent / "other", "commit", "-q", "--allow-empty", "-m", "second")
    assert commit_of(checkout.parent / "other") == git(checkout.parent / "other", "rev-parse", "HEAD") != head


def test_nothing_that_a_stranger_configured_is_run(checkout):
    """A file-system monitor, a filter and hooks, each of which would leave a trace."""
    trace = checkout.parent / "trace"
    script = checkout.parent / "script"
    script.write_text(f"#!/bin/sh\ntouch {trace}\ncat\n")
    script.chmod(0o755)
    git(checkout, "config", "core.fsmonitor", str(script))
    git(checkout, "config", "filter.x.clean", str(script))
    (checkout / ".gitattributes").write_text("* filter=x\n")
    (checkout / "file").write_text("changed")
    assert commit_of(checkout) is not None
    assert not trace.exists()
    git(checkout, "status")
    assert trace.exists()  # Git itself would have run it


@pytest.mark.parametrize(
    "head", ["", "ref: ../../../etc/passwd", "ref: refs/heads/../../x", "ref: refs/heads/none", "x" * 40, "\0\xff"]
)
def test_a_head_that_names_no_commit_gives_none(tmp_path, head):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert commit_of(tmp_path) is None


def test_outside_a_checkout_there_is_none(tmp_path):
    assert commit_of(tmp_path) is None
