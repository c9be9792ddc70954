"""One episode of an environment: as it was met, and as a learner is told it."""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import BanditFeedback


@dataclass(frozen=True, eq=False)
class Met:
    """States and actions of a task's steps, and what the n steps that were played earned (n,) and cost (I, n).

    Rewards and costs are in the environment's units.
    """

    states: list[int]
    actions: list[int]
    rewards: Floats
    costs: Floats


@dataclass(frozen=True, eq=False)
class Episode:
    """One played episode: what a learner is told, and what was met, in the environment's units."""

    feedback: BanditFeedback
    met: Met

    @property
    def length(self) -> int:
        """How many steps were played before it ended."""
        return int(self.met.rewards.size)

    @property
    def reward(self) -> float:
        """What it earned."""
        return float(self.met.rewards.sum())

    @property
    def costs(self) -> Floats:
        """What it cost, (I,)."""
        costs: Floats = self.met.costs.sum(axis=1)
        return costs


@dataclass(frozen=True)
class EpisodeRow:
    """What an episode came to: its number from 1 on, and reward, costs and length in the environment's units."""

    episode: int
    reward: float
    costs: tuple[float, ...]
    length: int

    @staticmethod
    def of(k: int, episode: Episode) -> EpisodeRow:
        """The row of an episode that was played after k others."""
        return EpisodeRow(k + 1, episode.reward, tuple(episode.costs.tolist()), episode.length)


class DoesNotFitError(InvalidInputError):
    """An episode with a reward or a cost outside the task's ranges; `met` is the episode."""

    def __init__(self, message: str, met: Met) -> None:
        super().__init__(message)
        self.met = met
