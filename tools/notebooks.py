"""Run the notebooks for a class and keep what their cells put out: ``python -m tools.notebooks [FILE ...]``.

Each keeps a digest of its sources beside its outputs, and a test holds the two together.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("class_*.ipynb"))


def digest(notebook: Any) -> str:
    """What stands for the code of all cells."""
    code = "\0".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def renew(file: Path) -> None:
    """Run a notebook from top to bottom and write it with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(file, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
    notebook.metadata = notebook.metadata | {"language_info": {"name": "python"}, "omdpd": {"code": digest(notebook)}}
    nbformat.write(notebook, file)


if __name__ == "__main__":
    for each in [Path(word) for word in sys.argv[1:]] or NOTEBOOKS:
        renew(each)
