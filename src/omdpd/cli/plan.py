"""`omdpd plan`: from a file of logs to a policy for the next episode, with its forecast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from omdpd.play.from_logs import plan_from_logs
from omdpd.play.logs import READERS, Log, columns_of
from omdpd.play.policy import Policy
from omdpd.problem.arrays import InvalidInputError, named

COLUMNS_HELP = (
    "Columns: episode=NAME,state=NAME,action=NAME,reward=NAME; those of the same name if empty. step=NAME orders rows, "
    "propensity=NAME is the chance that the logged action had; neither is read if not named."
)


def plan(
    logs: Annotated[Path, typer.Argument(help="Logged episodes, one row per step: a .csv or .parquet file.")],
    budget: Annotated[str, typer.Option(help="What an episode may cost, one number per cost: 300,60.")],
    costs: Annotated[str, typer.Option(help="The columns of the costs: money,complaints.")] = "cost",
    columns: Annotated[str, typer.Option(help=COLUMNS_HELP)] = "",
    baseline: Annotated[Path | None, typer.Option(help="A policy to fall back on, .npz or .csv; or cloned.")] = None,
    states: Annotated[int | None, typer.Option(help="How many states; as many as were logged if empty.")] = None,
    actions: Annotated[int | None, typer.Option(help="How many actions; as many as were logged if empty.")] = None,
    initial: Annotated[int | None, typer.Option(help="The next episode's first state; as logged if empty.")] = None,
    short: Annotated[str, typer.Option(help="What a short episode is: over, or cut (its end was not logged).")] = "",
    confidence: Annotated[float, typer.Option(help="With which each budget is to hold.")] = 0.95,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where the policy goes: .npz, .json or .csv.")] = None,
) -> None:
    """Plan the next episode from logs.

    Exit code 1 where nothing but the baseline is certified to be within the budgets.
    """
    log = log_of(logs, costs, columns, short)
    print(log)
    setting = log.setting(numbers_of("--budget", budget), n_states=states, n_actions=actions)
    if states is None:
        print(f"{'states':<24} 0 to {setting.n_states - 1}, as logged; if there are more, say how many with --states")
    if initial is not None:
        if not 0 <= initial < setting.n_states:
            raise InvalidInputError(f"--initial is {initial}, but must be a state: 0 to {setting.n_states - 1}")
        setting = replace(setting, initial=np.eye(setting.n_states)[initial])
    found = plan_from_logs(setting, log, None if baseline is None else Policy.load(baseline), confidence)
    print(f"\n{found}")
    which = "" if found.certified else " (the baseline: nothing better is certified)"
    if out is not None:
        print(f"policy                   {found.policy.save(out)}{which}")
    if not found.certified:
        raise typer.Exit(1)


def log_of(file: Path, costs: str, columns: str, short: str) -> Log:
    """The log that options of a command name."""
    read = named(READERS, file.suffix.lower(), "kind of log")
    log = read(file, tuple(costs.split(",")), **columns_of(columns))
    return log.with_short(short) if short else log  # type: ignore[arg-type]


def numbers_of(option: str, text: str) -> list[float]:
    """The numbers of an option."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(f"{option} is {text!r}, but must be numbers with commas between them") from None
