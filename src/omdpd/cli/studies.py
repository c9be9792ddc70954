"""`omdpd study`: questions about the learners, each answered by runs that can be stopped and gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from omdpd.cli.playing import Address, Fresh, Jobs, NoSharedDisk, On, Plan, Retry, playing
from omdpd.cli.screen import Screen
from omdpd.experiments.experiment import write_summaries
from omdpd.experiments.many_runs import run_all
from omdpd.problem.arrays import named
from omdpd.report.studies import STUDIES
from omdpd.report.studies.pages import write_study
from omdpd.report.studies.study import Study, Summary, summarised
from omdpd.report.tables import aligned
from omdpd.storage.atomic import make_folder


def study(
    name: Annotated[str | None, typer.Argument(help="Which study; without a name they are listed.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A tiny one: it shows that everything works.")] = False,
    seeds: Annotated[int | None, typer.Option(help="How many instances; each study has its own default.")] = None,
    jobs: Jobs = 0,
    on: On = "local",
    address: Address = None,
    out: Annotated[Path | None, typer.Option(help="Where results go; results/studies/NAME if not given.")] = None,
    fresh: Fresh = False,
    retry_failed: Retry = False,
    no_shared_disk: NoSharedDisk = False,
) -> None:
    """Answer a question about the learners by runs, and write a page with its figure and tables."""
    console = Screen()
    if name is None:
        rows = [(each.name, each.question) for each in STUDIES.values()]
        console.print("\n".join(aligned(("study", "question"), rows)), highlight=False, soft_wrap=True)
        return
    chosen = named(STUDIES, name, "study")
    plan = Plan(on, jobs, address, not no_shared_disk, fresh, retry_failed)
    folder = out or Path("results/studies") / (f"{name}-quick" if quick else name)
    summary = _played(console, chosen, quick, seeds, folder, plan)
    page = write_study(chosen, summary, folder)
    for table in chosen.tables.values():
        print(table(summary))
    console.print(f"Page: {page}; runs: {folder / 'runs'}", highlight=False, soft_wrap=True)


def _played(console: Console, study: Study, quick: bool, seeds: int | None, folder: Path, plan: Plan) -> Summary:
    """Play what is not finished yet, and sum it up."""
    runs = study.runs(study.size(quick, seeds))
    make_folder(folder)
    with playing(console, runs, folder, plan) as (workers, watch):
        records = run_all(runs, folder / "runs", workers, watch, None, plan.shared_disk)
    write_summaries(records, folder)
    return summarised(study, study.command(quick, seeds), runs, records, folder / "runs")
