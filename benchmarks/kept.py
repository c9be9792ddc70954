"""Numbers of a benchmark as a JSON file, from which `tools/bench_tables.py` makes the tables of the docs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from omdpd.storage.atomic import write_atomically


def keep(file: Path | None, content: Any) -> None:
    """Write numbers to a file, in a new folder if need be; nothing if no file is named."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(content, indent=1).encode() + b"\n")
