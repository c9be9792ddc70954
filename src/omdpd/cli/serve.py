"""`omdpd serve` and `omdpd session`: a learner in service over HTTP, and a look at one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omdpd.cli.plan import COLUMNS_HELP, log_of, numbers_of
from omdpd.cli.playing import Address, FurtherNames, Plugins, registry_of
from omdpd.problem.arrays import check_number, not_installed
from omdpd.serve.described import folders_of, served, starter_from_logs, write_starter
from omdpd.serve.desk import read_status
from omdpd.serve.status import lines_of


def serve(
    folder: Annotated[Path, typer.Argument(help="A folder with session.toml, or with several such folders in it.")],
    port: Annotated[int, typer.Option(help="The port; 0: any free one.")] = 8766,
    address: Address = "127.0.0.1",
    public: Annotated[
        bool, typer.Option("--public", help="Let other machines ask, with the token that is printed.")
    ] = False,
    token: Annotated[
        str | None, typer.Option(envvar="OMDPD_TOKEN", help="The token to ask for, instead of a new one.")
    ] = None,
    name: FurtherNames = None,
    rate: Annotated[float, typer.Option(help="Requests a second that an address may send.")] = 10000.0,
    plugin: Plugins = None,
) -> None:
    """Serve sessions to other systems over HTTP.

    Episodes begin, act, are told and end by JSON; /openapi.json says how, and / is a page to look at.  What is
    acknowledged survives a crash.  SIGTERM stops it, with everything kept.
    """
    check_number("--rate", rate, "positive")
    served(folder)
    try:
        from omdpd.serve.running import ServerAddress, serving
    except ImportError:
        raise not_installed("omdpd serve", "uvicorn", "httptools") from None
    serving(folder, registry_of(plugin), ServerAddress(address, port, public, tuple(name or ()), token, rate))


def session(
    folder: Annotated[Path, typer.Argument(help="A folder with session.toml, or with several such folders in it.")],
    new: Annotated[bool, typer.Option("--new", help="Write a session.toml to begin with.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Show it as a page that fills itself.")] = False,
    port: Annotated[int, typer.Option(help="The port of that page; 0: any free one.")] = 8767,
    logs: Annotated[
        Path | None, typer.Option(help="With --new: logged episodes to start from; see omdpd plan.")
    ] = None,
    budget: Annotated[str, typer.Option(help="With --logs: what an episode may cost, one number per cost.")] = "",
    costs: Annotated[str, typer.Option(help="With --logs: the columns of the costs.")] = "cost",
    columns: Annotated[str, typer.Option(help=COLUMNS_HELP)] = "",
    states: Annotated[int | None, typer.Option(help="With --logs: how many states there are.")] = None,
    actions: Annotated[int | None, typer.Option(help="With --logs: how many actions.")] = None,
    plugin: Plugins = None,
) -> None:
    """Show a session: episodes, budgets, alarms.

    It may be one that a program of yours keeps in the folder (`Session.open`).  It only reads, also while a server or
    that program has the session open.
    """
    if new:
        text = None
        if logs is not None:
            log = log_of(logs, costs, columns, "")
            setting = log.setting(numbers_of("--budget", budget), n_states=states, n_actions=actions)
            text = starter_from_logs(folder, logs, log, setting, columns)
        print(f"wrote {write_starter(folder, text)}: edit it, then omdpd serve {folder}")
        return
    registry = registry_of(plugin)
    sessions = folders_of(folder)
    if live:
        try:
            from omdpd.serve.running import ServerAddress, showing
        except ImportError:
            raise not_installed("omdpd session --live", "uvicorn", "httptools") from None
        showing(folder, registry, ServerAddress("127.0.0.1", port))
        return
    for each, path in sessions.items():
        for line in lines_of(read_status(path, registry), each):
            print(line)
