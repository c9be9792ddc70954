"""How the solvers' functions are compiled."""

from __future__ import annotations

from typing import Any

from numba import config

# Whether anything is: not with NUMBA_DISABLE_JIT=1.
COMPILED = not config.DISABLE_JIT  # type: ignore[attr-defined]  # Numba sets it from the environment
# Functions that Python calls.  Never with `fastmath`: a sum whose order is free is rounded as it happens to be linked,
# and a process that compiled a function would then have other bits than one that found it in the cache.
ENTRY: dict[str, Any] = {"cache": True, "error_model": "numpy"}
# Functions that only compiled ones call (Python must not): without the code that unpacks Python objects they compile a
# tenth faster.
INNER = {**ENTRY, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# The same, compiled into its callers and kept with them.
RULE: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# Functions with one or two call sites and so many arrays that a call would cost as much as the work at small sizes.
INLINE = {**INNER, "forceinline": True}
# Functions that only call others are copied into their caller before it is compiled: a compiled call would make the
# compiler optimise everything below it once more at every level, which is most of a cold start.
GLUE: dict[str, Any] = {"inline": "always", "error_model": "numpy"}
