"""Whole studies in this process."""

from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import run_experiment


def play(experiment, folder):
    """Play an experiment into a folder, and return the folder."""
    run_experiment(experiment, folder, InProcess())
    return folder
