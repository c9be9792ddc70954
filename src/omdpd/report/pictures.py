"""Worlds for the eye: a state as text and as a picture, an optimum as a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.play.policy import Policy, table_of
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP
from omdpd.problem.labels import Labels
from omdpd.report.canvas import Axes, Figure, looking, new_panels
from omdpd.worlds.card import ProblemCard

# Colours of the marks of a map, and of the agent; chosen to differ in lightness too.
COLOURS = {
    "S": (222, 235, 247), "F": (247, 247, 247), ".": (247, 247, 247), "O": (230, 159, 0), "H": (40, 60, 110),
    "G": (0, 158, 115), "#": (90, 90, 90),
}  # fmt: skip
AGENT, LINE = (204, 51, 17), (180, 180, 180)
CELL = 32  # pixels
# Which way each named action points: (right, down).
ARROWS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
# Inches that a page shows without shrinking a figure.
WIDTH = 8.0
LOOK = {"font.size": 8, "svg.hashsalt": "omdpd"}
# At most this many steps are drawn of a map.
MAX_PANELS = 12
# States are named along an axis up to this many.
MAX_NAMED = 30


def ansi(cmdp: CMDP, state: int, step: int, last_action: int | None) -> str:
    """The step, the state and the last action in words; a map has the agent's cell in brackets."""
    states, actions = cmdp.labels.states, cmdp.labels.actions
    name = states[state] if states else f"state {state}"
    did = "" if last_action is None else f" (after {actions[last_action] if actions else f'action {last_action}'})"
    text = f"step {step} of {cmdp.shape[0]}: {name}{did}\n"
    width = len(cmdp.labels.layout[0]) if cmdp.labels.layout else 0
    for i, row in enumerate(cmdp.labels.layout):
        cells = (f"[{m}]" if i * width + j == state else f" {m} " for j, m in enumerate(row))
        text += "".join(cells) + "\n"
    return text


def picture(cmdp: CMDP, state: int) -> npt.NDArray[np.uint8]:
    """The map with the agent as a disc, (rows, columns, 3); a world without a map shows its states in a row."""
    layout = cmdp.labels.layout or ("F" * cmdp.shape[1],)
    pixels = np.array([[COLOURS.get(mark, COLOURS["F"]) for mark in row] for row in layout], dtype=np.uint8)
    pixels = np.kron(pixels, np.ones((CELL, CELL, 1), dtype=np.uint8))
    pixels[::CELL], pixels[:, ::CELL] = LINE, LINE
    i, j = divmod(state, len(layout[0]))
    y, x = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    centre = ((i + 0.5) * CELL, (j + 0.5) * CELL)
    pixels[(y - centre[0]) ** 2 + (x - centre[1]) ** 2 < (0.3 * CELL) ** 2] = AGENT
    return pixels


def draw_world(cmdp: CMDP, card: ProblemCard) -> Figure:
    """The optimal policy: where it is at every step and what it does, on the map or by state and step."""
    best = "no policy meets every budget; shown: the least excess" if card.value is None else (
        f"optimum {card.value:.4f}, without constraints {card.free_value:.4f}"
    )  # fmt: skip
    return _played(cmdp, card.plan.policy, card.plan.occupancy, best)


def draw_played(cmdp: CMDP, policy: Policy) -> Figure:
    """Any policy in a problem, in the same way."""
    table = table_of(policy, cmdp.shape)
    return _played(cmdp, table, policy.occupancy(cmdp), str(policy.evaluate(cmdp)))


def _played(cmdp: CMDP, policy: Floats, occupancy: Floats, said: str) -> Figure:
    with looking(LOOK):
        figure = (_maps if cmdp.labels.layout else _by_state)(cmdp, policy, occupancy)
        figure.suptitle(f"{cmdp.name}: {said}" if cmdp.name else said, fontsize=10)
    return figure


def draw_policy(policy: Policy) -> Figure:
    """A policy as a heat map, states by steps: one panel per action, or the likeliest action where there are many.

    What it never reaches, where that is known, stays white.
    """
    H, S, A = policy.shape
    blank = np.where(np.ones((H, S), bool) if policy.reached is None else policy.reached, 0.0, np.nan)
    panels, limits = _chances(policy.table + blank[..., None], policy.labels), {"vmin": 0.0, "vmax": 1.0}
    if A > MAX_PANELS:
        panels, limits = [("likeliest action", (policy.table.argmax(axis=2) + blank).T)], {}
    with looking(LOOK):
        figure = _heat_maps(panels, policy.labels, lambda columns: 1.6 + columns * (1.6 + 0.15 * H), **limits)
        for axes in figure.axes[: len(panels)]:
            axes.set_xticks(_few(H))
    return figure


def _chances(policy: Floats, labels: Labels) -> list[tuple[str, Floats]]:
    """A table (H, S, A) as a panel (S, H) for every action, with its title."""
    names = labels.counted(n_actions=policy.shape[2]).actions
    return [(f"chance of: {name}", policy[:, :, a].T) for a, name in enumerate(names)]


def _heat_maps(
    panels: Sequence[tuple[str, Floats]], labels: Labels, width: Callable[[int], float], **how: Any
) -> Figure:
    """Draw panels (S, H) with their titles, and one scale; `width` gives the inches of that many columns."""
    S = len(panels[0][1])
    figure, grid = new_panels(
        len(panels), 3,
        lambda rows, columns: (min(width(columns), WIDTH), (1.2 + 0.16 * min(S, MAX_NAMED)) * rows + 0.5),
    )  # fmt: skip
    for axes, (title, values) in zip(grid, panels, strict=True):
        image = axes.imshow(values, aspect="auto", cmap="viridis", **how)
        axes.set(title=title, xlabel="step", ylabel="state")
        places = list(range(S)) if S <= MAX_NAMED else _few(S)
        axes.set_yticks(places, [labels.states[s] if labels.states else str(s) for s in places])
        if labels.states:
            axes.set_ylabel("")
    figure.colorbar(image, ax=figure.axes, shrink=0.7)
    return figure


def _few(n: int) -> list[int]:
    """At most about ten whole numbers below n, for the ticks of an axis."""
    return list(range(0, n, -(-n // 10)))


def draw_cells(axes: Axes, cmdp: CMDP, policy: Floats, occupancy: Floats, step: int) -> None:
    """A policy at one step: on the map with the chance to be in a cell, or as probabilities by state and action."""
    if cmdp.labels.layout:
        height, width = len(cmdp.labels.layout), len(cmdp.labels.layout[0])
        mass = occupancy[step].sum(axis=1)
        axes.imshow(mass.reshape(height, width), cmap="Blues", vmin=0.0, vmax=1.0)
        _marks(axes, cmdp.labels.layout)
        _arrows(axes, cmdp, mass, policy[step])
        axes.set(xticks=[], yticks=[])
        return
    axes.imshow(policy[step], cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")
    _, S, A = cmdp.shape
    named = cmdp.labels.counted(S, A)
    axes.set_xticks(range(A), named.actions)
    if S <= MAX_NAMED:
        axes.set_yticks(range(S), named.states)


def _by_state(cmdp: CMDP, policy: Floats, occupancy: Floats) -> Figure:
    """One panel for the occupancy (state by step), one per action for its probability."""
    mass = occupancy.sum(axis=2)
    met = _chances(np.where(mass[..., None] > 1e-9, policy, np.nan), cmdp.labels)
    panels = [("share of episodes in the state", mass.T), *met]
    return _heat_maps(panels, cmdp.labels, lambda columns: 3.2 * columns, vmin=0.0, vmax=1.0)


def _maps(cmdp: CMDP, policy: Floats, occupancy: Floats) -> Figure:
    """One map per step: shade for the chance to be in a cell, arrows for what is done there."""
    H = cmdp.shape[0]
    steps = np.unique(np.linspace(0, H - 1, min(H, MAX_PANELS)).round().astype(int))
    ratio = len(cmdp.labels.layout) / len(cmdp.labels.layout[0])
    figure, panels = new_panels(len(steps), 3, lambda rows, columns: (2.4 * columns + 0.8, 2.4 * rows * ratio + 0.7))
    for axes, h in zip(panels, steps, strict=True):
        draw_cells(axes, cmdp, policy, occupancy, h)
        axes.set_title(f"step {h}")
    figure.colorbar(panels[0].images[0], ax=figure.axes, shrink=0.6, label="chance to be in the cell")
    return figure


def _marks(axes: Axes, layout: tuple[str, ...]) -> None:
    """The marks that are not plain floor, in the corners of their cells, and a tint for what costs or ends."""
    from matplotlib.patches import Rectangle

    for i, row in enumerate(layout):
        for j, mark in enumerate(row):
            if mark in "F.":
                continue
            colour = tuple(c / 255.0 for c in COLOURS.get(mark, COLOURS["F"]))
            axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=colour, linewidth=2.0))
            axes.text(j - 0.42, i - 0.2, mark, fontsize=8, color="#444444")


def _arrows(axes: Axes, cmdp: CMDP, mass: Floats, policy: Floats) -> None:
    """An arrow per likely action in every cell that is met, as long as its probability."""
    width = len(cmdp.labels.layout[0])
    for s in np.flatnonzero(mass > 1e-3):
        i, j = divmod(int(s), width)
        if cmdp.labels.layout[i][j] in "HG#":
            continue
        for a, name in enumerate(cmdp.labels.actions):
            if name in ARROWS and policy[s, a] > 0.05:
                dx, dy = ARROWS[name]
                length = 0.38 * float(policy[s, a])
                axes.arrow(
                    j, i, dx * length, dy * length, head_width=0.14, length_includes_head=True, color="#CC3311", lw=0.7
                )
