"""The decorators of every compiled function: how it is compiled, and where its machine code is kept.

Numba compiles; `OwnCache` keeps (`function_cache`).  No other file of the package asks Numba for a decorator.  A
function of somebody else is none of our concern: Numba keeps that as it always does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from numba import config, njit

from omdpd.jit.announce import listen
from omdpd.jit.function_cache import OwnCache

Function = Callable[..., Any]

# Whether anything is compiled: not with NUMBA_DISABLE_JIT=1.
COMPILED = not config.DISABLE_JIT  # type: ignore[attr-defined]  # Numba sets it from the environment
# Never with `fastmath`: a sum whose order is free is rounded as it happens to be linked, and a process that compiled a
# function would then have other bits than one that found it in the cache.
INFINITE: dict[str, Any] = {"error_model": "numpy"}
# Without the code that unpacks Python objects a function compiles a tenth faster.
UNREACHED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
RULE: Any = INFINITE | UNREACHED
# Other threads run while Python waits for a function: a server answers while its learner learns.
REACHED = {"nogil": True}


def entry(function: Function) -> Any:
    """Compile a function that Python calls, and keep it."""
    return _compiled(function, INFINITE | REACHED, kept=True)


def typed_entry(signature: Any) -> Callable[[Function], Any]:
    """Compile like `entry`, for one signature and no other: at once, when the function is declared."""

    def declared(function: Function) -> Any:
        made = entry(function)
        if COMPILED:
            made.compile(signature)
            made.disable_compile()
        return made

    return declared


def checked_entry(function: Function) -> Any:
    """Compile like `entry`, but a division by zero is an error, not an infinity."""
    return _compiled(function, REACHED, kept=True)


def inner(function: Function) -> Any:
    """Compile and keep a function that only compiled ones call: Python must not."""
    return _compiled(function, RULE, kept=True)


def checked_inner(function: Function) -> Any:
    """Compile like `inner`, but a division by zero is an error, not an infinity."""
    return _compiled(function, UNREACHED, kept=True)


def rule(function: Function) -> Any:
    """Compile a function into its compiled callers, and keep it with them: Python must not call it."""
    return _compiled(function, RULE)


def inline(function: Function) -> Any:
    """Compile like `inner`, and put the machine code where it is called.

    For one or two call sites with so many arrays that a call would cost as much as the work at small sizes.
    """
    return _compiled(function, RULE | {"forceinline": True}, kept=True)


def glue(function: Function) -> Any:
    """Copy a function that only calls others into its caller before that is compiled.

    A compiled call would make the compiler optimise everything below it once more at every level, which is most of a
    cold start.
    """
    return _compiled(function, INFINITE | {"inline": "always"})


def short_rule(function: Function) -> Any:
    """Copy a rule of a line or two into its compiled callers, like `glue`; Python calls it too.

    Numba copies a function that is named by itself, not one that is asked of a module: `slower_step(...)`, not
    `weights.slower_step(...)`.
    """
    return _compiled(function, INFINITE | {"inline": "always"}, kept=True)


def in_python(module: ModuleType, others: Mapping[str, Function]) -> SimpleNamespace:
    """The functions of a module once more, run by Python, with others in place of those that have their names.

    So one source serves numbers that compiled code can hold, and those that it cannot.
    """
    space = {**vars(module), **others}
    for name, each in vars(module).items():
        source = getattr(each, "py_func", each)
        if isinstance(source, FunctionType) and source.__module__ == module.__name__ and name not in others:
            space[name] = FunctionType(source.__code__, space, name)
    return SimpleNamespace(**space)


def _compiled(function: Function, options: dict[str, Any], *, kept: bool = False) -> Any:
    """Let Numba compile a function, with a cache of ours; the function itself where nothing is compiled."""
    if not COMPILED:
        return function
    made = njit(**options)(function)
    if kept:
        # What `cache=True` does, with our cache instead of Numba's.
        made._cache = OwnCache(function)
    return made


listen()
