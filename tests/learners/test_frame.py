"""What learners have in common stands in one place: a frame that is copied is found here."""

import ast
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

import omdpd.learners

FOLDER = Path(omdpd.learners.__file__).parent
MODULES = sorted(FOLDER.glob("*.py")) + sorted((FOLDER / "standard").glob("*.py"))
EQUAL = 6


def code_lines(file):
    """The lines of code of a module without indentation: no imports, docstrings, comments and blank lines."""
    text = file.read_text()
    left_out = set()
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, node.end_lineno + 1))
    stripped = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [line for number, line in stripped if line and not line.startswith("#") and number not in left_out]


def runs(lines):
    """Every run of so many lines that follow one another."""
    return {tuple(lines[i : i + EQUAL]) for i in range(len(lines) - EQUAL + 1)}


def test_no_two_learners_share_six_lines():
    found = {file.name: runs(code_lines(file)) for file in MODULES}
    shared = {(a, b): found[a] & found[b] for a, b in combinations(found, 2) if found[a] & found[b]}
    assert not shared, "\n".join(f"{a} and {b}: {sorted(both)[0]}" for (a, b), both in shared.items())


def test_a_copied_frame_is_found(tmp_path):
    body = "\n".join(f"x{i} = {i}" for i in range(EQUAL))
    for name, head in (("a.py", '"""One."""\nimport os\n'), ("b.py", "y = 1\n# why\n")):
        (tmp_path / name).write_text(f"{head}{body}\n")
    assert len(runs(code_lines(tmp_path / "a.py")) & runs(code_lines(tmp_path / "b.py"))) == 1


@pytest.mark.parametrize("asked", ["omdpd.learners", "omdpd.experiments.registry"])
def test_a_learner_is_imported_when_it_is_asked_for(asked):
    told = subprocess.run(
        [sys.executable, "-c", f"import sys, {asked}; print('omdpd.learners.dope' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.strip() == "False"


def test_a_name_that_no_learner_has_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'DOPPE'"):
        _ = omdpd.learners.DOPPE
    with pytest.raises(KeyError):
        _ = omdpd.learners.LEARNERS["DOPPE"]
