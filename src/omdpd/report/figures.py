"""Curves to axes: the figure of an experiment, readable in greyscale and by colour-blind readers."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omdpd.experiments.spec import Experiment
from omdpd.natures.independent import violation_floor
from omdpd.play.history import History
from omdpd.problem.arrays import InvalidInputError
from omdpd.report.curves import Band, Curves, curves_of, load_curves
from omdpd.storage.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart; line styles and markers carry the same
# information for greyscale.
STYLES = (
    ("#000000", "-", "o"),
    ("#0072B2", "-", "s"),
    ("#009E73", "-", "^"),
    ("#D55E00", "--", "v"),
    ("#CC79A7", "--", "D"),
    ("#999999", ":", "x"),
    ("#E69F00", "-.", "P"),
    ("#56B4E9", "-.", "*"),
)

# Formats, and the time stamps to leave out so that the same run gives the same file.
METADATA: dict[str, dict[str, None] | None] = {"png": None, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


# Inches that a line of a legend takes.
LEGEND_LINE = 0.15


def draw(curves: Sequence[Curves], title: str, floors: dict[str, float] | None = None) -> Figure:
    """One row per nature: cumulative violation left, cumulative regret right; mean and 95 % band over seeds.

    `floors` gives natures a violation per episode that nobody can go below; it is drawn as a line.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    natures = list(dict.fromkeys(c.nature for c in curves))
    learners = list(dict.fromkeys(c.learner for c in curves))
    style = {name: STYLES[i % len(STYLES)] for i, name in enumerate(learners)}
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        height = max(3.1, LEGEND_LINE * (len(learners) + 4))
        figure, grid = plt.subplots(
            len(natures), 2, figsize=(14.0, height * len(natures)), squeeze=False, layout="constrained"
        )
        for (left, right), nature in zip(grid, natures, strict=True):
            group = [c for c in curves if c.nature == nature]
            safe = any(c.regret is not None for c in group)
            _panel(left, [(c.learner, c.violation) for c in group], style, safe)
            _panel(right, [(c.learner, c.regret) for c in group if c.regret is not None], style, safe)
            left.set(title=f"{nature}: cumulative strong violation", yscale="symlog", ylim=(0.0, None))
            right.set_yscale("symlog", linthresh=10.0)
            if all(c.regret is None or c.regret.low.min() >= -1.0 for c in group):
                right.set_ylim(0.0, None)
            right.set(title=f"{nature}: cumulative regret (0: the best policy safe in every episode)")
            floor = (floors or {}).get(nature)
            if floor is not None:
                _floor(left, floor)
            if all(c.regret is None for c in group):
                _nobody(right, floor)
        figure.suptitle(title)
    return figure


def save(figure: Figure, folder: Path, name: str = "figure") -> list[Path]:
    """Write NAME.png, NAME.svg and NAME.pdf into a folder."""
    return [write_figure(figure, folder / f"{name}.{kind}") for kind in METADATA]


def write_figure(figure: Figure, file: Path) -> Path:
    """Write a figure whole or not at all; the file's ending chooses its format."""
    kind = file.suffix.lstrip(".").lower()
    if kind not in METADATA:
        raise InvalidInputError(f"{file} should end in one of .{', .'.join(METADATA)}")
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "omdpd"}):  # the same figure gives the same file
        figure.savefig(buffer, format=kind, dpi=110, metadata=METADATA[kind], bbox_inches="tight")
    write_atomically(file, buffer.getvalue())
    return file


def draw_experiment(experiment: Experiment, folder: Path, summaries: Sequence[Mapping[str, Any]]) -> list[Path]:
    """The figure of an experiment."""
    title = f"mean and 95 % band over {experiment.seeds} seeds, K = {experiment.episodes}"
    return save(draw(load_curves(folder / "runs", summaries), title, floors_of(experiment)), folder)


def floors_of(experiment: Experiment) -> dict[str, float]:
    """What nobody can go below, for natures that draw every entry afresh (known for worlds with given sizes)."""
    world = experiment.worlds[0]
    if world.name != "random_dirichlet":
        return {}
    sizes = world.settings
    return {"independent": violation_floor(sizes["horizon"], sizes["n_states"], sizes["n_actions"])}


def plot(histories: Sequence[History], file: str | Path, title: str = "") -> Path:
    """Draw cumulative violation and regret of some histories; the file's ending chooses the format (png, svg, pdf).

    Histories with one label and nature are seeds of one curve.
    """
    if not histories:
        raise InvalidInputError("there is nothing to plot: the list of histories is empty")
    groups: dict[tuple[str, str], list[History]] = {}
    for history in histories:
        groups.setdefault((history.label, history.nature), []).append(history)
    curves = [curves_of(label, nature, group) for (label, nature), group in groups.items()]
    return write_figure(draw(curves, title), Path(file))


def _panel(axes: Axes, bands: Sequence[tuple[str, Band]], style: dict[str, tuple[str, str, str]], safe: bool) -> None:
    """Mean lines with bands, a sqrt(K) reference, and the exponents in the legend; zero is the best safe policy."""
    for place, (name, band) in enumerate(bands):
        colour, line, marker = style[name]
        exponent = "" if band.exponent is None else f"  $K^{{{band.exponent:.2f}}}$"
        axes.fill_between(band.episodes, band.low, band.high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            band.episodes, band.mean, color=colour, linestyle=line, marker=marker, markersize=4, linewidth=1.4,
            markevery=(place * 4 % 30, 30), label=f"{name}{exponent}",
        )  # fmt: skip
    if bands:
        _reference(axes, [band for _, band in bands])
        axes.axhline(0.0, color="#000000", linewidth=0.8, label="best safe policy" if safe else None)
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes.set_xlabel("episode")


def _reference(axes: Axes, bands: Sequence[Band]) -> None:
    """c sqrt(k), through the middle of what the learners reached."""
    episodes = bands[0].episodes
    ends = [band.mean[-1] for band in bands if band.mean[-1] > 0.0]
    if ends:
        c = float(np.median(ends)) / np.sqrt(episodes[-1])
        axes.plot(
            episodes, c * np.sqrt(episodes), color="#777777", linewidth=0.9, linestyle=(0, (1, 2)), label=r"$\sqrt{K}$"
        )


def _floor(axes: Axes, floor: float) -> None:
    """The least violation that any learner can expect."""
    K = axes.get_xlim()[1]
    k = np.linspace(1.0, K, 200)
    left, right = axes.get_xlim()
    axes.plot(k, floor * k, color="#000000", linewidth=2.0, linestyle=(0, (4, 1)), label=f"nobody below: {floor:.3f} k")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes.set_xlim(left, right)


def _nobody(axes: Axes, floor: float | None) -> None:
    """Say why there is nothing to draw."""
    text = "No policy is safe in every episode,\nso there is nothing to regret against."
    if floor is not None:
        text += "\n\nThe next table cannot be predicted from the past ones:"
        text += f"\nevery learner pays at least {floor:.3f} per episode,\nand violation grows linearly for everybody."
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    axes.set_axis_off()
