"""A study in shares, settings said beside the file, and the schema that editors read."""

import itertools
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

from omdpd.experiments.files import STARTER, load_experiment, overridden
from omdpd.experiments.registry import Registry
from omdpd.experiments.schema import experiment_schema
from omdpd.experiments.spec import Experiment, shard_of
from omdpd.problem.arrays import InvalidInputError
from tests.references.named import LEARNERS, NATURES, WORLDS

COMMAND = Path(sys.executable).with_name("omdpd")
DOCS = Path(__file__).parents[2] / "docs"
SWEEP = """\
episodes = 12
seeds = 3
worlds = [{ name = "random_dirichlet" }]
natures = [{ name = "noisy" }, { name = "pool" }]
learners = [{ name = "Uniform" }, { name = "SinhaVaze" }]
"""


def grid(seeds):
    worlds, natures = (WORLDS["random_dirichlet"](),), (NATURES["noisy"](), NATURES["pool"]())
    return Experiment(worlds, natures, (LEARNERS["Uniform"](), LEARNERS["SinhaVaze"]()), 10, seeds).runs()


@pytest.mark.parametrize(("seeds", "n"), [(1, 1), (1, 3), (2, 3), (5, 7), (2, 30)])
def test_every_run_is_in_exactly_one_share_and_shares_differ_by_one_run(seeds, n):
    runs = grid(seeds)
    shares = [shard_of(runs, i, n) for i in range(1, n + 1)]
    assert sorted(run.id for share in shares for run in share) == sorted(run.id for run in runs)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_shares_do_not_depend_on_the_order_of_the_runs():
    runs = grid(4)
    for i in (1, 2, 3):
        assert {run.id for run in shard_of(runs, i, 3)} == {run.id for run in shard_of(runs[::-1], i, 3)}


@pytest.mark.parametrize("place", [0, 4])
def test_a_share_that_is_none_is_refused(place):
    with pytest.raises(InvalidInputError, match=f"the shard is {place} of 3, but must be one of 1 to 3"):
        shard_of(grid(1), place, 3)


def test_shares_played_at_once_into_one_folder_make_the_whole_study(tmp_path):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    words = [COMMAND, "run", "sweep.toml", "--jobs", "1", "--out"]
    ask = {"cwd": tmp_path, "text": True}
    shares = [
        subprocess.Popen([*words, "parts", "--shard", f"{i}/3"], **ask, stdout=subprocess.PIPE) for i in (1, 2, 3)
    ]
    said = [share.communicate()[0] for share in shares]
    assert [share.returncode for share in shares] == [0, 0, 0]
    assert any("Means over 3 seeds" in text for text in said)  # whoever ended last
    subprocess.run([*words, "whole"], **ask, check=True, capture_output=True)
    parts, whole = (json.loads((tmp_path / name / "summary.json").read_text()) for name in ("parts", "whole"))
    timeless = [
        [{k: v for k, v in record.items() if k != "seconds"} for record in records] for records in (parts, whole)
    ]
    assert timeless[0] == timeless[1]
    assert (tmp_path / "parts" / "figure.png").exists()


def test_one_share_says_how_much_is_left(tmp_path):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    words = [COMMAND, "run", "sweep.toml", "--jobs", "1", "--set", "seeds=1"]
    said = subprocess.run([*words, "--shard", "1/2"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "The 2 runs of this shard are finished; 2 of all 4 are not" in said.stdout
    assert not (tmp_path / "results" / "sweep" / "summary.json").exists()
    refused = subprocess.run([*words, "--shard", "2"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--shard is '2', but must be i/n" in refused.stderr


def test_settings_said_beside_the_file_count_as_if_they_stood_in_it(tmp_path):
    (tmp_path / "a.toml").write_text(SWEEP)
    spelled = SWEEP.replace("episodes = 12", 'episodes = 20\nrecord = "all"').replace(
        '"pool" }', '"pool", size = [2, 3] }'
    )
    (tmp_path / "b.toml").write_text(spelled)
    settings = ["episodes=20", "record=all", "natures[1].size=[2, 3]"]
    said = load_experiment(tmp_path / "a.toml", overrides=settings)
    assert [run.id for run in said.runs()] == [run.id for run in load_experiment(tmp_path / "b.toml").runs()]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("episodes", "--set 'episodes': write one key=value"),
        ("episodes=many", "episodes: Expected `int`, got `str`"),
        ("natures[1].size=x", "natures[1].size: Expected `int"),
        (
            "natures.size=3",
            "--set natures.size: the experiment has 2 natures; say which, from natures[0] to natures[1]",
        ),
        ("natures[5].size=3", "--set natures[5].size: the experiment has 2 natures, counted from 0"),
        ("worlds.bogus=3", "worlds[0]: Object contains unknown field `bogus`"),
        ("planets.size=3", "--set planets.size: there is no 'planets' in an experiment; there are worlds, natures"),
        ("learners=3", "--set learners: whole tables are not set here"),
        ("bogus=3", "unknown field `bogus`"),
        ("episodes=5\nseeds=3", "write one key=value in one line"),
        ("episodes=5\rseeds=3", "write one key=value in one line"),
        ("episodes=\udcff", "write one key=value in one line"),
        ("episodes=" + "[" * 5000, "--set: the value '[[["),
        ("episodes=" + "1" * 5000, "--set: the value '111"),
        ("episodes=0x" + "f" * 5000, "episodes is something of type int, but must be between 1 and"),
        ("learners[" + "1" * 5000 + "].z=1", "counted from 0"),
    ],
)
def test_a_setting_that_is_wrong_is_refused_with_its_key(tmp_path, setting, sentence):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    with pytest.raises(InvalidInputError, match=re.escape(sentence)):
        load_experiment(tmp_path / "sweep.toml", overrides=[setting])


def test_what_was_decoded_is_not_changed():
    content = tomllib.loads(SWEEP)
    overridden(content, ["episodes=3", "worlds.n_states=7"])
    assert content == tomllib.loads(SWEEP)


@pytest.fixture(scope="module")
def validator():
    schema = experiment_schema(Registry.installed())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def experiments_in_docs():
    """The whole experiments that the pages show."""
    for page in sorted(DOCS.glob("*.md")):
        for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.S):
            if "episodes" in block:
                yield block


def test_the_schema_takes_every_experiment_that_is_shown():
    # One page has a learner of its reader's own: the example.
    registry = Registry.installed().with_plugins([DOCS.parent / "examples" / "own_learner.py"])
    validator = jsonschema.Draft202012Validator(experiment_schema(registry))
    shown = [STARTER.format(file="x.toml"), SWEEP, *experiments_in_docs()]
    assert len(shown) > 2
    for text in shown:
        assert not list(validator.iter_errors(tomllib.loads(text))), text


def test_the_schema_takes_every_name_that_needs_no_setting(validator):
    registry = Registry.installed()
    names = [[{"name": name} for name in registry.complete(kind)] for kind in ("worlds", "natures", "learners")]
    for world, nature, learner in itertools.zip_longest(*names):
        first = [column[0] for column in names]
        parts = [[part or default] for part, default in zip((world, nature, learner), first, strict=True)]
        spelled = dict(zip(("worlds", "natures", "learners"), parts, strict=True))
        assert validator.is_valid({"episodes": 5, **spelled}), spelled


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("episodes = 12", 'episodes = "12"'),
        ("episodes = 12", "episodes = 12\nbogus = 1"),
        ('name = "noisy"', 'name = "nosy"'),
        ('name = "pool"', 'name = "pool", size = "three"'),
        ('name = "pool"', 'name = "pool", sise = 3'),
        ("seeds = 3", ""),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(validator, tmp_path, before, after):
    text = SWEEP.replace(before, after)
    (tmp_path / "sweep.toml").write_text(text)
    refused = False
    try:
        load_experiment(tmp_path / "sweep.toml")
    except InvalidInputError:
        refused = True
    assert validator.is_valid(tomllib.loads(text)) is not refused


def test_the_schema_offers_no_setting_of_earlier_versions(validator):
    properties = validator.schema["$defs"]["learners.ProximalOMDPD.standard"]["properties"]
    assert "z" in properties
    assert "layout" not in properties


def test_the_command_prints_the_schema(tmp_path):
    said = subprocess.run([COMMAND, "schema"], capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == json.loads(json.dumps(experiment_schema(Registry.installed())))
