"""Gymnasium: its tables as problems, learning in its environments; `omdpd.gym.env` makes our worlds environments."""

from omdpd.gym.bins import Bins
from omdpd.gym.learned import Learned
from omdpd.gym.learning import learn
from omdpd.gym.returns import plot_learned
from omdpd.gym.table import from_gymnasium
from omdpd.gym.task import Task

__all__ = ["Bins", "Learned", "Task", "from_gymnasium", "learn", "plot_learned"]
