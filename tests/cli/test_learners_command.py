import pytest

from omdpd.cli.learners import learners
from omdpd.cli.main import list_
from omdpd.learners import AVERAGE_LEARNERS, FAMILIES, OTHERS, family_of
from omdpd.learners import LEARNERS as NAMED
from omdpd.problem.arrays import InvalidInputError
from tests.references.named import LEARNERS


def test_every_learner_is_listed_with_its_source(capsys, monkeypatch):
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        learners()
        shown = capsys.readouterr().out
        for name, spec in LEARNERS.items():
            assert name in shown
            assert spec().build().card.source.split()[0].rstrip(",") in shown


def test_a_wide_terminal_has_a_column_for_the_assumptions(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    learners()
    assert "assumptions" in capsys.readouterr().out


def test_every_learner_is_of_one_kind_and_listed_under_it(capsys):
    owners = [owner for each in FAMILIES.values() for owner in each]
    assert len(owners) == len(set(owners))
    assert set(owners) == {name.partition(".")[0] for name in (*NAMED, *AVERAGE_LEARNERS)}
    assert family_of("Mine") == OTHERS
    list_()
    lines = capsys.readouterr().out.splitlines()
    heads = [line.strip() for line in lines if line.startswith("Learners.")]
    assert heads == [f"Learners. {family}" for family in FAMILIES]
    primal = next(place for place, line in enumerate(lines) if "Primal-dual: a price" in line)
    assert any(line.startswith(" OptDual ") for line in lines[primal : primal + 40])


def test_words_choose_learners(capsys):
    learners(["primal-dual"])
    shown = capsys.readouterr().out
    assert "OptDual" in shown
    assert "LinearPotential" in shown
    assert "OptCMDP " not in shown
    assert "Uniform" not in shown
    learners(["Primal-Dual", "FULL"])
    shown = capsys.readouterr().out
    assert "Germano" in shown
    assert "OptDual" not in shown
    with pytest.raises(InvalidInputError, match="no learner has the words nonsense"):
        learners(["nonsense"])
