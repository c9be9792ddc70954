"""Print the oldest versions that pyproject.toml allows, as constraints of pip: ``python tools/lower_bounds.py``.

`make lower` installs them beside the tests and runs these: a bound that is too low fails there, not at a user's.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lower_bounds() -> list[str]:
    """Every dependency of the package, and of what draws and reads Parquet files, at its lower bound."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    extras = project["optional-dependencies"]
    entries = [*project["dependencies"], *extras["plot"], *extras["arrow"]]
    return [re.sub(r"^([\w-]+)>=([\w.]+).*", r"\1==\2", entry) for entry in entries]


if __name__ == "__main__":
    print("\n".join(lower_bounds()))
