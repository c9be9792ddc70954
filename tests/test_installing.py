"""What an installation needs and does: its dependencies are those that are imported, and nothing else is loaded."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import omdpd
from tools.lower_bounds import lower_bounds

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMES = {"tomli-w": "tomli_w"}  # where a package is imported under another name
# Loaded where they are asked for, with a sentence if they are missing.
OPTIONAL = {
    "gymnasium",
    "distributed",
    "dask",
    "starlette",
    "uvicorn",
    "IPython",
    "matplotlib",
    "PIL",
    "pyarrow",
    "pandas",
}
# What `import omdpd` must not cost anybody.
NOT_LOADED = (
    "numpy",
    "numba",
    "scipy",
    "pyarrow",
    "highspy",
    "matplotlib",
    "rich",
    "typer",
    "distributed",
    "gymnasium",
)
# What a learner must not cost: pages, figures, tests of significance, command lines.
NOT_FOR_A_RUN = ("matplotlib", "pyarrow", "scipy.stats", "rich.progress", "typer", "distributed", "gymnasium", "piqp")


def imported():
    """Top-level names of what the package imports."""
    for file in (ROOT / "src" / "omdpd").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.split(".")[0]


def requirements(entries):
    return {NAMES.get(name, name) for name in (Requirement(entry).name for entry in entries)}


def test_the_dependencies_are_what_is_imported():
    foreign = {name for name in imported() if name not in sys.stdlib_module_names and name != "omdpd"}
    assert foreign - OPTIONAL == requirements(PROJECT["dependencies"])


def test_what_tests_alone_need_is_no_dependency():
    extras = PROJECT["optional-dependencies"]
    assert "piqp" not in requirements(PROJECT["dependencies"])
    assert "piqp" in requirements(extras["test"])
    assert "distributed" not in requirements(extras["test"])
    assert extras["test-cluster"] == ["omdpd[test,dask]"]
    assert "omdpd[test-cluster]" in extras["dev"]  # what `make test` and CI install


def test_a_hint_installs_what_an_extra_brings_from_an_index_that_has_it():
    extras = [requirements(entries) for entries in PROJECT["optional-dependencies"].values()]
    trees = [ast.parse(file.read_text()) for file in (ROOT / "src" / "omdpd").rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    hints = [{word.value for word in call.args[1:]} for call in calls if ast.unparse(call.func) == "not_installed"]
    assert len(hints) == 11
    assert all(packages in extras for packages in hints)


def test_every_dependency_has_a_lower_bound_and_ci_installs_what_is_allowed():
    bounds = dict(entry.split("==") for entry in lower_bounds())
    extras = PROJECT["optional-dependencies"]
    entries = [*PROJECT["dependencies"], *extras["plot"], *extras["arrow"]]
    wanted = {Requirement(entry).name: Requirement(entry).specifier for entry in entries}
    assert set(bounds) == set(wanted)
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    for versions in (bounds, pinned):
        assert [name for name, allowed in wanted.items() if versions[name] not in allowed] == []


def test_nobody_is_told_to_install_this_package_from_an_index():
    pages = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert [page.name for page in pages if re.search(r"pip install '?omdpd", page.read_text())] == []


def test_the_versions_of_python_are_those_that_readme_names():
    supported = SpecifierSet(PROJECT["requires-python"])
    assert [minor for minor in range(8, 20) if f"3.{minor}.0" in supported] == [11, 12, 13, 14]
    assert "Python 3.11 to 3.14" in (ROOT / "README.md").read_text()


def test_version_changelog_citation_and_classifiers_agree():
    version = omdpd.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(version)}$", citation, re.MULTILINE)
    headings = re.findall(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0][0] == version
    released = re.search(r'^date-released: "(.+)"$', citation, re.MULTILINE)[1]
    assert headings[0][1] in (released, "unreleased")
    assert [name for name, _ in headings] == sorted((name for name, _ in headings), reverse=True)
    minors = re.findall(r"Python :: 3\.(\d+)", " ".join(PROJECT["classifiers"]))
    supported = SpecifierSet(PROJECT["requires-python"])
    assert [int(minor) for minor in minors] == [minor for minor in range(8, 20) if f"3.{minor}.0" in supported]


@pytest.mark.parametrize(
    ("program", "unloaded"),
    [("import omdpd", NOT_LOADED), ("from omdpd import CMDP, ProximalOMDPD, Session, plot, run", NOT_FOR_A_RUN)],
)
def test_importing_loads_nothing_that_is_not_needed(program, unloaded):
    code = f"import sys; {program}; print(*[name for name in {unloaded!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == []


def test_every_public_name_is_loaded_from_where_the_types_say_it_is():
    tree = ast.parse(Path(omdpd.__file__).read_text())
    (typed,) = [node for node in tree.body if isinstance(node, ast.If)]
    homes = {alias.name: line.module.removeprefix("omdpd.") for line in typed.body for alias in line.names}
    assert homes == omdpd._HOMES
    assert sorted(homes) == sorted(omdpd.__all__)
    assert all(getattr(omdpd, name) is not None for name in omdpd.__all__)
    assert {*omdpd.__all__, "learners", "worlds"} <= set(dir(omdpd))
    assert omdpd.natures.NATURES
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        omdpd.nothing  # noqa: B018
