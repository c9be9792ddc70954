"""Gymnasium: its tables as problems, learning in its environments; `omdpd.gym.env` makes CMDPs environments."""

from omdpd.gym.agent import Agent
from omdpd.gym.bins import Bins
from omdpd.gym.learned import Learned, Played, plot_learned
from omdpd.gym.learning import learn, learn_by_context
from omdpd.gym.table import from_gymnasium
from omdpd.gym.task import Task

__all__ = ["Agent", "Bins", "Learned", "Played", "Task", "from_gymnasium", "learn", "learn_by_context", "plot_learned"]
