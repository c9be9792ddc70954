"""The first block of the tutorial prints what its comments say, and its budget binds."""

import re
from pathlib import Path

import gymnasium
import pytest

from omdpd.gym.env import env_id
from omdpd.worlds import WORLDS

DOCS = Path(__file__).parents[2] / "docs"
FIRST = re.search(r"```{code-cell}\n(.*?)```", (DOCS / "tutorials" / "gymnasium.md").read_text(), re.DOTALL)[1]
RESULT = r"500 episodes: reward ([\d.]+) ± ([\d.]+), cost ([\d.]+) ± ([\d.]+)"


def test_the_first_block_prints_what_its_comments_say(capsys):
    exec(compile(FIRST, "gymnasium.md", "exec"), {})
    printed, said = (
        [tuple(map(float, each)) for each in re.findall(RESULT, text)] for text in (capsys.readouterr().out, FIRST)
    )
    assert len(printed) == len(said) == 2
    for now, before in zip(printed, said, strict=True):  # sampled, so within both intervals
        assert now[0] == pytest.approx(before[0], abs=now[1] + before[1])
        assert now[2] == pytest.approx(before[2], abs=now[3] + before[3])
    limited, free = printed
    assert limited[2] - limited[3] <= 0.1 < free[2] - free[3]
    assert limited[0] < free[0]


def test_the_page_of_worlds_lists_every_id_and_each_can_be_made():
    page = (DOCS / "worlds.md").read_text()
    listed = re.findall(r"(?<=\| )`(omdpd/\w+-v0)`", page)
    assert set(listed) == set(map(env_id, WORLDS))
    assert f"registers {len(WORLDS)} ids" in page
    for each in set(listed):
        assert gymnasium.make(each).reset(seed=0)[1]["step"] == 0
