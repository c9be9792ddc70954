"""Put the tables and the figure of a study into its page.

    python tools/study_page.py results/studies/growth docs/studies/growth.md

The page is prose with marked places for numbers (`tools/marked.py`): "command", and the names of the study's tables.
Its summary and its figure are kept in the folder `data` beside it; everything on the page is made of the summary.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from marked import fill
from omdpd.report.figures import write_figure
from omdpd.report.studies import STUDIES
from omdpd.report.studies.pages import read_summary
from omdpd.report.studies.study import generated


def renew(folder: Path, page: Path) -> int:
    """Fill a page from the summary of a folder of results; the number of its places."""
    summary = read_summary(folder / "study.json")
    study, data = STUDIES[summary.study], page.parent / "data"
    n_places = fill(page, generated(study, summary))
    data.mkdir(exist_ok=True)
    shutil.copyfile(folder / "study.json", data / f"{study.name}.json")
    write_figure(study.draw(summary), data / f"{study.name}.svg")
    return n_places


def main() -> None:
    """The command line."""
    folder, page = Path(sys.argv[1]), Path(sys.argv[2])
    print(f"wrote {renew(folder, page)} places of {page}")


if __name__ == "__main__":
    main()
