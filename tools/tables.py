"""Print a table of README or docs as Markdown: `python -m tools.tables WHICH ...` (see `docs/numbers.toml`).

    first                        README's first example, played as it stands there; also draws its figure
    paper FOLDER                 regret / strong violation by nature and learner, of what `omdpd paper` left in a folder
    departures [DIVISOR]         what each departure from the paper is worth, with so many times fewer episodes
    facts                        what is known about every world
    large [WORLD ...]            worlds of thousands of states: optimum, sizes, processor time

`paper` also takes EPISODES:SEEDS instead of a folder, and plays that in memory.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import paper_experiment, run_experiment, suitable_runs
from omdpd.experiments.files import load_experiment
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment
from omdpd.report.curves import curves_of
from omdpd.report.results import grouped, mean_of, summaries, with_early
from omdpd.report.statistics import power_of
from omdpd.solvers.planning import best_plan
from omdpd.solvers.sweeps import occupancy_under
from omdpd.storage.run_folder import RunFolder
from omdpd.worlds import WORLDS
from omdpd.worlds.facts import FACTS, LARGE

ROOT = Path(__file__).resolve().parents[1]
NOISY, POOL, FIXED = ({"name": name} for name in ("noisy", "pool", "fixed"))
TUNED, THEORY, OPTIMISTIC = ({"name": name} for name in ("OMDPD.tuned", "OMDPD.theory", "ProximalOMDPD.optimistic"))
KNOWN = [{**OPTIMISTIC, "known_model": True}, {**THEORY, "known_model": True}]
# What docs/departures.md compares, as entries of its experiment file.
DEPARTURES: tuple[dict[str, Any], ...] = (
    {"natures": [NOISY, POOL], "learners": [TUNED, {**TUNED, "hint": "as-printed"}]},
    {"learners": [{**TUNED, "diameter": 37.5}, {**TUNED, "nested": True}, THEORY]},
    {"learners": [{**TUNED, "divergence": ["euclidean", "kl"]}], "episodes": 1000},
    *({"natures": [FIXED, POOL], "learners": KNOWN, "episodes": K} for K in (1000, 10_000)),
)


def markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table whose first column is words and whose others are numbers."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def played(experiment: Experiment) -> list[dict[str, Any]]:
    """The summaries of an experiment that is played here and forgotten."""
    with TemporaryDirectory() as folder:
        runs, _ = suitable_runs(experiment)
        records = run_experiment(experiment, Path(folder), InProcess(), runs=runs)
        return [
            with_early(record, RunFolder(Path(folder) / "runs" / record["run"], record["run"])) for record in records
        ]


def number(value: float | None) -> str:
    """A mean for people: no decimals from ten on."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 9.95 else f"{value:.1f}"


def pair(group: Sequence[Mapping[str, Any]]) -> str:
    """Mean regret / strong violation of some runs."""
    means = [mean_of(group, key) for key in ("regret", "violation")]
    return " / ".join(number(None if mean is None else mean.mean) for mean in means)


def short(learner: str) -> str:
    """A learner's name in a head."""
    return f"`{learner.removeprefix('ProximalOMDPD.')}`"


def paper(words: Sequence[str]) -> str:
    """Natures down, learners across."""
    if ":" in words[0]:
        episodes, seeds = (int(part) for part in words[0].split(":"))
        records = played(paper_experiment(Registry.installed(), episodes, seeds))
    else:
        records = summaries(Path(words[0]))
    solves, failures = (sum(record[key] for record in records) for key in ("solves", "failures"))
    gap = max(record["max_gap"] for record in records)
    line = f"{solves} solves, {failures} failed; largest relative duality gap {gap:.1e}."
    return f"{_crossed(records, lambda record: record['nature'], 'costs', pair)}\n\n{line}"


def _crossed(
    records: Sequence[Mapping[str, Any]], row_of: Callable[[Mapping[str, Any]], str], title: str,
    cell: Callable[[Sequence[Mapping[str, Any]]], str],
) -> str:  # fmt: skip
    """One row per place, one column per learner, in the order of the records."""
    groups: dict[str, dict[str, str]] = {}
    for (*_, learner), group in grouped(records).items():
        groups.setdefault(row_of(group[0]), {})[learner] = cell(group)
    learners = list(dict.fromkeys(record["learner"] for record in records))
    body = [[place, *(cells.get(learner, "") for learner in learners)] for place, cells in groups.items()]
    return markdown([title, *map(short, learners)], body)


def departures(words: Sequence[str]) -> str:
    """One row per setting."""
    import tomli_w

    divisor, body = int(words[0]) if words else 1, {}
    for overrides in DEPARTURES:
        content = {
            "episodes": 3000,
            "seeds": 3,
            "worlds": [{"name": "random_dirichlet"}],
            "natures": [NOISY],
            **overrides,
        }
        content["episodes"] //= divisor
        with TemporaryDirectory() as folder:
            file = Path(folder) / "experiment.toml"
            file.write_text(tomli_w.dumps(content))
            records = played(load_experiment(file, (), ()))
        for (_, nature, learner), group in grouped(records).items():
            body[f"`{learner}`, {nature}, K = {content['episodes']}"] = pair(group)
    return markdown(["learner, costs, episodes", "regret / strong violation"], sorted(body.items()))


def first(words: Sequence[str]) -> str:
    """What README's first example prints and draws."""
    example = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    found: dict[str, Any] = {}
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        stdout, sys.stdout = sys.stdout, sys.stderr
        try:
            exec(compile(example, "README.md", "exec"), found)
        finally:
            sys.stdout = stdout
            os.chdir(before)
        if not words:
            shutil.copyfile(Path(folder) / "figure.png", ROOT / "docs" / "figures" / "first.png")
    head = ["after 1000 episodes", "strong violation", "of it in the last 900", "regret", "grows like"]
    return markdown(head, (_first_row(history) for history in found["histories"]))


def _first_row(history: Any) -> list[str]:
    scores, late = history.scores, history.violation[-1] - history.violation[len(history.rows) // 10 - 1]
    growth = curves_of(history.label, history.nature, [history]).regret.growth
    return [history.label, f"{scores.violation:.1f}", f"{late:.1f}", f"{scores.regret:.0f}", power_of(growth)]


def facts(words: Sequence[str]) -> str:
    """What `omdpd/worlds/facts.py` keeps, to six digits."""
    body = []
    for name, known in FACTS.items():
        scenario = "" if known.scenario_value is None else f"{known.scenario_value:.6f}"
        numbers = [f"{value:.6f}" for value in (known.value, known.free_value, known.slater_gap)]
        body.append([f"`{name}`", *numbers, ", ".join(f"{y:.6f}" for y in known.multipliers), scenario])
    return markdown(["world", "optimum", "free", "Slater gap", "multipliers", "all scenarios"], body)


def large(words: Sequence[str]) -> str:
    """Every large world built, planned and evaluated once."""
    head = [
        "world",
        "settings",
        "states, actions, steps",
        "successors",
        "optimum",
        "built, planned, evaluated in (ms of CPU)",
    ]
    warm = WORLDS["streaming"]()
    occupancy_under(warm.laws, _plan(warm).policy, warm.initial)  # compiled code is loaded before anything is timed
    return markdown(head, (_large_row(name) for name in words or LARGE))


def _large_row(name: str) -> list[str]:
    settings, _ = LARGE[name]
    drawn = (np.random.default_rng(0),) if name == "garnet" else ()
    cmdp, built = _timed(lambda: WORLDS[name](*drawn, **settings))
    plan, planned = _timed(lambda: _plan(cmdp))
    _, evaluated = _timed(lambda: occupancy_under(cmdp.laws, plan.policy, cmdp.initial))
    H, S, A = cmdp.shape
    spelled = ", ".join(f"{key} = {value}" for key, value in settings.items())
    times = ", ".join(f"{1e3 * seconds:.1f}" for seconds in (built, planned, evaluated))
    return [f"`{name}`", f"`{spelled}`", f"{S}, {A}, {H}", str(cmdp.laws.n_entries), f"{plan.value:.6f}", times]


def _plan(cmdp: Any) -> Any:
    return best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess)


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = process_time()
    return call(), process_time() - began


WHICH: dict[str, Callable[[Sequence[str]], str]] = {
    "first": first, "paper": paper, "departures": departures, "facts": facts, "large": large,
}  # fmt: skip

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in WHICH:
        sys.exit(__doc__)
    print(WHICH[sys.argv[1]](sys.argv[2:]))
