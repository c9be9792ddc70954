"""`omdpd worlds`, `show`, `check`, `solve`, `curve`: worlds and their facts, a card, a problem of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich import box
from rich.table import Table

from omdpd.cli.playing import Plugins, registry_of
from omdpd.cli.screen import Screen
from omdpd.experiments.experiment import world_named
from omdpd.experiments.files import PROBLEM_FILES
from omdpd.experiments.registry import Registry
from omdpd.natures import natures_for
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.report.figures import write_figure
from omdpd.report.pictures import draw_world
from omdpd.worlds.card import facts_of, problem_card
from omdpd.worlds.facts import FACTS
from omdpd.worlds.files import load_problem

MEANING = (
    "S states, A actions, H steps, I constraints; optimum: the best safe value; free: the best without constraints; "
    "Slater: the room of the safest policy; multipliers: what one more unit of budget is worth, in the units that "
    "learners see (costs scaled into [-1, 1] where they did not fit)."
)
# How `check` and `solve` end for a problem that is well formed, but whose budgets no policy meets.
IMPOSSIBLE = 1
Seed = Annotated[int, typer.Option(help="The seed that a random world is drawn with.")]
World = Annotated[
    str, typer.Argument(help="A problem file (.npz, or .umb with --set), or a world's name (see `omdpd worlds`).")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the world, as in an experiment: budget=[33,-47] of a problem file."),
]


def worlds(plugin: Plugins = None) -> None:
    """List the worlds and their optima.

    With their sizes, Slater gap, multipliers and natural adversaries.
    """
    title = "Worlds at their default settings (random ones drawn with seed 0)"
    shown = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("world", no_wrap=True)
    for name in ("S", "A", "H", "I", "optimum", "free", "Slater", "multipliers"):
        shown.add_column(name, justify="right", no_wrap=True)
    registry = registry_of(plugin)
    for name in registry.complete("worlds"):
        cmdp = _world(registry, name, 0)
        facts = FACTS[name] if name in FACTS else facts_of(cmdp)
        H, S, A = cmdp.shape
        prices = " ".join(f"{m:.4f}" for m in facts.multipliers)
        numbers = (f"{facts.value:.4f}", f"{facts.free_value:.4f}", f"{facts.slater_gap:.4f}", prices)
        shown.add_row(name, str(S), str(A), str(H), str(cmdp.n_constraints), *numbers)
    console = Screen()
    console.print(shown)
    for name in registry.complete("worlds"):
        adversary = _world(registry, name, 0).scenarios
        own = "" if adversary is None else f"  Its own adversary: {', '.join(adversary.names)}."
        described = (registry.spec_type("worlds", name).__doc__ or "").splitlines()[0]
        console.say(f"{name}: {described}{own}")
    console.say(MEANING)


def show(
    world: World,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Where a figure of the optimal policy goes (png, svg or pdf).")
    ] = None,
    seed: Seed = 0,
    set_: Settings = None,
    plugin: Plugins = None,
) -> None:
    """Print a world's card.

    With --out it also draws the optimal policy.
    """
    cmdp = _world(registry_of(plugin), world, seed, set_)
    card = problem_card(cmdp)
    for line in card.lines():
        print(line)
    print(f"natures that suit it             {', '.join(natures_for(cmdp))}")
    if out is not None:
        write_figure(draw_world(cmdp, card), out)
        print(f"figure                           {out}")


def check(
    file: Annotated[Path, typer.Argument(help="An .npz file with transition, reward, cost, budget; or an .umb file.")],
    set_: Settings = None,
) -> None:
    """Check a problem of your own.

    Says what is wrong with it, or prints its card; exit code 1 if no policy meets its budgets.
    """
    named = file.suffix in PROBLEM_FILES
    card = problem_card(_world(Registry.installed(), str(file), 0, set_) if named else load_problem(file))
    for line in card.lines():
        print(line)
    if not card.feasible:
        print("No policy meets the budgets of this problem.")
        raise typer.Exit(IMPOSSIBLE)


def solve(
    world: World,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where the policy goes: .npz, .json or .csv.")] = None,
    seed: Seed = 0,
    set_: Settings = None,
    plugin: Plugins = None,
) -> None:
    """Solve a problem whose model is known.

    Prints the optimum, shadow prices and policy; exit code 1 if no policy meets its budgets.
    """
    solution = _world(registry_of(plugin), world, seed, set_).solve()
    for line in solution.lines():
        print(line)
    if out is not None:
        solution.policy.save(out)
        kind = "optimal policy" if solution.feasible else "policy that comes nearest"
        print(f"{kind:<32} {out}")
    if not solution.feasible:
        raise typer.Exit(IMPOSSIBLE)


def curve(
    world: World,
    constraint: Annotated[
        str, typer.Option(help="The constraint whose budget moves: its name, or 0 for the first.")
    ] = "0",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Where it goes: .csv, or a figure (.png, .svg, .pdf).")
    ] = None,
    most: Annotated[int, typer.Option(help="Breakpoints at most; it says if there are more.")] = 1000,
    seed: Seed = 0,
    set_: Settings = None,
    plugin: Plugins = None,
) -> None:
    """Print the best value at every budget.

    Exactly, by the budget of one constraint: breakpoints, and the price between them.
    """
    which = int(constraint) if constraint.isdecimal() else constraint
    found = _world(registry_of(plugin), world, seed, set_).curve(which, most)
    for line in found.lines():
        print(line)
    if out is not None:
        if out.suffix == ".csv":
            found.save(out)
        else:
            write_figure(found.plot().figure, out)
        print(f"written to {out}")


def _world(registry: Registry, name: str, seed: int, settings: list[str] | None = None) -> CMDP:
    if seed < 0:
        raise InvalidInputError("--seed must not be negative")
    return world_named(registry, name, settings or ()).build(np.random.default_rng(seed))
