"""Plugin files: somebody's own code, loaded because they named the file, and known by its content."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from omdpd.experiments.spec import KINDS, Kind, Plugin
from omdpd.problem.arrays import InvalidInputError


@dataclass(frozen=True, eq=False)
class PluginModule:
    """A plugin file that was loaded."""

    plugin: Plugin
    module: ModuleType

    def table(self, kind: Kind) -> Mapping[str, Callable[..., Any]]:
        """The names it has of a kind."""
        table = getattr(self.module, kind.upper(), {})
        if not isinstance(table, Mapping) or not all(isinstance(name, str) for name in table):
            raise InvalidInputError(f"{kind.upper()} of {self.plugin.path} must be a dictionary of names and factories")
        return {name: checked_factory(factory, kind, name, self.plugin.path) for name, factory in table.items()}


def read_plugin(file: Path) -> PluginModule:
    """Load a plugin; one content is loaded once."""
    try:
        source = file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"the plugin {file} cannot be read here: {error.strerror}") from None
    return _loaded(str(file.resolve()), source)


@cache
def _loaded(path: str, source: bytes) -> PluginModule:
    sha256 = hashlib.sha256(source).hexdigest()
    module = ModuleType(f"omdpd_plugin_{sha256[:16]}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses and type hints look for their module
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except Exception as error:  # whatever a stranger's module raises
        del sys.modules[module.__name__]
        raise InvalidInputError(f"the plugin {path} cannot be loaded: {type(error).__name__}: {error}") from None
    found = PluginModule(Plugin(path, sha256), module)
    if not any(found.table(kind) for kind in KINDS):
        raise InvalidInputError(f"the plugin {path} names nothing: it needs a dictionary LEARNERS, WORLDS or NATURES")
    return found


def checked_factory(factory: Any, kind: Kind, name: str, where: str) -> Callable[..., Any]:
    """A factory, or the sentence that says what stands in its place."""
    if not callable(factory):
        raise InvalidInputError(f"{name!r} in {kind} of {where} is a {type(factory).__name__}, but must be a factory")
    made: Callable[..., Any] = factory
    return made
