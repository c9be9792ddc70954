"""Somebody in front of a class: a notebook that runs from top to bottom and shows what it talks about."""

import re
from ast import literal_eval
from pathlib import Path

import numpy as np
import pytest

from omdpd import Uniform, run
from omdpd.experiments.first_use import tiny_world

NOTEBOOK = Path(__file__).parents[2] / "examples" / "in_class.ipynb"


def test_the_notebook_runs_and_shows_itself(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        cell.source = re.sub(r"n_episodes=\d+", "n_episodes=200", cell.source)
    # What the class is shown: whoever learns violates less and earns more than whoever does not, with every seed.
    ends = "[(h.scores.violation, h.scores.regret) for h in histories]"
    notebook.cells.append(nbformat.v4.new_code_cell(f"print('ends', {ends})"))
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert {"text/html", "text/plain"} <= kinds  # the problem and the history as tables
    assert kinds & {"image/png", "image/svg+xml"}  # the figure
    printed = "".join(output.get("text", "") for output in shown)
    assert "best safe value" in printed
    ends = np.array(literal_eval(printed.partition("ends ")[2]))
    assert (ends[:3].max(axis=0) < ends[3:].min(axis=0)).all()


def test_nothing_that_a_cell_ends_with_is_long():
    history = run(tiny_world(), Uniform(), n_episodes=300)
    for value in (history, history.policy, tiny_world()):
        assert len(repr(value)) < 2_000
