"""Random mirror steps for every solver, as a table of docs/performance.md: ``python -m benchmarks.fuzz_table [N]``.

N problems of every kind (20 000) on seeds that were used for no development; `benchmarks/fuzz.py` says how they are
drawn and repeats each line with more of them.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import NamedTuple

from benchmarks.fuzz import fuzz


class Line(NamedTuple):
    """One solver, and the arguments of `fuzz.py` after the number of problems."""

    solver: str
    seed: int
    region: str = "box"
    kl: bool = False
    tol: float = 1e-10
    mild: bool = False

    @property
    def command(self) -> str:
        """What repeats it."""
        words = f"--seed {self.seed} --region {self.region}"
        words += " --divergence kl" if self.kl else ""
        words += "" if self.tol == 1e-10 else f" --tol {self.tol:g}"
        return words + (" --mild" if self.mild else "")


LINES = (
    Line("box, Euclid", 50_000_000),
    Line("box, KL", 50_000_000, kl=True),
    Line("box, mild data, Euclid", 50_000_000, tol=1e-12, mild=True),
    Line("box, mild data, KL", 50_000_000, kl=True, tol=1e-12, mild=True),
    Line("single kernel, Euclid", 50_000_000, "kernel"),
    Line("single kernel, KL", 50_000_000, "kernel", kl=True),
    Line("layered graph", 64_000_000, "graph"),
    Line("layered graph, to 1e-11", 61_000_000, "graph", tol=1e-11),
)
HEAD = "| solver | `benchmarks/fuzz.py N ...` | problems | solved | accurate to 1e-8 only | failed | claimed too much |"


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    print(HEAD + "\n|---|---|" + 5 * "---:|")
    for line in LINES:
        with redirect_stdout(sys.stderr):
            counts = fuzz(n, line.seed, line.region, line.kl, line.tol, line.mild)
        numbers = [n, *(counts[key] for key in ("solved", "almost", "failed", "silent"))]
        print(f"| {line.solver} | `{line.command}` | {' | '.join(map(str, numbers))} |", flush=True)


if __name__ == "__main__":
    main()
