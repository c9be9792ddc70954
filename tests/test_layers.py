"""The contracts of pyproject.toml hold, and docs/architecture.md says what they say."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

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


def test_the_page_has_a_paragraph_for_every_room():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set.union(*contract_layers())
    assert set(re.findall(r"^\*\*`(\w+)/`\*\*:", section("The rooms"), re.MULTILINE)) == rooms


def test_every_file_of_a_room_is_on_the_page_unless_it_is_one_of_many_of_a_kind():
    many = {"learners", "worlds", "natures", "cli", "testing"}  # one file per learner, world, nature, command, suite
    for path in PACKAGE.glob("*/*.py"):
        if path.parent.name not in many and path.name != "__init__.py":
            assert f"`{path.relative_to(PACKAGE)}`" in section("The rooms"), f"{path} is not in the drawing"
