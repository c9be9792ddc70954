"""`ProximalOMDPD` beside that of an older version, how far and how fast: ``python -m benchmarks.versions PATH``.

PATH is a checkout of the older version.  Both versions take turns, so that the machine's other work falls on both;
times are the least of some, of one core's processor time.  Version 0.2's default is `settling`.

* **times**: microseconds of policy and update alone (verbs), of whole episodes as a run plays them (batches), ratios.
* **values**: the largest difference between true values of one episode, by nature, with 1, 2 and 4 constraints,
  memories of 8, 2 and 0, and K known or not; and whether batches have the same bits.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.episodes import Version
from benchmarks.kept import keep
from omdpd.natures import NATURES

HERE = Path(__file__).parent
# The paper's sizes, on instances that nothing was tuned on.
USUAL: dict[str, Any] = {"S": 5, "A": 3, "H": 5, "I": 1, "seed": 7600, "preset": "settling", "settings": {}, "known": 1}
# Constraints, memory, and whether K is known: every value of each meets a nature, and with --all every combination.
COMBINATIONS = ((1, 8, 1), (2, 2, 0), (4, 0, 1))


class Case(NamedTuple):
    """A line of the table of times: what is played, how, and what of it is unusual."""

    name: str
    way: str
    nature: str
    others: dict[str, Any]


GRAPH = {"settings": {"layout": "graph"}}
TIMED = (
    *(Case("default", way, nature, {"I": n}) for way in ("verbs", "batches")
      for nature, n in (("noisy", 1), ("pool", 1), ("fixed", 2), ("adaptive", 1))),
    *(Case("unusual then", way, nature, {"settings": {"memory": 2}, "I": n}) for way in ("verbs", "batches")
      for nature, n in (("pool", 2), ("independent", 1), ("scaled", 1))),
    Case("K unknown", "verbs", "noisy", {"known": 0}),
    *(Case("persisting", way, nature, {"preset": "standard"}) for way in ("verbs", "batches")
      for nature in ("noisy", "pool")),
    *(Case("cautious", way, nature, {"preset": "cautious"}) for way in ("verbs", "batches")
      for nature in ("noisy", "pool", "independent")),
    *(Case(f"{preset} on a graph, S{S}", "verbs", nature, GRAPH | {"preset": preset, "S": S, "A": 5, "H": 10})
      for S, preset, nature in product((5, 20), ("settling", "cautious"), ("noisy", "pool"))),
)  # fmt: skip


def times(now: Version, then: Version, episodes: int, repeats: int, named: str) -> list[dict[str, Any]]:
    """Microseconds per episode of every case, now and then."""
    found = []
    for case in [each for each in TIMED if named in each.name]:
        asked = USUAL | case.others | {"nature": case.nature, "way": case.way, "episodes": episodes}
        spent = []
        for _ in range(1 + repeats):
            told = now.ask(asked), then.ask(asked)
            assert told[0] is not None
            assert told[1] is not None
            spent.append([each["seconds"] for each in told if each is not None])
        mine, theirs = 1e6 * np.min(spent[1:], axis=0)  # the first ones may have compiled
        found.append(case._asdict() | {"us": mine, "before": theirs, "ratio": mine / theirs})
        print(
            f"{case.name:28s} {case.way:8s} {case.nature:12s} {mine:7.1f} {theirs:7.1f} {mine / theirs:6.2f}",
            flush=True,
        )
    return found


def values(now: Version, then: Version, episodes: int, everything: bool) -> list[dict[str, Any]]:
    """How far the values of a run are from those of the older version, and from its own in batches."""
    found = []
    every = product((1, 2, 4), (8, 2, 0), (1, 0)) if everything else COMBINATIONS
    for nature, (n, memory, known) in product(NATURES, tuple(every)):
        asked = USUAL | {"nature": nature, "I": n, "settings": {"memory": memory}, "known": known}
        asked |= {"episodes": episodes, "seed": 7600 + n, "way": "values"}
        mine, theirs = now.ask(asked), then.ask(asked)
        if mine is None or theirs is None:
            continue
        gap = float(np.max(np.abs(np.subtract(mine["values"], theirs["values"]))))
        again, alone = (now.ask(asked | {"way": way}) if known else None for way in ("batches", "loop"))
        same = again is None or alone is None or again["values"] == alone["values"]
        found.append({"nature": nature, "constraints": n, "memory": memory, "known": known, "gap": gap, "same": same})
        said = "" if again is None else "batches: same bits" if same else "batches: OTHER BITS"
        print(f"{nature:18s} I={n} memory={memory} K {'known' if known else 'unknown':8s} {gap:.1e} {said}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("against", type=Path, help="a checkout of the older version")
    parser.add_argument("--only", choices=("times", "values"))
    parser.add_argument("--episodes", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="every combination of constraints, memory and K")
    parser.add_argument("--named", default="", help="time the cases with this in their name alone")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    versions = [Version(source / "src", "version_worker.py") for source in (HERE.parent, options.against)]
    found: dict[str, Any] = {}
    if options.only != "values":
        found["times"] = times(*versions, options.episodes, options.repeats, options.named)
    if options.only != "times":
        found["values"] = values(*versions, options.episodes, options.all)
    keep(options.json, found)


if __name__ == "__main__":
    main()
