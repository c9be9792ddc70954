"""Print a table of docs/comparison.md from what `omdpd lab compare` left in a folder.

    python -m tools.comparison results/compare random_dirichlet noisy --frontier
    python -m tools.comparison results/compare elsewhere

Tables are named "WORLD NATURE" (the references, then means, ranks and paired differences of one place, and how sure
their order is), "elsewhere" (a line for each place that has no such table: its first learners and ours), "growth" (the
leaders at other numbers of episodes), "choices" (the settings chosen, and how they were chosen) or "cost" (what its
runs took).
`--plane` and `--frontier` also put that figure of the folder beside the page.
"""

from __future__ import annotations

import csv
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from omdpd.theory.limits import limits_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "comparison.md"
FIGURES = {"--plane": ("plane.png", "comparison.png"), "--frontier": ("frontier.png", "frontiers.png")}
# The default and the paper's learner: where `elsewhere` says how they came out.
OURS = ("ProximalOMDPD.standard", "OMDPD.tuned")
# The places with a table of their own.
IN_FULL = [("random_dirichlet", nature) for nature in ("noisy", "pool", "adaptive")]
FIRST = 3
# References: the margin alone, and the learner that is told all but the rewards.
BOUNDARY, INFORMED = "*boundary, z = 1*", "Informed"
HEADS = ("learner", "regret", "strong violation", "Lagrangian regret", "rank (quartiles)")
HEADS += ("regret - yardstick's", "violation - yardstick's")


def lines(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file; none if it is not there."""
    return list(csv.DictReader(file.read_text().splitlines())) if file.exists() else []


def number(text: str, digits: int = 0, sign: bool = False) -> str:
    """A number for people, or a dash."""
    return "-" if text == "" else f"{float(text):{'+' if sign else ''}.{digits}f}"


def by_learner(folder: Path, name: str, world: str, nature: str) -> dict[str, dict[str, str]]:
    """The rows of one place in a file that has one for each learner."""
    return {row["learner"]: row for row in at(folder, name, world, nature)}


def at(folder: Path, name: str, world: str, nature: str) -> list[dict[str, str]]:
    """The rows of one place in a file of the folder."""
    return [row for row in lines(folder / f"{name}.csv") if (row["world"], row["nature"]) == (world, nature)]


def of_place(folder: Path, world: str, nature: str) -> str:
    """References, then means, ranks and paired differences of every learner at one place."""
    means = by_learner(folder, "table", world, nature)
    far = {(row["learner"], row["metric"]): row for row in at(folder, "differences", world, nature)}
    ranks = by_learner(folder, "ranks", world, nature)
    body = [
        f"| {BOUNDARY} | {number(row['regret'])} | {number(row['violation'])} | - | - | - | - |"
        for row in at(folder, "limits", world, nature)
    ]
    for name in [*(name for name in means if name not in ranks), *ranks]:
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
        for row in at(folder, "orders", world, nature)
    )
    head = [f"| {' | '.join(HEADS)} |", f"|---|{'---:|' * (len(HEADS) - 1)}"]
    return "\n".join([*head, *body]) + "\n" + (f"\n{order.strip()}\n" if order else "")


def elsewhere(folder: Path) -> str:
    """A line for each place without a table of its own: whether an order is claimed, the first learners, and ours."""
    ours = " | ".join(f"`{name}`" for name in OURS)
    head = f"| place (seeds) | Spearman: all; the first | {BOUNDARY} | the first {FIRST} | {ours} |\n{'|---' * 6}|\n"
    places = dict.fromkeys((row["world"], row["nature"]) for row in lines(folder / "table.csv"))
    return head + "".join(_line(folder, *place) for place in places if place not in IN_FULL)


def _line(folder: Path, world: str, nature: str) -> str:
    """One place in short: regret / violation of the boundary, the first learners, and ours with their place."""
    means = by_learner(folder, "table", world, nature)
    names = [*(ranks := by_learner(folder, "ranks", world, nature))]
    orders = [
        f"{number(row['spearman'], 2)} of {row['learners']}{'' if row['claimed'] == 'True' else ' (no order)'}"
        for row in at(folder, "orders", world, nature)
    ]
    limits = [_pair(row) for row in at(folder, "limits", world, nature)]
    first = [f"`{name}` {_pair(means[name])}" for name in names[:FIRST]]
    ours = [f"{names.index(name) + 1} of {len(names)}: {_pair(means[name])}" if name in names else "-" for name in OURS]
    place = f"`{world}`, {nature} ({ranks[names[0]]['n']})"
    known = [f"*{INFORMED}* {_pair(means[INFORMED])}"] if INFORMED in means else []
    cells = [place, "; ".join(orders) or "-", "<br>".join([*limits, *known]) or "-", "<br>".join(first), *ours]
    return f"| {' | '.join(cells)} |\n"


def _pair(row: dict[str, str]) -> str:
    """Regret / strong violation of a row."""
    return f"{number(row['regret'])} / {number(row['violation'])}"


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
    """Regret / strong violation of the leaders at every number of episodes, below the boundary of the same runs."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for row in (*boundaries(folder), *lines(folder / "growth.csv")):
        cells = found.setdefault((row["nature"], row["learner"]), {})
        cells[int(row["episodes"])] = _pair(row)
    lengths = sorted({episodes for cells in found.values() for episodes in cells})
    head = (
        f"| nature | learner | {' | '.join(f'K = {each}' for each in lengths)} |\n|---|---|{'---:|' * len(lengths)}\n"
    )
    ordered = sorted(found.items(), key=lambda item: [nature for nature, _ in found].index(item[0][0]))
    return head + "".join(
        f"| {nature} | {name if name.startswith('*') else f'`{name}`'} "
        f"| {' | '.join(cells.get(each, '-') for each in lengths)} |\n"
        for (nature, name), cells in ordered
    )


def boundaries(folder: Path) -> list[dict[str, str]]:
    """The boundary at every number of episodes of growth.csv, on the instances that the leaders played."""
    from omdpd.experiments.registry import Registry, run_of
    from omdpd.report.stored import stored_runs

    registry, shown = Registry.installed(), {int(row["episodes"]) for row in lines(folder / "growth.csv")}
    played = [run_of(each.folder.spec(), registry) for each in stored_runs(folder / "long")] if shown else []
    wanted = [msgspec.structs.replace(run, episodes=each) for run in played for each in shown]
    order = list(dict.fromkeys(row["nature"] for row in lines(folder / "growth.csv")))
    found = sorted(limits_of(wanted), key=lambda each: order.index(each.nature))
    return [{key: str(value) for key, value in asdict(each).items()} | {"learner": BOUNDARY} for each in found]


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
    if name in (whole := {"elsewhere": elsewhere, "growth": growth, "choices": choices, "cost": cost}):
        return whole[name](folder)
    return of_place(folder, *name.split(" "))


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
