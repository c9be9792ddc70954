"""Which bonus suits a row: `python -m benchmarks.bandits [REPEATS]` prints the table of docs/dials.md.

The rows of one state of a random world are a three-armed Bernoulli bandit with uniform means that is pulled a few dozen
to a thousand times.  Here is that problem alone, thousands of times over: mean regret of several bonuses, what it adds
up to over the 25 states and steps of the paper's world, and the one per cent of bandits that went worst.  The bonus of
`standard` is the rule that it has (`rules.bonus`), of rows that share nothing and may hope for 1.
"""

from __future__ import annotations

import sys

import numpy as np
from numba import njit

from omdpd.beliefs import rules

PULLS = (60, 200, 600, 1300)
N_STATES = 25


@njit
def by_hand(x, n, k, settings):
    """Index = mean with `chance` observations of 1, + sd sqrt(max(v, few/(4(few+n)))/n) + first/n."""
    sd, few, first, chance = settings
    m = (x + chance) / (n + chance) if n + chance > 0.0 else 1.0
    v = max(m * (1.0 - m), 0.25 * few / (few + n))
    return m + sd * np.sqrt(v / max(n, 1.0)) + min(first / max(n, 0.1), 1.0)


@njit
def by_rule(x, n, k, settings):
    """Index = mean with one observation of 1/2, + so many times the bonus of the default."""
    m, due = (x + 0.5) / (n + 1.0), rules.overdue(k, n, 3.0)
    return m + settings[0] * rules.bonus(m, n + 1.0, m * (1.0 - m), 0.0, 1.0, 0.25, due)


@njit
def regrets(pulls, repeats, index, settings, seed):
    """Regret of who pulls the arm of the largest index, in every bandit."""
    np.random.seed(seed)  # noqa: NPY002
    found = np.zeros(repeats)
    for i in range(repeats):
        means = np.random.random(3)  # noqa: NPY002
        n, x = np.zeros(3), np.zeros(3)
        for k in range(pulls):
            best, arm = -np.inf, 0
            for a in range(3):
                value = index(x[a], n[a], float(k), settings)
                if value > best:
                    best, arm = value, a
            found[i] += means.max() - means[arm]
            n[arm] += 1.0
            x[arm] += np.random.random() < means[arm]  # noqa: NPY002
    return found


def main() -> int:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    head = ("bonus", *(f"{pulls} pulls" for pulls in PULLS), f"all {N_STATES}", "worst 1 % of the longest")
    for cells in (head, ("---", *("---:" for _ in head[1:]))):
        print(f"| {' | '.join(cells)} |")
    for label, index, *settings in (
        ("fixed variance, 1/n (`cautious`)", by_hand, 0.88, 1e9, 1.0, 0.0),
        ("empirical variance, no second chance", by_hand, 0.8, 4.0, 0.5, 0.0),
        ("variance believed after 40, no second chance", by_hand, 0.8, 40.0, 0.5, 0.0),
        ("empirical variance, second chance .75", by_hand, 0.8, 4.0, 0.5, 0.75),
        ("`settling`", by_hand, 0.8, 40.0, 0.5, 0.75),
        ("`standard`", by_rule, 1.0),
        ("half of it", by_rule, 0.5),
        ("twice of it", by_rule, 2.0),
    ):
        each = [regrets(pulls, repeats, index, tuple(settings), 7) for pulls in PULLS]
        total = N_STATES * np.mean([found.mean() for found in each])
        cells = [f"{found.mean():.2f}" for found in each]
        print(f"| {' | '.join((label, *cells, f'{total:.0f}', f'{np.quantile(each[-1], 0.99):.0f}'))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
