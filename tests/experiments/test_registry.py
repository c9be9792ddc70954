"""Names from outside the package: plugin files, installed packages and problem files, wherever names are taken."""

import json
import os
import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from omdpd import InvalidInputError, Policy, load_problem, load_runs, save_problem
from omdpd.cli.main import app
from omdpd.experiments import executor, load_experiment, run_experiment
from omdpd.experiments.plugins import read_plugin
from omdpd.experiments.registry import Registry, from_wire, run_of, to_wire
from omdpd.experiments.spec import RunSpec, toml_of
from omdpd.gym import Learned
from omdpd.report.stored import all_runs
from omdpd.report.study import load_study
from omdpd.worlds.files import file_digest
from tests.references.named import WORLDS
from tests.references.real_commands import omdpd

PLUGIN = """
    from dataclasses import dataclass, replace
    import numpy as np
    from omdpd import CMDP, Setting
    from omdpd.learners.protocol import Card, Report
    from omdpd.natures import fixed

    @dataclass(frozen=True, eq=False)
    class State:
        setting: Setting
        k: int

    @dataclass(frozen=True)
    class Fixed:
        '''Always one action.'''
        action: int = 0
        card = Card("always one action", ("bandit", "full"), "none", "a test")
        def init(self, setting: Setting) -> State:
            return State(setting, 0)
        def policy(self, state):
            policy = np.zeros(state.setting.shape)
            policy[:, :, self.action] = 1.0
            return policy
        def update(self, state, feedback):
            return replace(state, k=state.k + 1)
        def report(self, state):
            return Report()

    def two_doors(prize: float = 0.5) -> CMDP:
        '''Two doors: one earns, one is safe.'''
        return CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, prize]], [[-0.5, 0.5]], budget=0.0, horizon=2)

    def loud(cmdp, seed, volume: float = 1.0):
        '''The fixed nature under another name.'''
        return fixed.make(cmdp, seed)

    LEARNERS = {"Fixed": Fixed}
    WORLDS = {"two_doors": two_doors}
    NATURES = {"loud": loud}
"""
SWEEP = """
    episodes = 6
    seeds = 2
    worlds = [{name = "two_doors", prize = 0.8}]
    natures = [{name = "loud"}]
    learners = [{name = "Fixed", action = [0, 1]}, {name = "Uniform"}]
"""


CYCLIC = """\
episodes = 6
seeds = 2
worlds = [{name = "cyclic"}]
natures = [{name = "noisy"}]
learners = [{name = "Fixed"}]
"""


@pytest.fixture
def plugin(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(textwrap.dedent(PLUGIN))
    return file


@pytest.fixture
def sweep(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(textwrap.dedent(SWEEP))
    return file


def here(*words):
    """`omdpd words...` in this process: its exit code and what it said."""
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    return done.exit_code, done.output + str(done.exception or "")


def spec(plugin, **settings):
    registry = Registry.installed().with_plugins([plugin])
    parts = registry.spec("worlds", "two_doors"), registry.spec("natures", "loud")
    return RunSpec(*parts, registry.spec("learners", "Fixed", settings), 6, 0)


def test_runs_whose_settings_are_names_of_learners_are_different_runs(tmp_path):
    """What 0.2 called `standard` is `settling` today, with the id it had: of learners' names alone, not of settings."""
    file = tmp_path / "like.py"
    file.write_text(
        "from omdpd.learners.uniform import Uniform\n\n\n"
        "def like(other: str = 'none') -> Uniform:\n    return Uniform()\n\n\n"
        "LEARNERS = {'Like': like}\n"
    )
    registry = Registry.installed().with_plugins([file])
    parts = registry.spec("worlds", "streaming"), registry.spec("natures", "noisy")
    names = "ProximalOMDPD.standard", "ProximalOMDPD.settling"
    plain = RunSpec(*parts, registry.spec("learners", names[1]), 6, 0)
    stored = msgspec.to_builtins(plain)
    stored["learner"]["name"] = names[0]
    stored["learner"].pop("persistence", None)
    assert run_of(stored, registry) == plain
    assert run_of(stored, registry).id == plain.id
    assert len({RunSpec(*parts, registry.spec("learners", "Like", {"other": name}), 6, 0).id for name in names}) == 2


def test_a_plugins_names_run_and_are_read_without_it(plugin, sweep, tmp_path):
    out = tmp_path / "out"
    code, printed = omdpd("run", sweep, "--out", out, "--plugin", plugin, "--jobs", "2")
    assert code == 0, printed
    assert "Fixed(action=1)" in printed
    for command in ("ls", "table", "plot"):
        code, printed = here(command, out)
        assert code == 0, printed
        assert command == "plot" or "Fixed(action=1)" in printed
    (again,) = load_study(out).head()["commands"]
    assert again.endswith("-again --plugin mine.py")
    rows = load_runs(out)
    assert rows.n_rows == 6 * 6
    # Whoever reads has the names that whoever played had: with the settings that are not the defaults.
    assert set(rows["learner"]) == {"Fixed", "Fixed(action=1)", "Uniform"}
    assert rows.where(learner="Fixed", seed=0).n_rows == 6
    with pytest.raises(
        InvalidInputError, match=r"no learner 'Fixd' \(did you mean 'Fixed'\?\); there are Fixed, Fixed"
    ):
        rows.where(learner="Fixd")
    assert {run.labels[2] for run in all_runs(out)} == {"Fixed", "Fixed(action=1)", "Uniform"}


def test_an_unfinished_run_is_called_as_in_the_table_too(plugin, tmp_path):
    from omdpd.experiments.one_run import advance
    from omdpd.report.stored import read_run
    from omdpd.storage.run_folder import RunFolder

    run = spec(plugin)
    assert advance(run, RunFolder(tmp_path / run.id), None, 1e9, seconds=0.0) is None
    assert read_run(tmp_path / run.id).labels == ("two_doors", "loud", "Fixed")


def test_without_the_plugin_the_experiment_is_refused_with_the_names_there_are(sweep, tmp_path):
    code, printed = omdpd("run", sweep, "--out", tmp_path / "out")
    assert code == 2
    assert "there is no world 'two_doors'; there are random_dirichlet" in printed
    assert "(a plugin's names need --plugin FILE.py)" in " ".join(printed.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["list", "learners", "worlds"])
def test_the_lists_show_a_plugins_names(plugin, command):
    code, printed = here(command, "--plugin", plugin)
    assert code == 0, printed
    assert ("two_doors" if command == "worlds" else "Fixed") in printed


def test_suite_and_compare_take_a_plugins_names(plugin, tmp_path):
    names = ("--worlds", "two_doors", "--natures", "loud", "--episodes", "8", "--seeds", "1", "--plugin", plugin)
    # By their old names, which are aliases of those in `omdpd lab`.
    for command, learners in (("suite", "Fixed,Uniform"), ("compare", "Fixed,ProximalOMDPD.cautious")):
        code, printed = here(command, *names, "--learners", learners, "--out", tmp_path / command, "--jobs", "1")
        assert code == 0, printed
        assert "Fixed" in printed


def test_a_run_that_is_sent_to_a_worker_comes_back_the_same(plugin):
    run = spec(plugin, action=1)
    again = from_wire(json.loads(json.dumps(to_wire(run))))
    assert again == run
    assert again.id == run.id
    assert again.learner.build().action == 1


def test_a_worker_without_the_plugin_says_so_in_a_sentence(plugin, sweep, tmp_path):
    experiment = load_experiment(sweep, [plugin])
    plugin.unlink()
    with executor("local", 1) as workers, pytest.raises(InvalidInputError, match=r"mine\.py cannot be read here"):
        run_experiment(experiment, tmp_path / "out", workers)
    assert not list((tmp_path / "out").rglob("error.json"))


def test_a_worker_with_another_version_of_the_plugin_says_so_in_a_sentence(plugin):
    plain = to_wire(spec(plugin))
    plugin.write_text(plugin.read_text() + "\n# changed\n")
    with pytest.raises(InvalidInputError, match="another content"):
        from_wire(plain)


def test_a_run_is_not_gone_on_with_by_another_version_of_its_plugin(plugin, tmp_path):
    from omdpd.experiments.one_run import advance, run
    from omdpd.storage.run_folder import RunFolder

    folder = RunFolder(tmp_path / "run")
    assert advance(spec(plugin), folder, None, 1e9, seconds=0.0) is None
    plugin.write_text(plugin.read_text() + "\n# changed\n")
    sentence = r"was played with mine\.py \([0-9a-f]{8}\), and now there is mine\.py \([0-9a-f]{8}\)"
    with pytest.raises(InvalidInputError, match=sentence):
        run(spec(plugin), folder.path)


def test_a_finished_run_is_not_taken_for_one_of_another_version_of_its_plugin(plugin, tmp_path):
    from omdpd.experiments.one_run import run

    run(spec(plugin), tmp_path / "run")
    plugin.write_text(plugin.read_text() + "\n# changed\n")
    with pytest.raises(InvalidInputError, match="--fresh"):
        run(spec(plugin), tmp_path / "run")


def test_a_plugin_that_only_got_another_name_is_the_same_code(plugin, tmp_path):
    from omdpd.experiments.one_run import run

    first = run(spec(plugin), tmp_path / "run")
    assert run(spec(plugin.rename(tmp_path / "renamed.py")), tmp_path / "run") == first


@pytest.fixture
def mixed(plugin, sweep, tmp_path):
    """Two seeds of each learner by one content of the plugin and, as if nobody had looked, one more by another."""
    from omdpd.experiments.one_run import run_safely

    out = tmp_path / "out"
    words = ("run", sweep, "--out", out, "--plugin", plugin, "--jobs", "1", "--no-figures")
    assert here(*words)[0] == 0
    plugin.write_text(plugin.read_text().replace("k + 1", "k + 2"))
    for each in load_experiment(sweep, [plugin], ["seeds=3"]).runs():
        if each.seed == 2:
            run_safely(each, out / "runs" / each.id)
    return out


def test_results_of_other_code_are_refused_before_anything_is_played(plugin, sweep, tmp_path):
    out = tmp_path / "out"
    words = ("run", sweep, "--out", out, "--plugin", plugin, "--jobs", "1", "--no-figures")
    assert here(*words)[0] == 0
    plugin.write_text(plugin.read_text().replace("k + 1", "k + 2"))
    for more in ([], ["--dry-run"], ["--set", "seeds=4"], ["--no-shared-disk"]):
        code, said = here(*words, *more)
        assert code != 0
        assert re.search(r"6 of (6|12) runs under .* are by other code: .* was played with mine\.py \(", said), said
        # The world is the plugin's too, so that every learner met it.
        assert "--fresh Fixed,Uniform" in said
        assert "Means over" not in said
    assert len([*(out / "runs").iterdir()]) == 6


def test_runs_of_one_learner_by_different_code_are_named_wherever_they_are_read(mixed):
    out = mixed
    sentence = r"the runs of Fixed.* are by different code \(2 with mine\.py \(\w{8}\), 1 with mine\.py \(\w{8}\)\)"
    for command in ("ls", "table", "report"):
        code, said = here(command, out)
        assert code == 0
        assert re.search(f"warning: {sentence}", said), said
    assert any(re.match(sentence, line) for line in load_study(out).progress()["mixed"])
    with pytest.warns(UserWarning, match="are by different code"):
        load_runs(out)


def test_one_learner_is_played_again_and_the_others_stay(plugin, tmp_path):
    sweep, out = tmp_path / "sweep.toml", tmp_path / "out"
    sweep.write_text(CYCLIC.replace('{name = "Fixed"}', '{name = "Fixed"}, {name = "Uniform"}'))
    words = ("run", sweep, "--out", out, "--plugin", plugin, "--jobs", "1", "--no-figures")
    assert here(*words)[0] == 0
    before = {run.id: run for run in all_runs(out)}
    plugin.write_text(plugin.read_text().replace("self.action] = 1.0", "1 - self.action] = 1.0"))
    code, said = here(*words, "--set", "seeds=3")
    assert code != 0
    assert "2 of 6 runs" in said
    assert "--fresh Fixed," in said
    assert "Uniform" not in said
    code, said = here(*words, "--fresh", "Fixd")
    assert code != 0
    assert "did you mean 'Fixed'" in said
    code, said = here(*words, "--set", "seeds=3", "--fresh", "Fixed")
    assert code == 0, said
    after = {run.id: run for run in all_runs(out)}
    for name, run in before.items():
        same = run.labels[2] == "Uniform"
        assert (after[name].summary == run.summary) == same
        assert (after[name].committed == run.committed) == same
    assert here("table", out)[0] == 0
    assert "different code" not in here("table", out)[1]


def test_fresh_without_names_may_stand_before_the_file(plugin, sweep, tmp_path):
    words = ("--out", tmp_path / "out", "--plugin", plugin, "--jobs", "1", "--no-figures")
    assert here("run", sweep, *words)[0] == 0
    before = {run.id: run.committed for run in all_runs(tmp_path / "out")}
    assert here("run", *words, "--fresh", sweep)[0] == 0
    assert all(before[run.id] != run.committed for run in all_runs(tmp_path / "out"))


def test_a_learner_whose_state_cannot_be_kept_is_refused_before_its_first_episode(plugin, tmp_path):
    from omdpd.experiments.one_run import run

    plugin.write_text(plugin.read_text().replace("k: int", "k: object"))
    with pytest.raises(InvalidInputError, match=r"kept on disk: the state of Fixed\.k is of type object"):
        run(spec(plugin), tmp_path / "run")
    assert not (tmp_path / "run" / "commit.json").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("LEARNERS = 3", "LEARNERS of .* must be a dictionary"),
        ("LEARNERS = {'X': 3}", "'X' in learners of .* must be a factory"),
        ("x = 1", "names nothing: it needs a dictionary LEARNERS, WORLDS or NATURES"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("def f(", "cannot be loaded: SyntaxError"),
        ("from omdpd import Uniform\nLEARNERS = {'Uniform': Uniform}", "a name there is already"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused_with_a_sentence(tmp_path, text, sentence):
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=sentence):
        Registry.installed().with_plugins([file])


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        ("lambda *args: None", "cannot be a setting|no setting"),
        ("lambda name='x': None", "no setting"),
        ("lambda: 3", "has no 'init'"),
        ("lambda: Setting", "the class Setting itself"),
    ],
)
def test_a_factory_that_makes_no_learner_is_refused_with_a_sentence(tmp_path, factory, sentence):
    file = tmp_path / "bad.py"
    file.write_text(f"from omdpd import Setting\nLEARNERS = {{'X': {factory}}}")
    registry = Registry.installed().with_plugins([file])
    with pytest.raises(InvalidInputError, match=sentence):
        registry.spec("learners", "X").build()


EXITS = {
    "at import": "import sys; sys.exit(0)",
    "in a factory": "def mine():\n    raise SystemExit(0)\nLEARNERS = {'Fixed': mine}",
    "in an episode": PLUGIN.replace("return replace(state, k=state.k + 1)", "raise SystemExit(0)"),
    "by a hash": "class Odd(str):\n    def __hash__(self): raise SystemExit\nLEARNERS = {Odd('Fixed'): print}",
}


@pytest.mark.parametrize("where", EXITS)
@pytest.mark.parametrize("how", [[], ["--dry-run"], ["--no-shared-disk"]])
def test_a_plugin_that_exits_does_not_end_the_program_without_a_word(tmp_path, where, how):
    file, sweep = tmp_path / "mine.py", tmp_path / "sweep.toml"
    file.write_text(textwrap.dedent(EXITS[where]))
    sweep.write_text(CYCLIC)
    code, said = here("run", sweep, "--plugin", file, "--out", tmp_path / "out", "--jobs", 1, *how)
    assert code != 0
    assert re.search(rf"SystemExit.* \(in {re.escape(str(file))}, line \d+\)", said)


def test_a_learner_that_exits_is_a_run_that_failed(tmp_path):
    (tmp_path / "mine.py").write_text(textwrap.dedent(EXITS["in an episode"]))
    (tmp_path / "sweep.toml").write_text(CYCLIC)
    experiment = load_experiment(tmp_path / "sweep.toml", [tmp_path / "mine.py"])
    with executor("local", 1) as workers, pytest.raises(InvalidInputError, match="2 of 2 runs failed"):
        run_experiment(experiment, tmp_path / "out", workers)


def test_a_factory_that_raises_is_refused_with_its_name_and_its_file(tmp_path):
    (tmp_path / "mine.py").write_text("def mine(n: int = 1):\n    return 1 // 0\nLEARNERS = {'Fixed': mine}")
    (tmp_path / "sweep.toml").write_text(CYCLIC)
    sentence = r"the factory of Fixed in .*mine\.py raised ZeroDivisionError: integer division"
    with pytest.raises(InvalidInputError, match=sentence):
        load_experiment(tmp_path / "sweep.toml", [tmp_path / "mine.py"])


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "folder", "large", "a\0b", "none"])
def test_what_is_no_plain_file_of_a_bounded_size_is_read_nowhere(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with open(tmp_path / "large", "wb") as stream:
        stream.truncate(2**31)
    reasons = "is not a plain file|is larger than|is no name of a file|is missing|is not a zip"
    for read in (load_experiment, read_plugin, file_digest, load_problem, Learned.load, Policy.load):
        if name in ("none", "a\0b") and read is load_problem:
            continue  # raises FileNotFoundError, as Python does
        if name != "large" or read in (load_experiment, read_plugin):
            with pytest.raises(InvalidInputError, match=reasons):
                read(tmp_path / name)


def test_a_problem_file_whose_name_is_no_text_is_refused(tmp_path):
    folder = tmp_path / os.fsdecode(b"odd\xff")
    save_problem(WORLDS["cyclic"]().build(np.random.default_rng(0)), folder / "x.npz")
    code, said = here("solve", folder / "x.npz")
    assert code != 0
    assert "a setting of the world 'file' cannot be compared and written" in said
    (folder / "x.toml").write_text(CYCLIC.replace('"cyclic"', '"file", path = "x.npz"'))
    code, said = here("run", folder / "x.toml")
    assert code != 0
    assert "has a name that is not UTF-8: give it another" in said


def test_failed_runs_begin_anew_once_their_plugin_was_mended(tmp_path):
    file, sweep = tmp_path / "mine.py", tmp_path / "sweep.toml"
    file.write_text(textwrap.dedent(PLUGIN.replace("return replace(state, k=state.k + 1)", "1 / 0")))
    sweep.write_text(CYCLIC)
    words = ["run", sweep, "--plugin", file, "--out", tmp_path / "out", "--jobs", 1, "--no-figures"]
    assert "2 of 2 runs failed" in here(*words)[1]
    code, said = here(*words, "--dry-run")
    assert code != 0
    assert "2 of 2 runs would fail" in said
    assert "it failed before (ZeroDivisionError: division by zero); --retry-failed tries it again" in said
    file.write_text(textwrap.dedent(PLUGIN))
    assert "2 runs, 6 episodes each" in here(*words, "--dry-run", "--retry-failed")[1]
    assert here(*words, "--retry-failed")[0] == 0
    assert "0 runs, 6 episodes each" in here(*words, "--dry-run")[1]
    assert json.loads((tmp_path / "out" / "summary.json").read_text())[0]["episodes"] == 6


def test_a_dry_run_names_what_fails_in_its_trial(tmp_path):
    file, sweep = tmp_path / "mine.py", tmp_path / "sweep.toml"
    file.write_text(textwrap.dedent(PLUGIN.replace("return replace(state, k=state.k + 1)", "1 / 0")))
    sweep.write_text(CYCLIC)
    code, said = here("run", sweep, "--plugin", file, "--out", tmp_path / "out", "--dry-run")
    assert code != 0
    assert "2 of 2 runs would fail" in said
    assert "its trial raised ZeroDivisionError" in said


def test_the_names_of_an_installed_package_are_there(tmp_path, plugin, monkeypatch):
    """An entry point, as a package's metadata declares it."""
    (tmp_path / "stranger.py").write_text(plugin.read_text())
    facts = tmp_path / "stranger-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[omdpd.learners]\nFixed = stranger:Fixed\nBroken = stranger:Nothing\n"
        "[omdpd.worlds]\ntwo_doors = stranger:two_doors\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    Registry.installed.cache_clear()
    try:
        registry = Registry.installed()
        assert registry.spec("learners", "Fixed", {"action": 1}).build().action == 1
        assert registry.spec("worlds", "two_doors").build(np.random.default_rng(0)).shape == (2, 1, 2)
        assert registry.spec("learners", "Fixed").plugin is None
        with pytest.raises(InvalidInputError, match=r"stranger:Nothing, which cannot be loaded"):
            registry.spec("learners", "Broken")
    finally:
        Registry.installed.cache_clear()
        sys.modules.pop("stranger", None)


def test_later_settings_rename_no_run_until_they_are_used():
    registry = Registry.installed()
    plain, said, other = (registry.spec("natures", "noisy", s) for s in ({}, {"noise": "two-point"}, {"noise": "beta"}))
    assert plain == said
    assert plain.label == "noisy"
    assert other.label == "noisy(noise=beta)"
    world, learner = registry.spec("worlds", "queue"), registry.spec("learners", "Uniform")
    assert RunSpec(world, plain, learner, 5, 0).id == RunSpec(world, said, learner, 5, 0).id
    assert RunSpec(world, plain, learner, 5, 0).id != RunSpec(world, other, learner, 5, 0).id
    assert "noise" not in toml_of(RunSpec(world, plain, learner, 5, 0))
    assert 'noise = "beta"' in toml_of(RunSpec(world, other, learner, 5, 0))


@pytest.fixture
def problem(tmp_path):
    return save_problem(WORLDS["queue"]().build(np.random.default_rng(0)), tmp_path / "mine.npz")


def file_sweep(folder, path="mine.npz"):
    file = folder / "sweep.toml"
    learners = 'learners = [{name = "Uniform"}]\nnatures = [{name = "noisy"}]'
    file.write_text(f'episodes = 5\nseeds = 1\nworlds = [{{name = "file", path = "{path}"}}]\n{learners}\n')
    return file


def test_a_problem_file_is_a_world_wherever_a_world_is_named(problem, tmp_path):
    out = tmp_path / "out"
    code, printed = here("run", file_sweep(tmp_path), "--out", out, "--jobs", "1")
    assert code == 0, printed
    assert "mine.npz@" in here("ls", out)[1]
    for command in ("suite", "compare"):
        names = ("--worlds", problem, "--natures", "noisy", "--learners", "Uniform,ProximalOMDPD.cautious")
        rest = ("--episodes", "8", "--seeds", "1", "--jobs", "1", "--out", tmp_path / command)
        code, printed = here(command, *names, *rest)
        assert code == 0, printed
    assert here("show", problem, "--out", tmp_path / "x.png")[0] == 0


def test_a_problem_file_is_known_by_its_content_not_by_its_place(problem, tmp_path):
    first = load_experiment(file_sweep(tmp_path)).runs()[0]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    problem.rename(elsewhere / "other.npz")
    second = load_experiment(file_sweep(elsewhere, "other.npz")).runs()[0]
    assert first.id == second.id
    save_problem(WORLDS["cyclic"]().build(np.random.default_rng(0)), elsewhere / "other.npz")
    assert load_experiment(file_sweep(elsewhere, "other.npz")).runs()[0].id != first.id


def test_a_problem_file_that_changed_meanwhile_is_refused(problem, tmp_path):
    run = load_experiment(file_sweep(tmp_path)).runs()[0]
    save_problem(WORLDS["cyclic"]().build(np.random.default_rng(0)), problem)
    with pytest.raises(InvalidInputError, match=r"mine\.npz has another content"):
        run.world.build(np.random.default_rng(0))


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ('{name = "file"}', "needs path"),
        ('{name = "file", path = "nowhere.npz"}', r"nowhere\.npz cannot be read here"),
        ('{name = "file", path = 3}', r"worlds\[0\]\.path"),
    ],
)
def test_a_problem_file_that_cannot_be_had_is_refused_with_a_sentence(tmp_path, entry, sentence):
    file = tmp_path / "sweep.toml"
    rest = 'learners = [{name = "Uniform"}]\nnatures = [{name = "noisy"}]'
    file.write_text(f"episodes = 5\nworlds = [{entry}]\n{rest}\n")
    with pytest.raises(InvalidInputError, match=sentence):
        load_experiment(file)


def test_a_plugin_is_loaded_once_for_one_content(plugin):
    assert read_plugin(plugin) is read_plugin(plugin)


def test_the_example_of_an_own_learner_runs_by_itself_and_as_a_plugin(tmp_path, monkeypatch):
    example = Path(__file__).parents[2] / "examples" / "own_learner.py"
    file = tmp_path / "sweep.toml"
    rest = 'worlds = [{name = "streaming"}]\nnatures = [{name = "noisy"}]'
    file.write_text(f'episodes = 30\nseeds = 1\n{rest}\nlearners = [{{name = "DualAscent", step = [0.1, 0.2]}}]\n')
    code, printed = here("run", file, "--out", tmp_path / "out", "--plugin", example, "--jobs", "1")
    assert code == 0, printed
    assert "DualAscent(step=0.2)" in printed
    monkeypatch.chdir(tmp_path)
    short = example.read_text().replace("n_episodes=500", "n_episodes=20")
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)  # where its dataclasses look for their types
    exec(compile(short, str(example), "exec"), module.__dict__)
    assert (tmp_path / "own_learner.png").stat().st_size > 10_000
