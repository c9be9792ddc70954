"""The tables of the comparison come from what `omdpd lab compare` left; figures beside the page change if asked for."""

import sys

import pytest

from tools import comparison
from tools.agreement import rows


@pytest.fixture
def compared(tmp_path):
    """A folder with one choice and the two figures."""
    (tmp_path / "choices.csv").write_text("world,nature,chosen,tries,criterion\nw,pool,A(z=1.0),10,15.4\n")
    for name in comparison.FIGURES:
        (tmp_path / name).write_text(f"new {name}")
    return tmp_path


@pytest.mark.parametrize(("words", "figures"), [([], "old"), (["--figures"], "new plane.png")])
def test_figures_are_put_beside_the_page_only_where_that_is_asked_for(
    compared, tmp_path, monkeypatch, capsys, words, figures
):
    page = tmp_path / "docs" / "comparison.md"
    (page.parent / "figures").mkdir(parents=True)
    (page.parent / "figures" / "comparison.png").write_text("old")
    monkeypatch.setattr(comparison, "PAGE", page)
    monkeypatch.setattr(sys, "argv", ["comparison.py", str(compared), "choices", *words])
    comparison.main()
    assert rows(capsys.readouterr().out) == {"w, pool": {"chosen": "`A(z=1.0)`", "tries": "10", "criterion": "15"}}
    assert (page.parent / "figures" / "comparison.png").read_text() == figures
