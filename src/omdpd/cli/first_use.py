"""`omdpd warm-up`: compile everything ahead, say before an array of jobs or a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from omdpd.cli.playing import names_of
from omdpd.experiments.first_use import compile_for
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import RunSpec
from omdpd.solvers import warmup
from omdpd.solvers.compiled.cache import cache_folder, kernel_folder

# A nature of either feedback.
NATURES = ("noisy", "pool")


def runs_of(registry: Registry, names: Sequence[str]) -> list[RunSpec]:
    """A run of every kind of these learners; one that large problems are kept by a graph for is two kinds."""
    runs = []
    for name in names:
        fields = registry.type("learners", name).__struct_fields__
        for settings in ({}, {"layout": "graph"}) if "layout" in fields else ({},):
            learner = registry.spec("learners", name, settings)
            for nature in NATURES:
                runs.append(msgspec.structs.replace(registry.run("cyclic", nature, name, 3, 0), learner=learner))
    return runs


def warm_up(
    learners: Annotated[str, typer.Option(help="Comma-separated learners; everything there is if empty.")] = "",
) -> None:
    """Compile the solvers ahead: once per user and version, kept in the user's cache folder."""
    console, registry = Console(), Registry.installed()

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    names = names_of(learners)
    if not names:
        warmup.warm_up(say)
    compile_for(runs_of(registry, names or registry.complete("learners")), say)
    kept = kernel_folder()
    size = 0 if kept is None else sum(file.stat().st_size for file in kept.rglob("*") if file.is_file())
    where = "is kept nowhere: no cache folder can be written" if kept is None else f"is in {cache_folder()}"
    say(f"Compiled code ({size / 1e6:.0f} MB) {where}.")
