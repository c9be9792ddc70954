"""README's examples are run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

from omdpd.cli.main import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_first_example_learns_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[0], "README.md", "exec"), {})
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert "regret" in capsys.readouterr().out


def test_there_is_one_example_of_at_most_ten_lines():
    (example,) = BLOCKS
    assert len([line for line in example.splitlines() if line and not line.startswith(("import", "from"))]) <= 10


def test_every_command_that_readme_names_is_there():
    makefile = (ROOT / "Makefile").read_text()
    commands = {command.callback.__name__ for command in app.registered_commands}
    named = re.findall(r"(?:^|`)make ([\w-]+)", README, re.MULTILINE)
    assert {"paper", "test"} <= set(named)
    assert all(f"\n{target}:" in makefile for target in named)
    assert {word.replace("-", "_") for word in re.findall(r"`omdpd ([\w-]+)", README)} <= commands | {"list"}


def test_every_page_that_readme_links_to_is_there():
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", README):
        assert (ROOT / link).exists(), link


def test_readme_has_at_most_900_words():
    assert len(README.split()) <= 900


def test_the_lines_of_the_example_fit_the_column_of_a_page():
    assert max(map(len, BLOCKS[0].splitlines())) <= 85


def test_what_is_proved_of_the_default_is_said_in_the_same_words_everywhere():
    from omdpd import ProximalOMDPD

    card = ProximalOMDPD.standard().card
    said = [each.replace("O~(sqrt K)", "Õ(√K)") for each in (card.guarantee, card.assumptions)]
    assert all("Õ(√K)" in each for each in said[:1])
    for page in ("README.md", "docs/choosing.md", "docs/theory.md"):
        text = " ".join((ROOT / page).read_text().split()).replace("Expected strong", "expected strong")
        text = text.replace(r"$\tilde O(\sqrt K)$", "Õ(√K)")
        assert all(each in text for each in said), page


def test_it_says_how_to_install_before_it_says_what_to_run():
    assert README.index("pip install") < README.index("```python") < README.index("make paper ")
