"""What each part of `ProximalOMDPD.standard` is worth: `python -m benchmarks.without FIRST:COUNT [NATURE ...]`.

One thing at a time is turned or taken away, on the same instances, K = 3000 or as many --episodes.  A dial is an
argument; a rule is changed before it is compiled, in a process of its own that keeps its machine code apart.  What is
printed is the table of docs/dials.md: ratios to the default settings, with paired bootstrap 90 % intervals, and the
share of stuck runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from benchmarks.ratios import paired_ratio_interval
from benchmarks.standard import FOLDER, LEARNER_OF, NATURE_NAMES, STUCK, Job, K, played, print_markdown
from omdpd.beliefs import rules
from omdpd.jit.decorators import glue
from omdpd.learners import PlanLP, ProximalOMDPD

BASE = "default settings"
Standard = ProximalOMDPD.standard
DIALS: dict[str, Callable[[], Any]] = {
    BASE: Standard,
    "no margin (z = 0)": lambda: Standard(z=0.0),
    "no growth (persistence = 0: `settling`)": ProximalOMDPD.settling,
    "half the growth": lambda: Standard(persistence=0.5),
    "twice the growth": lambda: Standard(persistence=2.0),
    "no bonus (exploration = 0)": lambda: Standard(exploration=0.0),
    "weights of this episode, not the last": lambda: Standard(lagged=False),
    "w0 = 1": lambda: Standard(w0=1.0),
    "w0 = 100": lambda: Standard(w0=100.0),
    "weights do not grow (gamma_scale = 0.01)": lambda: Standard(gamma_scale=0.01),
    "eta ten times longer": lambda: Standard(eta=10.0, eta_bandit=1.0),
    "eta ten times shorter": lambda: Standard(eta=0.1, eta_bandit=0.01),
    "every surprise slows (patient = False)": lambda: Standard(patient=False),
    "a linear program (`PlanLP`, beliefs of `settling`)": PlanLP,
}


def _change(name: str, value: Any) -> None:
    """Put something else in the place of a rule or constant, which must be there."""
    if not hasattr(rules, name):
        raise AttributeError(f"the rules of beliefs have no {name} any more")
    setattr(rules, name, value)


def _nothing_shared() -> None:
    rules.WEIGHTS[:] = rules.WEIGHTS[0]


def _no_value_part() -> None:
    _change("AHEAD", 0.0)


def _no_way_out() -> None:
    _change("way_out", glue(lambda price, size, mean, highest: 0.0))


def _no_second_chance() -> None:
    import math

    always, noise_after = rules.ALWAYS, rules.noise_after

    def bonus(
        r: float, size: float, noise: float, follows: float, optimistic_reward: float, min_variance: float, due: float
    ) -> float:
        N = max(size, 1.0)
        return math.sqrt((always + due) * (noise_after(noise, min_variance, N) / (N + 1.0) + follows))

    _change("bonus", glue(bonus))


def _no_noise_floor() -> None:
    _change("HALF_BELIEVED", 0.0)


def _no_own_word() -> None:
    _change("own_bonus", glue(lambda persistence, price, due, n: -1e9))


# Rules that are no dials.
CHANGED: dict[str, Callable[[], None]] = {
    "nothing shared between steps": _nothing_shared,
    "no value part (variance of what follows)": _no_value_part,
    "no way out (law of a row little known)": _no_way_out,
    "no second chance (observation of hope)": _no_second_chance,
    "no floor under the noise of rewards": _no_noise_floor,
    "no word of a row's own (the theorem's rule)": _no_own_word,
}


def play(name: str, natures: list[str], seeds: range, episodes: int) -> None:
    """Play the runs of one line; numbers are kept under results/standard."""
    LEARNER_OF[name] = DIALS.get(name, Standard)
    for nature in natures:
        for seed in seeds:
            played(Job(name, nature, seed, episodes))


def play_changed(name: str, words: list[str], episodes: int) -> None:
    """Play the runs of a changed rule in a process of its own."""
    kept = FOLDER / "changed" / str(list(CHANGED).index(name))
    environment = os.environ | {"OMDPD_CACHE_DIR": str(kept.resolve())}
    command = [sys.executable, "-m", "benchmarks.without", *words, "--episodes", str(episodes), "--changed", name]
    subprocess.run(command, env=environment, check=True)


def table(names: list[str], natures: list[str], seeds: range, episodes: int) -> list[tuple[str, ...]]:
    """One line per change, after a head; the first has means."""
    head = ["change", *(f"{what}, `{nature}`" for nature in natures for what in ("regret", "violation", "stuck"))]
    lines: list[tuple[str, ...]] = [tuple(head)]
    for name in names:
        cells = [name]
        for nature in natures:
            found, base = ([played(Job(who, nature, seed, episodes)) for seed in seeds] for who in (name, BASE))
            for key in ("regret", "violation"):
                mine, other = (np.array([run[key] for run in runs]) for runs in (found, base))
                low_high = paired_ratio_interval(mine, other, np.random.default_rng(0))
                ratio = "{:.2f} ({:.2f} .. {:.2f})".format(*low_high)
                cells.append(f"{mine.mean():.1f}" if name == BASE else ratio)
            cells.append(f"{np.mean([run['regret'] > STUCK for run in found]):.0%}")
        lines.append(tuple(cells))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", help="FIRST:COUNT, e.g. 13000:20")
    parser.add_argument("natures", nargs="*", choices=[*NATURE_NAMES, []], help="noisy and pool if none")
    parser.add_argument("--only", nargs="*", choices=[*DIALS, *CHANGED], help="these lines, and the first")
    parser.add_argument("--episodes", type=int, default=K)
    parser.add_argument("--fresh", action="store_true", help="play again what was played")
    parser.add_argument("--changed", choices=list(CHANGED), help="play the runs of this changed rule, and stop")
    options = parser.parse_args()
    start, count = (int(part) for part in options.seeds.split(":"))
    seeds, natures = range(start, start + count), options.natures or ["noisy", "pool"]
    words = [options.seeds, *natures]
    if options.changed:
        CHANGED[options.changed]()
        play(options.changed, natures, seeds, options.episodes)
        return
    names = [name for name in (*DIALS, *CHANGED) if options.only is None or name in (BASE, *options.only)]
    if options.fresh:
        for name, nature, seed in product(names, natures, seeds):
            Job(name, nature, seed, options.episodes).file.unlink(missing_ok=True)
    for name in names:
        if name in DIALS:
            play(name, natures, seeds, options.episodes)
        else:
            play_changed(name, words, options.episodes)
    print_markdown(table(names, natures, seeds, options.episodes))


if __name__ == "__main__":
    main()
