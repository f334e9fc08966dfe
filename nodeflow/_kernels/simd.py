"""Vectors of 16 numbers for compiled loops over rows of features.

Rows are short. A plain loop over one row, as LLVM vectorises it, spends most of its time in the checks before the
vectors and in the remainder after them. Here a vector is loaded and stored whole, or only its first ``n`` numbers, and
sums stay in vectors over all edges of a row. Every operation is exact or rounded once, in one fixed order, so results
are the same on every run.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 16
HALF = LANES // 2
_WORD = ir.IntType(32)


class Vector(types.Type):
    """``lanes`` numbers of one floating type."""

    def __init__(self, dtype: Any, lanes: int = LANES) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Vector({dtype}, {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.dtype).get_value_type(), kind.lanes))


def _constant(kind: Any, number: Any) -> Any:
    return ir.Constant(kind, [number] * kind.count)


def _call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Call one of LLVM's own functions for vectors of this result's type."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _overload(name: str, vector: Any) -> str:
    return f"llvm.{name}.v{vector.lanes}f{vector.dtype.bitwidth}"


def _spread(builder: Any, number: Any, lanes: int) -> Any:
    kind = ir.VectorType(number.type, lanes)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.Constant(_WORD, 0))
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), _constant(ir.VectorType(_WORD, lanes), 0))


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any, lanes: int) -> Any:
    data = cgutils.create_struct_proxy(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.VectorType(data.type.pointee, lanes).as_pointer())


def _first(builder: Any, count: Any, lanes: int) -> Any:
    """A mask of the lanes below ``count``."""
    numbers = ir.Constant(ir.VectorType(count.type, lanes), list(range(lanes)))
    return builder.icmp_signed("<", numbers, _spread(builder, count, lanes))


def _vector(array: Any, count: Any, most: int = LANES) -> Vector:
    """The type that is loaded or stored: as many lanes as a count known when compiled, else ``most``."""
    literal = isinstance(count, types.IntegerLiteral)
    if literal and count.literal_value not in (HALF, LANES):
        raise ValueError(f"a fixed count is {HALF} or {LANES}, got {count.literal_value}")
    dtype = array.dtype if isinstance(array.dtype, types.Float) else types.float32
    return Vector(dtype, count.literal_value if literal else most)


def _widened(builder: Any, dtype: Any, bits: Any) -> Any:
    """Return numbers as they are; of uint16, the bits of bfloat16, and int16, those of float16, the float32 numbers."""
    if isinstance(dtype, types.Float):
        return bits
    words, singles = ir.VectorType(_WORD, bits.type.count), ir.VectorType(ir.FloatType(), bits.type.count)

    def same(number: int) -> Any:
        return _constant(words, number)

    if dtype == types.uint16:
        return builder.bitcast(builder.shl(builder.zext(bits, words), same(16)), singles)
    # By hand, because not every processor can: exponent and fraction go to their places, a factor puts the bias of the
    # exponent right (and makes denormal numbers normal), and infinity and NaN are marked as such.
    bits = builder.sext(bits, words)
    size = builder.shl(builder.and_(bits, same(0x7FFF)), same(13))
    value = builder.bitcast(builder.fmul(builder.bitcast(size, singles), _constant(singles, 2.0**112)), words)
    special = builder.icmp_unsigned(">=", size, same(0x7C00 << 13))
    value = builder.or_(value, builder.select(special, same(0x7F800000), same(0)))
    return builder.bitcast(builder.or_(value, builder.and_(bits, same(0x80000000))), singles)


def _narrowed(builder: Any, dtype: Any, vector: Any) -> Any:
    """Return numbers as an array of ``dtype`` stores them: in uint16 the bits of the nearest bfloat16, ties to even."""
    if isinstance(dtype, types.Float):
        return vector
    if dtype != types.uint16:
        raise ValueError(f"vectors are stored in arrays of floats and of uint16, got {dtype}")
    words, lanes = ir.VectorType(_WORD, vector.type.count), vector.type.count

    def same(number: int) -> Any:
        return _constant(words, number)

    bits = builder.bitcast(vector, words)
    odd = builder.and_(builder.lshr(bits, same(16)), same(1))
    high = builder.lshr(builder.add(bits, builder.add(odd, same(0x7FFF))), same(16))
    high = builder.select(builder.fcmp_unordered("uno", vector, vector), same(0x7FC0), high)
    return builder.trunc(high, ir.VectorType(ir.IntType(16), lanes))


def _load_half(typingctx: Any, array: Any, index: Any, count: Any) -> Any:
    """As ``load``, for a count up to HALF: a vector of HALF numbers."""
    return _loaded(array, count, HALF)


def _load(typingctx: Any, array: Any, index: Any, count: Any) -> Any:
    """``array[index : index + count]``, then zeros, for a count up to LANES; nothing else is read.

    A count written as HALF or LANES needs no mask, and HALF gives a vector of that many numbers. Arrays of uint16 hold
    the bits of bfloat16 and those of int16 the bits of float16: they are loaded as float32.
    """
    return _loaded(array, count, LANES)


def _loaded(array: Any, count: Any, most: int) -> Any:
    """The signature and code of a load of up to ``most`` numbers."""
    vector = _vector(array, count, most)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], args[0], args[1], vector.lanes)
        if isinstance(count, types.IntegerLiteral):
            return _widened(builder, array.dtype, builder.load(place, align=array.dtype.bitwidth // 8))
        kind, align = place.type.pointee, ir.Constant(_WORD, array.dtype.bitwidth // 8)
        letter, nothing = ("f", 0.0) if isinstance(array.dtype, types.Float) else ("i", 0)
        name = f"llvm.masked.load.v{vector.lanes}{letter}{array.dtype.bitwidth}.p0"
        mask = _first(builder, args[2], vector.lanes)
        numbers = _call(builder, name, kind, place, align, mask, _constant(kind, nothing))
        return _widened(builder, array.dtype, numbers)

    return vector(array, types.intp, count), codegen


def _store(typingctx: Any, array: Any, index: Any, count: Any, vector: Any) -> Any:
    """``array[index : index + count] = vector[:count]`` for a count as in ``load``; nothing else is written.

    An array of uint16 gets the bits of the numbers rounded to bfloat16.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], args[0], args[1], vector.lanes)
        numbers = _narrowed(builder, array.dtype, args[3])
        if isinstance(count, types.IntegerLiteral):
            builder.store(numbers, place, align=array.dtype.bitwidth // 8)
        else:
            align = ir.Constant(_WORD, array.dtype.bitwidth // 8)
            letter = "f" if isinstance(array.dtype, types.Float) else "i"
            name = f"llvm.masked.store.v{vector.lanes}{letter}{array.dtype.bitwidth}.p0"
            _call(builder, name, ir.VoidType(), numbers, place, align, _first(builder, args[2], vector.lanes))
        return context.get_dummy_value()

    if _vector(array, count, vector.lanes) != vector:
        raise ValueError(f"a vector of {vector.lanes} numbers is stored with a count of {count}")
    return types.void(array, types.intp, count, vector), codegen


def _stream(typingctx: Any, array: Any, index: Any, vector: Any) -> Any:
    """Store a vector past the caches, in lines of 64 bytes that are not read before; the place must begin one.

    For results that the caches cannot hold. ``fence`` has to follow before anybody else reads them.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], args[0], args[1], vector.lanes)
        stored = builder.store(args[2], place, align=64)
        stored.set_metadata("nontemporal", builder.module.add_metadata([_WORD(1)]))
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), codegen


def _fence(typingctx: Any) -> Any:
    """Wait until other threads see all that was stored."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


def _splat(typingctx: Any, number: Any) -> Any:
    """A vector of LANES equal numbers."""
    return Vector(number)(number), lambda context, builder, signature, args: _spread(builder, args[0], LANES)


def _splat_half(typingctx: Any, number: Any) -> Any:
    """A vector of HALF equal numbers."""
    return Vector(number, HALF)(number), lambda context, builder, signature, args: _spread(builder, args[0], HALF)


def _add(typingctx: Any, a: Any, b: Any) -> Any:
    """``a + b``."""
    return a(a, b), lambda context, builder, signature, args: builder.fadd(*args)


def _sub(typingctx: Any, a: Any, b: Any) -> Any:
    """``a - b``."""
    return a(a, b), lambda context, builder, signature, args: builder.fsub(*args)


def _mul(typingctx: Any, a: Any, b: Any) -> Any:
    """``a * b``."""
    return a(a, b), lambda context, builder, signature, args: builder.fmul(*args)


def _div(typingctx: Any, a: Any, b: Any) -> Any:
    """``a / b``."""
    return a(a, b), lambda context, builder, signature, args: builder.fdiv(*args)


def _mul_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once where the processor can."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, _overload("fmuladd", a), args[0].type, *args)

    return a(a, b, c), codegen


def _total(typingctx: Any, a: Any) -> Any:
    """The sum of the numbers of a vector: the second half is added to the first until one is left."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, width = args[0], a.lanes
        while width > 1:
            width //= 2
            places = [ir.Constant(ir.VectorType(_WORD, width), list(range(at, at + width))) for at in (0, width)]
            value = builder.fadd(*(builder.shuffle_vector(value, value, place) for place in places))
        return builder.extract_element(value, ir.Constant(_WORD, 0))

    return a.dtype(a), codegen


def _where_above(typingctx: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """``yes`` where ``a > b`` or ``a`` is NaN, else ``no``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        above = builder.fcmp_ordered(">", args[0], args[1])
        return builder.select(builder.or_(above, builder.fcmp_unordered("uno", args[0], args[0])), args[2], args[3])

    return a(a, b, yes, no), codegen


def _where_equal(typingctx: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """``yes`` where ``a == b``, else ``no``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("==", args[0], args[1]), args[2], args[3])

    return a(a, b, yes, no), codegen


_EXP = {
    32: (7, -87.0, 127, 23, 0.693359375, -2.12194440e-4),
    64: (13, -708.0, 1023, 52, 0.6931471803691238, 1.9082149292705877e-10),
}
"""By bits: the degree of the series, the least argument, offset and place of exponents, and log 2 in two parts, the
first of which times a whole number is exact."""


def _exp_below_zero(typingctx: Any, a: Any) -> Any:
    """``exp(a)`` for ``a <= 0``, within 2 units in the last place; 0 where that is no normal number, NaN of NaN.

    a = n log 2 + r with |r| <= log(2) / 2, so exp(a) = 2^n exp(r), and exp(r) is Taylor's series.
    """
    terms, least, offset, shift, high, low = _EXP[a.dtype.bitwidth]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (value,) = args
        kind = value.type

        def number(x: float) -> Any:
            return _constant(kind, x)

        def fma(x: Any, y: Any, z: Any) -> Any:
            return _call(builder, _overload("fmuladd", a), kind, x, y, z)

        small = builder.fcmp_ordered(">=", value, number(least))  # false for NaN, which is put back in the end
        inside = builder.select(small, value, number(0.0))
        whole = _call(builder, _overload("floor", a), kind, fma(inside, number(1 / math.log(2)), number(0.5)))
        rest = fma(whole, number(-low), fma(whole, number(-high), inside))
        series = number(1 / math.factorial(terms))
        for k in reversed(range(terms)):
            series = fma(series, rest, number(1 / math.factorial(k)))
        integer = ir.VectorType(ir.IntType(a.dtype.bitwidth), a.lanes)
        power = builder.add(builder.fptosi(whole, integer), _constant(integer, offset))
        scale = builder.bitcast(builder.shl(power, _constant(integer, shift)), kind)
        power_of_e = builder.select(small, builder.fmul(series, scale), number(0.0))
        return builder.select(builder.fcmp_unordered("uno", value, value), value, power_of_e)

    return a(a), codegen


load: Any = intrinsic(prefer_literal=True)(_load)
load_half: Any = intrinsic(_load_half)
store: Any = intrinsic(prefer_literal=True)(_store)
stream: Any = intrinsic(_stream)
fence: Any = intrinsic(_fence)
splat: Any = intrinsic(_splat)
splat_half: Any = intrinsic(_splat_half)
add: Any = intrinsic(_add)
sub: Any = intrinsic(_sub)
mul: Any = intrinsic(_mul)
div: Any = intrinsic(_div)
mul_add: Any = intrinsic(_mul_add)
total: Any = intrinsic(_total)
where_above: Any = intrinsic(_where_above)
where_equal: Any = intrinsic(_where_equal)
exp_below_zero: Any = intrinsic(_exp_below_zero)
