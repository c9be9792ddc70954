"""Every example runs, and asks for public names alone."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
PUBLIC = {"omdpd", *(f"omdpd.{room}" for room in ("experiments", "gym", "learners", "natures", "testing", "worlds"))}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_asks_for_public_names_alone(file):
    asked = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in asked if (node.module or "").split(".")[0] == "omdpd"]
    assert ours or "omdpd serve" in file.read_text()  # or it talks to a server
    for node in ours:
        assert node.module in PUBLIC
        room = importlib.import_module(node.module)
        public = getattr(room, "__all__", ("NATURES", "WORLDS"))
        assert {alias.name for alias in node.names} <= set(public)


@pytest.mark.whole
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_runs_to_its_end(file, tmp_path):
    if "omdpd.gym" in file.read_text():
        pytest.importorskip("gymnasium")
    found = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout
