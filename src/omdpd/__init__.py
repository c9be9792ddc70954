"""Online learning in constrained Markov decision processes.

    from omdpd import CMDP, ProximalOMDPD, Session

See README for a first run, and `learners/omdpd.py` for the algorithm beside the paper.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import omdpd.interrupted  # noqa: F401  # first, since everything else takes a while

if TYPE_CHECKING:
    from omdpd.experiments.seeds import run
    from omdpd.gym.agent import Agent
    from omdpd.learners.default import default
    from omdpd.learners.needs import SafePolicy
    from omdpd.learners.omdpd import OMDPD
    from omdpd.learners.optcmdp import OptCMDP
    from omdpd.learners.proximal import ProximalOMDPD
    from omdpd.learners.safe_start import SafeStart
    from omdpd.learners.sinha_vaze import SinhaVaze
    from omdpd.learners.uniform import Uniform
    from omdpd.play.carry import Carry
    from omdpd.play.from_logs import plan_from_logs
    from omdpd.play.history import History
    from omdpd.play.logs import Log
    from omdpd.play.policy import Policy
    from omdpd.play.session import Session
    from omdpd.play.verdict import verdict_from_logs
    from omdpd.problem.arrays import InvalidInputError
    from omdpd.problem.cmdp import CMDP, Round
    from omdpd.problem.labels import Labels
    from omdpd.problem.setting import BanditFeedback, FullFeedback, Setting, Trajectory
    from omdpd.report.comparison import compare
    from omdpd.report.figures import plot
    from omdpd.report.results import load_runs
    from omdpd.report.stored import load_run
    from omdpd.theory.monitor import Monitor, monitor
    from omdpd.worlds.files import load_problem, save_problem

__version__ = "0.2.0"

__all__ = [
    "CMDP",
    "OMDPD",
    "Agent",
    "BanditFeedback",
    "Carry",
    "FullFeedback",
    "History",
    "InvalidInputError",
    "Labels",
    "Log",
    "Monitor",
    "OptCMDP",
    "Policy",
    "ProximalOMDPD",
    "Round",
    "SafePolicy",
    "SafeStart",
    "Session",
    "Setting",
    "SinhaVaze",
    "Trajectory",
    "Uniform",
    "compare",
    "default",
    "load_problem",
    "load_run",
    "load_runs",
    "monitor",
    "plan_from_logs",
    "plot",
    "run",
    "save_problem",
    "verdict_from_logs",
]

# Where each public name is from: it is loaded when it is asked for, because some take a second.
_HOMES = {
    "CMDP": "problem.cmdp",
    "OMDPD": "learners.omdpd",
    "Agent": "gym.agent",
    "BanditFeedback": "problem.setting",
    "Carry": "play.carry",
    "FullFeedback": "problem.setting",
    "History": "play.history",
    "InvalidInputError": "problem.arrays",
    "Labels": "problem.labels",
    "Log": "play.logs",
    "Monitor": "theory.monitor",
    "OptCMDP": "learners.optcmdp",
    "Policy": "play.policy",
    "ProximalOMDPD": "learners.proximal",
    "Round": "problem.cmdp",
    "SafePolicy": "learners.needs",
    "SafeStart": "learners.safe_start",
    "Session": "play.session",
    "Setting": "problem.setting",
    "SinhaVaze": "learners.sinha_vaze",
    "Trajectory": "problem.setting",
    "Uniform": "learners.uniform",
    "compare": "report.comparison",
    "default": "learners.default",
    "load_problem": "worlds.files",
    "load_run": "report.stored",
    "load_runs": "report.results",
    "monitor": "theory.monitor",
    "plan_from_logs": "play.from_logs",
    "plot": "report.figures",
    "run": "experiments.seeds",
    "save_problem": "worlds.files",
    "verdict_from_logs": "play.verdict",
}
_ROOMS = ("experiments", "gym", "learners", "natures", "testing", "worlds")


def __getattr__(name: str) -> Any:
    """Load a public name, or a public room."""
    if name in _ROOMS:
        return import_module(f"omdpd.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'omdpd' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"omdpd.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    """List every public name, loaded or not."""
    return sorted({*globals(), *__all__, *_ROOMS})
