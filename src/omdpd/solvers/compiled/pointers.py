"""What the compiler cannot know about the arrays of the solvers: who owns them, and that they do not overlap.

Where nothing is compiled (NUMBA_DISABLE_JIT=1) the promises are checked instead: see `promises`.
"""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from omdpd.solvers.compiled import promises
from omdpd.solvers.compiled.options import COMPILED, INNER


def _borrow(typingctx, arrays):
    """The same array, or all arrays of a (nested) tuple, without a share in their memory.

    Handing them on costs no atomic count.  The owner has to outlive them: whoever borrows calls `outlive` at the end.
    """

    def codegen(context, builder, signature, args):
        return _without_owner(context, builder, signature.return_type, args[0])

    return arrays(arrays), codegen


def _without_owner(context, builder, kind, value):
    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value=value)
        for field in ("meminfo", "parent"):
            setattr(view, field, cgutils.get_null_value(getattr(view, field).type))
        return view._getvalue()
    if isinstance(kind, types.BaseTuple):
        for k, each in enumerate(kind):
            item = _without_owner(context, builder, each, builder.extract_value(value, k))
            value = builder.insert_value(value, item, k)
    return value


def _assume_distinct(typingctx):
    """Promise that what the calling function writes through one of its arrays it touches through no other.

    The compiler cannot know that slots of one array do not overlap, and would neither fuse nor vectorise a loop that
    writes several of them.  So a function reads slots where they are, and is handed those it changes one by one.
    """

    def codegen(context, builder, signature, args):
        for argument in context.call_conv.get_arguments(builder.function):
            if isinstance(argument.type, type(cgutils.voidptr_t)):
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return types.none(), codegen


@njit(**INNER)
def _outlive(one, two=None, three=None):
    """Nothing; the owners of borrowed memory are alive until this call.

    They come one by one: a tuple of them would count their references once more, which takes time to compile.
    """


borrow: Any = intrinsic(_borrow) if COMPILED else promises.borrow
outlive: Any = _outlive if COMPILED else promises.outlive
assume_distinct: Any = intrinsic(_assume_distinct) if COMPILED else promises.assume_distinct
