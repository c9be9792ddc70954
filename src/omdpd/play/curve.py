"""A curve says what a budget is worth: the exact trade-off between one budget and the best value.

    V(b) = max r.q   subject to   c_i.q <= b   and the other budgets

It is concave and piecewise linear: a list of breakpoints, with a price between each and the next.  All numbers are in
the user's units.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError, not_installed, one_step, positive_integer
from omdpd.problem.cmdp import CMDP
from omdpd.problem.markup import facts_html, table_html
from omdpd.solvers.columns import ACCURACY, ROUNDING
from omdpd.solvers.planning import study
from omdpd.solvers.trade_off import trade_off
from omdpd.storage.atomic import csv_text, save_file
from omdpd.worlds.card import constraint_names, natural_value, never_paid, planned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Breakpoints that are printed and shown in a notebook; a file has all.
MAX_LINES = 40
# Of these, how many on either side of the problem's budget.
NEAR = 4
# More breakpoints than this within such a share of the curve from the least budget on are told in one line.
CROWD, WITHIN = 3, 1e-3
# Digits that are shown, and the most where breakpoints are closer together.
DIGITS, MOST_DIGITS = 6, 12
# Beyond where gaps are such a share of the widest they are told apart, if that is before the middle of the curve.
SMALL = (1e-3, 0.1)


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """The best value at every budget of one constraint, the other budgets as they are.

    Attributes
    ----------
    constraint
        The constraint's name.
    budgets, values : (n,)
        Breakpoints: from the least budget that can be met (with the others) to the one beyond which more earns nothing.
    prices : (n - 1,)
        What one more unit of budget earns between a breakpoint and the next.
    gaps : (n - 1,)
        How far the true curve may lie above the line from a breakpoint to the next: 0 where it is that line.
    rounding
        A budget that is less than this below the least one counts as it.
    budget
        The problem's own, where it has one.
    now : (value, price), optional
        What `solve()` finds at the problem's own budget, where it can be met.
    """

    constraint: str
    budgets: Floats
    values: Floats
    prices: Floats
    gaps: Floats
    rounding: float = 0.0
    budget: float | None = None
    now: tuple[float, float] | None = None

    @property
    def off(self) -> float:
        """How far the true curve may lie above the one through these points: 0 where all breakpoints are there."""
        return float(self.gaps.max(initial=0.0))

    @property
    def complete(self) -> bool:
        """Whether all breakpoints are there."""
        return self.off == 0.0

    def value(self, budget: float) -> float | None:
        """The best value at a budget; None where it cannot be met."""
        if self.now is not None and budget == self.budget:
            return self.now[0]
        met = budget + self.rounding >= self.budgets[0]
        return float(np.interp(budget, self.budgets, self.values)) if met else None

    def price(self, budget: float) -> float | None:
        """What one more unit earns at a budget; None where it cannot be met."""
        if self.now is not None and budget == self.budget:
            return self.now[1]
        if budget + self.rounding < self.budgets[0]:
            return None
        same = ROUNDING * np.abs(self.budgets) + 1e-3 * ROUNDING * np.abs(self.budgets).max()
        place = max(int(np.searchsorted(self.budgets - same, budget, side="right")), 1)
        return float(self.prices[place - 1]) if place <= len(self.prices) else 0.0

    def lines(self, most: int | None = MAX_LINES) -> list[str]:
        """The breakpoints for a person; of more than `most`, some around the problem's budget and from low to high."""
        text = [f"{budget:>24}  {value:>14}  {price}" for budget, value, price in self._rows(most)]
        head = f"{'budget of ' + self.constraint:>24}  {'best value':>14}  one more unit earns, from here on"
        more = len(self.budgets) - len(text)
        between = [f"(not printed: {more} breakpoints between these; save() writes all)"] if more else []
        crowd = [self._crowd_text()] if most is not None and self._crowd else []
        return [head, *text[:1], *crowd, *text[1:], *between, *self._now(), self._said()]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        ends = f"{self.budgets[0]:.6g} to {self.budgets[-1]:.6g}"
        return f"Curve({self.constraint}: {len(self.budgets)} breakpoints, budgets {ends})"

    def _repr_html_(self) -> str:
        """The breakpoints in a notebook."""
        head = (f"budget of {self.constraint}", "best value", "one more unit earns")
        facts = {"breakpoints": len(self.budgets), "complete": self._said()}
        facts |= {"at the least budget": self._crowd_text()} if self._crowd else {}
        return facts_html("trade-off", facts, table_html(head, self._rows(MAX_LINES)))

    def save(self, file: str | Path) -> Path:
        """Write the breakpoints to a ``.csv`` file, whole or not at all."""
        file = Path(file)
        if file.suffix != ".csv":
            raise InvalidInputError(f"{file} should end in .csv")
        return save_file(file, csv_text([("budget", "value", "price", "gap"), *self._points()]).encode())

    def plot(self, file: str | Path | None = None, axes: Axes | None = None) -> Any:
        """Draw the curve with the problem's budget, on `axes` or on a figure of its own, and return the axes.

        With a file the figure is also written; its ending chooses the format, as Matplotlib knows it (png, svg, pdf).
        """
        if axes is None:
            try:
                from matplotlib.figure import Figure
            except ImportError:
                raise not_installed("a figure", "matplotlib", "pillow") from None
            axes = Figure(figsize=(5.0, 3.4), layout="constrained").add_subplot()
        axes.plot(self.budgets, self.values, color="#0072B2", marker="o" if len(self.budgets) <= MAX_LINES else "")
        if self.budget is not None:
            axes.axvline(self.budget, color="#D55E00", linestyle="--", label=f"budget now: {self.budget:.6g}")
            axes.legend(frameon=False, loc="lower right")
        axes.set_xlabel(f"budget of {self.constraint}")
        axes.set_ylabel("best value")
        if file is not None:
            self._keep(axes.figure, Path(file))
        return axes

    @staticmethod
    def _keep(figure: Any, file: Path) -> None:
        """Write a figure, whole or not at all."""
        kind, known = file.suffix.lstrip(".").lower(), figure.canvas.get_supported_filetypes()
        if kind not in known:
            raise InvalidInputError(f"{file} should end in one of .{', .'.join(known)}")
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, dpi=150)
        save_file(file, drawn.getvalue())

    def _points(self) -> list[tuple[float, ...]]:
        columns = (self.budgets, self.values, np.r_[self.prices, 0.0], np.r_[self.gaps, 0.0])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _rows(self, most: int | None) -> list[tuple[str, str, str]]:
        shown = list(range(len(self.budgets))) if most is None else self._chosen(most)
        budgets, points = self.budgets[shown].tolist(), self._points()
        distinct = (n for n in range(DIGITS, MOST_DIGITS) if len({f"{b:.{n}g}" for b in budgets}) == len(budgets))
        digits = next(distinct, MOST_DIGITS)
        return [(f"{b:.{digits}g}", f"{v:.6g}", f"{p:.6g}") for b, v, p, _ in (points[i] for i in shown)]

    def _chosen(self, most: int) -> list[int]:
        """Without a crowd: all, or both ends, an even choice of values, and what is next to the problem's budget."""
        kept = np.r_[0, self._crowd + 1 : len(self.budgets)]
        if len(kept) <= most:
            return list(kept.tolist())
        place = 0 if self.budget is None else int(np.searchsorted(self.budgets[kept], self.budget))
        near = kept[max(place - NEAR, 0) : place + NEAR].tolist()
        values = self.values[kept]
        levels = np.linspace(values[0], values[-1], max(most - len(near), 2))
        return sorted({*near, *kept[np.abs(values - levels[:, None]).argmin(axis=1)].tolist()})

    @property
    def _crowd(self) -> int:
        """How many breakpoints after the first are so near to it that they are told in one line."""
        far = self.budgets[0] + WITHIN * (self.budgets[-1] - self.budgets[0])
        crowd = int((self.budgets[1:-1] <= far).sum())
        return crowd if crowd > CROWD else 0

    def _crowd_text(self) -> str:
        far, more = (float(each[self._crowd] - each[0]) for each in (self.budgets, self.values))
        return f"{'':>24}  (rises by {more:.6g} within {far:.2g} of the least budget: {self._crowd} breakpoints)"

    def _now(self) -> list[str]:
        """What the problem's budget earns."""
        if self.budget is None:
            return []
        value, price = self.value(self.budget), self.price(self.budget)
        earns = "cannot be met" if value is None else f"earns {value:.6g}; one more unit earns {price:.6g}"
        return [f"the budget now, {self.budget:.6g}, {earns}"]

    def _said(self) -> str:
        n = len(self.budgets)
        if self.complete:
            return f"the curve is exact: {n} breakpoints, and a straight line from each to the next"
        beyond, far = np.r_[np.maximum.accumulate(self.gaps[::-1])[::-1], 0.0], self.budgets - self.budgets[0]
        places = [int(np.argmax(beyond <= small * self.off)) for small in SMALL]
        place = next((place for place in places if far[place] < 0.5 * far[-1]), None)
        if place is None:
            return f"{n} breakpoints, not all: between them the best value is at most {self.off:.3g} higher"
        rest = f"at most {beyond[place]:.3g}" if beyond[place] else "the curve is exact"
        where = f"within {far[place]:.2g} of the least budget"
        return f"{n} breakpoints, not all: {where} the best value is at most {self.off:.3g} higher; beyond, {rest}"


def curve(cmdp: CMDP, constraint: int | str = 0, most: int = 1000) -> Curve:
    """The trade-off between the budget of a constraint (by place or name) and value; at most `most` breakpoints."""
    names = constraint_names(cmdp)
    i = cmdp.labels.place(constraint, cmdp.n_constraints)
    first = [i, *(j for j in range(cmdp.n_constraints) if j != i)]
    tables, never, table = one_step(cmdp.excess, 1)[first], never_paid(cmdp)[first], one_step(cmdp.cost, 1)[i]
    tables[0], never[0] = table, False  # with nothing taken off, costs near zero are exact
    size = cmdp.steps * float(np.abs(table).max())
    exact = len(tables) == 1 and cmdp.discount is None and table.min() >= 0.0
    near = np.inf if cmdp.unlimited[i] else float(cmdp.budget[i])
    most = max(positive_integer("most", most), 2)
    found = trade_off(planned(cmdp, tables, never), most, 0.0 if exact else size, near)
    if found is None:
        raise InvalidInputError(
            f"no policy meets the other budgets, whatever that of {names[i]} is: cmdp.solve() says how near one comes"
        )
    costs, values = np.array(found.points).T
    low, high = cmdp.reward_range
    scale = float(cmdp.cost_scale[i])
    rates = (high - low) / scale
    now = None if cmdp.unlimited[i] else study(planned(cmdp, cmdp.excess, never_paid(cmdp)))
    return Curve(
        names[i], costs * scale, np.array([natural_value(cmdp, v) for v in values]), found.slopes * rates,
        found.off * (high - low), ACCURACY * scale * min(size + abs(float(cmdp.budget[i])), 1.0),
        None if now is None else float(cmdp.limits[i]),
        (natural_value(cmdp, now.mixture.value), float(now.prices[i]) * rates)
        if now is not None and now.mixture.feasible else None,
    )  # fmt: skip
