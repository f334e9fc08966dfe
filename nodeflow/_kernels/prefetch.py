"""A hint to the processor to load an array element before it is needed: random access is what sampling costs."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _ask_for(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> None:
    """Write the instruction that asks for ``array[index]``, for an array of the type ``kind``."""
    data = cgutils.create_struct_proxy(kind)(context, builder, array).data
    address = builder.bitcast(builder.gep(data, [index]), ir.IntType(8).as_pointer())
    word = ir.IntType(32)
    function = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), word, word, word])
    call = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0")
    builder.call(call, [address, word(0), word(1), word(1)])  # read, little reuse, data cache


def _prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for ``array[index]`` to be loaded into the cache; never faults, whatever the index."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _ask_for(context, builder, signature.args[0], *args)
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


def _prefetch_at(typingctx: Any, array: Any, positions: Any, i: Any) -> Any:
    """Prefetch ``array[positions[i]]`` where there is an i-th position, as a loop over positions does ahead of use.

    An instruction, not an inlined function: numba counts references to the arrays of that in every iteration.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, index = signature.args[1], args[2]
        held = cgutils.create_struct_proxy(kind)(context, builder, args[1])
        with builder.if_then(builder.icmp_unsigned("<", index, builder.extract_value(held.shape, 0))):
            value = builder.load(cgutils.get_item_pointer(context, builder, kind, held, [index]))
            _ask_for(context, builder, signature.args[0], args[0], context.cast(builder, value, kind.dtype, types.intp))
        return context.get_dummy_value()

    return types.void(array, positions, types.intp), codegen


prefetch: Any = intrinsic(_prefetch)  # called as prefetch(array, index)
prefetch_at: Any = intrinsic(_prefetch_at)  # called as prefetch_at(array, positions, i)
