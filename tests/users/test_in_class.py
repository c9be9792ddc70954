"""Somebody in front of a class: notebooks that run from top to bottom and show what they talk about."""

import re
from ast import literal_eval

import numpy as np
import pytest

from omdpd import Uniform, run
from omdpd.experiments.first_use import tiny_world
from tests.references.real_commands import PATIENCE
from tools.notebooks import NOTEBOOKS, digest

pytestmark = pytest.mark.whole


def executed(notebook, folder):
    """A notebook after all its cells ran, with fewer episodes, and what they put out."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    for cell in notebook.cells:
        cell.source = re.sub(r"n_episodes=\d+", "n_episodes=200", cell.source)
    nbclient.NotebookClient(notebook, timeout=int(PATIENCE), resources={"metadata": {"path": str(folder)}}).execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_its_figures_and_the_code_of_its_solutions_run(file, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(file, as_version=4)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    solved = [text for text in texts if text.startswith("<details>")]
    assert len(solved) == sum("## Exercise" in text for text in texts) == 2
    for code in re.findall(r"```python\n(.*?)```", "".join(solved), re.DOTALL):
        notebook.cells.append(nbformat.v4.new_code_cell(code))
    shown = executed(notebook, tmp_path)
    assert any({"image/png", "image/svg+xml"} & set(output.get("data", {})) for output in shown)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_shows_what_its_cells_put_out(file):
    notebook = pytest.importorskip("nbformat").read(file, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    # Cells that were changed since need `python -m tools.notebooks`.
    assert notebook.metadata["omdpd"]["code"] == digest(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    shown = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in shown} <= {"display_data", "execute_result", "stream"}
    assert not [output for output in shown if output.get("name") == "stderr"]


def test_there_are_four_notebooks_with_eight_exercises():
    assert len(NOTEBOOKS) == 4
    texts = "".join(file.read_text() for file in NOTEBOOKS)
    assert [int(number) for number in re.findall(r"## Exercise (\d)", texts)] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_the_first_notebook_shows_a_learner_that_wins(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOKS[0], as_version=4)
    # What the class is shown: the learner violates less and earns more than random play, with every seed.
    ends = "[(h.scores.violation, h.scores.regret) for h in histories]"
    notebook.cells.append(nbformat.v4.new_code_cell(f"print('ends', {ends})"))
    shown = executed(notebook, tmp_path)
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
