"""The page of a study: beside its runs, or with a reading of ours, whose marked places (`tools/marked.py`) are filled.

    python -m benchmarks.studies.pages results/studies/growth docs/studies/growth.md

The places are "command" and the names of the study's tables.  Summary and figure are kept in the folder `data` beside
the page; everything on it is made of the summary.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import msgspec

from omdpd.report.figures import save, write_figure
from omdpd.storage.atomic import RecordError, write_atomically
from tools.marked import fill

from . import STUDIES
from .study import Study, Summary, generated


def write_study(study: Study, summary: Summary, folder: Path) -> Path:
    """study.json, the figure and page.md in a folder of results; returns the page."""
    write_atomically(folder / "study.json", encoded(summary))
    save(study.draw(summary), folder)
    page = folder / "page.md"
    write_atomically(page, whole_page(study, summary).encode())
    return page


def whole_page(study: Study, summary: Summary) -> str:
    """Question, command, figure, how to read the tables, and the tables."""
    content = generated(study, summary)
    parts = [
        f"# {study.question}",
        content("command"),
        "![figure](figure.svg)",
        study.columns,
        *map(content, study.tables),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def encoded(summary: Summary) -> bytes:
    """A summary as a JSON file, a line of it per line of runs."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n"


def read_summary(file: Path) -> Summary:
    """A summary that was kept."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Summary)
    except msgspec.MsgspecError as error:
        raise RecordError(f"{file} is no summary of a study: {error}") from None


def renew(folder: Path, page: Path) -> int:
    """Fill a page from the summary of a folder of results; the number of its places."""
    summary = read_summary(folder / "study.json")
    study, data = STUDIES[summary.study], page.parent / "data"
    n_places = fill(page, generated(study, summary))
    data.mkdir(exist_ok=True)
    shutil.copyfile(folder / "study.json", data / f"{study.name}.json")
    write_figure(study.draw(summary), data / f"{study.name}.svg")
    return n_places


if __name__ == "__main__":
    print(f"wrote {renew(Path(sys.argv[1]), Path(sys.argv[2]))} places of {sys.argv[2]}")
