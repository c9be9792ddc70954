"""The promises of `omdpd.jit.pointers`, checked, for functions that run in plain Python (NUMBA_DISABLE_JIT=1)."""

from __future__ import annotations

import ast
import ctypes
import inspect
import sys
import textwrap
import weakref
from collections.abc import Iterator
from functools import cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from omdpd.jit import pointers

# What a function touches through an argument: slots of it, or (None) all of it.
Touched = dict[str, set[str | None]]


class BrokenPromiseError(Exception):
    """Compiled, this code would have been wrong."""


def assume_distinct() -> None:
    """Check that no array the calling function writes overlaps what it touches through another one.

    An argument that is only indexed as ``E[slot.NAME, ...]`` counts with those slots.
    """
    frame = sys._getframe(1)
    written, touched = _accesses(frame.f_code)
    for name in written:
        for other, region, overlaps in _regions(frame, touched, frame.f_locals[name]):
            if other != name and overlaps:
                where = f"{frame.f_code.co_name} writes {name}"
                raise BrokenPromiseError(f"{where}, whose memory it also touches through {region}")


def _regions(frame: FrameType, touched: Touched, written: Any) -> Iterator[tuple[str, str, bool]]:
    """Every array that the frame touches, slot by slot: its name, how it is reached, whether it overlaps `written`."""
    for other, slots in touched.items():
        array = frame.f_locals[other]
        if isinstance(array, np.ndarray):
            for name in slots:
                part = array if name is None else array[getattr(frame.f_globals["slot"], name)]
                yield other, other if name is None else f"{other}[slot.{name}]", np.may_share_memory(written, part)


@cache
def _accesses(code: CodeType) -> tuple[frozenset[str], Touched]:
    """The arguments that a function writes by index, and what it touches through each, from its source."""
    function = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = {each.arg for each in function.args.args}
    written: set[str] = set()
    touched: Touched = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in arguments:
            touched.setdefault(node.value.id, set()).add(_slot(node.slice))
            if isinstance(node.ctx, ast.Store):
                written.add(node.value.id)
        elif isinstance(node, ast.Call):
            for each in node.args:
                if isinstance(each, ast.Name) and each.id in arguments:
                    touched.setdefault(each.id, set()).add(None)
    return frozenset(written), touched


def _slot(index: ast.expr) -> str | None:
    """NAME of an index ``slot.NAME, ...``."""
    first = index.elts[0] if isinstance(index, ast.Tuple) else index
    if isinstance(first, ast.Attribute) and isinstance(first.value, ast.Name) and first.value.id == "slot":
        return first.attr
    return None


class Borrowed(np.ndarray):
    """An array that does not keep its memory alive, and refuses to be read or written once the owner is gone."""

    lender: weakref.ref[Any] | None = None

    def __array_finalize__(self, parent: Any) -> None:
        # A view borrows as its parent does; a copy has memory of its own.
        self.lender = getattr(parent, "lender", None) if self.base is not None else None

    def __getitem__(self, key: Any) -> Any:
        self._check()
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check()
        super().__setitem__(key, value)

    def _check(self) -> None:
        if self.lender is not None and self.lender() is None:
            raise BrokenPromiseError("an array was used after the one it was borrowed from was gone")


def borrow(arrays: Any) -> Any:
    """The array, or all arrays of a (nested) tuple, without a share in their memory, as the compiled one does it."""
    frame = sys._getframe(1)
    if "outlive" not in frame.f_code.co_names:
        raise BrokenPromiseError(f"{frame.f_code.co_name} borrows and does not call outlive at its end")
    return _lent(arrays)


def _lent(arrays: Any) -> Any:
    if isinstance(arrays, tuple):
        items = [_lent(each) for each in arrays]
        return type(arrays)(*items) if hasattr(arrays, "_fields") else tuple(items)
    if not isinstance(arrays, np.ndarray) or isinstance(arrays, Borrowed) or arrays.size == 0:
        return arrays
    memory = (ctypes.c_char * arrays.nbytes).from_address(arrays.ctypes.data)
    view = np.ndarray(arrays.shape, arrays.dtype, memoryview(memory)).view(Borrowed)
    view.lender = weakref.ref(_owner(arrays))
    return view


def flat(array: Any) -> Any:
    """The entries of a contiguous array as one vector."""
    _check_contiguous(array)
    return array.reshape(-1)


def _check_contiguous(array: Any) -> None:
    if not array.flags.c_contiguous:
        raise BrokenPromiseError("an array whose entries do not lie one after another was given another shape")


def outlive(*owners: Any) -> None:
    """Check that whatever the calling function borrowed is owned by `owners` or by one of its arguments."""
    frame = sys._getframe(1)
    arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    given = [frame.f_locals[name] for name in arguments]
    known = {id(_owner(array)) for array in _arrays([owners, given])}
    # What an argument borrows the caller sees to.
    known |= {
        id(array.lender()) for array in _arrays(given) if isinstance(array, Borrowed) and array.lender is not None
    }
    for name, value in frame.f_locals.items():
        for array in _arrays(value):
            if isinstance(array, Borrowed) and array.lender is not None:
                lender = array.lender()
                if lender is None or id(lender) not in known:
                    message = (
                        f"{frame.f_code.co_name}: the owner of what {name} borrows is not among those that outlive it"
                    )
                    raise BrokenPromiseError(message)


def _arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _arrays(each)


def _owner(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def check_promises() -> None:
    """Let every function of the package that is imported check what it promises."""
    for check in (assume_distinct, borrow, flat, outlive):
        promise = getattr(pointers, check.__name__)
        for name, module in list(sys.modules.items()):
            if name.startswith("omdpd.") and getattr(module, check.__name__, None) is promise:
                setattr(module, check.__name__, check)
