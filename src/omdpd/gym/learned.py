"""What came of learning in an environment: the policy and the returns of its episodes, kept, played again, drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.gym.contact import EVALUATED, during, episode_seeds
from omdpd.gym.settings import FUNCTIONS, ask_again
from omdpd.gym.table import opened
from omdpd.gym.task import Task
from omdpd.learners.protocol import Report
from omdpd.play.policy import Policy
from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer, shown, whole_number
from omdpd.report.canvas import Axes, Figure, looking, new_figure
from omdpd.report.figures import write_figure
from omdpd.report.statistics import half_width
from omdpd.storage.atomic import RecordError, opened_plain, save_file
from omdpd.storage.npz import Limits, npz_of_arrays, opened_npz

ARRAYS = ("policy", "rewards", "costs", "lengths", "budget")
# Of the task, which older files do not have.
RANGES = ("reward_range", "cost_scale")
# Which of `FUNCTIONS` the task had, as ones and zeros.
ASKED = "asked"
LIMITS = Limits(n_bytes=2**29, compressed_bytes=2**28, members=8)


@dataclass(frozen=True, eq=False, repr=False)
class Played:
    """Episodes of a fixed policy, in the environment's units.

    Attributes
    ----------
    rewards, costs, lengths
        Per episode its reward (n,), its costs (n, I) and its steps (n,).  `Learned` names them alike.
    budget
        What an episode may cost, (I,); infinite where there is no limit.
    """

    rewards: Floats
    costs: Floats
    lengths: npt.NDArray[np.int64]
    budget: Floats

    def __str__(self) -> str:
        told = [f"reward {_mean(self.rewards)}"]
        told += [
            f"cost {_mean(c)}" + (f" of {b:.4g}" if np.isfinite(b) else ", no limit")
            for c, b in zip(self.costs.T, self.budget, strict=True)
        ]
        return f"{len(self.rewards)} episodes: {', '.join(told)}"

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Learned:
    """What came of learning.

    Returns are those of single episodes in the environment's units: without the table nothing exact can be said.  One
    that was loaded from a file has neither the learner's report nor the task.

    Attributes
    ----------
    policy
        The next policy, (H, S, A).
    rewards, costs, lengths
        Per episode that was learnt from its reward (K,), its costs (K, I) and its steps (K,).
    budget
        What an episode may cost, (I,); infinite where there is no limit.
    functions
        The names of what the task was given that no file keeps, such as its cost.
    """

    policy: Policy
    rewards: Floats
    costs: Floats
    lengths: npt.NDArray[np.int64]
    budget: Floats
    report: Report | None = None
    task: Task | None = None
    reward_range: Floats | None = None
    cost_scale: Floats | None = None
    functions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n = max(len(self.rewards) // 10, 1)
        last = Played(self.rewards[-n:], self.costs[-n:], self.lengths[-n:], self.budget)
        return f"Learned({len(self.rewards)} episodes; the last {last})"

    def act(self, step: int, state: int, rng: np.random.Generator | None = None) -> int:
        """An action of the learnt policy at a zero-based step (see `Policy.act`)."""
        return self.policy.act(step, state, rng)

    def evaluate(self, task: Any = None, n_episodes: int = 100, seed: int = 0) -> Played:
        """Play the learnt policy without learning; one that was loaded from a file needs a `Task` to play it in.

        An environment is read with the policy's horizon and budgets, and what a `Task` takes for the rest.
        """
        task = self.task if task is None else task
        if task is None:
            raise InvalidInputError("what was loaded from a file does not know its environment: give evaluate the Task")
        ask_again(self.functions, task if isinstance(task, Task) else {}, "what was learnt")
        if not isinstance(task, Task):
            task = Task(opened(task), len(np.asarray(self.policy)), self.budget, max_entries=None)
        policy, n = task.padded_policy(self.policy), positive_integer("n_episodes", n_episodes)
        whole_number("seed", seed, 0)
        boundless = task.boundless()
        played = []
        for k in range(n):
            with during(f"episode {k + 1}"):
                played.append(boundless.play(policy, *episode_seeds(seed, EVALUATED, k)))
        return Played(
            np.array([e.reward for e in played]), np.array([e.costs for e in played]),
            np.array([e.length for e in played], dtype=np.int64), task.limits,
        )  # fmt: skip

    def plot(self, file: str | Path | None = None, title: str = "") -> Figure:
        """Draw reward and costs of the episodes (`plot_learned`)."""
        return plot_learned(self, file, title)

    def save(self, file: str | Path) -> Path:
        """Keep policy and returns in an ``.npz`` file, whole or not at all."""
        file = Path(file)
        if file.suffix != ".npz":
            raise InvalidInputError(f"{file} should end in .npz")
        found = {name: getattr(self, name) for name in (*ARRAYS, *RANGES)}
        found[ASKED] = np.isin(FUNCTIONS, self.functions).astype(np.int64)
        return save_file(file, npz_of_arrays({name: np.asarray(x) for name, x in found.items() if x is not None}))

    @staticmethod
    def load(file: str | Path) -> Learned:
        """Read what `save` wrote, or say what is wrong with it."""
        file = Path(file)
        with opened_plain(file, follow=True) as stream, opened_npz(stream, str(file), LIMITS) as npz:
            missing = [name for name in ARRAYS if name not in npz.headers or npz.headers[name].dtype.kind not in "fi"]
            if missing:
                raise RecordError(f"{file} holds nothing learnt: it has no numbers {missing[0]!r}")
            policy, rewards, costs, lengths, budget = (npz.array(name) for name in ARRAYS)
            ranges: dict[str, Any] = {name: npz.array(name) for name in RANGES if name in npz.headers}
            asked = npz.array(ASKED) if ASKED in npz.headers else np.zeros(len(FUNCTIONS))
        K, I = len(rewards), budget.size  # noqa: E741
        if rewards.shape != (K,) or lengths.shape != (K,) or costs.shape != (K, I) or budget.shape != (I,):
            raise RecordError(f"{file} is damaged: its returns are not of the same episodes")
        if asked.shape != (len(FUNCTIONS),):
            raise RecordError(f"{file} is damaged: it does not say which functions its task had")
        ranges["functions"] = tuple(name for name, was in zip(FUNCTIONS, asked, strict=True) if was)
        try:
            return Learned(Policy(policy), rewards, costs, lengths.astype(np.int64), budget, **ranges)
        except InvalidInputError as error:
            raise RecordError(f"{file} is damaged: {error}") from None


def _mean(values: Floats) -> str:
    half = half_width(values)
    return f"{values.mean():.4g}" + ("" if half is None else f" ± {float(half):.2g}")


def plot_learned(learned: Any, file: str | Path | None = None, title: str = "") -> Figure:
    """Draw the returns of `learn` or of an agent: every episode's reward and costs, running means, and the budgets.

    The figure is returned; with a file it is written too.
    """
    learned = getattr(learned, "learned", learned)
    if not isinstance(learned, Learned):
        raise InvalidInputError(f"plot_learned draws what was learnt, but was given {shown(learned)}: call learn first")
    panels: list[tuple[str, Floats, float | None]] = [("reward", learned.rewards, None)]
    panels += [
        (f"cost {i}", learned.costs[:, i], float(b) if np.isfinite(b) else None) for i, b in enumerate(learned.budget)
    ]
    with looking({"font.size": 9, "svg.hashsalt": "omdpd"}):
        figure = new_figure(4.5 * len(panels), 3.2)
        grid = figure.subplots(1, len(panels), squeeze=False)
        for axes, (name, values, budget) in zip(grid.flat, panels, strict=True):
            _returns(axes, values, budget)
            axes.set(title=f"{name} per episode", xlabel="episode")
        figure.suptitle(title)
    if file is not None:
        write_figure(figure, Path(file))
    return figure


def _returns(axes: Axes, values: Floats, budget: float | None) -> None:
    """Single episodes as dots, the mean over the last tenth of the run as a line."""
    n = max(len(values) // 10, 1)
    sums = np.cumsum(np.r_[np.zeros(n), values])
    means = (sums[n:] - sums[:-n]) / np.minimum(np.arange(1, len(values) + 1), n)
    episodes = np.arange(1, len(values) + 1)
    axes.plot(episodes, values, ".", color="#999999", markersize=2, label="one episode")
    axes.plot(episodes, means, color="#0072B2", linewidth=1.4, label=f"mean of the last {n}")
    if budget is not None:
        axes.axhline(budget, color="#D55E00", linestyle="--", linewidth=1.2, label="budget")
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)
