"""Online learning in constrained Markov decision processes.

    from omdpd import CMDP, ProximalOMDPD, Session

See README for a first run, and `learners/omdpd.py` for the algorithm beside the paper.
"""

from omdpd.arrays import InvalidInputError
from omdpd.cmdp import CMDP, Round
from omdpd.history import History, plot, run
from omdpd.learners.omdpd import OMDPD
from omdpd.learners.optcmdp import OptCMDP
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.sinha_vaze import SinhaVaze
from omdpd.learners.uniform import Uniform
from omdpd.problem import BanditFeedback, FullFeedback, Setting, Trajectory
from omdpd.results import load_runs
from omdpd.session import Session

__version__ = "0.1.0"

__all__ = [
    "CMDP",
    "OMDPD",
    "BanditFeedback",
    "FullFeedback",
    "History",
    "InvalidInputError",
    "OptCMDP",
    "ProximalOMDPD",
    "Round",
    "Session",
    "Setting",
    "SinhaVaze",
    "Trajectory",
    "Uniform",
    "load_runs",
    "plot",
    "run",
]
