"""A session from logs: written by one command, planned at once, shown before its first episode, changed until then."""

import re
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from omdpd import InvalidInputError, SafeStart
from omdpd.cli.main import app
from omdpd.experiments.registry import Registry
from omdpd.play.from_logs import plan_from_logs
from omdpd.report.html import filled_page
from omdpd.serve.app import page
from omdpd.serve.described import described, open_described
from omdpd.serve.desk import read_status
from omdpd.serve.status import lines_of, plays, status_of

ROOT = Path(__file__).parents[2]
REGISTRY = Registry.installed()
COLUMNS = "episode=week,state=queue,reward=euros,step=shift,propensity=chance"


def new(folder, budget="16,6", states="30"):
    words = ["session", str(folder), "--new", "--logs", str(ROOT / "examples" / "logs.csv"), "--budget", budget]
    words += ["--costs", "overtime,complaints", "--columns", COLUMNS, "--states", states]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return folder


def test_one_command_writes_a_session_that_plays_what_the_logs_certify(workshop, tmp_path):
    log = workshop.read()
    folder = new(tmp_path / "shop")
    said = described(folder)
    assert Path(said.logs.file).parts[0] == ".."  # beside the file, wherever the command was called
    assert said.setting.cost_scale == (2.0 * log.costs.max(axis=1)).tolist()  # bad weeks are worse than those logged
    assert said.setting.reward_range[1] == 2.0 * log.rewards.max()
    with open_described(folder, REGISTRY) as session:
        assert isinstance(session.learner, SafeStart)
        assert np.array_equal(session.setting.mu, log.setting(workshop.BUDGET, n_states=30).mu)
        told, planned = session.forecast(), plan_from_logs(log.setting(workshop.BUDGET, n_states=30), log).forecast
        assert told.what == "A certified plan, from 60 episodes."
        for mine, other in zip(told.amounts, planned.amounts, strict=True):
            assert mine.name == other.name
            assert mine.expected == pytest.approx(other.expected, rel=0.05)
    with pytest.raises(InvalidInputError, match="is there already"):
        CliRunner().invoke(app, ["session", str(folder), "--new"], catch_exceptions=False)


def test_columns_may_be_written_as_they_are_on_the_command_line(tmp_path):
    folder = new(tmp_path / "shop")
    file = folder / "session.toml"
    file.write_text(re.sub(r"columns = .*", f'columns = "{COLUMNS}"', file.read_text()))
    with open_described(folder, REGISTRY) as session:
        assert session.forecast().amounts[1].name == "overtime"


def test_a_forecast_is_shown_before_the_first_episode(tmp_path):
    folder = new(tmp_path / "shop")
    with open_described(folder, REGISTRY) as session:
        status = status_of(session)
    for shown in (status, read_status(folder, REGISTRY)):
        assert shown.belief.words.startswith("A certified plan, from 60 episodes. Trying other actions may add up to ")
        assert [each.name for each in shown.belief.amounts] == ["reward", "overtime", "complaints"]
        assert shown.belief.warning == ""
        assert len(shown.first_step) == 30
    text = "\n".join(lines_of(status, "shop"))
    assert "plays the learner's own policy after 0 episodes" in text
    assert "world: no sign that it moves otherwise than before (odds 1 to 1; 10000 to 1 rings)" in text
    assert "e^" not in text
    with open_described(new(tmp_path / "tight", "6,3"), REGISTRY) as session:
        assert "WARNING: this policy is likely to go over its budget" in "\n".join(
            lines_of(status_of(session), "tight")
        )


def test_a_description_may_change_until_the_first_episode_begins(tmp_path):
    folder = new(tmp_path / "shop")
    file = folder / "session.toml"
    with open_described(folder, REGISTRY) as session:
        before = session.forecast().costs[0].budget
    law = [0.5, 0.5, *([0.0] * 28)]
    file.write_text(
        file.read_text()
        .replace("[16.0, 6.0]", "[14.0, 5.0]")
        .replace("# initial = [0.5, 0.5, 0.0]", f"initial = {law}")
    )
    with open_described(folder, REGISTRY) as session:
        assert (before, session.forecast().costs[0].budget) == (16.0, 14.0)
        assert session.setting.mu.tolist() == law
        session.begin("first")
    file.write_text(file.read_text().replace("[14.0, 5.0]", "[15.0, 5.0]"))
    with pytest.raises(
        InvalidInputError, match=r"setting.budget is \[14.0, 5.0\], not \[15.0, 5.0\].*new folder, or session.fork"
    ):
        open_described(folder, REGISTRY)


def test_names_of_policies_are_said_in_words():
    assert plays("kept 200") == "the policy that was kept after 200 episodes: it was gone back to"
    assert plays("fallback 0a1b") == "the fallback, since the last update failed"
    assert plays("learnt 7") == "the learner's own policy after 7 episodes"


def test_the_page_and_the_docs_say_alike_when_not_to_believe_it():
    script = (ROOT / "src" / "omdpd" / "serve" / "page" / "session.js").read_text()
    doubts = re.search(r"const DOUBTS = \[\n(.*?)\];", script, re.DOTALL)[1]
    sentences = re.findall(r'"(.*)"', doubts)
    assert len(sentences) == 6
    said = " ".join((ROOT / "docs" / "production.md").read_text().split())
    assert not [each for each in sentences if each not in said]


def test_a_live_page_does_not_say_that_it_makes_no_request():
    assert "It asks its own server again and again." in page("shop")
    assert "makes no request" not in page("shop")
    assert "It makes no request." in filled_page("study", [], live=False)


def test_the_page_on_trust_names_every_command_that_listens():
    """Those that have a port."""
    listed = {name for name, command in typer.main.get_command(app).commands.items() if _has_port(command)}
    text = (ROOT / "docs" / "trust.md").read_text()
    assert {"watch", "serve", "session"} <= listed
    assert not [name for name in listed if f"omdpd {name}" not in text]


def _has_port(command):
    return any(parameter.name == "port" for parameter in command.params)
