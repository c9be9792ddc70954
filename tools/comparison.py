"""Print a table of docs/comparison.md from what `omdpd lab compare` left in a folder.

    python -m tools.comparison results/compare random_dirichlet noisy --frontier
    python -m tools.comparison results/compare garnet noisy 10

Tables are named "WORLD NATURE" (the references, then means, ranks and paired differences of one place, and how sure
their order is; with a number, of so many learners and ours), "growth" (the leaders at other numbers of episodes),
"choices" (the settings chosen, and how they were chosen) or "cost" (what its runs took).
`--plane` and `--frontier` also put that figure of the folder beside the page.
"""

from __future__ import annotations

import csv
import shutil
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "comparison.md"
FIGURES = {"--plane": ("plane.png", "comparison.png"), "--frontier": ("frontier.png", "frontiers.png")}
OURS = ("OMDPD.", "ProximalOMDPD.")
HEADS = ("learner", "regret", "strong violation", "Lagrangian regret", "rank (quartiles)")
HEADS += ("regret - yardstick's", "violation - yardstick's")


def lines(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file; none if it is not there."""
    return list(csv.DictReader(file.read_text().splitlines())) if file.exists() else []


def number(text: str, digits: int = 0, sign: bool = False) -> str:
    """A number for people, or a dash."""
    return "-" if text == "" else f"{float(text):{'+' if sign else ''}.{digits}f}"


def of_place(folder: Path, world: str, nature: str, most: int | None = None) -> str:
    """References, then means, ranks and paired differences of every learner at one place, or of the first and ours."""

    def here(name: str) -> list[dict[str, str]]:
        return [row for row in lines(folder / f"{name}.csv") if (row["world"], row["nature"]) == (world, nature)]

    means = {row["learner"]: row for row in here("table")}
    far = {(row["learner"], row["metric"]): row for row in here("differences")}
    ranks = {row["learner"]: row for row in here("ranks")}
    shown = [name for i, name in enumerate(ranks) if most is None or i < most or name.startswith(OURS)]
    body = [
        f"| *boundary, z = 1* | {number(row['regret'])} | {number(row['violation'])} | - | - | - | - |"
        for row in here("limits")
    ]
    for name in [*(name for name in means if name not in ranks), *shown]:
        mean = means[name]
        cells = [
            f"{number(mean[key])} ± {number(mean.get(f'{key}_half', ''))}"
            for key in ("regret", "violation", "lagrangian_regret")
        ]
        cells += [_rank(ranks.get(name)), *(_far(far, name, metric) for metric in ("regret", "violation"))]
        body.append(f"| {f'`{name}`' if name in ranks else f'*{name}*'} | {' | '.join(cells)} |")
    order = "".join(
        f" Among {row['among']} {row['learners']}: Spearman {number(row['spearman'], 2)} between halves of the seeds, "
        f"{'an order is claimed' if row['claimed'] == 'True' else 'no order is claimed'}."
        for row in here("orders")
    )
    head = [f"| {' | '.join(HEADS)} |", f"|---|{'---:|' * (len(HEADS) - 1)}"]
    return "\n".join([*head, *body]) + "\n" + (f"\n{order.strip()}\n" if order else "")


def _rank(row: dict[str, str] | None) -> str:
    """The median place over seeds, with the quartiles; a reference has none."""
    if row is None:
        return "-"
    return f"{number(row['rank'])} ({number(row['low'])} .. {number(row['high'])})"


def _far(far: dict[tuple[str, str], dict[str, str]], name: str, metric: str) -> str:
    """A paired difference with its interval, starred where Holm's p value is below 0.05."""
    row = far.get((name, metric))
    if row is None:
        return "-"
    star = " *" if row["p_holm"] and float(row["p_holm"]) < 0.05 else ""
    mean, low, high = (number(row[key], sign=True) for key in ("mean", "low", "high"))
    return f"{mean} ({low} .. {high}){star}"


def growth(folder: Path) -> str:
    """The leaders at every number of episodes."""
    head = "| nature | learner | K | runs | regret | strong violation |\n|---|---|---:|---:|---:|---:|\n"
    return head + "".join(
        f"| {row['nature']} | `{row['learner']}` | {row['episodes']} | {row['runs']} | {number(row['regret'])} "
        f"| {number(row['violation'])} |\n"
        for row in lines(folder / "growth.csv")
    )


def choices(folder: Path) -> str:
    """What was chosen for whom, and on which training place."""
    head = "| trained on | chosen | tries | criterion |\n|---|---|---:|---:|\n"
    return head + "".join(
        f"| {row['world']}, {row['nature']} | `{row['chosen']}` | {row['tries']} | {number(row['criterion'])} |\n"
        for row in lines(folder / "choices.csv")
    )


def cost(folder: Path) -> str:
    """Seconds of all runs by what they were played for, by the clocks of the processes that played them."""
    from omdpd.report.results import summaries  # the other tables are read from CSV files, without a second of imports

    parts = {"training": summaries(folder / "training"), "leaders, other K": summaries(folder / "long")}
    for run in summaries(folder):
        parts.setdefault(f"`{run['world']}`, {run['nature']}", []).append(run)
    parts["together"] = [run for runs in parts.values() for run in runs]
    head = "| part | runs | million episodes | seconds | ms per episode |\n|---|---:|---:|---:|---:|\n"
    return head + "".join(f"| {name} | {_cost(runs)} |\n" for name, runs in parts.items())


def _cost(runs: list[dict[str, Any]]) -> str:
    episodes, seconds = (sum(run[key] for run in runs) for key in ("episodes", "seconds"))
    return f"{len(runs)} | {episodes / 1e6:.2f} | {seconds:.0f} | {1e3 * seconds / max(episodes, 1):.2f}"


def filled(name: str, folder: Path) -> str:
    """The numbers of one place of the page."""
    if name in (whole := {"growth": growth, "choices": choices, "cost": cost}):
        return whole[name](folder)
    world, nature, *most = name.split(" ")
    return of_place(folder, world, nature, int(most[0]) if most else None)


def main() -> None:
    """Print one table, and renew the figures beside the page that are asked for."""
    words = [word for word in sys.argv[1:] if word not in FIGURES]
    folder = Path(words[0])
    print(filled(" ".join(words[1:]), folder))
    for asked in set(sys.argv) & FIGURES.keys():
        file, figure = FIGURES[asked]
        shutil.copyfile(folder / file, PAGE.parent / "figures" / figure)


if __name__ == "__main__":
    main()
