"""The examples run, in short form: the same code with fewer episodes."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "episodes"), [("own_arrays", 20), ("frozen_lake", 20), ("frozen_lake_unknown", 20), ("taxi", 2)]
)
def test_an_example_runs_and_leaves_a_figure(name, episodes, tmp_path, monkeypatch, capsys):
    code = (EXAMPLES / f"{name}.py").read_text()
    short, n = re.subn(r"n_episodes=\d\d+", f"n_episodes={episodes}", code)
    assert n == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(short, name, "exec"), {"__name__": "example"})
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_cells_of_vectors_are_learnt_kept_and_played(tmp_path, monkeypatch, capsys):
    """Somebody with a Gymnasium environment whose observations are vectors."""
    code = (EXAMPLES / "cart_pole.py").read_text()
    short = code.replace("n_episodes=150", "n_episodes=5").replace("n_episodes=50", "n_episodes=3")
    assert short != code
    monkeypatch.chdir(tmp_path)
    exec(compile(short, "cart_pole", "exec"), {"__name__": "example"})
    assert "5 episodes" in capsys.readouterr().out
    for name in ("cart_pole.png", "cart_pole.npz", "cart_pole/returns.csv"):
        assert (tmp_path / name).stat().st_size > 0


def test_the_server_farm_of_two_thousand_states_is_solved(capsys):
    farm = runpy.run_path(str(EXAMPLES / "admission.py"))["farm"]
    printed = capsys.readouterr().out
    assert farm.shape == (50, 2000, 4)
    assert "best safe value                  44.744551" in printed
    assert "energy                           costs 80 of 80" in printed
    assert "refused jobs                     costs 400 of 400" in printed
    assert "(safe)" in printed


@pytest.mark.parametrize("name", ["own_arrays", "frozen_lake", "taxi"])
def test_an_example_is_ten_lines(name):
    """Without docstrings, imports and blank lines: from nothing to a policy and a figure."""
    code = re.sub(r'""".*?"""', "", (EXAMPLES / f"{name}.py").read_text(), flags=re.S)
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith(("import", "from"))]
    assert len(lines) <= 10
