"""`omdpd plan`: from a file of logs to a policy for the next episode, with its forecast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omdpd.play.from_logs import plan_from_logs
from omdpd.play.logs import READERS, ColumnNames
from omdpd.play.policy import Policy
from omdpd.problem.arrays import InvalidInputError, named

# What a plan that is not certified ends with.
UNCERTIFIED = 1
COLUMNS = "Columns: episode=NAME,state=NAME,action=NAME,reward=NAME,step=NAME; those of the same name if empty."


def plan(
    logs: Annotated[Path, typer.Argument(help="Logged episodes, one row per step: a .csv or .parquet file.")],
    budget: Annotated[str, typer.Option(help="What an episode may cost, one number per cost: 300,60.")],
    costs: Annotated[str, typer.Option(help="The columns of the costs: money,complaints.")] = "cost",
    columns: Annotated[str, typer.Option(help=COLUMNS)] = "",
    baseline: Annotated[Path | None, typer.Option(help="A policy file to fall back on; cloned if empty.")] = None,
    short: Annotated[str, typer.Option(help="What a short episode is: over, or cut (its end was not logged).")] = "",
    confidence: Annotated[float, typer.Option(help="With which each budget is to hold.")] = 0.95,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where the policy goes: .npz, .json or .csv.")] = None,
) -> None:
    """Plan the next episode from logs.

    Exit code 1 where nothing but the baseline is certified to be within the budgets.
    """
    read = named(READERS, logs.suffix.lower(), "kind of log")
    log = read(logs, tuple(costs.split(",")), **_pairs(columns))
    log = log.with_short(short) if short else log  # type: ignore[arg-type]
    for line in log.lines():
        print(line)
    found = plan_from_logs(
        log.setting(_numbers(budget)), log, None if baseline is None else Policy.load(baseline), confidence
    )
    print()
    for line in found.forecast.lines():
        print(line)
    if out is not None:
        print(f"policy                   {found.policy.save(out)}")
    if not found.certified:
        raise typer.Exit(UNCERTIFIED)


def _pairs(text: str) -> dict[str, str]:
    """The names of columns, by what they are."""
    kinds = {kind: kind for kind in ColumnNames.__annotations__}
    pairs = [part.partition("=")[::2] for part in text.split(",") if part]
    return {named(kinds, key.strip(), "kind of column"): name.strip() for key, name in pairs}


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(f"--budget is {text!r}, but must be numbers with commas between them") from None
