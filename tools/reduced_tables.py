"""What tables of times are about, without the times: ``python tools/reduced_tables.py WHICH FILE``.

FILE is what a benchmark wrote with `--json`.  Tests compare what this prints with what is kept in docs/numbers
(`reduced` in docs/numbers.toml).  WHICH is

    planning  the optimum that each planner finds, the mean over the instances of a size
    scaling   the iterations of a mirror step at each size
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_tables import by
from tables import markdown


def planning(found: Any) -> str:
    """Planners down, sizes across."""
    sizes = [size for (size,) in by(found["planning"], "size")]
    body = []
    for (planner,), rows in by(found["planning"], "planner").items():
        values = {row["size"]: f"{row['value']:.6f}" for row in rows}
        body.append([planner, *(values.get(size, "") for size in sizes)])
    return markdown(["planner, optimum", *sizes], body)


def scaling(found: Any) -> str:
    """Sizes down, the two solvers across."""
    keys = ("box_iterations", "kernel_iterations")
    body = [[f"{row['varied']} = {row['size']}", *(f"{row[key]:.1f}" for key in keys)] for row in found["growth"]]
    return markdown(["size", "iterations over a box", "over one kernel"], body)


WHICH: dict[str, Callable[[Any], str]] = {"planning": planning, "scaling": scaling}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in WHICH:
        sys.exit(__doc__)
    print(WHICH[sys.argv[1]](json.loads(Path(sys.argv[2]).read_text())))
