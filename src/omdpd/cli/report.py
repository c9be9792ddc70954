"""`omdpd report`, `watch`, `animate`, `verify`: look at a study, in a file or live, and check its files."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from omdpd.cli.playing import Address, FurtherNames
from omdpd.cli.screen import refuse_all, warn
from omdpd.problem.arrays import InvalidInputError, not_installed
from omdpd.report.animation import animated_runs, write_gif, write_player
from omdpd.report.html import FOLDER
from omdpd.report.study import load_study, refuse_no_results
from omdpd.report.verify import verify_tree
from omdpd.storage.atomic import write_atomically

Folder = Annotated[Path, typer.Argument(help="A folder of results.")]
# The server gives way to the runs it watches.
NICENESS = 10


def report(
    folder: Folder,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write (DIR/report.html).")] = None,
) -> None:
    """Write results as one HTML page.

    It opens from disk and makes no request.  Ends with 2 if a run is damaged: the page names it, and no mean on it is
    over such a run.
    """
    study = load_study(folder)
    file = study.write(out)
    print(f"wrote {file} ({file.stat().st_size / 1e6:.1f} MB)")
    for line in study.mixed():
        warn(line)
    refuse_all(study.damaged())


def demo(
    file: Annotated[Path | None, typer.Argument(help="The file to write (demo.html).")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The same, as other commands take it.")] = None,
) -> None:
    """Write a page on strong and weak violation.

    It has sliders, presets and questions, opens from disk and makes no request.
    """
    if file and out:
        raise InvalidInputError(f"two files are named, {file} and {out}: name one")
    written = file or out or Path("demo.html")
    write_atomically(written, (FOLDER / "demo.html").read_bytes())
    print(f"wrote {written}: open it in a browser")


def watch(
    folder: Folder,
    port: Annotated[int, typer.Option(help="The port; 0: any free one.")] = 8765,
    address: Address = "127.0.0.1",
    public: Annotated[
        bool, typer.Option("--public", help="Let other machines look on; the address that is printed holds a token.")
    ] = False,
    name: FurtherNames = None,
    wait: Annotated[bool, typer.Option("--wait", help="The folder is not there yet: wait for it.")] = False,
) -> None:
    """Serve the same page live.

    It fills itself while runs commit, and changes nothing.
    """
    try:
        from omdpd.report.connections import admitted, listening, run_bounded, url_of
        from omdpd.report.server import application
    except ImportError:
        raise not_installed("omdpd watch", "starlette", "uvicorn") from None
    token, hosts = admitted(address, port, public, name or [])
    if not wait:
        refuse_no_results(folder, "; --wait waits for it")
    with suppress(OSError):
        os.nice(NICENESS)
    with listening(address, port) as socket:
        there = "" if folder.is_dir() else " (not there yet)"
        print(f"watching {folder}{there} at {url_of(socket, hosts, token)}", flush=True)
        run_bounded(application(folder, token, hosts), socket, 1)


def animate(
    folder: Folder,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page to write (DIR/animation.html).")] = None,
    run: Annotated[
        str | None, typer.Option(help="A run (the beginning of its name is enough); else a seed of every learner.")
    ] = None,
    gif: Annotated[bool, typer.Option("--gif", help="Also write a GIF of the first of these runs.")] = False,
    step: Annotated[int, typer.Option(help="The step of the episode that the GIF shows, from 1.")] = 1,
) -> None:
    """Write a player of how policies moved.

    It shows policy and occupancy over the episodes.
    """
    study = load_study(folder)
    views = animated_runs(study, run)
    file = folder / "animation.html" if out is None else out
    print(f"wrote {write_player(study, views, file)}")
    if gif:
        print(f"wrote {write_gif(study, views[0], file.with_suffix('.gif'), step - 1)}")
    refuse_all(study.damaged())


def verify(folder: Annotated[Path, typer.Argument(help="A folder of results, of a session, or of several.")]) -> None:
    """Check every file of results and sessions.

    Reads every run and session under a folder, and says which file is not what was written.
    """
    verdict = verify_tree(folder)
    for line in verdict.wrong:
        print(line)
    if verdict.unsealed:
        print(f"{verdict.unsealed} runs are of version 0.1, whose summaries and specs have no checksums")
    found = f"{verdict.runs} runs and {verdict.sessions} sessions read"
    print(f"{found}: {len(verdict.wrong)} wrong" if verdict.wrong else f"{found}: every file is what was written")
    if verdict.wrong:
        raise typer.Exit(2)
