"""Plugin files hold users' own code: they are loaded where a user names them, and are known by their content."""

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
from omdpd.problem.strangers import strangers_code
from omdpd.storage.atomic import RecordError, read_bounded

# A module is small; a larger file is refused unread.
MAX_BYTES = 2**24


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
        source = read_bounded(file, MAX_BYTES, follow=True)
    except RecordError as error:
        raise InvalidInputError(f"the plugin {file} cannot be read here: {error}") from None
    return _loaded(str(file.resolve()), source)


@cache
def _loaded(path: str, source: bytes) -> PluginModule:
    sha256 = hashlib.sha256(source).hexdigest()
    module = ModuleType(f"omdpd_plugin_{sha256[:16]}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses and type hints look for their module
    try:
        with strangers_code(f"the plugin {path} cannot be loaded:"):
            exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
            found = PluginModule(Plugin(path, sha256), module)
            names = [name for kind in KINDS for name in found.table(kind)]
    except BaseException:
        del sys.modules[module.__name__]
        raise
    if not names:
        raise InvalidInputError(f"the plugin {path} names nothing: it needs a dictionary LEARNERS, WORLDS or NATURES")
    return found


def checked_factory(factory: Any, kind: Kind, name: str, where: str) -> Callable[..., Any]:
    """A factory, or the sentence that says what stands in its place."""
    if not callable(factory):
        raise InvalidInputError(f"{name!r} in {kind} of {where} is a {type(factory).__name__}, but must be a factory")
    made: Callable[..., Any] = factory
    return made
