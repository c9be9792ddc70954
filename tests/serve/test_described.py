"""Sessions as files describe them, and a look at one that somebody else has open."""

import sys
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from typer.testing import CliRunner

from omdpd import InvalidInputError, ProximalOMDPD, SafePolicy, SafeStart, Session, Setting
from omdpd.cli.main import app
from omdpd.experiments.registry import Registry
from omdpd.play.policy import Policy
from omdpd.serve.described import described, folders_of, open_described, open_shadow, served, write_starter
from omdpd.serve.desk import read_status
from omdpd.serve.status import lines_of, status_of

REGISTRY = Registry.installed()
SMALL = """\
fallback = "safe.npz"
drop_after = 60.0

[setting]
horizon = 2
n_states = 2
n_actions = 2
budget = 1.0
cost_scale = 2.0

[learner]
name = "ProximalOMDPD.standard"
z = 2.0

[carry]
period = 5
most = 0.5
"""


def written(folder, text=SMALL):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "session.toml").write_text(text)
    Policy(np.full((2, 2, 2), 0.5)).save(folder / "safe.npz")
    return folder


def play(session, n):
    for _ in range(n):
        episode = session.begin()
        for state in (0, 1):
            episode.tell(0.5 + 0.25 * episode.act(state), 0.4)
        episode.end()


def test_a_file_says_learner_setting_carry_and_fallback(tmp_path):
    with open_described(written(tmp_path / "one"), REGISTRY) as session:
        assert session.learner == ProximalOMDPD.standard(z=2.0)
        assert session.setting.shape == (2, 2, 2)
        assert session.carry.period == 5
        play(session, 3)
    with open_described(tmp_path / "one", REGISTRY) as session:
        assert session.episodes == 3
    assert described(tmp_path / "one").drop_after == 60.0


def test_what_is_written_to_begin_with_can_be_opened(tmp_path):
    file = write_starter(tmp_path / "new")
    with open_described(file.parent, REGISTRY) as session:
        assert session.setting.shape == (3, 12, 3)
    with pytest.raises(InvalidInputError, match="is there already"):
        write_starter(tmp_path / "new")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "missing required field `setting`"),
        ("[setting", "does not hold TOML"),
        (SMALL.replace("horizon = 2", "horizon = 0"), "horizon is 0"),
        (SMALL.replace("horizon", "horizont"), "horizont"),
        (SMALL.replace("OMDPD.standard", "OMDPD.standart"), "there is no learner 'ProximalOMDPD.standart'"),
        (SMALL.replace("z = 2.0", "zz = 2.0"), "zz"),
        (SMALL.replace("60.0", "-1.0"), "drop_after must be positive"),
        (SMALL.replace("safe.npz", "none.npz"), "none.npz"),
        (SMALL.replace("period = 5", "period = 5000"), "period is 5000"),
    ],
)
def test_a_wrong_entry_is_refused_with_the_file_and_its_name(tmp_path, text, sentence):
    folder = written(tmp_path / "one", text)
    with pytest.raises(InvalidInputError, match=r"one/(session.toml|none.npz)") as raised:
        open_described(folder, REGISTRY)
    assert sentence in str(raised.value)
    assert not (folder / "session.json").exists()


def test_sessions_side_by_side_have_the_names_of_their_folders(tmp_path):
    written(tmp_path / "b"), written(tmp_path / "a")
    assert list(folders_of(tmp_path)) == ["a", "b"]
    assert list(folders_of(tmp_path / "a")) == ["a"]
    with pytest.raises(InvalidInputError, match=r"holds no session.toml that says learner and setting"):
        folders_of(tmp_path / "nothing")
    written(tmp_path / "not so")
    with pytest.raises(InvalidInputError, match="needs letters, digits"):
        folders_of(tmp_path)


def test_a_session_that_began_from_logs_keeps_them(tmp_path):
    from omdpd.play.logs import Log

    week, names = Path(__file__).parents[2] / "examples" / "logs.csv", {"episode": "week", "state": "queue"}
    names |= {"step": "shift", "reward": "euros"}
    told = Log.from_csv(week, ("overtime", "complaints"), **names).setting([16.0, 6.0])
    (tmp_path / "logs.csv").write_bytes(week.read_bytes())
    entries = {
        "horizon": told.horizon, "n_states": told.n_states, "n_actions": told.n_actions, "n_constraints": 2,
        "budget": [16.0, 6.0], "cost_scale": np.asarray(told.cost_scale).tolist(), "initial": told.mu.tolist(),
        "reward_range": list(told.reward_range),
    }  # fmt: skip
    logs = {"file": "logs.csv", "costs": ["overtime", "complaints"], "columns": names}
    (tmp_path / "session.toml").write_text(tomli_w.dumps({"setting": entries, "logs": logs}))
    with open_described(tmp_path, REGISTRY) as session:
        first = np.asarray(session.policy())
        assert type(session.learner).__name__ == "SafeStart"
        assert session.forecast().costs[1].budget == 6.0
    (tmp_path / "logs.csv").unlink()
    with open_described(tmp_path, REGISTRY) as session:
        assert np.array_equal(session.policy(), first)


def test_a_session_is_looked_at_while_it_is_open_and_stays_as_it_is(tmp_path):
    folder = written(tmp_path / "one")
    with pytest.raises(InvalidInputError, match="holds no session yet"):
        read_status(folder, REGISTRY)
    with open_described(folder, REGISTRY) as session:
        play(session, 7)
        session.begin("open")
        files = {file.name: file.read_bytes() for file in folder.iterdir()}
        found = read_status(folder, REGISTRY)
        assert files == {file.name: file.read_bytes() for file in folder.iterdir()}
        assert found == status_of(session)
    assert (found.ended, found.open) == (7, 1)
    text = "\n".join(lines_of(found, "one"))
    assert "7 ended (0 cut), 1 open" in text
    assert "alarm off" in text
    assert "cost 0                   0.8 an episode, of" in text


def test_what_is_looked_at_has_the_plan_for_a_new_budget(tmp_path):
    folder = written(tmp_path / "one")
    with open_described(folder, REGISTRY) as session:
        play(session, 7)
        session.keep()  # what was told before is in older logs
        session.set_budget(0.5)
        assert read_status(folder, REGISTRY) == status_of(session)


def test_a_shadow_learns_what_is_served_and_is_judged_after_a_restart_too(tmp_path):
    from omdpd.serve.desk import Desk

    folder = written(tmp_path / "one", SMALL + '[shadow]\nname = "ProximalOMDPD.cautious"\n')
    with open_described(folder, REGISTRY) as session:
        play(session, 3)
    for n in (3, 6):
        with open_described(folder, REGISTRY) as session, open_shadow(folder, REGISTRY, session) as shadow:
            shadow.lag()
            session.follow(shadow)
            assert shadow.learnt == n
            session.lag()
            play(session, 3)
            while session.learn_next():
                pass
            assert shadow.learnt == session.learnt == n + 3
            found = Desk("one", session, 60.0, shadow).status()
            assert "the last" in found.shadow.words
            assert not shadow.open_episodes
            assert read_status(folder, REGISTRY).shadow == found.shadow
    text = "\n".join(lines_of(found, "one"))
    assert "shadow                   " in text
    wrong = written(tmp_path / "two", SMALL + '[shadow]\nname = "Nobody"\n')
    with open_described(wrong, REGISTRY) as session, pytest.raises(InvalidInputError, match=r"session.toml, shadow: "):
        open_shadow(wrong, REGISTRY, session)


def test_nothing_yet_is_said_in_words():
    from tests.serve.test_answers import SETTING, learner

    text = lines_of(status_of(Session(learner(), SETTING)), "new")
    assert any("Nothing yet" in line for line in text)


def test_a_session_is_no_folder_of_results(tmp_path):
    from omdpd.report.study import refuse_no_results

    with open_described(written(tmp_path / "one"), REGISTRY):
        pass
    with pytest.raises(InvalidInputError, match=r"holds a session, not results: omdpd session .* --live shows it"):
        refuse_no_results(tmp_path / "one")


@pytest.mark.parametrize(
    "learner", [ProximalOMDPD.standard(z=2.0), SafeStart(SafePolicy([[[1.0, 0.0], [0.5, 0.5]]] * 2, 0.8))]
)
def test_a_folder_that_a_program_of_ones_own_keeps_is_shown_without_a_file(tmp_path, learner):
    """Learner and setting are in the folder; nothing is written into it, and no other file is asked for."""
    folder = tmp_path / "live"
    setting = Setting(2, 2, 2, budget=1.0, cost_scale=2.0, allowed=[[True, False], [True, True]])
    with Session.open(folder, learner, setting) as session:
        play(session, 3)
        before = {file.name for file in folder.iterdir()}
        seen, own = read_status(folder, REGISTRY), status_of(session)
        assert (seen.learner, seen.ended, seen.first_step, seen.budget) == (own.learner, 3, own.first_step, [1.0])
        assert {file.name for file in folder.iterdir()} == before
    result = CliRunner().invoke(app, ["session", str(folder)])
    assert result.exit_code == 0, result.output
    assert "3 ended" in result.output
    with pytest.raises(InvalidInputError, match="holds a session that a program of yours began: omdpd session"):
        served(folder)
    with pytest.raises(InvalidInputError, match=r"holds a session: omdpd session .*begin another elsewhere"):
        CliRunner().invoke(app, ["session", str(folder), "--new"], catch_exceptions=False)
    assert {file.name for file in folder.iterdir()} == before


def test_a_learner_that_a_folder_cannot_say_is_asked_for(tmp_path, monkeypatch):
    folder = tmp_path / "live"
    Session.open(folder, SafeStart(), Setting(2, 2, 2)).close()
    monkeypatch.setattr("omdpd.serve.described.is_record", lambda value: False)
    with pytest.raises(
        InvalidInputError, match=r"live: .*not a known class; say learner and setting in a session\.toml"
    ):
        read_status(folder, REGISTRY)


def test_a_file_may_name_a_baseline(tmp_path):
    text = SMALL.replace('"ProximalOMDPD.standard"\nz = 2.0', '"SafeStart"')
    folder = written(tmp_path / "one", text + '\n[baseline]\nfile = "safe.npz"\ncost = 0.8\n')
    with open_described(folder, REGISTRY) as session:
        assert session.learner.safe.policy == pytest.approx(0.5)
        assert session.learner.safe.cost == pytest.approx((0.8 - 1.0) / 2.0)
    wrong = written(tmp_path / "two", SMALL + '\n[baseline]\nfile = "safe.npz"\ncost = 0.8\n')
    with pytest.raises(InvalidInputError, match="ProximalOMDPD takes none: SafeStart does"):
        open_described(wrong, REGISTRY)


def test_what_is_wrong_with_a_file_is_said_before_what_is_not_installed(tmp_path, monkeypatch):
    folder = written(tmp_path / "one", SMALL.replace("horizon", "horizont"))
    monkeypatch.setitem(sys.modules, "omdpd.serve.running", None)
    with pytest.raises(InvalidInputError, match="horizont"):
        CliRunner().invoke(app, ["serve", str(folder)], catch_exceptions=False)
