"""Models in UMB, written here by hand: two states, of which one has a choice less."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from omdpd import InvalidInputError, save_problem
from omdpd.cli.main import app
from omdpd.experiments.files import load_experiment, pinned
from omdpd.experiments.registry import Registry
from omdpd.worlds.umb import read_umb, umb_problem


def members(**changed):
    """State 0: stay, or go to 1 with .5; state 1: stay.  `gold` is paid in state 1, `steps` by going."""
    rewards = "annotations/rewards"
    parts = {
        "index.json": json.dumps({"annotations": {"rewards": {"gold": {}, "r1": {"alias": "steps"}}}}).encode(),
        "state-to-choices.bin": np.array([0, 2, 3], "<u8").tobytes(),
        "choice-to-branches.bin": np.array([0, 1, 3, 4], "<u8").tobytes(),
        "branch-to-target.bin": np.array([0, 0, 1, 1], "<u8").tobytes(),
        "branch-to-probability.bin": np.array([1.0, 0.5, 0.5, 1.0], "<f8").tobytes(),
        "state-is-initial.bin": bytes([0b01]),
        f"{rewards}/gold/states/values.bin": np.array([0.0, 1.0], "<f8").tobytes(),
        f"{rewards}/r1/choices/values.bin": np.array([0.0, 1.0, 0.0], "<f8").tobytes(),
        f"{rewards}/r1/branches/values.bin": np.array([0.0, 0.0, 2.0, 0.0], "<f8").tobytes(),
    }
    return parts | {name.replace("_", "-").replace("-bin", ".bin"): content for name, content in changed.items()}


def written(tmp_path, parts, mode="w"):
    with tarfile.open(tmp_path / "it.umb", mode) as archive:
        for name, content in parts.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return str(tmp_path / "it.umb")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_a_model_is_read(tmp_path, mode):
    model = read_umb(written(tmp_path, members(), mode))
    assert model.allowed.tolist() == [[True, True], [True, False]]
    assert model.initial.tolist() == [1.0, 0.0]
    assert model.rewards["gold"].tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert model.rewards["steps"].tolist() == [[0.0, 2.0], [0.0, 0.0]]


def test_it_is_solved_by_hand(tmp_path):
    """Going costs 2 on average; two steps, gold only in the second: with a budget of 1 half of the tries are made."""
    cmdp = umb_problem(written(tmp_path, members()), "gold", ["steps"], 1.0, 2)
    found = cmdp.solve()
    assert found.value == pytest.approx(0.25)
    assert found.policy.table[1, 1].tolist() == [1.0, 0.0]
    assert cmdp.labels.constraints == ("steps",)
    least = umb_problem(written(tmp_path, members()), "-steps", ["-gold"], -0.25, 2).solve()
    assert least.value == pytest.approx(-1.0)


def test_it_is_a_world_of_an_experiment(tmp_path):
    settings = {
        "path": written(tmp_path, members()),
        "reward": "gold",
        "costs": ["steps"],
        "budget": [1.0],
        "horizon": 2,
    }
    spec = pinned(Registry.installed().spec("worlds", "umb", settings), tmp_path)
    assert len(spec.sha256) == 64
    assert spec.build(np.random.default_rng(0)).solve().value == pytest.approx(0.25)


def test_states_have_the_names_of_their_variables_and_labels(tmp_path):
    """Of five bits: x - 1 in two, whether it is known and y (signed) in two more; then three that say nothing."""
    variables = [
        {"name": "x", "type": {"type": "uint", "size": 2}, "offset": 1},
        {"name": "y", "type": {"type": "int", "size": 2}, "is-optional": True},
        {"name": "lit", "type": {"type": "bool", "size": 1}},
        {"padding": 2},
    ]
    index = {
        "annotations": {"rewards": {"gold": {}, "r1": {"alias": "steps"}}, "aps": {"a0": {"alias": "goal"}}},
        "valuations": {"states": {"unique": True, "classes": [{"variables": variables}]}},
    }
    named = {
        "index.json": json.dumps(index).encode(),
        "annotations/aps/a0/states/values.bin": bytes([0b10]),
        "valuations/states/valuations.bin": bytes([0b00011110, 0b00100001]),
    }
    assert read_umb(written(tmp_path, members() | named)).names == ("x=3, y=-1", "x=2, lit, goal")
    cmdp = umb_problem(written(tmp_path, members() | named), "gold", ["steps"], 1.0, 2)
    assert "x=2, lit, goal" in str(cmdp.solve().policy)
    # Names are for people: what is not understood leaves numbers.
    short = named | {"valuations/states/valuations.bin": b"123"}
    assert read_umb(written(tmp_path, members() | short)).names == ()


def test_commands_take_a_model_with_what_it_does_not_say(tmp_path):
    file = written(tmp_path, members())
    said = [f"--set={each}" for each in ("reward=gold", 'costs=["steps"]', "budget=[1.0]", "horizon=2")]
    for command, words in (("check", "best safe value                  0.250000"), ("solve", "costs 1 of 1")):
        done = CliRunner().invoke(app, [command, file, *said])
        assert done.exit_code == 0, done.output
        assert words in done.output
    curve = CliRunner().invoke(app, ["curve", file, *said])
    assert "budget of steps" in curve.output
    missing = CliRunner().invoke(app, ["solve", file])
    assert "the world 'umb' needs reward" in str(missing.exception)
    wrong = CliRunner().invoke(app, ["solve", file, *said, "--set=horizon=soon"])
    assert "Expected `int`" in str(wrong.exception)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"state_to_choices_bin": b"123"}, "state-to-choices.bin has 3 bytes"),
        ({"state_to_choices_bin": np.array([0, 2, 2], "<u8").tobytes()}, "state 1 has no choice"),
        ({"state_to_choices_bin": np.array([0, 5, 3], "<u8").tobytes()}, "must begin with 0 and ascend"),
        ({"choice_to_branches_bin": np.array([0, 1], "<u8").tobytes()}, "needs 4 numbers of 8"),
        ({"branch_to_target_bin": np.array([0, 0, 7, 1], "<u8").tobytes()}, "leads to state 7, but there are 2"),
        ({"branch_to_probability_bin": np.array([1.0, np.nan, 0.5, 1.0], "<f8").tobytes()}, "not finite"),
        ({"branch_to_probability_bin": np.array([1.0, 0.7, 0.5, 1.0], "<f8").tobytes()}, "should be 1"),
        ({"state_is_initial_bin": bytes([0])}, "no state is marked as initial"),
        ({"index.json": b"{"}, "its index.json cannot be read"),
        ({"index.json": b'{"annotations": {"rewards": [1]}}'}, "its index.json cannot be read"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_with_a_sentence(tmp_path, changed, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        umb_problem(written(tmp_path, members(**changed)), "gold", ["steps"], 1.0, 2)


def test_what_is_no_such_file_or_names_nothing_is_refused(tmp_path, monkeypatch):
    (tmp_path / "no.umb").write_bytes(b"no tar at all" * 100)
    with pytest.raises(InvalidInputError, match="is no UMB file"):
        read_umb(tmp_path / "no.umb")
    parts = members()
    del parts["index.json"]
    with pytest.raises(InvalidInputError, match=r"it has no index\.json"):
        read_umb(written(tmp_path, parts))
    with pytest.raises(InvalidInputError, match="has no reward model 'silver'; there are gold, steps"):
        umb_problem(written(tmp_path, members()), "silver", ["steps"], 1.0, 2)
    with pytest.raises(InvalidInputError, match="budget is missing"):
        umb_problem(written(tmp_path, members()), "gold", ["steps"], horizon=2)
    with pytest.raises(InvalidInputError, match="another content"):
        umb_problem(written(tmp_path, members()), "gold", ["steps"], 1.0, 2, sha256="0" * 64)
    monkeypatch.setattr("omdpd.worlds.umb.MAX_BYTES", 100)
    with pytest.raises(InvalidInputError, match="holds more than 100 bytes"):
        read_umb(written(tmp_path, members()))


def with_index(system, **rewards):
    said = {"transition-system": system, "annotations": {"rewards": {"gold": {}, "r1": {"alias": "steps"}} | rewards}}
    return members() | {"index.json": json.dumps(said).encode()}


SAID = {"time": "discrete", "#players": 1, "#states": 2, "#choices": 3, "#branches": 4, "#observations": 0}


@pytest.mark.parametrize("kind", ["double", {"type": "double"}, {"type": "double", "size": 64}])
def test_what_a_model_says_of_itself_is_held_against_it(tmp_path, kind):
    parts = with_index({**SAID, "branch-probability-type": kind}, gold={"type": kind})
    assert set(read_umb(written(tmp_path, parts)).rewards) == {"gold", "steps"}


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("time", "stochastic", "time is 'stochastic', but only 'discrete' is read"),
        ("time", "urgent-stochastic", "only 'discrete' is read"),
        ("#players", 2, "#players is 2, but only 1 is read"),
        ("#observations", 3, "#observations is 3, but only 0 is read"),
        ("#states", 3, "#states is 3, but only 2 is read"),
        ("#choices", 2, "#choices is 2, but only 3 is read"),
        ("#branches", 5, "#branches is 5, but only 4 is read"),
        ("branch-probability-type", "rational", "type is 'rational', but only 'double' is read"),
        ("branch-probability-type", {"type": "double-interval", "size": 128}, "only 'double' is read"),
    ],
)
def test_a_model_that_is_no_decision_process_in_doubles_is_refused(tmp_path, key, value, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        read_umb(written(tmp_path, with_index({**SAID, key: value})))


def test_rewards_of_another_type_or_of_one_name_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="type is 'rational', but only 'double' is read"):
        read_umb(written(tmp_path, with_index({}, gold={"type": "rational"})))
    with pytest.raises(InvalidInputError, match="two reward models of the name 'steps'"):
        read_umb(written(tmp_path, with_index({}, r2={"alias": "steps"})))
    with pytest.raises(InvalidInputError, match=r"its index\.json cannot be read"):
        read_umb(written(tmp_path, with_index(["discrete"])))


@pytest.mark.parametrize("horizon", [0, -1, 1.5, True])
def test_a_horizon_that_is_none_is_refused(tmp_path, horizon):
    with pytest.raises(InvalidInputError, match="horizon"):
        umb_problem(written(tmp_path, members()), "gold", ["steps"], 1.0, horizon)


def test_a_model_beyond_memory_is_refused_before_it_is_made(tmp_path, monkeypatch):
    """20 000 states, of which the first has 20 000 choices: a table is 3.2 GB."""
    n = 20_000
    choices, ones = np.r_[0, n + np.arange(n)], np.arange(2 * n)
    parts = members(
        state_to_choices_bin=choices.astype("<u8").tobytes(), choice_to_branches_bin=ones.astype("<u8").tobytes(),
        branch_to_target_bin=np.zeros(2 * n - 1, "<u8").tobytes(),
        branch_to_probability_bin=np.ones(2 * n - 1, "<f8").tobytes(), state_is_initial_bin=bytes([255] * (n // 8)),
    )  # fmt: skip
    parts["index.json"] = b"{}"
    monkeypatch.setattr("omdpd.problem.memory.machine_bytes", lambda: 10**9)
    with pytest.raises(InvalidInputError, match=r"20000 states with 20000 choices needs about 3\.2 GB"):
        read_umb(written(tmp_path, parts))
    monkeypatch.setattr("omdpd.problem.memory.machine_bytes", lambda: 300)
    with pytest.raises(InvalidInputError, match="2 states with 2 choices needs about"):
        umb_problem(written(tmp_path, members()), "gold", ["steps"], 1.0, 2)


def test_a_small_reward_after_a_large_one_keeps_its_digits(tmp_path):
    parts = members()
    parts["annotations/rewards/r1/branches/values.bin"] = np.array([1e17, 0.0, 2.0, 0.5], "<f8").tobytes()
    assert read_umb(written(tmp_path, parts)).rewards["steps"].tolist() == [[1e17, 2.0], [0.5, 0.0]]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_without_an_end_are_not_read(tmp_path, mode, kind):
    """A name of 8 MB, which tar keeps before its member."""
    with tarfile.open(tmp_path / "long.umb", mode, format=kind) as archive:
        archive.addfile(tarfile.TarInfo("n" * 2**23))
    with pytest.raises(InvalidInputError, match="it takes more than 4194304 bytes to describe its members"):
        read_umb(tmp_path / "long.umb")


def test_every_member_counts_and_every_size_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("omdpd.worlds.umb.MAX_MEMBERS", 20)
    others = {f"other{i}.txt": b"" for i in range(20)}
    with pytest.raises(InvalidInputError, match="or 20 members"):
        read_umb(written(tmp_path, others | members()))
    monkeypatch.setattr("omdpd.worlds.umb.MAX_INDEX_BYTES", 1000)
    with pytest.raises(InvalidInputError, match="more than 1000 bytes"):
        read_umb(written(tmp_path, members() | {"index.json": b" " * 1001}))
    monkeypatch.setattr("omdpd.worlds.umb.MAX_BYTES", 2**16)
    bomb = written(tmp_path, {"zeros.txt": bytes(2**17)}, "w:xz")
    with pytest.raises(InvalidInputError, match="more than 65536 bytes"):
        read_umb(bomb)
    monkeypatch.setattr("omdpd.worlds.umb.MAX_TAR_BYTES", 0)
    monkeypatch.setattr("omdpd.worlds.umb.MAX_BYTES", 100)
    with pytest.raises(InvalidInputError, match="more than 100 bytes"):
        read_umb(bomb)


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
def test_a_packed_file_that_is_cut_is_one_sentence(tmp_path, mode):
    whole, cut = Path(written(tmp_path, members(), mode)).read_bytes(), tmp_path / "cut.umb"
    for length in (12, len(whole) // 2):
        cut.write_bytes(whole[:length] + bytes(20))
        with pytest.raises(InvalidInputError, match="is no UMB file"):
            read_umb(cut)


def test_headers_that_every_member_would_copy_are_refused(tmp_path):
    said = {f"key{i}": "" for i in range(2001)}
    with tarfile.open(tmp_path / "all.umb", "w", format=tarfile.PAX_FORMAT, pax_headers=said) as archive:
        archive.addfile(tarfile.TarInfo("other.txt"))
    with pytest.raises(InvalidInputError, match="or 2000 members"):
        read_umb(tmp_path / "all.umb")


def test_a_problem_file_is_an_experiment_of_the_default_learner(tmp_path):
    file = written(tmp_path, members())
    said = ["reward=gold", 'costs=["steps"]', "budget=[1.0]", "horizon=2"]
    played = load_experiment(file, overrides=[*said, "episodes=7", "seeds=2", "learners.z=[0.0, 1.0]"])
    assert (played.episodes, played.seeds, [each.z for each in played.learners]) == (7, 2, [0.0, 1.0])
    assert len(played.runs()) == 4
    wanted = umb_problem(file, "gold", ["steps"], 1.0, 2)
    assert played.worlds[0].build(np.random.default_rng(0)).solve().value == wanted.solve().value
    assert played.natures[0].noise == "own-range"
    save_problem(wanted, tmp_path / "it.npz")
    assert load_experiment(tmp_path / "it.npz").worlds[0].name == "file"
    with pytest.raises(InvalidInputError, match="reward"):
        load_experiment(file, overrides=said[1:])
    with pytest.raises(InvalidInputError, match="goals"):
        load_experiment(file, overrides=[*said, "goals=3"])


def test_the_command_plays_a_problem_file(tmp_path, monkeypatch):
    file = written(tmp_path, members())
    monkeypatch.chdir(tmp_path)
    words = ["reward=gold", 'costs=["steps"]', "budget=[1.0]", "horizon=2", "episodes=5", "seeds=1"]
    found = CliRunner().invoke(
        app, ["run", file, "--jobs", "1", "--no-figures", *(each for word in words for each in ("--set", word))]
    )
    assert found.exit_code == 0, found.output
    assert (tmp_path / "results" / "it" / "summary.csv").exists()
