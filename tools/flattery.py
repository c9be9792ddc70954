"""Draw how the best of many flatters itself: ``python tools/flattery.py docs/figures/flattery.png``.

Twenty actions are equally good and each is tried 48 times, in 4000 logs.  Shown is by how many standard errors an
action looks better than it is: one that was fixed beforehand, the best of all, and the best less what halves show.
"""

from __future__ import annotations

import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

LOGS, ACTIONS, TRIES, SPLITS = 4000, 20, 48, 6


def main(file: str) -> None:
    """Draw the logs, measure, and write the figure."""
    rng = np.random.default_rng(10012)
    met = rng.normal(size=(LOGS, ACTIONS, TRIES))
    error = 1.0 / np.sqrt(TRIES)
    means = met.mean(axis=2)
    best = means.max(axis=1) / error
    shown = np.zeros(LOGS)
    for _ in range(SPLITS):
        order = rng.permutation(TRIES)
        one, other = (met[:, :, half].mean(axis=2) for half in (order[: TRIES // 2], order[TRIES // 2 :]))
        chosen = one.argmax(axis=1)[:, None]
        gap = np.take_along_axis(one, chosen, 1) - np.take_along_axis(other, chosen, 1)
        shown += gap[:, 0] / (error * np.sqrt(2.0)) / SPLITS
    figure, axes = plt.subplots(figsize=(7.0, 2.8), layout="constrained")
    for values, name, colour in (
        (means[:, 0] / error, "fixed beforehand", "#0072B2"),
        (best, "the best of twenty", "#D55E00"),
        (best - shown, "the best, less what halves show", "#009E73"),
    ):
        over = np.mean(values > 1.645)
        label = f"{name}: beyond 1.645 in {100 * over:.0f} %"
        axes.hist(values, bins=np.arange(-4.0, 5.01, 0.2), histtype="step", linewidth=1.6, color=colour, label=label)
    axes.axvline(1.645, color="#666666", linewidth=0.8)
    axes.set(xlabel="standard errors by which it looks better than it is", ylabel="logs")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=110)
    print(f"halves show {shown.mean():.2f}, the best has {best.mean():.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
