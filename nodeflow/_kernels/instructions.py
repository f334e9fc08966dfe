"""Instructions of the processor that numba has no name for: prefetches, and bits of words.

Random access to memory costs most of the time of sampling, so addresses are prefetched. These are
instructions rather than functions, since numba counts references to an array that a function gets,
each time that it is called.
"""

# What is not good yet: a prefetch asks for the same kind of reuse ("little") everywhere, and an
# address may be asked for twice where two rows share a line.

from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

intrinsic: Any = extending.intrinsic  # what it makes takes other arguments than its definition

LINE = 64  # bytes that the processor fetches at once
_WIDE = ir.IntType(128)
_BIT = ir.IntType(1)


def code(write):
    """Turn a function of a builder and values into what numba asks of an intrinsic."""
    return lambda context, builder, signature, args: write(builder, *args)


def _ask_for(context, builder, kind, array, index):
    """Write the instruction that asks for ``array[index]``, for an array of the type ``kind``."""
    data = cgutils.create_struct_proxy(kind)(context, builder, array).data
    address = builder.bitcast(builder.gep(data, [index]), ir.IntType(8).as_pointer())
    word = ir.IntType(32)
    function = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), word, word, word])
    call = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0")
    builder.call(call, [address, word(0), word(1), word(1)])  # read, little reuse, data cache


@intrinsic
def prefetch(typingctx, array, index):
    """Ask for ``array[index]`` to be loaded into the cache; never faults, whatever the index."""

    def codegen(context, builder, signature, args):
        _ask_for(context, builder, array, *args)
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def prefetch_lines(typingctx, array, begin, count):
    """Prefetch every line in which ``array[begin : begin + count]`` lies.

    An instruction like ``prefetch_at``, and for the same reason.
    """
    step = LINE * 8 // array.dtype.bitwidth

    def codegen(context, builder, signature, args):
        data, first, size = args
        number = first.type
        end = builder.add(first, size)
        with cgutils.for_range_slice(builder, first, end, number(step), number) as (index, _):
            _ask_for(context, builder, array, data, index)
        # a row that does not begin a line ends in one line more than its length says
        _ask_for(context, builder, array, data, builder.sub(end, number(1)))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), codegen


@intrinsic
def prefetch_at(typingctx, array, positions, i):
    """Prefetch ``array[positions[i]]`` where there is an i-th position, as a loop over positions
    does ahead of use.

    An instruction, not an inlined function: numba counts references to the arrays of that in every
    iteration.
    """

    def codegen(context, builder, signature, args):
        held = cgutils.create_struct_proxy(positions)(context, builder, args[1])
        with builder.if_then(
            builder.icmp_unsigned("<", args[2], builder.extract_value(held.shape, 0))
        ):
            value = builder.load(
                cgutils.get_item_pointer(context, builder, positions, held, [args[2]])
            )
            at = context.cast(builder, value, positions.dtype, types.intp)
            _ask_for(context, builder, array, args[0], at)
        return context.get_dummy_value()

    return types.void(array, positions, types.intp), codegen


@intrinsic
def high_product(typingctx, a, b):
    """The upper 64 bits of the product of two uint64 numbers."""

    def write(builder, x, y):
        product = builder.mul(builder.zext(x, _WIDE), builder.zext(y, _WIDE))
        return builder.trunc(builder.lshr(product, _WIDE(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), code(write)


@intrinsic
def bit_length(typingctx, a):
    """The number of bits of a uint64 number, 0 for 0."""

    def write(builder, x):
        return builder.sub(ir.IntType(64)(64), builder.ctlz(x, _BIT(0)))

    return types.uint64(types.uint64), code(write)


@intrinsic
def lowest_bit(typingctx, word):
    """The index of the lowest bit that is set in a word."""
    return types.uint64(types.uint64), code(lambda builder, x: builder.cttz(x, _BIT(1)))
