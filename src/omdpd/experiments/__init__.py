"""Many runs that last: an experiment from a file, on this machine or a cluster."""

from omdpd.experiments.executors import executor
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.files import load_experiment
from omdpd.experiments.spec import Experiment

__all__ = ["Experiment", "executor", "load_experiment", "run_experiment"]
