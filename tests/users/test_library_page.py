"""docs/library.md is run as it stands, from top to bottom."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text()


def test_every_block_of_the_page_runs_after_those_before_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    names = {"__name__": "__main__"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/library.md, block {number}", "exec"), names)
