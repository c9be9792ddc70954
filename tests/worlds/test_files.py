import zipfile

import numpy as np
import pytest

from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.problem.laws import laws_of_entries
from omdpd.worlds.files import load_problem, save_problem
from tests.references.invoked import command as run
from tests.references.named import WORLDS

P = np.full((2, 2, 2), 0.5)
TABLES = {"transition": P, "reward": [[0.0, 1.0], [0.5, 1.0]], "cost": [[0.0, 1.0], [0.0, 1.0]]}
FIELDS = ("transition", "initial", "reward", "cost", "budget", "cost_scale")


@pytest.mark.parametrize("name", list(WORLDS))
def test_a_world_comes_back_with_the_same_numbers(tmp_path, name):
    world = WORLDS[name]().build(np.random.default_rng(3))
    again = load_problem(save_problem(world, tmp_path / "world.npz"))
    for field in FIELDS:
        assert np.array_equal(getattr(world, field), getattr(again, field)), field
    assert (again.name, again.labels, again.reward_range) == (world.name, world.labels, world.reward_range)
    if world.scenarios is not None:
        assert again.scenarios.names == world.scenarios.names
        assert np.array_equal(again.scenarios.tables, world.scenarios.tables)


def test_the_same_problem_gives_the_same_file(tmp_path):
    world = WORLDS["queue"]().build(np.random.default_rng(0))
    assert save_problem(world, tmp_path / "a.npz").read_bytes() == save_problem(world, tmp_path / "b.npz").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.npz", "b.npz"]


def test_a_file_of_numpy_savez_is_a_problem(tmp_path):
    np.savez(tmp_path / "mine.npz", **TABLES, budget=1.5, horizon=3)
    cmdp = load_problem(tmp_path / "mine.npz")
    assert cmdp.name == "mine"
    assert cmdp.shape == (3, 2, 2)
    assert cmdp.budget.tolist() == [1.5]
    assert cmdp.initial.tolist() == [0.5, 0.5]


def test_a_large_stationary_kernel_is_kept_once(tmp_path, monkeypatch):
    monkeypatch.setattr("omdpd.problem.laws.MAX_EXPANDED", 20)
    cmdp = CMDP.from_arrays(**TABLES, budget=1.5, horizon=5)
    assert cmdp.transition.strides[0] == 0
    assert cmdp.stationary
    file = save_problem(cmdp, tmp_path / "large.npz")
    with np.load(file) as stored:
        assert stored["transition"].shape == (2, 2, 2)
    assert np.array_equal(load_problem(file).transition, cmdp.transition)


def line_of(n_states):
    """A walk on a line, as lists: one step up, or stay at the end."""
    s = np.arange(n_states)
    laws = laws_of_entries(
        np.r_[s, s], np.r_[np.minimum(s + 1, n_states - 1), s], np.full(2 * n_states, 0.5), (4, n_states, 1)
    )
    reward = (s / n_states)[:, None]
    return CMDP.from_arrays(laws, reward, reward, 2.0, horizon=4).with_scenarios({"half": reward / 2})


def test_laws_of_a_large_problem_are_kept_as_lists(tmp_path, monkeypatch):
    monkeypatch.setattr("omdpd.worlds.files.MAX_TABLE", 100)
    monkeypatch.setattr("omdpd.problem.arrays.MAX_REPEATED", 20)
    cmdp = line_of(9)
    assert cmdp.reward.strides[0] == cmdp.cost.strides[1] == cmdp.scenarios.tables.strides[2] == 0
    file = save_problem(cmdp, tmp_path / "lists.npz")
    with np.load(file) as stored:
        assert "transition" not in stored
        assert stored["pointers"].shape == (10,)
        assert stored["reward"].shape == (9, 1)
        assert stored["scenarios"].shape == (1, 1, 1, 9, 1)
    again = load_problem(file)
    for name in ("transition", "initial", "reward", "cost", "budget"):
        assert np.array_equal(getattr(again, name), getattr(cmdp, name))
    assert np.array_equal(again.scenarios.tables, cmdp.scenarios.tables)
    assert again.reward.strides[0] == 0
    assert save_problem(again, tmp_path / "again.npz").read_bytes() == file.read_bytes()


@pytest.mark.parametrize("without_end", [{"discount": 0.9}, {"criterion": "average"}])
def test_lists_of_a_problem_without_an_end_need_no_horizon(tmp_path, monkeypatch, without_end):
    monkeypatch.setattr("omdpd.worlds.files.MAX_TABLE", 10)
    s = np.arange(9)
    laws = laws_of_entries(s, (s + 1) % 9, np.ones(9), (1, 9, 1))
    cmdp = CMDP.from_arrays(laws, (s / 9)[:, None], (s / 9)[:, None], 0.5, **without_end)
    file = save_problem(cmdp, tmp_path / "lists.npz")
    with np.load(file) as stored:
        assert "transition" not in stored
    again = load_problem(file)
    assert again.discount == cmdp.discount
    for name in ("transition", "initial", "reward", "cost", "budget"):
        assert np.array_equal(getattr(again, name), getattr(cmdp, name))
    assert save_problem(again, tmp_path / "again.npz").read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pointers": [0, 2, 1, 5]}, r"pointers\[2\] is less than the one before it"),
        ({"pointers": [0, 2, 4]}, "pointers has 3 entries, but there should be 4 or 13"),
        ({"pointers": [0, 2, 4, 9]}, "do not belong together"),
        ({"pointers": [0.0, 2.0, 4.0, 5.0]}, "pointers must be one row of whole numbers"),
        (
            {"successors": [0, 1, 1, 2, 7]},
            r"transition\[2, 0\] \(state 2, action 0\) leads to state 7, .* only 3 states",
        ),
        ({"probabilities": [0.5, 0.5, 0.5, 0.6, 1.0]}, r"transition\[1, 0\] \(state 1, action 0\) = 1.1 is the sum"),
        ({"probabilities": [0.5, np.nan, 0.5, 0.5, 1.0]}, "probabilities holds an entry that is not finite"),
        ({"transition": np.ones((3, 1, 3))}, "holds its laws twice"),
        ({"horizon": None}, "needs a horizon"),
        ({"successors": None}, "has no array 'successors'; it needs pointers, successors, probabilities, reward, cost"),
    ],
)
def test_what_is_wrong_with_stored_lists_is_named(tmp_path, changes, message):
    whole = {
        "pointers": [0, 2, 4, 5], "successors": [0, 1, 1, 2, 2], "probabilities": [0.5, 0.5, 0.5, 0.5, 1.0],
        "reward": np.zeros((3, 1)), "cost": np.zeros((3, 1)), "horizon": 4,
    }  # fmt: skip
    members = {name: value for name, value in (whole | changes).items() if value is not None}
    np.savez(tmp_path / "wrong.npz", **members)
    with pytest.raises(InvalidInputError, match=message):
        load_problem(tmp_path / "wrong.npz")


def with_header(file, text):
    np.savez(file, **TABLES)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("header.toml", text)
    return file


def test_a_header_may_say_the_rest(tmp_path):
    text = 'name = "shop"\nhorizon = 4\nbudget = [8.0]\nactions = ["wait", "sell"]\nreward_range = [0, 10]\n'
    cmdp = load_problem(with_header(tmp_path / "x.npz", text.replace("8.0", "3.0")))
    assert (cmdp.name, cmdp.shape[0], cmdp.labels.actions) == ("shop", 4, ("wait", "sell"))
    assert cmdp.reward_range == (0.0, 10.0)
    with pytest.raises(InvalidInputError, match="rescale=False"):
        load_problem(with_header(tmp_path / "y.npz", text.replace("[8.0]", "[80.0]") + "rescale = false\n"))
    scaled = load_problem(with_header(tmp_path / "z.npz", text.replace("[8.0]", "[80.0]")))
    assert scaled.cost_scale.tolist() == [20.0]


def test_rewards_in_other_units_are_planned_with_and_need_a_range_to_learn(tmp_path):
    np.savez(tmp_path / "x.npz", **{**TABLES, "reward": 500.0 * np.array(TABLES["reward"])}, horizon=4, budget=3.0)
    cmdp = load_problem(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", **TABLES, horizon=4, budget=3.0)
    assert cmdp.solve().value == pytest.approx(500.0 * load_problem(tmp_path / "y.npz").solve().value)
    with pytest.raises(InvalidInputError, match="reward_range"):
        cmdp.setting(10, "bandit")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("horizon = 0", "horizon is 0"),
        ('horizon = "4"', "horizon in its header is '4', but must be a int"),
        ("colour = 3", "the key 'colour'"),
        ("horizon = ", "not TOML"),
        ("horizon = 4\nformat = 7", "has format 7"),
        ('horizon = 4\nbudget = [0.0]\nactions = ["only one"]', "there are 1 action labels, but 2"),
        ("horizon = 4\nreward_range = [1]", "reward_range in its header must be two numbers"),
        ("horizon = 4\nbudget = [0.0]\nreward_range = [2, 1]", "reward_range is .2, 1., but must be two numbers, the"),
        ("horizon = 4\nbudget = [0.0]\nreward_range = [1, 1]", "reward_range is .1, 1., but must be two numbers, the"),
        ("horizon = 4\nbudget = ['a']", "budget in its header must be a list of float"),
        ("horizon = 4\nbudget = [0.0]\ncost_scale = [-1.0]", "one positive number per constraint"),
    ],
)
def test_a_wrong_header_is_named(tmp_path, header, words):
    with pytest.raises(InvalidInputError, match=words):
        load_problem(with_header(tmp_path / "x.npz", header))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cost": None}, "has no array 'cost'"),
        ({"extra": [1.0]}, "holds 'extra.npy'"),
        (
            {"reward": [[0.0, 1.5], [0.0, 0.0]], "reward_range": [0.0, 1.0]},
            r"reward\[0, 0, 1\] \(step 0, state 0, action 1\) = 1.5 is outside",
        ),
        ({"transition": P * 0.9}, r"transition\[0, 0, 0\] .* = 0.9 is the sum"),
        ({"reward": np.array([["a", "b"], ["c", "d"]])}, "reward holds <U1, not numbers"),
        ({"horizon": None}, "a horizon is needed"),
        ({}, "budget is missing: give what an episode may cost"),
        ({"budget": 0.0, "scenarios": np.zeros((1, 1, 3, 2, 2))}, "1 scenarios, so the header needs as many names"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, changes, words):
    given = {key: value for key, value in ({**TABLES, "horizon": 3} | changes).items() if value is not None}
    np.savez(tmp_path / "x.npz", **given)
    with pytest.raises(InvalidInputError, match=words):
        load_problem(tmp_path / "x.npz")


def test_nothing_is_unpickled(tmp_path):
    np.savez(tmp_path / "x.npz", **TABLES, initial=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InvalidInputError, match=r"initial\.npy holds pickled objects, which are never unpacked"):
        load_problem(tmp_path / "x.npz")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "x.npz").write_text("no archive")
    with pytest.raises(InvalidInputError, match=r"is not an \.npz file"):
        load_problem(tmp_path / "x.npz")
    with pytest.raises(FileNotFoundError):
        load_problem(tmp_path / "nowhere.npz")
    with pytest.raises(InvalidInputError, match=r"should end in \.npz"):
        load_problem(save_problem(WORLDS["cyclic"]().build(np.random.default_rng(0)), tmp_path / "x.zip"))


def test_check_prints_the_card_or_what_is_wrong(tmp_path):
    np.savez(tmp_path / "mine.npz", **TABLES, budget=1.5, horizon=3)
    said = run("check", tmp_path / "mine.npz")
    assert said.exit_code == 0
    assert "mine: 2 states, 2 actions, 3 steps" in said.output
    assert "binds" in said.output
    np.savez(tmp_path / "bad.npz", **(TABLES | {"transition": P * 0.9}), horizon=3)
    assert isinstance(run("check", tmp_path / "bad.npz").exception, InvalidInputError)


def test_show_prints_the_card_and_draws(tmp_path):
    for world in ("grid", "cyclic"):
        said = run("show", world, "--out", tmp_path / f"{world}.png")
        assert said.exit_code == 0, said.output
        assert "Slater gap" in said.output
        assert (tmp_path / f"{world}.png").read_bytes()[:4] == b"\x89PNG"
    save_problem(WORLDS["paradox"]().build(np.random.default_rng(0)), tmp_path / "own.npz")
    assert run("show", tmp_path / "own.npz", "--out", tmp_path / "own.svg").exit_code == 0
    assert "there is no world 'atlantis'" in str(run("show", "atlantis").exception)


def test_show_writes_nothing_that_nobody_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("show", "cyclic").exit_code == 0
    assert not [*tmp_path.iterdir()]


def test_worlds_lists_every_world_with_its_facts():
    said = run("worlds").output
    assert all(name in said for name in WORLDS)
    assert "8.3496" in said
    assert "0.7151 0.6285" in said
    assert "…" not in said
