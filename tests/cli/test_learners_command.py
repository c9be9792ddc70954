from omdpd.cli.learners import learners
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
