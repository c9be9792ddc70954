"""`omdpd warm-up`: compile everything ahead, say before an array of jobs or a class."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from omdpd.cli.playing import names_of
from omdpd.cli.screen import Screen
from omdpd.experiments.first_use import compile_for, runs_of
from omdpd.experiments.registry import Registry
from omdpd.solvers.compiled.announce import Say
from omdpd.solvers.compiled.cache import kernel_folder, where_kept
from omdpd.solvers.compiled.shipped import shipped_code


def warm_up(
    learners: Annotated[str, typer.Option(help="Comma-separated learners; everything there is if empty.")] = "",
) -> None:
    """Compile the solvers ahead: once per user and version, kept in the user's cache folder."""
    console, registry = Screen(), Registry.installed()

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    names = names_of(learners)
    if names:
        compile_for(runs_of(registry, names), say)
    else:
        _compile_all(registry, say)
    say(f"Compiled code ({_megabytes(kernel_folder()):.0f} MB) is {where_kept()}.")
    brought = shipped_code()
    if brought is not None:
        say(f"{_megabytes(brought.folder):.0f} MB came with the package and need not be compiled.")


def _compile_all(registry: Registry, say: Say) -> None:
    """Everything there is; where nothing was compiled yet and there are two cores a second process takes half."""
    names, folder = list(registry.complete("learners")), kernel_folder()
    new = folder is not None and shipped_code() is None and not any(folder.rglob("*.nbi"))
    half = len(names) // 2 if new and (os.cpu_count() or 1) > 1 else len(names)
    helper = _elsewhere(names[half:]) if half < len(names) else None
    try:
        compile_for(runs_of(registry, names[:half]), say)
    finally:
        helped = helper is None or helper.wait() == 0
    if not helped:
        compile_for(runs_of(registry, names[half:]), say)


def _elsewhere(names: Sequence[str]) -> subprocess.Popen[bytes]:
    """Another process that compiles what some learners need."""
    # -P: what lies in the current folder is nobody's module.
    command = [sys.executable, "-P", "-m", "omdpd", "warm-up", "--learners", ",".join(names)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"OMDPD_QUIET": "1"})


def _megabytes(folder: Path | None) -> float:
    files = [] if folder is None else [file for file in folder.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6
