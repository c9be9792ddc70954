"""What the first run of the default learner compiles on an empty cache: ``python -m benchmarks.first_use``.

Counts functions, and the seconds of processor time that each of them takes by itself: what it waits for its callees to
be compiled is theirs.  ``--against PATH`` (a checkout of an older version) does the same there, after it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Public names only, so that older versions play it too.
PROGRAM = """
import sys
from collections import Counter
from time import process_time
from numba.core import event

spent, counts, open_calls = Counter(), Counter(), []

class Listener(event.Listener):
    def on_start(self, event):
        open_calls.append([process_time(), 0.0])
    def on_end(self, event):
        began, inside = open_calls.pop()
        whole = process_time() - began
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__qualname__}"
        spent[name] += whole - inside
        counts[name] += 1
        if open_calls:
            open_calls[-1][1] += whole

event.register("numba:compile", Listener())
import numpy as np
from omdpd import CMDP, ProximalOMDPD, run
rng = np.random.default_rng(0)
transition = rng.dirichlet(np.ones(4), (4, 2))
cmdp = CMDP.from_arrays(transition, rng.random((4, 2)), rng.random((4, 2)), budget=2.5, horizon=6)
began = process_time()
run(cmdp, ProximalOMDPD.standard(), n_episodes=1000, seed=1)
ours = sum(counts[name] for name in counts if name.startswith("omdpd."))
print(f"{sum(counts.values())} functions ({ours} ours), {sum(spent.values()):.1f} s compiling of {process_time() - began:.1f} s in all")
for name, seconds in spent.most_common(int(sys.argv[1])):
    print(f"{seconds:7.2f} s {counts[name]:3d} x {name.removeprefix('omdpd.')}")
"""  # noqa: E501


def first_use(source: Path, shown: int) -> None:
    """Play the first run of a version with nothing in the cache, and say what it compiled."""
    with tempfile.TemporaryDirectory() as empty:
        own = {"OMDPD_CACHE_DIR": empty, "OMDPD_QUIET": "1", "OMDPD_SHIPPED": "0", "PYTHONPATH": str(source)}
        subprocess.run([sys.executable, "-c", PROGRAM, str(shown)], env=os.environ | own, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="a checkout of an older version")
    parser.add_argument("--shown", type=int, default=10, help="how many functions are named")
    options = parser.parse_args()
    first_use(Path(__file__).parents[1] / "src", options.shown)
    if options.against is not None:
        first_use(options.against / "src", options.shown)


if __name__ == "__main__":
    main()
