"""Three alarms make the owner of a session look, each with its threshold in words.

**Over budget.**  Let y = (cost - budget in force) / (budget - the least an episode can cost), so that y >= -1.  For a
few stakes l below 1 let M_l <- max(M_l, 1) (1 + l y).  While the mean cost keeps to the budget these are bets at fair
or worse odds, and the mean of the M_l is beyond `RINGS` at most once in `RINGS` episodes on average.  While it does
not, the stake that suits the excess and the spread grows exponentially, however wide the declared range is upwards.  A
step is taken to cost nothing at least, until one is met that costs less: from then on what is declared.

**Drift.**  Under one law the next states of a row (h, s, a) are exchangeable: the rank of a new one among those met
before, p = (less + u equal) / n with u drawn, is uniform (a conformal p-value), whatever the law and the size of the
problem.  Bets on p by what recent ranks were, of the same pair and of all, gain only where ranks are no longer uniform;
they are kept as above.  Exact if which rows are visited does not hang on what was met there; tests try where it does.

**Weight at its cap.**  The learner's penalty weight was cut off in half of the last updates: the budget cannot be kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from omdpd.problem.arrays import Floats

# A false alarm of overspending or drift comes once in so many episodes on average, or less often: odds that ring.
RINGS = 10_000.0
# Odds below which there is no sign, and below which it is weak.
NO_SIGN, WEAK = 10.0, 100.0
# Shares of the wealth that are bet on overspending.
STAKES = (0.02, 0.08, 0.3, 0.9)
# Ranks are counted in so many bins, with so many of each to begin with; how fast those of a pair, and of all, forget.
BINS, PRIOR, FORGETTING = 4, 1.0, (0.97, 0.99)
# Updates that are looked at for the weight, and how many of them it may be at its cap.
UPDATES, AT_CAP = 50, 25
_WORD = 2**64 - 1


@dataclass(frozen=True)
class Alarm:
    """One alarm: whether it rings, what was measured, and the sentence for people."""

    name: str
    rings: bool
    value: float
    threshold: float
    words: str


class Bets(msgspec.Struct):
    """Bets by several rules: ln of what each has made of 1 since it last had less."""

    wealth: list[float] = []

    def won(self, gains: Sequence[float]) -> None:
        """Add what each rule won, as logarithms."""
        before = self.wealth or [0.0] * len(gains)
        self.wealth = [max(old, 0.0) + gain for old, gain in zip(before, gains, strict=True)]

    @property
    def odds(self) -> float:
        """The mean of what they made."""
        return sum(math.exp(min(each, 50.0)) for each in self.wealth) / len(self.wealth) if self.wealth else 1.0


class Watch(msgspec.Struct):
    """What the alarms go by; it follows from the episodes in their order.

    `by_step` says whether laws may differ between steps; `below` whether a cost below zero was met.
    """

    over: list[Bets] = []
    below: bool = False
    by_step: bool = True
    world: Bets = msgspec.field(default_factory=Bets)
    ranked: int = 0
    rows: dict[str, dict[int, int]] = {}  # by "step,state,action": how often each next state came
    ranks: dict[str, list[float]] = {}  # by "state,action", and of all: recent ranks by bin

    def spent(self, excess: Floats, room: Floats) -> None:
        """An episode's costs less the budget in force (I,), and that budget less the least it could have cost (I,)."""
        self.over = self.over or [Bets() for _ in excess]
        for bets, y in zip(self.over, (excess / room).tolist(), strict=True):
            bets.won([math.log1p(stake * max(y, -1.0)) for stake in STAKES])

    def moved(self, states: Sequence[int], actions: Sequence[int], bet: bool = True) -> None:
        """The moves of an episode's played steps; what was logged before is not bet on."""
        gains = [0.0, 0.0]
        for h, (s, a, t) in enumerate(zip(states, actions, states[1:], strict=False)):
            row = self.rows.setdefault(f"{h},{s},{a}" if self.by_step else f"{s},{a}", {})
            known = row.get(t, 0)
            if bet:
                self.ranked += 1
                less = sum(n for other, n in row.items() if other < t)
                place = int(BINS * (less + _drawn(self.ranked) * (known + 1)) / (sum(row.values()) + 1))
                for i, key in enumerate((f"{s},{a}", "")):
                    gains[i] += self._counted(key, place, FORGETTING[i])
            row[t] = known + 1
        if bet:
            self.world.won(gains)

    def _counted(self, key: str, place: int, forget: float) -> float:
        """Count a rank; what a bet by the ones before it won."""
        recent = self.ranks.setdefault(key, [0.0] * BINS)
        gain = math.log(BINS * (recent[place] + PRIOR) / (sum(recent) + BINS * PRIOR))
        self.ranks[key] = [forget * n + (i == place) for i, n in enumerate(recent)]
        return gain

    def alarms(self, names: Sequence[str], capped: int) -> tuple[Alarm, ...]:
        """Every alarm as it stands; `capped` of the last updates had the weight at its cap."""
        over = [
            _betted(f"over {name}", f"{name}: {{}} that episodes cost more than their budget on average", bets)
            for name, bets in zip(names, self.over, strict=False)
        ]
        sign = "cannot be kept" if capped > AT_CAP else "can be kept, as far as updates show"
        cap = f"budget: it {sign} ({capped} of the last {UPDATES} updates had the weight at its cap; {AT_CAP + 1} ring)"
        return (
            *over, _betted("drift", "world: {} that it moves otherwise than before", self.world),
            Alarm("weight at its cap", capped > AT_CAP, float(capped), AT_CAP, cap),
        )  # fmt: skip


def _betted(name: str, words: str, bets: Bets) -> Alarm:
    """An alarm that goes by bets, with what they say."""
    odds = bets.odds
    rings = odds > RINGS
    sign = (
        "it is clear" if rings else "no sign" if odds < NO_SIGN else "a weak sign" if odds < WEAK else "a strong sign"
    )
    return Alarm(name, rings, odds, RINGS, f"{words.format(sign)} (odds {odds:.3g} to 1; {RINGS:.0f} to 1 rings)")


def _drawn(n: int) -> float:
    """The n-th of a sequence of numbers in [0, 1) that look drawn, the same at every time."""
    z = (n * 0x9E3779B97F4A7C15) & _WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53
