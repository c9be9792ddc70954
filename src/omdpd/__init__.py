"""Online learning in constrained Markov decision processes.

    from omdpd import CMDP, ProximalOMDPD, Session

See README for a first run, and `learners/omdpd.py` for the algorithm beside the paper.
"""

import omdpd.interrupted  # noqa: F401  # first, since everything else takes a while
from omdpd.experiments.seeds import run
from omdpd.learners.needs import SafePolicy
from omdpd.learners.omdpd import OMDPD
from omdpd.learners.optcmdp import OptCMDP
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.sinha_vaze import SinhaVaze
from omdpd.learners.uniform import Uniform
from omdpd.play.from_counts import episodes_of_counts
from omdpd.play.history import History
from omdpd.play.monitor import Monitor, monitor
from omdpd.play.policy import Policy
from omdpd.play.session import Session
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.setting import BanditFeedback, FullFeedback, Setting, Trajectory
from omdpd.report.comparing import compare
from omdpd.report.figures import plot
from omdpd.report.loaded import load_run
from omdpd.report.results import load_runs
from omdpd.worlds.files import load_problem, save_problem

__version__ = "0.2.0"

__all__ = [
    "CMDP",
    "OMDPD",
    "BanditFeedback",
    "FullFeedback",
    "History",
    "InvalidInputError",
    "Monitor",
    "OptCMDP",
    "Policy",
    "ProximalOMDPD",
    "Round",
    "SafePolicy",
    "Session",
    "Setting",
    "SinhaVaze",
    "Trajectory",
    "Uniform",
    "compare",
    "episodes_of_counts",
    "load_problem",
    "load_run",
    "load_runs",
    "monitor",
    "plot",
    "run",
    "save_problem",
]
