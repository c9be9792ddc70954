"""The page of a study: written whole beside its runs, or put into the marked places of a page with a reading."""

from __future__ import annotations

from pathlib import Path

import msgspec

from omdpd.problem.arrays import InvalidInputError
from omdpd.report.figures import save, write_figure
from omdpd.report.marked import filled
from omdpd.report.studies.study import Study, Summary, generated
from omdpd.storage.atomic import RecordError, make_folder, write_atomically

# Where the summaries and figures of pages are, beside the pages.
DATA = "data"


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


def put_into_page(study: Study, summary: Summary, page: Path) -> None:
    """Fill the places of a page, and keep the summary and the figure in `data` beside it."""
    if not page.is_file():
        raise InvalidInputError(f"there is no page {page}")
    text = filled(page.read_text(), generated(study, summary))
    data = page.parent / DATA
    make_folder(data)
    write_atomically(data / f"{study.name}.json", encoded(summary))
    write_figure(study.draw(summary), data / f"{study.name}.svg")
    write_atomically(page, text.encode())


def encoded(summary: Summary) -> bytes:
    """A summary as a JSON file, a line of it per line of runs."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n"


def read_summary(file: Path) -> Summary:
    """A summary that was kept."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Summary)
    except msgspec.MsgspecError as error:
        raise RecordError(f"{file} is no summary of a study: {error}") from None
