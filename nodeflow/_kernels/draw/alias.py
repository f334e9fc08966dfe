"""Alias tables (Walker 1977; Vose 1991): a draw in proportion to the weights of a row reads one number of the row.

The edges of a row with d edges share d cells of equal size. Cell c holds a part of edge c, and for the rest a part of
one other edge, its alias; an edge that is heavier than a cell is the alias of several lighter ones. An entry has, from
its highest bit: two zeros; the part, in units of which a cell has ``2**(46 - bits)``; for each of the two edges the
256th of the largest weight that its weight lies in, 8 bits each; and the place of the alias within the row, for which
``bits`` are enough. Weights are rounded to such units once, so that they add up to all cells; from there on integers
are exact. What the table draws thus differs from the weights by at most 2**-45 of their sum for each edge.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import float64, int64, njit, types
from numba.extending import intrinsic

from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import GOLDEN, U64, mix, stream

ROWS = 16  # number of rows between asking for cells and reading them; and so for neighbours
CLASSES = 256  # of weights: class c is from c to c + 1 of so many parts of the largest
_BELOW = CLASSES - 0.01  # so that rounding cannot put a weight below its class, nor the largest beyond the last
TOTAL, MOST, SQUARES = 0, 1, 2  # columns of the sums of a row: see ``build_tables``


def _high_product(typingctx: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the product of two uint64 numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


high_product: Any = intrinsic(_high_product)


def _bit_length(typingctx: Any, a: Any) -> Any:
    """The number of bits of a uint64 number, 0 for 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(ir.IntType(64), 64), zeros)

    return types.uint64(types.uint64), codegen


bit_length: Any = intrinsic(_bit_length)


@njit(nogil=True, cache=True)
def build_tables(indptr, weights, table, sums):
    """Fill the entry of every position, uint64 ``[E]``, and sums of every row, float64 ``[num_rows, 3]``, both zeros.

    The sums are: of the weights; the largest of them; and the sum of (w / W)^2, which says how often two draws meet.
    """
    rows, widest = indptr.shape[0] - 1, 0
    for r in range(rows):
        widest = max(widest, indptr[r + 1] - indptr[r])
    units = np.empty(widest, np.int64)
    for r in range(rows):
        first, degree = U64(indptr[r]), U64(indptr[r + 1] - indptr[r])
        total, largest, heaviest = 0.0, 0.0, U64(0)
        for o in range(degree):
            w = float64(weights[first + o])
            total += w
            if w > largest:
                largest, heaviest = w, U64(o)
        if total == 0:
            continue
        bits = bit_length(degree - U64(1))
        whole = int64(1) << int64(U64(46) - bits)
        left = int64(degree) * whole
        scale, share, per_class = float64(left) / total, 1 / total, _BELOW / largest
        upto, squares = 0.0, 0.0
        for o in range(degree):
            w = float64(weights[first + o])
            before = np.int64(upto + 0.5)  # sums are rounded, not weights: so what is lost here is found there
            upto += w * scale
            units[o] = np.int64(upto + 0.5) - before
            left -= units[o]
            squares += (w * share) * (w * share)
            table[first + o] = U64(int64(w * per_class))
        units[heaviest] += left  # what float64 sums have left over: next to nothing
        sums[r, TOTAL], sums[r, MOST], sums[r, SQUARES] = total, largest, squares
        _fill(table[first : first + degree], bits, whole, units)


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def _fill(cells, bits, whole, units):
    """Fill the cells of a row (Hübschle-Schneider, Sanders 2022): light edges in turn, each filled up by a heavy one.

    A heavy edge that is down to a cell or less gets its own cell, which the next heavy edge fills up. Integers add up,
    so that light edges last as long as heavy ones do, and those that remain are exactly a cell. ``cells`` has the
    classes of the weights, and receives the entries.
    """
    degree = U64(cells.shape[0])
    light, heavy = _next_light(units, U64(0), degree, whole), _next_heavy(units, U64(0), degree, whole)
    if heavy < degree:
        rest, kind = units[heavy], cells[heavy]
    while heavy < degree:
        if rest > whole:
            cells[light] = _entry(units[light], cells[light], kind, heavy, bits)
            rest -= whole - units[light]
            light = _next_light(units, light + U64(1), degree, whole)
        else:
            other = _next_heavy(units, heavy + U64(1), degree, whole)
            if other == degree:
                cells[heavy] = _entry(whole, kind, kind, heavy, bits)
            else:
                cells[heavy] = _entry(rest, kind, cells[other], other, bits)
                rest += units[other] - whole
                kind = cells[other]
            heavy = other
    while light < degree:
        cells[light] = _entry(whole, cells[light], cells[light], light, bits)
        light = _next_light(units, light + U64(1), degree, whole)


@njit(inline="always")
def _entry(part, own, other, alias, bits):
    return ((U64(part) << U64(16) | own << U64(8) | other) << bits) | alias


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def _next_light(units, o, degree, whole):
    while o < degree and units[o] > whole:
        o += U64(1)
    return o


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def _next_heavy(units, o, degree, whole):
    while o < degree and units[o] <= whole:
        o += U64(1)
    return o


@njit(inline="always")
def ask(state, first, degree, table, start, stop, pos, lows):
    """Draw a cell for each place from ``start`` to ``stop`` and ask for it.

    64 random bits times the degree are the cell (in ``pos``, as a position) and how far into it the point lies (in
    ``lows``, in 2**-64 of a cell): every stretch of a cell is hit as often as it is long, to within 2**-64 of the row.
    """
    for w in range(start, stop):
        state += GOLDEN
        bits = mix(state)
        position = int64(first + high_product(bits, degree))
        pos[U64(w)] = position
        lows[U64(w)] = bits * degree
        prefetch(table, position)
    return state


@njit(inline="always")
def edge_of(entry, cell, low, bits):
    """Return ``(place within the row, class of the weight)`` of the edge that a point in a cell hits."""
    own = low >> (bits + U64(18)) < entry >> (bits + U64(16))
    alias = entry & ((U64(1) << bits) - U64(1))
    both = entry >> bits
    return cell if own else alias, (both >> U64(8) if own else both) & U64(255)


@njit(inline="always")
def read_near(near, start, stop, pos, ids):
    """Read the neighbours at ``pos[start:stop]``."""
    for w in range(start, stop):
        ids[U64(w)] = near[U64(pos[U64(w)])]


@njit(nogil=True, cache=True)
def draw_alias(rows, begin, degree, table, near, ident, key, out_indptr, pos, ids):
    """Fill ``pos`` with independent draws for the rows with the numbers ``rows``; ``ids`` receives the neighbours.

    Draw j of a row takes number j of its stream.
    """
    n = rows.shape[0]
    lows = ids.view(np.uint64)  # until the neighbours come
    for late in range(n + 2 * ROWS):
        if late < n:
            i = rows[late]
            state, start, stop = stream(key, ident[i]), out_indptr[i], out_indptr[i + 1]
            ask(state, U64(begin[i]), U64(degree[i]), table, start, stop, pos, lows)
        at = late - ROWS
        if 0 <= at < n:
            i = rows[at]
            first, bits = U64(begin[i]), bit_length(U64(degree[i] - 1))
            for w in range(out_indptr[i], out_indptr[i + 1]):
                p = U64(pos[U64(w)])
                p = first + edge_of(table[p], p - first, lows[U64(w)], bits)[0]
                pos[U64(w)] = int64(p)
                prefetch(near, int64(p))
        at = late - 2 * ROWS
        if 0 <= at < n:
            i = rows[at]
            read_near(near, out_indptr[i], out_indptr[i + 1], pos, ids)
