"""The command line: parse words, call the library.  Errors are one sentence and exit code 2."""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer
from rich.table import Table

from omdpd import __version__
from omdpd.cli import (
    bounds,
    comparing,
    experiments,
    first_use,
    learners,
    monitor,
    report,
    studies,
    suites,
    verify,
    worlds,
)
from omdpd.cli.plain import plain_where_needed
from omdpd.cli.playing import Plugins, registry_of
from omdpd.cli.screen import Screen, guard_screen
from omdpd.experiments.spec import Kind
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.strangers import strangers_code

TITLES: dict[str, Kind] = {"Learners": "learners", "Natures": "natures", "Worlds": "worlds"}

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Online learning in constrained Markov decision processes.",
)
for command in (
    experiments.paper,
    experiments.run,
    experiments.new,
    experiments.schema,
    experiments.ls,
    experiments.table,
    experiments.plot,
    verify.verify,
    first_use.warm_up,
    report.report,
    report.watch,
    report.animate,
    learners.learners,
    bounds.bounds,
    monitor.monitor,
    worlds.worlds,
    worlds.show,
    worlds.check,
    worlds.solve,
    suites.suite,
    comparing.compare,
    studies.study,
):
    # A command ends by itself: what exits inside it is somebody else's code, and would end it without a word.
    app.command()(strangers_code("code that the command called raised", passing=(Exception,))(command))


def main() -> None:
    """Entry point: every expected error ends in one sentence and exit code 2."""
    plain_where_needed()
    guard_screen()
    gc.freeze()  # what was imported stays: looking through it for garbage is a tenth of a short command
    try:
        app()
    except InvalidInputError as error:
        print(f"omdpd: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"omdpd: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"omdpd {__version__}")
        raise typer.Exit


@app.callback()
def omdpd(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Online learning in constrained Markov decision processes."""


@app.command("list")
@strangers_code("code that the command called raised", passing=(Exception,))
def list_(plugin: Plugins = None) -> None:
    """List learners, natures and worlds, one line each."""
    console, registry = Screen(), registry_of(plugin)
    for title, kind in TITLES.items():
        shown = Table(title=title, title_justify="left", box=None, show_header=False)
        for name, made in registry.types(kind):
            shown.add_row(name, (made.__doc__ or "").split("\n")[0])
        console.print(shown)
