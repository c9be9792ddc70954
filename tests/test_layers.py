import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_imports_go_one_way_and_learners_never_see_the_truth():
    """The contracts of pyproject.toml, by import-linter."""
    command = Path(sys.executable).with_name("lint-imports")
    said = subprocess.run([command, "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "0 broken" in said.stdout
