"""The contracts of pyproject.toml hold, and docs/architecture.md says what they say."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tools.inventory import PLACE, inventory

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "omdpd"
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def section(title):
    """What the page says under a heading."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def contract_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [{room.strip() for room in layer.split("|")} for layer in layers]


def test_imports_go_one_way_and_learners_never_see_the_truth():
    """The contracts of pyproject.toml, by import-linter."""
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command, "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_the_page_has_the_layers_of_the_contract_in_its_order():
    rows = re.findall(r"^\| (`[^|]+) \|", section("Layers"), re.MULTILINE)
    assert [set(re.findall(r"`(\w+)`", row)) for row in rows] == contract_layers()


def test_every_room_is_in_the_contract():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set.union(*contract_layers())


def test_every_file_has_a_sentence_in_the_list_of_files():
    lines = inventory().splitlines()
    for file in PACKAGE.rglob("*.py"):
        (line,) = [line for line in lines if line.startswith(f"- `{file.relative_to(PACKAGE).as_posix()}`: ")]
        assert line.split("`: ", 1)[1].endswith((".", "?")), f"{file} begins with no sentence"
    assert PLACE in (ROOT / "docs" / "files.md").read_text()


def test_the_page_stays_a_page():
    assert len(PAGE.splitlines()) <= 120
