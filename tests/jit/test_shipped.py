"""Machine code that came with the package is loaded instead of compiled; whatever does not fit is compiled."""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numba
import pytest

import omdpd
from omdpd.jit import shipped
from omdpd.jit.shipped import About, facts, shipped_code
from tools.build_wheel import INSIDE, PROCESSORS, ROOT, outside

PACKAGE = Path(omdpd.__file__).parent
pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(platform.machine() not in PROCESSORS, reason="no machine code is made for this kind"),
]
PROCESSOR, FEATURES = PROCESSORS.get(platform.machine(), ("", ""))

# Tables of numbers that are no sums of two powers, and what is computed from them.
TABLES = """
import numpy as np
from omdpd.solvers.compiled.flow import greedy_policy, value_of_policy, values_of_policy
rng = np.random.default_rng(7)
p, r = rng.dirichlet(np.ones(5), (4, 5, 3)), rng.random((4, 5, 3))
"""
PLAN = TABLES + "policy, values = greedy_policy(p, r); digits = values.tobytes().hex()\n"
# Compiled here, with the shipped `values_of_policy` linked into it.
CALLER = TABLES + "digits = float(value_of_policy(np.full(r.shape, 1 / 3), p, p[0, 0, 0], r)).hex()\n"
SHIPPED = TABLES + "greedy_policy(p, r); values_of_policy(np.full(r.shape, 1 / 3), p, r)\n"
TELL = """
import json
print(json.dumps({"digits": digits} | {
    f.py_func.__name__: [sum(f.stats.cache_hits.values()), sum(f.stats.cache_misses.values())]
    for f in (greedy_policy, value_of_policy, values_of_policy)
}))
"""
# [found, not found] of a function.
LOADED, COMPILED, UNTOUCHED = [1, 0], [0, 1], [0, 0]


def python(*command, **environment):
    done = subprocess.run(
        [sys.executable, *command], env=outside() | environment, capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with the machine code of two functions, as a wheel has it: the folder to import it from."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, folder / "omdpd", ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copy)
    target = {"NUMBA_CPU_NAME": PROCESSOR, "NUMBA_CPU_FEATURES": FEATURES, "OMDPD_CACHE_DIR": str(folder / "made")}
    python("-c", SHIPPED, PYTHONPATH=str(folder), **target)
    python(ROOT / "tools" / "ship_code.py", machine_code(folder), PYTHONPATH=str(folder), **target)
    return folder


def machine_code(package):
    return package / INSIDE.relative_to("src")


def first_use(package, cache, code, **environment):
    """What a process with an empty cache tells of its functions, and what it says to people."""
    out, said = python("-c", code + TELL, PYTHONPATH=str(package), OMDPD_CACHE_DIR=str(cache), **environment)
    return json.loads(out), said


def digits_here(code):
    """The same numbers by what was compiled for this very processor, in this process."""
    names = {}
    exec(code, names)
    return names["digits"]


def changed(package, folder):
    """A copy of the package whose machine code may be spoilt."""
    shutil.copytree(package, folder, dirs_exist_ok=True)
    return folder


def test_what_came_along_is_not_compiled_and_computes_the_same_bits(package, tmp_path):
    told, said = first_use(package, tmp_path, PLAN)
    assert told == {
        "digits": digits_here(PLAN), "greedy_policy": LOADED,
        "value_of_policy": UNTOUCHED, "values_of_policy": UNTOUCHED,
    }  # fmt: skip
    assert said == ""
    assert not [*tmp_path.rglob("*.nb*")]


def test_a_function_that_is_compiled_here_links_what_came_along(package, tmp_path):
    told, said = first_use(package, tmp_path, CALLER)
    assert told["digits"] == digits_here(CALLER)
    assert (told["value_of_policy"], told["values_of_policy"]) == (COMPILED, LOADED)
    assert "compiling what this run needs" in said
    assert [file.name.split("-")[0] for file in tmp_path.rglob("*.nbc")] == ["flow.value_of_policy"]
    again, silence = first_use(package, tmp_path, CALLER)
    assert (again["digits"], again["value_of_policy"], silence) == (told["digits"], LOADED, "")


def test_the_users_own_functions_are_compiled_for_his_own_processor(package, tmp_path):
    (tmp_path / "own.py").write_text(
        "import numba\nfrom numba.core import registry\nfrom omdpd import run\n"
        "@numba.njit(cache=True)\ndef f(x):\n    return x + 1\n"
        "f(1.0)\nprint(type(f._cache).__name__, registry.cpu_target.target_context.codegen().magic_tuple()[1])\n"
    )
    kept = {"PYTHONPATH": str(package), "OMDPD_CACHE_DIR": str(tmp_path / "cache")}
    expected = python("-c", "import llvmlite.binding as llvm; print(llvm.get_host_cpu_name())")[0].strip()
    assert python(tmp_path / "own.py", **kept)[0].split() == ["FunctionCache", expected]


def test_code_made_from_other_sources_is_compiled_anew(package, tmp_path):
    other = changed(package, tmp_path / "other")
    with (other / "omdpd" / "solvers" / "compiled" / "flow.py").open("a") as source:
        source.write("# a line more\n")
    told, _ = first_use(other, tmp_path / "cache", PLAN)
    assert (told["greedy_policy"], told["digits"]) == (COMPILED, digits_here(PLAN))


def with_another_byte(text):
    middle = len(text) // 2
    return text[:middle] + bytes([255 - text[middle]]) + text[middle + 1 :]


@pytest.mark.parametrize("spoil", [lambda text: text[: len(text) // 2], with_another_byte])
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_broken_file_is_compiled_anew_without_an_error(package, tmp_path, suffix, spoil):
    other = changed(package, tmp_path / "other")
    for file in machine_code(other).rglob(f"flow.greedy*.{suffix}"):
        file.write_bytes(spoil(file.read_bytes()))
    told, _ = first_use(other, tmp_path / "cache", PLAN)
    assert (told["greedy_policy"], told["digits"]) == (COMPILED, digits_here(PLAN))


@pytest.mark.parametrize("environment", [{"OMDPD_SHIPPED": "0"}, {"NUMBA_BOUNDSCHECK": "1"}])
def test_who_wants_his_own_code_compiles_it(package, tmp_path, environment):
    told, _ = first_use(package, tmp_path, PLAN, **environment)
    assert (told["greedy_policy"], told["digits"]) == (COMPILED, digits_here(PLAN))


@pytest.fixture
def described(tmp_path):
    """Writes about.json and tells whether the code it describes would be used here."""

    def would_be_used(**changes):
        about = msgspec.structs.replace(About(facts(), PROCESSOR, FEATURES, {}), **changes)
        (tmp_path / "code").mkdir(exist_ok=True)
        (tmp_path / "code" / "about.json").write_bytes(msgspec.json.encode(about))
        shipped_code.cache_clear()
        return shipped_code(tmp_path) is not None

    yield would_be_used
    shipped_code.cache_clear()


def test_code_is_used_only_with_the_versions_it_was_made_with(described):
    assert described()
    for name in ("sources", "python", "numba", "llvmlite", "system"):
        assert not described(facts=facts() | {name: "another"}), name


def test_a_processor_without_a_feature_compiles(described, monkeypatch):
    assert not described(features=f"{FEATURES},+of-the-future")
    have = dict(shipped.llvm.get_host_cpu_features())
    monkeypatch.setattr(shipped.llvm, "get_host_cpu_features", lambda: have | {"avx2": False})
    assert not described()

    def unknown():
        raise RuntimeError("LLVM cannot tell")

    monkeypatch.setattr(shipped.llvm, "get_host_cpu_features", unknown)
    assert not described()


@pytest.mark.parametrize("name", ["CPU_NAME", "CPU_FEATURES", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "OPT"])
def test_nothing_is_used_where_numba_was_told_how_to_compile(described, monkeypatch, name):
    monkeypatch.setattr(numba.config, name, 1)
    assert not described()


def test_a_description_that_cannot_be_read_is_passed_over(tmp_path):
    (tmp_path / "code").mkdir()
    for text in ("{", '{"facts": 1}', ""):
        (tmp_path / "code" / "about.json").write_text(text)
        shipped_code.cache_clear()
        assert shipped_code(tmp_path) is None
    shipped_code.cache_clear()


def test_a_checkout_has_none():
    assert not (ROOT / INSIDE).exists()
    assert shipped_code() is None
