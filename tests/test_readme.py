"""README's examples are run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def play_in_my_world(policy):
    """A stand-in for somebody's own world: wanders at random."""
    rng = np.random.default_rng(0)
    H, S, A = policy.shape
    return rng.integers(S, size=H), rng.integers(A, size=H), rng.random(H), rng.uniform(-1.0, 1.0, (1, H))


def test_the_first_example_learns_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    example = BLOCKS[0]
    assert len([line for line in example.splitlines() if line and not line.startswith(("import", "from"))]) <= 10
    exec(compile(example, "README.md", "exec"), {})
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert "regret" in capsys.readouterr().out


@pytest.mark.parametrize(("block", "episodes", "figure"), [(1, 20, "lake.png"), (2, 2, "taxi.png")])
def test_an_environment_of_gymnasium_is_learned_and_drawn(block, episodes, figure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS[block].splitlines()) <= 10
    short, n = re.subn(r"n_episodes=\d+", f"n_episodes={episodes}", BLOCKS[block])
    assert n == 1
    exec(compile(short, "README.md", "exec"), {})
    assert (tmp_path / figure).stat().st_size > 10_000


def test_the_last_example_asks_and_tells():
    names = {"play_in_my_world": play_in_my_world}
    exec(compile(BLOCKS[3], "README.md", "exec"), names)
    assert names["session"].episodes == 100
    assert np.sum(names["session"].policy()) == pytest.approx(6 * 4)


def test_every_page_that_readme_links_to_is_there():
    for link in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / link).exists(), link
