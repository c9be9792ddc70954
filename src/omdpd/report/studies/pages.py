"""The page of a study, beside its runs; `tools/study_page.py` puts the same tables into a page with a reading."""

from __future__ import annotations

from pathlib import Path

import msgspec

from omdpd.report.figures import save
from omdpd.report.studies.study import Study, Summary, generated
from omdpd.storage.atomic import RecordError, write_atomically


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
