"""What should make the owner of a session look: three alarms, each with its threshold in words.

**Over budget.**  Let x = (cost - budget in force) / (H scale) in [-1, 1].  While the mean cost keeps to the budget,
M <- max(M, 1) (1 + l x) with l in [0, .9] chosen before x is met grows beyond `OVER` at most once in `OVER` episodes on
average (a sum of bets at fair or worse odds); while it does not, M grows exponentially.

**Drift.**  Moves are predicted from all that was counted (p) and from recent counts (q); R <- max(R, 0) + ln q / p.  It
stays low while the world is what it was.  The threshold was chosen by simulation; nothing is proved.

**Weight at its cap.**  The learner's penalty weight was cut off in half of the last updates: the budget cannot be kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from omdpd.problem.arrays import Floats

# A false alarm of overspending comes once in so many episodes on average, or less often.
OVER = 10_000.0
LARGEST_BET = 0.9
# ln of how much better recent moves are predicted by recent ones.
DRIFT = 18.0
# How fast recent counts forget, what they start from, and by how much one move may count.
FORGET, PRIOR, MOST = 0.97, 4.0, 2.0
# Updates that are looked at for the weight, and how many of them it may be at its cap.
UPDATES, AT_CAP = 50, 25


@dataclass(frozen=True)
class Alarm:
    """One alarm: whether it rings, what was measured, and the sentence for people."""

    name: str
    rings: bool
    value: float
    threshold: float
    words: str


class Bet(msgspec.Struct):
    """The bets against one constraint: ln M, and moments of x so far."""

    wealth: float = 0.0
    n: float = 1.0
    total: float = 0.0
    squares: float = 1.0

    def place(self, x: float) -> None:
        """Bet on the next x, then meet it."""
        mean, square = self.total / self.n, self.squares / self.n
        stake = min(max(mean / square, 0.0), LARGEST_BET) if self.n > 1.0 else 0.5
        self.wealth = max(self.wealth, 0.0) + math.log1p(stake * x)
        self.n, self.total, self.squares = self.n + 1.0, self.total + x, self.squares + x * x


class Watch(msgspec.Struct):
    """What the alarms go by; it follows from the episodes in their order."""

    bets: list[Bet] = []
    drift: float = 0.0
    moves: dict[str, dict[int, list[float]]] = {}  # by "state,action", next state: all, recent

    def spent(self, excess: Floats) -> None:
        """An episode's costs less the budget in force, over H times the scale."""
        self.bets = self.bets or [Bet() for _ in excess]
        for bet, x in zip(self.bets, excess.tolist(), strict=True):
            bet.place(min(max(x, -1.0), 1.0))

    def moved(self, states: list[int], actions: list[int], n_states: int) -> None:
        """The moves of an episode's played steps."""
        for s, a, t in zip(states, actions, states[1:], strict=False):
            row = self.moves.setdefault(f"{s},{a}", {})
            n, m = sum(each[0] for each in row.values()), sum(each[1] for each in row.values())
            known, recent = row.get(t, [0.0, 0.0])
            p = (known + 0.5) / (n + 0.5 * n_states)
            q = (recent + PRIOR * p) / (m + PRIOR)
            self.drift = max(self.drift, 0.0) + min(max(math.log(q / p), -MOST), MOST)
            for each in row.values():
                each[1] *= FORGET
            row[t] = [known + 1.0, FORGET * recent + 1.0]

    def alarms(self, names: list[str], capped: int) -> tuple[Alarm, ...]:
        """Every alarm as it stands; `capped` of the last updates had the weight at its cap."""
        over = [
            Alarm(
                f"over {name}", bet.wealth > math.log(OVER), math.exp(min(bet.wealth, 50.0)), OVER,
                f"{name}: the odds are {math.exp(min(bet.wealth, 50.0)):.3g} to 1 that episodes cost more than their "
                f"budget on average; {OVER:g} ring",
            )
            for name, bet in zip(names, self.bets, strict=False)
        ]  # fmt: skip
        return (
            *over,
            Alarm("drift", self.drift > DRIFT, self.drift, DRIFT,
                  f"drift: recent moves are e^{self.drift:.3g} times likelier by recent counts than by all; "
                  f"e^{DRIFT:g} rings"),
            Alarm("weight at its cap", capped > AT_CAP, float(capped), AT_CAP,
                  f"weight at its cap: in {capped} of the last {UPDATES} updates; more than {AT_CAP} ring"),
        )  # fmt: skip
