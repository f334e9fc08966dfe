"""Vectors of 8, 16 and 64 numbers for compiled loops over rows of features, written in LLVM.

Rows are short. A plain loop over one row, as LLVM vectorises it, spends most of its time in the
checks before the vectors and in the remainder after them. Here a vector is loaded and stored whole,
or only its first ``n`` numbers, and sums stay in vectors over all edges of a row. Every operation
is exact or rounded once, in one fixed order, so results are the same on every run.

A vector is a value of LLVM's type ``<n x float>`` or ``<n x double>``. LLVM cuts it into what the
processor has: 16 floats are one register with AVX-512, two with AVX2, four with SSE. The intrinsics
are documented in the LLVM Language Reference ("Vector Type", ``llvm.masked.load``,
``llvm.fmuladd``), how numba takes them in "Extending Numba: Low-level extension API".
"""

# What is not good yet: 16 lanes are written for AVX-512 and are the same elsewhere; a masked load of
# bytes or words is slow without AVX-512BW, which ``narrow`` has to know.

import math
from functools import partial

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from nodeflow._kernels.instructions import code, intrinsic

LANES = 16
HALF = 8
WIDE = 64
_WORD = ir.IntType(32)


class Vector(types.Type):
    """``lanes`` numbers of one floating type."""

    def __init__(self, dtype, lanes=LANES):
        self.dtype = dtype
        self.lanes = lanes
        super().__init__(name=f"Vector({dtype}, {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        number = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(number, kind.lanes))


# ---- pieces of generated code


def _constant(kind, number):
    return ir.Constant(kind, [number] * kind.count)


def _call(builder, name, result, *arguments):
    """Call one of LLVM's own functions."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(
        cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}"), arguments
    )


def _name(kind):
    """Return LLVM's name of a type of vectors."""
    return f"v{kind.count}{kind.element.intrinsic_name}"


def _fma(builder, x, y, z):
    return _call(builder, f"fmuladd.{_name(x.type)}", x.type, x, y, z)


def _spread(builder, number, lanes):
    kind = ir.VectorType(number.type, lanes)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.Constant(_WORD, 0))
    return builder.shuffle_vector(
        one, ir.Constant(kind, ir.Undefined), _constant(ir.VectorType(_WORD, lanes), 0)
    )


def _place(context, builder, kind, array, index, lanes):
    data = cgutils.create_struct_proxy(kind)(context, builder, array).data
    return builder.bitcast(
        builder.gep(data, [index]), ir.VectorType(data.type.pointee, lanes).as_pointer()
    )


def _first(builder, count, lanes):
    """A mask of the lanes below ``count``."""
    numbers = ir.Constant(ir.VectorType(count.type, lanes), list(range(lanes)))
    return builder.icmp_signed("<", numbers, _spread(builder, count, lanes))


def _vector(array, count, most=LANES):
    """The type that is loaded or stored: as many lanes as a count known when compiled, else
    ``most``.
    """
    literal = isinstance(count, types.IntegerLiteral)
    if literal and count.literal_value not in (HALF, LANES, WIDE):
        raise ValueError(f"a fixed count is {HALF}, {LANES} or {WIDE}, got {count.literal_value}")
    dtype = array.dtype if isinstance(array.dtype, types.Float) else types.float32
    return Vector(dtype, count.literal_value if literal else most)


def _widened(builder, dtype, bits):
    """Return numbers as they are; of int8, uint16 (bits of bfloat16) and int16 (of float16), the
    float32 numbers.
    """
    if isinstance(dtype, types.Float):
        return bits
    words = ir.VectorType(_WORD, bits.type.count)
    singles = ir.VectorType(ir.FloatType(), bits.type.count)
    same = partial(_constant, words)
    if dtype == types.int8:
        return builder.sitofp(builder.sext(bits, words), singles)
    if dtype == types.uint16:
        return builder.bitcast(builder.shl(builder.zext(bits, words), same(16)), singles)
    # By hand, because not every processor can: exponent and fraction go to their places, a factor
    # puts the bias of the exponent right (and makes denormal numbers normal), and infinity and NaN
    # are marked as such.
    bits = builder.sext(bits, words)
    size = builder.shl(builder.and_(bits, same(0x7FFF)), same(13))
    value = builder.bitcast(
        builder.fmul(builder.bitcast(size, singles), _constant(singles, 2.0**112)), words
    )
    special = builder.icmp_unsigned(">=", size, same(0x7C00 << 13))
    value = builder.or_(value, builder.select(special, same(0x7F800000), same(0)))
    sign = builder.and_(bits, same(0x80000000))
    return builder.bitcast(builder.or_(value, sign), singles)


def _narrowed(builder, dtype, vector):
    """Return numbers as an array of ``dtype`` stores them: in uint16 the bits of the nearest
    bfloat16, ties to even.
    """
    if isinstance(dtype, types.Float):
        return vector
    if dtype != types.uint16:
        raise ValueError(f"vectors are stored in arrays of floats and of uint16, got {dtype}")
    words = ir.VectorType(_WORD, vector.type.count)
    lanes = vector.type.count
    same = partial(_constant, words)
    bits = builder.bitcast(vector, words)
    odd = builder.and_(builder.lshr(bits, same(16)), same(1))
    half = builder.add(odd, same(0x7FFF))
    high = builder.lshr(builder.add(bits, half), same(16))
    high = builder.select(builder.fcmp_unordered("uno", vector, vector), same(0x7FC0), high)
    return builder.trunc(high, ir.VectorType(ir.IntType(16), lanes))


# ---- memory


def _loaded(array, count, most):
    """The signature and code of a load of up to ``most`` numbers."""
    vector = _vector(array, count, most)

    def codegen(context, builder, signature, args):
        place = _place(context, builder, array, args[0], args[1], vector.lanes)
        align = array.dtype.bitwidth // 8
        if isinstance(count, types.IntegerLiteral):
            return _widened(builder, array.dtype, builder.load(place, align=align))
        kind = place.type.pointee
        mask = _first(builder, args[2], vector.lanes)
        nothing = _constant(kind, 0.0 if isinstance(array.dtype, types.Float) else 0)
        name = f"masked.load.{_name(kind)}.p0"
        numbers = _call(builder, name, kind, place, ir.Constant(_WORD, align), mask, nothing)
        return _widened(builder, array.dtype, numbers)

    return vector(array, types.intp, count), codegen


@intrinsic(prefer_literal=True)
def load(typingctx, array, index, count):
    """``array[index : index + count]``, then zeros, for a count up to LANES; nothing else is read.

    A count written as HALF, LANES or WIDE needs no mask, and gives a vector of that many numbers.
    Arrays of uint16 hold the bits of bfloat16 and those of int16 the bits of float16: they are
    loaded as float32, as are numbers of int8.
    """
    return _loaded(array, count, LANES)


@intrinsic
def load_half(typingctx, array, index, count):
    """As ``load``, for a count up to HALF: a vector of HALF numbers."""
    return _loaded(array, count, HALF)


@intrinsic(prefer_literal=True)
def store(typingctx, array, index, count, vector):
    """``array[index : index + count] = vector[:count]`` for a count as in ``load``; nothing else is
    written.

    An array of uint16 gets the bits of the numbers rounded to bfloat16.
    """
    if _vector(array, count, vector.lanes) != vector:
        raise ValueError(f"a vector of {vector.lanes} numbers is stored with a count of {count}")

    def codegen(context, builder, signature, args):
        place = _place(context, builder, array, args[0], args[1], vector.lanes)
        align = array.dtype.bitwidth // 8
        numbers = _narrowed(builder, array.dtype, args[3])
        if isinstance(count, types.IntegerLiteral):
            builder.store(numbers, place, align=align)
        else:
            name = f"masked.store.{_name(numbers.type)}.p0"
            mask = _first(builder, args[2], vector.lanes)
            _call(builder, name, ir.VoidType(), numbers, place, ir.Constant(_WORD, align), mask)
        return context.get_dummy_value()

    return types.void(array, types.intp, count, vector), codegen


@intrinsic
def put(typingctx, array, index, vector, streamed):
    """Store a whole vector, into the caches or, ``streamed``, past them.

    Lines of 64 bytes are then not read before they are written, for results that the caches cannot
    hold. The place must begin one, and ``fence`` has to follow before anybody else reads them.
    """

    def codegen(context, builder, signature, args):
        place = _place(context, builder, array, args[0], args[1], vector.lanes)
        with builder.if_else(args[3]) as (past, into):
            with past:
                stored = builder.store(args[2], place, align=64)
                stored.set_metadata("nontemporal", builder.module.add_metadata([_WORD(1)]))
            with into:
                builder.store(args[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector, types.boolean), codegen


@intrinsic
def fence(typingctx):
    """Wait until other threads see all that was stored."""

    def codegen(context, builder, signature, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


# ---- arithmetic


def _splat(lanes):
    def of(typingctx, number):
        return Vector(number, lanes)(number), code(lambda builder, x: _spread(builder, x, lanes))

    return intrinsic(of)


def _pairwise(write):
    return intrinsic(lambda typingctx, a, b: (a(a, b), code(write)))


# vectors of equal numbers
splat = _splat(LANES)
splat_half = _splat(HALF)
splat_wide = _splat(WIDE)
add = _pairwise(ir.IRBuilder.fadd)
sub = _pairwise(ir.IRBuilder.fsub)
mul = _pairwise(ir.IRBuilder.fmul)
div = _pairwise(ir.IRBuilder.fdiv)


@intrinsic
def mul_add(typingctx, a, b, c):
    """``a * b + c``, rounded once where the processor can."""
    return a(a, b, c), code(_fma)


@intrinsic
def total(typingctx, a):
    """The sum of the numbers of a vector: the second half is added to the first until one is
    left.
    """

    def write(builder, value):
        width = a.lanes
        while width > 1:
            width //= 2
            places = [
                ir.Constant(ir.VectorType(_WORD, width), list(range(at, at + width)))
                for at in (0, width)
            ]
            value = builder.fadd(*(builder.shuffle_vector(value, value, place) for place in places))
        return builder.extract_element(value, ir.Constant(_WORD, 0))

    return a.dtype(a), code(write)


@intrinsic
def where_above(typingctx, a, b, yes, no):
    """``yes`` where ``a > b`` or ``a`` is NaN, else ``no``."""

    def write(builder, x, y, if_above, if_not):
        above = builder.or_(builder.fcmp_ordered(">", x, y), builder.fcmp_unordered("uno", x, x))
        return builder.select(above, if_above, if_not)

    return a(a, b, yes, no), code(write)


@intrinsic
def where_equal(typingctx, a, b, yes, no):
    """``yes`` where ``a == b``, else ``no``."""
    return a(a, b, yes, no), code(
        lambda builder, x, y, *of: builder.select(builder.fcmp_ordered("==", x, y), *of)
    )


_EXP = {
    32: (7, -87.0, 127, 23, 0.693359375, -2.12194440e-4),
    64: (13, -708.0, 1023, 52, 0.6931471803691238, 1.9082149292705877e-10),
}
"""By bits: the degree of the series, the least argument, offset and place of exponents, and log 2
in two parts, the first of which times a whole number is exact.
"""


@intrinsic
def exp_below_zero(typingctx, a):
    """``exp(a)`` for ``a <= 0``, within 2 units in the last place; 0 where that is no normal
    number, NaN of NaN.

    a = n log 2 + r with |r| <= log(2) / 2, so exp(a) = 2^n exp(r), and exp(r) is Taylor's series.
    """
    terms, least, offset, shift, high, low = _EXP[a.dtype.bitwidth]

    def write(builder, value):
        kind = value.type
        integer = ir.VectorType(ir.IntType(a.dtype.bitwidth), a.lanes)
        number = partial(_constant, kind)
        # false for NaN, which is put back in the end
        small = builder.fcmp_ordered(">=", value, number(least))
        inside = builder.select(small, value, number(0.0))
        whole = _fma(builder, inside, number(1 / math.log(2)), number(0.5))
        whole = _call(builder, f"floor.{_name(kind)}", kind, whole)
        rest = _fma(builder, whole, number(-low), _fma(builder, whole, number(-high), inside))
        series = number(1 / math.factorial(terms))
        for k in reversed(range(terms)):
            series = _fma(builder, series, rest, number(1 / math.factorial(k)))
        power = builder.add(builder.fptosi(whole, integer), _constant(integer, offset))
        scale = builder.bitcast(builder.shl(power, _constant(integer, shift)), kind)
        power_of_e = builder.select(small, builder.fmul(series, scale), number(0.0))
        return builder.select(builder.fcmp_unordered("uno", value, value), value, power_of_e)

    return a(a), code(write)
