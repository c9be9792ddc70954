"""Which parts of Numba and llvmlite we use that they do not promise to keep, and that the bounds of versions fit."""

import ast
import importlib
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import omdpd
from omdpd.solvers.compiled.flow import greedy_policy

PACKAGE = Path(omdpd.__file__).parent
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
# Modules whose names are promised; what is imported from others of theirs has to be in `IMPORTED`.
PROMISED = {"numba", "numba.extending", "llvmlite", "llvmlite.binding"}
# What we import: where code is kept (`function_cache`), what is said of it (`announce`), arrays (`pointers`).
IMPORTED = {
    "numba.core.caching._CacheLocator",
    "numba.core.caching.CompileResultCacheImpl",
    "numba.core.caching.FunctionCache",
    "numba.core.caching.IndexDataCacheFile",
    "numba.core.event",
    "numba.core.cgutils",
    "numba.np.arrayobj.populate_array",
}
# What we call or set of these, of a compiled function and of Numba's settings.
USED = [
    "numba.core.caching._CacheLocator.ensure_cache_path",
    "numba.core.caching.CompileResultCacheImpl._locator_classes",
    "numba.core.caching.CompileResultCacheImpl.filename_base",
    "numba.core.caching.CompileResultCacheImpl.locator",
    "numba.core.caching.CompileResultCacheImpl.rebuild",
    "numba.core.caching.FunctionCache._impl_class",
    "numba.core.caching.FunctionCache._index_key",
    "numba.core.caching.FunctionCache.cache_path",
    "numba.core.caching.FunctionCache.flush",
    "numba.core.caching.FunctionCache.load_overload",
    "numba.core.caching.FunctionCache.save_overload",
    "numba.core.caching.IndexDataCacheFile.load",
    "numba.core.event.Listener",
    "numba.core.event.register",
    "numba.core.cgutils.get_null_value",
    "numba.core.cgutils.unpack_tuple",
    "numba.core.cgutils.voidptr_t",
    "numba.types.FunctionType",
    "numba.config.USING_SVML",
    "llvmlite.binding.get_host_cpu_features",
    "llvmlite.binding.get_process_triple",
]
OF_A_FUNCTION = ["_cache._impl._locator", "_cache._py_func", "_cache._enabled", "stats.cache_path"]


def found(name):
    """A module, or what it has under a dotted name."""
    module, _, attribute = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ImportError:
        return getattr(found(module), attribute)


@pytest.mark.parametrize("name", sorted(IMPORTED) + USED)
def test_what_numba_does_not_promise_is_there(name):
    try:
        found(name)
    except AttributeError:
        library = name.partition(".")[0]
        pytest.fail(
            f"{library} {version(library)} has no {name}: change what uses it, then the upper bound in pyproject.toml"
        )


@pytest.mark.parametrize("name", OF_A_FUNCTION)
def test_a_compiled_function_has_what_we_ask_it_for(name):
    at = greedy_policy
    for each in name.split("."):
        assert hasattr(at, each), f"a compiled function of Numba {version('numba')} has no {name}: see `function_cache`"
        at = getattr(at, each)


def imports(file):
    """The names that a file imports from Numba and llvmlite, in full."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, each.name) for each in node.names)


def test_nothing_else_that_is_private_is_imported():
    seen = {
        f"{module}.{name}"
        for file in PACKAGE.rglob("*.py")
        for module, name in imports(file)
        if module.partition(".")[0] in ("numba", "llvmlite") and (module not in PROMISED or name.startswith("_"))
    }
    assert seen == IMPORTED, "name what is imported here, and only that"


@pytest.mark.parametrize("library", ["numba", "llvmlite"])
def test_the_next_version_is_not_taken_before_somebody_looked(library):
    required = [Requirement(each) for each in tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]]
    [allowed] = [each.specifier for each in required if each.name == library]
    assert Version(version(library)) in allowed
    newest = Version(
        re.search(rf"^{library}==(.+)$", PYPROJECT.with_name("constraints.txt").read_text(), re.MULTILINE)[1]
    )
    after = f"{newest.major}.{newest.minor + 1}.0"
    assert newest in allowed
    assert after not in allowed, f"{library} needs an upper bound: parts of it are private"
