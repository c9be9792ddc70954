"""The command line: parse words, call the library.  Errors are one sentence and exit code 2."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table
from typer.core import TyperCommand, TyperGroup

from omdpd import __version__
from omdpd.cli import experiments, lab, learners, plan, report, serve, worlds
from omdpd.cli.playing import Plugins, registry_of
from omdpd.cli.screen import Screen, guard_screen, plain_where_needed
from omdpd.experiments.spec import Kind
from omdpd.learners import AVERAGE_LEARNERS, FAMILIES, OTHERS, family_of
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.strangers import strangers_code

# The longest first line of a command's help: with the names beside it, it is never cut at 80 columns.
LINE = 50
TITLES: dict[str, Kind] = {"Learners": "learners", "Natures": "natures", "Worlds": "worlds"}


class Panels(TyperGroup):
    """A group of commands whose help has them under the headings of `PANELS`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write every command with the first line of its help."""
        for title, names in PANELS.items():
            lines = [(name, self.commands[name].get_short_help_str(LINE)) for name in names]
            with formatter.section(title):
                formatter.write_dl(lines)


class Worded(TyperCommand):
    """A command whose --fresh may stand alone, or before names with commas between."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a --fresh that stands alone an empty list of names; an experiment's file is no name."""
        for i in [i for i, word in enumerate(args) if word == "--fresh"]:
            if args[i + 1 : i + 2] == [] or args[i + 1].startswith("-") or args[i + 1].endswith(".toml"):
                args = [*args[:i], "--fresh=", *args[i + 1 :]]
        return super().parse_args(ctx, args)


SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}
app = typer.Typer(cls=Panels, help="Online learning in constrained Markov decision processes.", **SETTINGS)
laboratory = typer.Typer(help="Study the learners themselves.", **SETTINGS)


def _add(group: typer.Typer, command: Callable[..., None], name: str | None = None, hidden: bool = False) -> None:
    """Put a command into a group; if a plugin's code exits inside it, that is refused with a sentence."""
    guarded = strangers_code("code that the command called raised", passing=(Exception,))(command)
    group.command(name, cls=Worded, hidden=hidden)(guarded)


def main() -> None:
    """Entry point."""
    plain_where_needed()
    guard_screen()
    gc.freeze()  # what was imported stays: looking through it for garbage is a tenth of a short command
    sentences_for(app)


def sentences_for(command: Callable[[], Any]) -> None:
    """Call a command: what it refuses ends in one sentence and exit code 2."""
    try:
        command()
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


def list_(plugin: Plugins = None) -> None:
    """List learners, natures and worlds, one line each."""
    console, registry = Screen(), registry_of(plugin)
    for title, kind in TITLES.items():
        groups: dict[str, Table] = {}
        types: list[tuple[str, Any]] = list(registry.types(kind))
        if kind == "learners":
            types += AVERAGE_LEARNERS.items()
            types = sorted(types, key=lambda each: [*FAMILIES, OTHERS].index(family_of(each[0])))
        for name, made in types:
            group = f"{title}. {family_of(name)}" if kind == "learners" else title
            if group not in groups:
                groups[group] = Table(title=group, title_justify="left", box=None, show_header=False)
            groups[group].add_row(name, (made.__doc__ or "").split("\n")[0])
        for shown in groups.values():
            console.print(shown)


PANELS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Start": {
        "paper": experiments.paper,
        "demo": report.demo,
        "list": list_,
        "learners": learners.learners,
        "warm-up": learners.warm_up,
    },
    "Problems": {
        "worlds": worlds.worlds,
        "show": worlds.show,
        "check": worlds.check,
        "solve": worlds.solve,
        "curve": worlds.curve,
        "plan": plan.plan,
    },
    "Experiments": {"new": experiments.new, "run": experiments.run, "schema": experiments.schema},
    "Results": {
        "ls": experiments.ls,
        "table": experiments.table,
        "plot": experiments.plot,
        "report": report.report,
        "watch": report.watch,
        "animate": report.animate,
        "verify": report.verify,
    },
    "Service": {"serve": serve.serve, "session": serve.session},
    "Lab": {"lab": laboratory},
}
for each in (lab.suite, lab.compare, lab.bounds, lab.monitor):
    _add(laboratory, each)
    _add(app, each, hidden=True)  # as it was called before; gone with the next version
for panel in PANELS.values():
    for word, door in panel.items():
        if isinstance(door, typer.Typer):
            app.add_typer(door, name=word)
        else:
            _add(app, door, word)
