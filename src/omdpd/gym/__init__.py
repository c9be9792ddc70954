"""Gymnasium: its tables as problems, learning in its environments; `omdpd.gym.env` makes our worlds environments."""

from omdpd.gym.learning import Learned, Task, learn
from omdpd.gym.returns import plot_learned
from omdpd.gym.table import from_gymnasium

__all__ = ["Learned", "Task", "from_gymnasium", "learn", "plot_learned"]
