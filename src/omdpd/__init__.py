"""Online learning in constrained Markov decision processes.

    from omdpd import CMDP, ProximalOMDPD, Session

See README for a first run, and `learners/omdpd.py` for the algorithm beside the paper.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import omdpd.interrupted  # noqa: F401  # first, since everything else takes a while

if TYPE_CHECKING:
    from omdpd.experiments.seeds import run as run
    from omdpd.gym.agent import Agent as Agent
    from omdpd.learners.default import default as default
    from omdpd.learners.needs import SafePolicy as SafePolicy
    from omdpd.learners.omdpd import OMDPD as OMDPD
    from omdpd.learners.optcmdp import OptCMDP as OptCMDP
    from omdpd.learners.proximal import ProximalOMDPD as ProximalOMDPD
    from omdpd.learners.safe_start import SafeStart as SafeStart
    from omdpd.learners.sinha_vaze import SinhaVaze as SinhaVaze
    from omdpd.learners.uniform import Uniform as Uniform
    from omdpd.play.carry import Carry as Carry
    from omdpd.play.from_logs import plan_from_logs as plan_from_logs
    from omdpd.play.history import History as History
    from omdpd.play.logs import Log as Log
    from omdpd.play.policy import Policy as Policy
    from omdpd.play.session import Session as Session
    from omdpd.play.verdict import verdict_from_logs as verdict_from_logs
    from omdpd.problem.arrays import InvalidInputError as InvalidInputError
    from omdpd.problem.cmdp import CMDP as CMDP
    from omdpd.problem.cmdp import Round as Round
    from omdpd.problem.labels import Labels as Labels
    from omdpd.problem.setting import BanditFeedback as BanditFeedback
    from omdpd.problem.setting import FullFeedback as FullFeedback
    from omdpd.problem.setting import Setting as Setting
    from omdpd.problem.setting import Trajectory as Trajectory
    from omdpd.report.comparison import compare as compare
    from omdpd.report.figures import plot as plot
    from omdpd.report.results import load_runs as load_runs
    from omdpd.report.stored import load_run as load_run
    from omdpd.theory.monitor import Monitor as Monitor
    from omdpd.theory.monitor import monitor as monitor
    from omdpd.worlds.files import load_problem as load_problem
    from omdpd.worlds.files import save_problem as save_problem

__version__ = "0.2.0"

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
__all__ = sorted(_HOMES)
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
