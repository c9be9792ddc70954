"""The tables of the comparison come from what `omdpd lab compare` left; figures beside the page change if asked for."""

import sys

import pytest

from tools import comparison
from tools.agreement import rows


@pytest.fixture
def compared(tmp_path):
    """A folder with one choice and the two figures."""
    (tmp_path / "choices.csv").write_text("world,nature,chosen,tries,criterion\nw,pool,A(z=1.0),10,15.4\n")
    for name, _ in comparison.FIGURES.values():
        (tmp_path / name).write_text(f"new {name}")
    return tmp_path


@pytest.mark.parametrize(("words", "figures"), [([], "old"), (["--frontier"], "old"), (["--plane"], "new plane.png")])
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


def test_a_table_begins_with_the_references_and_ends_with_what_is_claimed(tmp_path):
    (tmp_path / "limits.csv").write_text("world,nature,regret,violation\nw,n,30.2,19.1\nw,other,1,1\n")
    (tmp_path / "table.csv").write_text(
        "world,nature,learner,regret,regret_half,violation,violation_half,lagrangian_regret,lagrangian_regret_half\n"
        "w,n,Informed,50,2,9,1,45,2\nw,n,B,90,4,5,1,80,3\nw,n,A,70,4,5,1,60,3\n"
    )
    (tmp_path / "ranks.csv").write_text("world,nature,learner,rank,low,high\nw,n,A,1.0,1.0,2.0\nw,n,B,2.0,1.0,2.0\n")
    (tmp_path / "orders.csv").write_text(
        "world,nature,among,learners,spearman,claimed\nw,n,all,12,0.93,True\nw,n,the first,10,0.4,False\n"
    )
    (tmp_path / "differences.csv").write_text(
        "world,nature,learner,metric,mean,low,high,p_holm\nw,n,B,regret,20,10,30,0.01\n"
    )
    text = comparison.filled("w n", tmp_path)
    found = rows(text)
    assert list(found) == ["*boundary, z = 1*", "*Informed*", "`A`", "`B`"]
    assert found["*boundary, z = 1*"]["strong violation"] == "19"
    assert found["*Informed*"]["rank (quartiles)"] == "-"
    assert found["`B`"]["Lagrangian regret"] == "80 ± 3"
    assert found["`B`"]["rank (quartiles)"] == "2 (1 .. 2)"
    assert found["`B`"]["regret - yardstick's"] == "+20 (+10 .. +30) *"
    assert "Among all 12: Spearman 0.93 between halves of the seeds, an order is claimed." in text
    assert "Among the first 10: Spearman 0.40 between halves of the seeds, no order is claimed." in text


def test_places_without_a_table_of_their_own_have_a_line(tmp_path):
    names = ["A", "B", "C", "D", "OMDPD.tuned"]
    regrets = dict(zip(names, range(50, 100, 10), strict=True))
    places = "w,n", "w,moving", "random_dirichlet,noisy"
    (tmp_path / "table.csv").write_text(
        "world,nature,learner,regret,violation\n"
        + "".join(f"{place},{name},{regret},5.4\n" for place in places for name, regret in regrets.items())
        + "w,n,Informed,40,1\n"
    )
    (tmp_path / "ranks.csv").write_text(
        "world,nature,learner,n\n"
        + "".join(f"{place},{name},{n}\n" for place, n in (("w,n", 24), ("w,moving", 12)) for name in names)
    )
    (tmp_path / "limits.csv").write_text("world,nature,regret,violation\nw,n,30.2,19.1\n")
    (tmp_path / "orders.csv").write_text(
        "world,nature,among,learners,spearman,claimed\nw,n,all,12,0.93,True\nw,n,the first,10,0.4,False\n"
    )
    found = rows(comparison.filled("elsewhere", tmp_path))
    assert list(found) == ["`w`, n (24)", "`w`, moving (12)"]
    assert list(found["`w`, n (24)"].values()) == [
        "0.93 of 12; 0.40 of 10 (no order)", "30 / 19<br>*Informed* 40 / 1", "`A` 50 / 5<br>`B` 60 / 5<br>`C` 70 / 5",
        "-", "5 of 5: 90 / 5",
    ]  # fmt: skip
    assert list(found["`w`, moving (12)"].values())[:2] == ["-", "-"]
