"""A hint to the processor to load an array element before it is needed: random access is what sampling costs."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic


def _prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for ``array[index]`` to be loaded into the cache; never faults, whatever the index."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), word, word, word])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(call, [address, word(0), word(1), word(1)])  # read, little reuse, data cache
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


prefetch: Any = intrinsic(_prefetch)  # called as prefetch(array, index)


@njit(inline="always")
def prefetch_at(array, positions, i):
    """Prefetch ``array[positions[i]]`` where there is an i-th position, as a loop over positions does ahead of use."""
    if i < positions.shape[0]:
        prefetch(array, positions[i])
