"""The examples run, in short form: the same code with fewer episodes."""

import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "episodes"), [("own_arrays", 20), ("frozen_lake", 20), ("frozen_lake_unknown", 20), ("taxi", 2)]
)
def test_an_example_runs_and_leaves_a_figure(name, episodes, tmp_path, monkeypatch, capsys):
    code = (EXAMPLES / f"{name}.py").read_text()
    short, n = re.subn(r"n_episodes=\d+", f"n_episodes={episodes}", code)
    assert n == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(short, name, "exec"), {"__name__": "example"})
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["own_arrays", "frozen_lake", "taxi"])
def test_an_example_is_ten_lines(name):
    """Without docstrings, imports and blank lines: from nothing to a policy and a figure."""
    code = re.sub(r'""".*?"""', "", (EXAMPLES / f"{name}.py").read_text(), flags=re.S)
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith(("import", "from"))]
    assert len(lines) <= 10
