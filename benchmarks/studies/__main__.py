"""Questions about the learners, each answered by runs that can be stopped and gone on with.

python -m benchmarks.studies                  # which there are
python -m benchmarks.studies growth --quick   # play one
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from omdpd.cli.main import sentences_for
from omdpd.cli.playing import PlayOptions, play_alone, plays
from omdpd.cli.screen import Screen
from omdpd.experiments.experiment import write_summaries
from omdpd.problem.arrays import named
from omdpd.report.tables import aligned

from . import STUDIES
from .pages import write_study
from .study import Study, Summary, summarised


@plays("jobs", "on", "address", "fresh", "retry_failed", "no_shared_disk")
def study(
    plan: PlayOptions,
    name: Annotated[str | None, typer.Argument(help="Which study; without a name they are listed.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A tiny one: it shows that everything works.")] = False,
    seeds: Annotated[int | None, typer.Option(help="How many instances; each study has its own default.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where results go; results/studies/NAME if not given.")] = None,
) -> None:
    """Answer a question about the learners by runs, and write a page with its figure and tables."""
    console = Screen()
    if name is None:
        rows = [(each.name, each.question) for each in STUDIES.values()]
        console.print("\n".join(aligned(("study", "question"), rows)), highlight=False, soft_wrap=True)
        return
    chosen = named(STUDIES, name, "study")
    folder = out or Path("results/studies") / (f"{name}-quick" if quick else name)
    summary = _played(console, chosen, quick, seeds, folder, plan)
    page = write_study(chosen, summary, folder)
    for table in chosen.tables.values():
        print(table(summary))
    console.print(f"Page: {page}; runs: {folder / 'runs'}", highlight=False, soft_wrap=True)


def _played(console: Console, study: Study, quick: bool, seeds: int | None, folder: Path, plan: PlayOptions) -> Summary:
    """Play what is not finished yet, and sum it up."""
    runs = study.runs(study.size(quick, seeds))
    records = play_alone(console, runs, folder, plan)
    write_summaries(records, folder)
    return summarised(study, study.command(quick, seeds), runs, records, folder / "runs")


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(study)

if __name__ == "__main__":
    sentences_for(app)
