"""Compiled functions as arguments of others: called where they lie, instead of being compiled into every caller.

Linking a solver into one more function takes ten seconds and gives it other machine code, whose sums may be rounded in
another order; a handle costs nothing, and what it calls is the one function, bit for bit.

An exception does not pass through a handle: Numba prints it, and the caller goes on with zeros.  So a function that is
handed in returns something that is not zero once it is done, and its caller looks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import typeof, types

from omdpd.solvers.compiled.options import COMPILED


class _Handle(types.WrapperAddressProtocol):
    """A compiled function for arguments of certain types."""

    def __init__(self, function: Any, kinds: tuple[Any, ...]) -> None:
        function.compile(kinds)  # or found in the cache, under the types that a call has
        self._found = function.overloads[kinds]

    def __wrapper_address__(self) -> int:
        address: int = self._found.library.get_pointer_to_function(self._found.fndesc.llvm_cfunc_wrapper_name)
        return address

    def signature(self) -> Any:
        return self._found.signature


def handle(function: Any, *arguments: Any) -> Callable[..., Any]:
    """A function to be handed to another, for arguments like these; itself where nothing is compiled."""
    if not COMPILED:
        return function
    found: Any = _Handle(function, tuple(typeof(each) for each in arguments))
    return found
