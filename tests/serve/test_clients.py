"""The clients of docs/production.md, each as it stands there, against a real server."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the server is not tested: pip install uvicorn")

from benchmarks.http_clients import Server, asked
from tests.test_snippets import ROOT, blocks

pytestmark = pytest.mark.whole
PAGE = ROOT / "docs" / "production.md"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    (text,) = blocks(PAGE, "toml")
    (folder / "session.toml").write_text(text.replace('fallback = "safe.npz"', ""))
    made = Server(folder)
    yield made
    made.stop()


@pytest.mark.parametrize(
    ("language", "name", "command"),
    [("sh", "client.sh", ["bash", "-e"]), ("js", "client.js", ["node"]), ("java", "Client.java", ["java"])],
)
def test_a_client_plays_an_episode(server, tmp_path, language, name, command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    code = next(text for text in blocks(PAGE, language) if "/episodes" in text)
    Path(tmp_path / name).write_text(code)
    before = asked(server.place, "/status")["ended"]
    at = "http://{}:{}".format(*server.place)
    done = subprocess.run([*command, name], cwd=tmp_path, env=os.environ | {"AT": at}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = asked(server.place, "/status")
    assert found["ended"] == before + 1
    assert found["recent"][-1]["how"] == ("cut" if language == "sh" else "whole")
