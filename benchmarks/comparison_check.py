"""Which conclusions of docs/comparison.md survive instances that the page has never seen.

    python -m benchmarks.comparison_check [--quick] [--first SEED] [--seeds N] [--only WORD]

Every conclusion is a sentence of that page and one or more claims: on a place, each of some learners has more of a
number than another learner, by a factor and a margin.  All are played on fresh instances with the settings that the
page prints (or with a learner's own), and the paired differences are tested by a one-sided t-test at 10 %.  A sentence
survives if all of its claims do.  The answer is 1 if one does not.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from scipy import stats

from omdpd import run
from omdpd.experiments.registry import Registry
from omdpd.problem.arrays import Floats

# The table of the page that says what training chose.
CHOICES = Path(__file__).resolve().parents[1] / "docs" / "numbers" / "choices.md"
EPISODES, SEEDS, QUICK_SEEDS, FIRST = 3000, 12, 4, 19_000
LEVEL = 0.1
OURS = "ProximalOMDPD.standard"
What = Literal["regret", "violation"]

# Settings that were found by hand, in one to three tries.
BY_HAND = {
    "BVOPS": "BVOPS(gamma_scale=0.05, step_scale=1.0, transition_scale=0.0001)",
    "DOPE": "DOPE(cost_scale=0.05, transition_scale=0.0001)",
    "FlexDOME": (
        "FlexDOME(reward_scale=0.0707, transition_scale=0.00023, margin_scale=0.3, eta_scale=60.0, tau_scale=0.02)"
    ),
    "OptPessPrimalDual": "OptPessPrimalDual(reward_scale=0.2, transition_scale=0.0003, tightening_scale=0.001)",
}


@dataclass(frozen=True)
class Claim:
    """`more` has more of a number than `factor` times that of `less`, plus `by`; learners as labels with settings."""

    world: str
    nature: str
    what: What
    more: str
    less: str
    factor: float = 1.0
    by: float = 0.0


@dataclass(frozen=True)
class Sentence:
    """A conclusion as it stands on the page."""

    text: str
    claims: tuple[Claim, ...]


@cache
def chosen(nature: str) -> dict[str, str]:
    """What training chose on random worlds, by learner, as the page's last table says."""
    kept = "pool" if nature == "adaptive" else nature
    found = re.findall(rf"\| random_dirichlet, {kept} \| `([^`]+)`", CHOICES.read_text())
    return {label.partition("(")[0]: label for label in found}


def printed(nature: str, more: Sequence[str], less: str, what: What, **than: Any) -> tuple[Claim, ...]:
    """Claims about learners with the settings that training chose."""
    labels = chosen(nature)
    return tuple(
        Claim("random_dirichlet", nature, what, labels.get(name, name), labels.get(less, less), **than) for name in more
    )


def more_of_ours(nature: str, name: str, by: float = 0.0) -> Claim:
    """That ours has more regret than a learner with the settings that training chose, by so much."""
    labels = chosen(nature)
    return Claim("random_dirichlet", nature, "regret", labels.get(OURS, OURS), labels.get(name, name), by=by)


def as_they_come(natures: str, more: Sequence[str], less: str, what: What, **than: Any) -> tuple[Claim, ...]:
    """Claims about learners with their own settings, under several natures."""
    return tuple(
        Claim("random_dirichlet", nature, what, name, less, **than) for nature in natures.split() for name in more
    )  # fmt: skip


def sentences() -> tuple[Sentence, ...]:
    """The conclusions of the page."""
    safe = ["EpisodeSafe", "OptPessLP", "DOPE"]
    return (
        Sentence(
            "Less regret is there for more violation: `ProximalOMDPD.balanced` has less than `standard` under `noisy`, "
            "and at least five times its violation.",
            (
                more_of_ours("noisy", "ProximalOMDPD.balanced"),
                *printed("noisy", ["ProximalOMDPD.balanced"], OURS, "violation", factor=5.0),
            ),
        ),
        Sentence(
            "Dual methods for an average constraint (`OptDual`, `OptPrimalDual`, `OPDOP`, `TripleQ`) violate at least "
            "five times as much as `standard` under `noisy`.",
            printed("noisy", ["OptDual", "OptPrimalDual", "OPDOP", "TripleQ"], OURS, "violation", factor=5.0),
        ),
        Sentence(
            "Methods that hold an average constraint (`Germano`, `GreedyLP`, `LinearPotential`, `UCPD`) violate at "
            "least ten times as much as `standard` under `pool`.",
            printed("pool", ["Germano", "GreedyLP", "LinearPotential", "UCPD"], OURS, "violation", factor=10.0),
        ),
        Sentence(
            "`SinhaVaze`, `LekeufackJordan` and `OMDPD.tuned` violate at least three times as much as `standard` under "
            "`pool`.",
            printed("pool", ["SinhaVaze", "LekeufackJordan", "OMDPD.tuned"], OURS, "violation", factor=3.0),
        ),
        Sentence(
            "With the authors' own first weights `SinhaVaze.published` and `LekeufackJordan.published` violate at "
            "least twenty times as much as `standard` under `noisy`.",
            printed("noisy", ["SinhaVaze.published", "LekeufackJordan.published"], OURS, "violation", factor=20.0),
        ),
        Sentence(
            "`OMDPD.theory` has at least four times the regret of `standard`.",
            printed("noisy", ["OMDPD.theory"], OURS, "regret", factor=4.0),
        ),
        Sentence(
            "Of those that are given a safe policy, `DOPE` and `DOPEPlus` have at most 100 more regret than "
            "`standard`.",
            tuple(more_of_ours("noisy", name, by=-100.0) for name in ("DOPE", "DOPEPlus")),
        ),
        Sentence(
            "With default settings `EpisodeSafe`, `OptPessLP` and `DOPE` have at least 300 more regret than "
            "`standard`, and less violation.",
            (
                *as_they_come("noisy", safe, OURS, "regret", by=300.0),
                *(Claim("random_dirichlet", "noisy", "violation", OURS, name) for name in safe),
            ),
        ),
        Sentence(
            "Methods on importance-weighted losses (`BVOPS`, `SOPS`, `CVOPS`, `WCOPS`) have at least 300 more regret "
            "than `standard`.",
            printed("noisy", ["BVOPS", "SOPS", "CVOPS", "WCOPS"], OURS, "regret", by=300.0),
        ),
    )


@cache
def played(world: str, nature: str, label: str, seed: int, episodes: int) -> dict[str, Any]:
    """The scores of one run, in the user's units, and its length."""
    registry = Registry.installed()
    name, _, inside = label.removesuffix(")").partition("(")
    settings = {key: float(value) for key, _, value in (each.partition("=") for each in inside.split(", ") if each)}
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    scores = run(
        registry.spec("worlds", world).build(rng), registry.spec("learners", name, settings).build(), nature, episodes,
        seed,
    ).scores  # fmt: skip
    if scores.regret is None:
        raise SystemExit(f"{label} on {world}, {nature} has no regret at instance {seed}: no policy is safe")
    return {"episodes": episodes, **asdict(scores)}


def differences(claim: Claim, seeds: Sequence[int], episodes: int) -> Floats:
    """What `more` has beyond what is claimed, on every instance."""

    def numbers(label: str) -> Floats:
        return np.array([played(claim.world, claim.nature, label, seed, episodes)[claim.what] for seed in seeds])

    found: Floats = numbers(claim.more) - claim.factor * numbers(claim.less) - claim.by
    return found


def holds(beyond: Floats) -> bool:
    """Whether the mean of paired differences is positive beyond chance, at `LEVEL`, one-sided."""
    if np.ptp(beyond) == 0.0:
        return bool(beyond[0] > 0.0)
    return bool(stats.ttest_1samp(beyond, 0.0, alternative="greater").pvalue < LEVEL)


def survivors(
    asked: Sequence[Sentence], seeds: Sequence[int], episodes: int, say: Callable[[str], None]
) -> list[Sentence]:
    """The sentences that survive; each is said with its claims as it is known."""
    kept = []
    for sentence in asked:
        beyond = [differences(claim, seeds, episodes) for claim in sentence.claims]
        good = [holds(each) for each in beyond]
        say(f"{'survives' if all(good) else 'FALLS   '}  {sentence.text}")
        for claim, each, fine in zip(sentence.claims, beyond, good, strict=True):
            if not all(good):
                word = "holds" if fine else "does not hold"
                say(f"          {claim.world}, {claim.nature}: {claim.what} of {claim.more} {word}: {each.mean():+.1f}")
        kept += [sentence] if all(good) else []
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SEEDS} instances instead of {SEEDS}")
    parser.add_argument("--first", type=int, default=FIRST, help="the number of the first instance")
    parser.add_argument("--seeds", type=int, help="how many instances")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--only", default="", help="sentences that have this word")
    options = parser.parse_args()
    n = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    asked = [each for each in sentences() if options.only in each.text]
    console = Console(soft_wrap=True, highlight=False)
    kept = survivors(asked, range(options.first, options.first + n), options.episodes, console.print)
    console.print(f"{len(kept)} of {len(asked)} survive on {n} instances from {options.first} on.")
    sys.exit(len(kept) < len(asked))


if __name__ == "__main__":
    main()
