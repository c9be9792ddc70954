"""Ctrl-C while a command still imports."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def python(tmp_path):
    """A process in which Ctrl-C comes while Numba is imported."""
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text("raise KeyboardInterrupt\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])

    def started(*words):
        command = [sys.executable, *words]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})

    return started


@pytest.mark.parametrize("module", [True, False])
def test_a_command_that_is_interrupted_while_it_imports_says_nothing(python, tmp_path, module):
    script = tmp_path / "omdpd"
    script.write_text("from omdpd.cli.main import main\nmain()\n")
    done = python(*(["-m", "omdpd"] if module else [str(script)]), "list")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_another_program_that_is_interrupted_while_it_imports_ends_as_it_likes(python, tmp_path):
    (tmp_path / "program.py").write_text("import atexit\natexit.register(print, 'bye')\nfrom omdpd import run\n")
    done = python(str(tmp_path / "program.py"), "-x", "omdpd")
    assert done.stdout == "bye\n"
    assert "KeyboardInterrupt" in done.stderr
