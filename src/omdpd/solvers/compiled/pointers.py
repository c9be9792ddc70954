"""What the compiler cannot know about the arrays of the solvers: who owns them, and that they do not overlap."""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from omdpd.solvers.compiled.options import INNER


def _borrowed(typingctx, array):
    """The same array without a share in its memory, so that handing it on costs no atomic count.

    The owner has to outlive it: whoever borrows touches the owner once more at the end.
    """

    def codegen(context, builder, signature, args):
        view = context.make_array(signature.return_type)(context, builder, value=args[0])
        for field in ("meminfo", "parent"):
            setattr(view, field, cgutils.get_null_value(getattr(view, field).type))
        return view._getvalue()

    return array(array), codegen


borrow: Any = intrinsic(_borrowed)


def _distinct(typingctx):
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


assume_distinct: Any = intrinsic(_distinct)


@njit(**INNER)
def outlive(owners):
    """Nothing; the owners of borrowed memory are alive until this call."""
