"""`omdpd verify`: is every file of results and sessions what was written?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omdpd.report.verify import verify_tree


def verify(folder: Annotated[Path, typer.Argument(help="A folder of results, of a session, or of several.")]) -> None:
    """Read every run and session under a folder, and say which file is not what was written."""
    verdict = verify_tree(folder)
    for line in verdict.wrong:
        print(line)
    if verdict.unsealed:
        print(f"{verdict.unsealed} runs are of version 0.1, whose summaries and specs have no checksums")
    found = f"{verdict.runs} runs and {verdict.sessions} sessions read"
    print(f"{found}: {len(verdict.wrong)} wrong" if verdict.wrong else f"{found}: every file is what was written")
    if verdict.wrong:
        raise typer.Exit(2)
