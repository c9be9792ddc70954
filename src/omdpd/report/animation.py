"""A player in one HTML file, or a GIF for slides, shows how policy and occupancy move over the episodes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.report.canvas import Figure, content_of, drawn, looking, new_figure, no_figures
from omdpd.report.html import PLAYER, write_page
from omdpd.report.pictures import draw_cells
from omdpd.report.policies import optimum, run_policies
from omdpd.report.stored import StoredRun
from omdpd.report.study import Study
from omdpd.report.thinning import kept_places, rounded_for_json
from omdpd.solvers.sweeps import occupancy_under
from omdpd.storage.atomic import write_atomically

# Points of the curve beside the pictures.
CURVE_POINTS = 240
# A GIF shows a picture this long, in milliseconds, and the last one longer.
PICTURE_TIME, LAST_TIME = 250, 2000
# Runs in one player.
MAX_TRACKS = 12


def animated_runs(study: Study, run: str | None = None) -> list[StoredRun]:
    """The runs that kept their policies: the one named, or the first seed of every learner in the first place."""
    there = [view for view in study.ordered() if view.tried(view.snapshots)]
    if run is not None:
        there = [view for view in there if view.id.startswith(run)]
        if not there:
            raise InvalidInputError(f"no run {run!r} under {study.folder} kept its policies")
    if not there:
        raise InvalidInputError(f'no run under {study.folder} kept its policies (policies = "log" in its experiment)')
    first = there[0].label
    chosen: dict[str, StoredRun] = {}
    for view in there:
        same_place = view.label.nature == first.nature
        if view.label.world == first.world and (run is not None or same_place):
            chosen.setdefault(view.label.learner, view)
    return list(chosen.values())[:MAX_TRACKS]


def write_player(study: Study, views: Sequence[StoredRun], file: Path) -> Path:
    """A page that plays the policies of some runs of one world, one at a time."""
    problem = next(w for w in study.problems()["worlds"] if w["world"] == views[0].label.world)
    if problem["fault"]:
        raise InvalidInputError(f"the world {problem['world']} cannot be built here: {problem['fault']}")
    tracks = [track for view in views if (track := _track(study, view)) is not None]
    title = f"{study.folder.resolve().name}: how the policy moved"
    return write_page({"title": title, "world": problem, "tracks": tracks}, title, file, PLAYER)


def write_gif(study: Study, view: StoredRun, file: Path, step: int = 0) -> Path:
    """The same as a GIF of one run at one step of the episode."""
    try:
        from PIL import Image
    except ImportError:
        raise no_figures() from None
    asked = view.label
    cmdp = study.truths.of(asked).cmdp
    if cmdp is None:
        raise InvalidInputError(f"the world of {view.id} cannot be built here")
    if not 0 <= step < cmdp.shape[0]:
        raise InvalidInputError(f"--step is {step}, but an episode has steps 0 to {cmdp.shape[0] - 1}")
    plan = study.truths.plan(asked, view.kept.keys, view.episodes)
    kept = view.snapshots()
    pictures = []
    for k, policy in zip(kept["episodes"], kept["policies"].astype(np.float64), strict=True):
        figure = _picture(
            cmdp, policy, None if plan is None else plan.policy, step, f"{drawn(asked.learner)}, {int(k)} episodes"
        )
        pictures.append(
            Image.open(io.BytesIO(content_of(figure, format="png", dpi=90))).convert(
                "P", palette=Image.Palette.ADAPTIVE
            )
        )
    buffer = io.BytesIO()
    times = [PICTURE_TIME] * (len(pictures) - 1) + [LAST_TIME]
    pictures[0].save(buffer, "GIF", save_all=True, append_images=pictures[1:], duration=times, loop=0)
    write_atomically(file, buffer.getvalue())
    return file


def _track(study: Study, view: StoredRun) -> Mapping[str, Any] | None:
    """One run for the player."""
    asked = view.label
    cmdp = study.truths.of(asked).cmdp
    if cmdp is None:
        return None
    curves, played = study.curves(view), view.tried(lambda: run_policies(view, cmdp))
    plan = study.truths.plan(asked, view.kept.keys, view.episodes)
    if curves is None or played is None:
        return None
    places = kept_places(curves.episodes, curves.violation[None], CURVE_POINTS)
    return {
        "learner": asked.learner, "nature": asked.nature, "seed": asked.seed, "K": asked.episodes, "run": played,
        "best": None if plan is None else optimum(plan), "x": rounded_for_json(curves.episodes[places]),
        "violation": rounded_for_json(curves.violation[places]),
    }  # fmt: skip


def _picture(cmdp: CMDP, policy: Floats, best: Floats | None, step: int, title: str) -> Figure:
    """One frame: what is played at a step, beside the best policy."""
    panels = [("played", policy)] if best is None else [("played", policy), ("best safe policy", best)]
    with looking({"font.size": 9}):
        figure = new_figure(4.2 * len(panels), 4.0, layout=None)
        grid = figure.subplots(1, len(panels), squeeze=False)
        figure.subplots_adjust(left=0.08, right=0.97, bottom=0.1, top=0.84)
        for axes, (name, pi) in zip(grid.flat, panels, strict=True):
            draw_cells(axes, cmdp, pi, occupancy_under(cmdp.laws, pi, cmdp.initial), step)
            axes.set_title(f"{name}, step {step + 1}")
        figure.suptitle(title)
    return figure
