"""Logs are read as they stand, and what cannot be used is refused by its row."""

import csv
from pathlib import Path

import numpy as np
import pytest

from omdpd import BanditFeedback, InvalidInputError, Log, ProximalOMDPD, Session, Setting, Trajectory

TEXT = """week,day,queue,admit,euros,money,complaints,chance
a,1,0,1,2.5,1.0,0,0.5
a,2,1,0,3.5,0.5,2,0.25
b,1,1,0,1.0,0.0,1,1.0
"""
NAMED = {
    "costs": ("money", "complaints"), "episode": "week", "state": "queue", "action": "admit", "reward": "euros",
    "step": "day", "propensity": "chance",
}  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "logs.csv"
    path.write_text(TEXT)
    return path


def test_a_csv_file_is_read_by_the_names_of_its_columns(file):
    log = Log.from_csv(file, **NAMED)
    assert log.starts.tolist() == [0, 2, 3]
    assert log.states.tolist() == [0, 1, 1]
    assert log.actions.tolist() == [1, 0, 0]
    assert log.rewards.tolist() == [2.5, 3.5, 1.0]
    assert log.costs.tolist() == [[1.0, 0.5, 0.0], [0.0, 2.0, 1.0]]
    assert log.propensities.tolist() == [0.5, 0.25, 1.0]
    assert log.names == ("money", "complaints")
    assert log.totals().tolist() == [[6.0, 1.0], [1.5, 0.0], [2.0, 1.0]]


def test_rows_in_any_order_are_sorted_by_their_steps(file):
    head, *rows = TEXT.splitlines()
    file.write_text("\n".join([head, rows[1], rows[2], rows[0]]) + "\n")
    log = Log.from_csv(file, **NAMED)
    assert log.rewards.tolist() == [2.5, 3.5, 1.0]


def test_a_frame_and_a_parquet_file_say_the_same(file, tmp_path):
    log = Log.from_csv(file, **NAMED)
    head, *rows = (line.split(",") for line in TEXT.splitlines())
    frame = {name: [row[i] if i == 0 else float(row[i]) for row in rows] for i, name in enumerate(head)}
    others = [Log.from_frame(frame, **NAMED)]
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(frame), tmp_path / "logs.parquet")
    others.append(Log.from_parquet(tmp_path / "logs.parquet", **NAMED))
    for other in others:
        for name in ("starts", "states", "actions", "rewards", "costs", "propensities"):
            assert np.array_equal(getattr(other, name), getattr(log, name))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("a,2,1,0,3.5", "a,2,1,0,", "line 3: euros is missing"),
        ("a,2,1,0,3.5", "a,2,1,0,nan", "line 3: euros is missing or not finite"),
        ("a,2,1,0,3.5", "a,2,1,0,many", "line 3: euros is 'many', which is no number"),
        ("b,1,1,0", ",1,1,0", "line 4: week is missing"),
        ("b,1,1,0", "b,1,1.5,0", "line 4: queue is 1.5, but must be a whole number"),
        ("b,1,1,0", "b,1,-1,0", "line 4: queue is -1, but must not be negative"),
        ("b,1,1,0", "b,1,1e18,0", r"line 4: queue is 1e\+18, but must be below 1000000: number them from 0"),
        ("b,1,1,0", "b,1,1,1e30", r"line 4: admit is 1e\+30, but must be below 1000000: number them from 0"),
        ("day", "money", "has several columns 'money': name them apart"),
        ("a,2,1,0", "a,3,1,0", "line 3: day is 3, but step 2 of episode 'a' comes there"),
        (",0.25", ",0", r"line 3: chance is 0, but must lie in \(0, 1\]"),
        (",0.25", "", "line 3 has 7 entries, but the header has 8"),
        ("euros", "euro", r"has no column 'euros' \(did you mean 'euro'\?\)"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_line(file, old, new, sentence):
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(InvalidInputError, match=sentence):
        Log.from_csv(file, **NAMED)


def test_labels_of_episodes_are_read_without_spaces(file):
    file.write_text(TEXT.replace("a,2,", " a ,2,"))
    assert Log.from_csv(file, **NAMED).starts.tolist() == [0, 2, 3]


def test_large_numbers_are_summed_up_and_numbers_without_bound_refused():
    week = {"episode": [0], "state": [999_999], "action": [999_999], "reward": [1.0], "cost": [0.0]}
    assert "1 of 1000000000000; 5 times or more: 0" in str(Log.from_frame(week))
    with pytest.raises(InvalidInputError, match=r"row 0 of the frame: state is .* no number"):
        Log.from_frame(week | {"state": [10**400]})


def test_a_parquet_file_that_is_broken_or_names_columns_twice_is_refused(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    broken = tmp_path / "logs.parquet"
    week = {"episode": [0], "state": [0], "action": [0], "reward": [1.0], "cost": [0.0]}
    parquet.write_table(pyarrow.table(week), broken)
    whole = broken.read_bytes()
    for content in (b"", b"no parquet", whole[:-20], whole[:40] + bytes(len(whole) - 60) + whole[-20:]):
        broken.write_bytes(content)
        with pytest.raises(InvalidInputError, match=r"logs.parquet is no Parquet file that can be read"):
            Log.from_parquet(broken)
    names = ["episode", "state", "action", "reward", "cost", "cost"]
    parquet.write_table(pyarrow.table([[0]] * 6, names=names), broken)
    with pytest.raises(InvalidInputError, match="has several columns 'cost'"):
        Log.from_parquet(broken)


def test_costs_that_differ_from_their_share_by_rounding_give_no_scale():
    """0.7 / 7 is not 0.1 in floating point; a real spread, however small beside 1, is kept."""
    week = {"episode": [0] * 7, "state": [0] * 7, "action": [0] * 7, "reward": [1.0] * 7, "cost": [0.1] * 7}
    assert 0.7 / 7 != 0.1
    assert Log.from_frame(week).setting(0.7).cost_scale == pytest.approx([1.0])
    assert Log.from_frame(week | {"cost": [1e-15] * 7}).setting(0.0).cost_scale == pytest.approx([1e-15])


def test_a_session_refuses_short_episodes_in_words(file):
    log, setting = Log.from_csv(file, **NAMED).with_short("over"), Setting(2, 2, 2, 2)
    with pytest.raises(InvalidInputError, match="episode 1 of the log has 1 of 2 steps, but a learner needs whole"):
        Session(ProximalOMDPD.cautious(), setting, logged=log, start="explore")


def test_episodes_that_are_torn_apart_are_refused_without_a_step(file):
    file.write_text(TEXT + "a,3,0,0,1,0,0,1\n")
    with pytest.raises(InvalidInputError, match="line 5: episode 'a' goes on after another one began"):
        Log.from_csv(file, **{**NAMED, "step": None})


def test_short_episodes_are_asked_about_and_a_log_must_fit_its_setting(file):
    log = Log.from_csv(file, **NAMED)
    with pytest.raises(InvalidInputError, match=r"episode 1 has 1 of 2 steps: say what that means"):
        log.checked(Setting(2, 2, 2, 2))
    assert log.with_short("over").checked(Setting(2, 2, 2, 2)).short == "over"
    for setting, sentence in (
        (Setting(1, 2, 2, 2), "episode 0 has 2 steps, but the horizon is 1"),
        (Setting(2, 1, 2, 2), "episode 0, step 1: state 1 is not between 0 and 0"),
        (Setting(2, 2, 2, 1), r"the log has 2 costs \(money, complaints\)"),
    ):
        with pytest.raises(InvalidInputError, match=sentence):
            log.checked(setting)
    with pytest.raises(InvalidInputError, match="must be 'over' or 'cut'"):
        log.with_short("gone")


def test_a_summary_counts_pairs_and_totals_by_hand():
    week = {"episode": [0] * 6 + [1], "state": [0, 0, 0, 0, 0, 2, 0], "action": [1, 1, 1, 1, 0, 0, 1]}
    log = Log.from_frame(week | {"reward": [1.0] * 7, "cost": [0.0] * 6 + [3.0]})
    text = str(log)
    assert "2, of 1 to 6 steps" in text
    assert "2 of 3 seen, 2" in text
    assert "3 of 6; 5 times or more: 1" in text
    assert "71.4 %" in text  # 5 of 7 steps
    assert "reward                   3.5 an episode (standard error 2.5, sd 3.54)" in text
    assert repr(log) == "Log(2 episodes, 7 steps)"


def test_a_setting_has_the_sizes_first_states_and_ranges_that_were_met(file):
    setting = Log.from_csv(file, **NAMED).setting([3.0, 4.0])
    assert setting.shape == (2, 2, 2)
    assert setting.mu.tolist() == [0.5, 0.5]
    assert setting.cost_scale.tolist() == [1.5, 2.0]  # |0 - 1.5| and |0 - 2|, the largest distances from a step's share
    assert setting.reward_range == (1.0, 3.5)


def test_what_a_session_was_told_is_a_log_and_a_log_starts_a_session():
    met = BanditFeedback(Trajectory(np.array([0, 1]), np.array([1, 0])), np.array([1.0, 0.0]), np.array([[0.2, -0.1]]))
    log = Log.from_episodes([met] * 3)
    assert len(log) == 3
    assert log.costs.shape == (1, 6)
    setting = Setting(2, 2, 2)
    by_log = Session(ProximalOMDPD.cautious(), setting, logged=log, start="explore")
    by_list = Session(ProximalOMDPD.cautious(), setting, logged=[met] * 3, start="explore")
    assert np.array_equal(by_log.policy(), by_list.policy())


def test_the_example_is_read_as_the_standard_library_reads_it():
    file = Path(__file__).parents[2] / "examples" / "logs.csv"
    with file.open() as stream:
        rows = list(csv.DictReader(stream))
    costs = ("overtime", "complaints")
    named = {"episode": "week", "state": "queue", "reward": "euros", "step": "shift", "propensity": "chance"}
    log = Log.from_csv(file, costs, **named)
    assert len(log) == len({row["week"] for row in rows}) == 60
    for i, name in enumerate(("euros", *costs)):
        assert log.totals()[i].sum() == sum(float(row[name]) for row in rows)
