"""What the compiler cannot know about arrays: who owns them, and that they do not overlap.

A compiled function that breaks such a promise computes nonsense without a word.  Where nothing is compiled
(NUMBA_DISABLE_JIT=1) they promise nothing; tests put others in their place that check what was promised.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from omdpd.jit.decorators import COMPILED, rule


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


def _flat(typingctx, array):
    """The entries of a contiguous array as one vector, borrowed: a loop over it is one loop, whatever the shape."""
    if not isinstance(array, types.Array) or array.layout != "C":
        return None
    vector = array.copy(ndim=1)

    def codegen(context, builder, signature, args):
        whole = context.make_array(array)(context, builder, value=args[0])
        view = context.make_array(vector)(context, builder)
        populate_array(view, whole.data, [whole.nitems], [whole.itemsize], whole.itemsize, meminfo=None)
        return view._getvalue()

    return vector(array), codegen


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


@rule
def outlive(one, two=None, three=None):
    """Nothing; the owners of borrowed memory are alive until this call.

    They come one by one: a tuple of them would count their references once more, which takes time to compile.
    """


borrow: Any = intrinsic(_borrow) if COMPILED else lambda arrays: arrays
flat: Any = intrinsic(_flat) if COMPILED else lambda array: array.reshape(-1)
assume_distinct: Any = intrinsic(_assume_distinct) if COMPILED else lambda: None
