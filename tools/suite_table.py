"""Print a table of docs/suite.md from what `omdpd lab suite` left in a folder: ``python -m tools.suite_table FOLDER``.

    FOLDER              worlds and natures down, learners across
    FOLDER counts       how often each preset keeps the suite's bars, and how often it does better than `cautious`
    FOLDER late PRESET  where this preset's violation still grows fast or is still large at the end
    FOLDER growth       how violation grows in every world and nature
    FOLDER beside ONE OTHER [WORLD,NATURE ...]   where one preset has more of both sums than another, and these places

A cell of the first has regret / violation; the exponent of violation and its mean in the last tenth as a share of H.
Numbers that miss a bar are bold in all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from omdpd.report.results import grouped, growth_of, mean_of, summaries
from tools.tables import markdown, number, pair

PRESETS = ("standard", "settling", "cautious", "balanced", "optimistic")
ORDER = tuple(f"ProximalOMDPD.{preset}" for preset in PRESETS)
# Whom the others are counted against.
YARDSTICK = "ProximalOMDPD.cautious"
# The bars: an exponent from here on, unless the last tenth violates by less than this share of H; and that share alone.
MAX_EXPONENT, TINY, MAX_SHARE = 0.75, 0.001, 0.02
# A preset is worse than another where its regret and its violation are more by this share of the other's.
WORSE = 0.1

Run = Mapping[str, Any]
Groups = dict[tuple[str, ...], list[Run]]


class Late(NamedTuple):
    """How violation ends: its exponent between K/4 and K, and the share of H that the last tenth violates by."""

    exponent: float
    share: float

    @property
    def fast(self) -> bool:
        """Whether the exponent misses its bar."""
        return self.exponent >= MAX_EXPONENT and self.share >= TINY

    @property
    def large(self) -> bool:
        """Whether the last tenth misses its bar."""
        return self.share >= MAX_SHARE

    @property
    def missed(self) -> bool:
        """Whether a bar is missed."""
        return self.fast or self.large

    @property
    def missed_without_allowance(self) -> bool:
        """Whether a bar is missed, or would be if the exponent counted however little is left in the last tenth."""
        return self.exponent >= MAX_EXPONENT or self.large

    @property
    def cells(self) -> list[str]:
        """Both numbers, each bold if it misses its bar."""
        texts = {f"{self.exponent:.2f}": self.fast, f"{100.0 * self.share:.2f} %": self.large}
        return [f"**{text}**" if bold else text for text, bold in texts.items()]


def late(group: Sequence[Run]) -> Late:
    """The growth of the mean violation of some runs (an exponent of 0 where there is none)."""
    found = growth_of(group, "violation")
    exponent = 0.0 if found is None or found.slope is None else found.slope
    return Late(exponent, float(np.mean([run["late_violation"] / run["horizon"] for run in group])))


def cell(group: Sequence[Run]) -> str:
    """The numbers of one learner in one world and nature."""
    found = late(group)
    text = f"{found.exponent:.2f}, {100.0 * found.share:.1f} %"
    return f"{pair(group)}; " + (f"**{text}**" if found.missed else text)


def whole(runs: Sequence[Run]) -> str:
    """Everything, and a line on the solves; whoever learns nothing has no growth."""
    groups = grouped(runs)
    learners = sorted({name for _, _, name in groups}, key=_order)
    body = []
    for place in dict.fromkeys(key[:2] for key in groups):
        cells = [groups.get((*place, learner), []) for learner in learners]
        body.append([_named(place), *map(_shown, cells)])
    solved, failed = (sum(run[key] for run in runs) for key in ("solves", "failures"))
    gap = max(run["max_gap"] for run in runs)
    line = f"{len(runs)} runs, {solved} solves, {failed} failed; largest relative duality gap {gap:.1e}."
    return markdown(["world, nature", *(name.rpartition(".")[2] for name in learners)], body) + f"\n\n{line}"


def counts(runs: Sequence[Run]) -> str:
    """One row per preset: the combinations of world and nature that it was played in, and how many of them are so."""
    groups = grouped(runs)
    head = [
        "preset", "combinations", "keeps both bars", "without the allowance", "less regret than `cautious`",
        "less violation", "less of both", "more of both",
    ]  # fmt: skip
    body = []
    for learner in (name for name in ORDER if any(key[2] == name for key in groups)):
        ends = [late(group) for key, group in groups.items() if key[2] == learner]
        kept = [sum(not end.missed for end in ends), sum(not end.missed_without_allowance for end in ends)]
        body.append([f"`{learner.rpartition('.')[2]}`", *map(str, (len(ends), *kept)), *_beside(groups, learner)])
    return markdown(head, body)


def _beside(groups: Groups, learner: str) -> list[str]:
    """In how many combinations a learner has less regret than the yardstick, less violation, less and more of both.

    Nothing where the yardstick is this learner, or was not played.
    """
    pairs = [
        [(_mean(group, key), _mean(groups[*place, YARDSTICK], key)) for key in ("regret", "violation")]
        for (*place, name), group in groups.items()
        if name == learner != YARDSTICK and (*place, YARDSTICK) in groups
    ]
    if not pairs:
        return 4 * [""]
    signs = np.sign([[ours - other for ours, other in each] for each in pairs])
    less, more = signs < 0, signs > 0
    return [str(int(n)) for n in (*less.sum(0), less.all(1).sum(), more.all(1).sum())]


def _mean(group: Sequence[Run], key: str) -> float:
    found = mean_of(group, key)
    return np.nan if found is None else found.mean


def late_of(runs: Sequence[Run], preset: str) -> str:
    """The combinations in which a preset's violation grows fast or is large at the end, the largest share first."""
    groups = {key: group for key, group in grouped(runs).items() if key[2] == f"ProximalOMDPD.{preset}"}
    chosen = [(key, group) for key, group in groups.items() if late(group).missed_without_allowance]
    kept = sum(not late(group).missed for group in groups.values())
    seeds = max(map(len, groups.values()), default=0)
    line = f"{kept} of {len(groups)} combinations keep both bars ({seeds} seeds each)."
    return growth(dict(sorted(chosen, key=lambda pair: -late(pair[1]).share))) + f"\n\n{line}"


def beside(runs: Sequence[Run], one: str, other: str, places: Sequence[str] = ()) -> str:
    """One row per combination where a preset has more regret and more violation than another, and per place named."""
    groups, body, worse = grouped(runs), [], []
    ones, others = ([key for key in groups if key[2] == f"ProximalOMDPD.{preset}"] for preset in (one, other))
    for *place, name in ones:
        sides = [
            [_mean(groups[*place, learner], key) for learner in (name, others[0][2])] for key in ("regret", "violation")
        ]
        if all(mine > theirs for mine, theirs in sides):
            worse.append(all(mine - theirs > WORSE * abs(theirs) for mine, theirs in sides))
        if all(mine > theirs for mine, theirs in sides) or ",".join(place) in places:
            body.append([_named(place), *(number(each) for side in sides for each in side)])
    head = ["world, nature", *(f"{key} of `{who}`" for key in ("regret", "violation") for who in (one, other))]
    line = f"Of {len(ones)} combinations {len(worse)} have more of both, {sum(worse)} by more than a tenth."
    return markdown(head, body or [["(none)", *4 * [""]]]) + f"\n\n{line}"


def growth(groups: Mapping[tuple[str, ...], Sequence[Run]]) -> str:
    """One row per combination: regret, violation after a quarter of the episodes and after all, and how it ends."""
    head = ["world, nature", "K", "regret", "violation after K/4", "after K", "exponent", "last tenth, of H"]
    body = []
    for (world, nature, _), group in groups.items():
        means = [number(_mean(group, key)) for key in ("regret", "early_violation", "violation")]
        body.append([_named((world, nature)), str(group[0]["episodes"]), *means, *late(group).cells])
    return markdown(head, body or [["(none)", *6 * [""]]])


def _named(place: Sequence[str]) -> str:
    return "`{}`, {}".format(*place)


def _order(learner: str) -> tuple[int, str]:
    """Ours from the most careful on, then the others."""
    return (ORDER.index(learner) if learner in ORDER else len(ORDER), learner)


def _shown(group: Sequence[Run]) -> str:
    if not group:
        return ""
    return pair(group) if group[0]["learner"] == "Uniform" else cell(group)


def main(words: Sequence[str]) -> str:
    """The table that is asked for."""
    match words:
        case [folder]:
            return whole(summaries(Path(folder)))
        case [folder, "counts"]:
            return counts(summaries(Path(folder)))
        case [folder, "late", preset]:
            return late_of(summaries(Path(folder)), preset)
        case [folder, "beside", one, other, *places]:
            return beside(summaries(Path(folder)), one, other, places)
        case [folder, "growth"]:
            return growth(grouped(summaries(Path(folder))))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    print(main(sys.argv[1:]))
