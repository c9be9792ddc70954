"""The help of the command line: every command under a heading, with a first line that no terminal cuts."""

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from omdpd.cli.main import PANELS, app

COMMANDS = get_command(app)
LAB = COMMANDS.commands["lab"]
OLD = ("suite", "compare", "bounds", "monitor")
SHOWN = {name: each for group in (COMMANDS, LAB) for name, each in group.commands.items() if not each.hidden}


def said(*words):
    return CliRunner().invoke(app, [*words], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})


@pytest.mark.parametrize("name", SHOWN)
def test_a_first_line_is_a_sentence_of_less_than_fifty_characters(name):
    first = (SHOWN[name].help or "").split("\n\n")[0]
    assert first.endswith(".")
    assert "\n" not in first
    assert len(first) < 50


@pytest.mark.parametrize("words", [(), ("lab",)])
def test_nothing_is_cut_at_eighty_columns(words):
    text = said(*words, "--help").output
    listed = text.split("\n\n", 2)[2]
    assert "..." not in listed
    assert max(map(len, text.splitlines())) <= 80
    group = LAB if words else COMMANDS
    for name, each in group.commands.items():
        first = (each.help or "").split("\n\n")[0]
        assert (f"  {name} " in listed and first in listed) != each.hidden, name


def test_every_command_stands_under_one_heading():
    text = said("--help").output
    assert [line[:-1] for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")] == [
        "Options",
        *PANELS,
    ]
    names = [name for panel in PANELS.values() for name in panel]
    assert sorted(names) == sorted(name for name, each in COMMANDS.commands.items() if not each.hidden)


@pytest.mark.parametrize("name", OLD)
def test_commands_of_the_lab_answer_to_their_old_names_too(name):
    assert COMMANDS.commands[name].hidden
    old, new = said(name, "--help"), said("lab", name, "--help")
    assert old.exit_code == new.exit_code == 0
    assert old.output.split("\n", 1)[1] == new.output.split("\n", 1)[1]
