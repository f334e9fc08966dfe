"""Alias tables (Walker 1977; Vose 1991): a draw by weight reads one number of the row.

The d edges of a row share d cells of equal size. Cell c belongs in part to edge c and for the rest
to one other edge, its alias. An edge that is heavier than a cell is the alias of several lighter
ones. The table has one 64-bit entry per cell. Its fields are, from the highest bit:

- two zeros;
- the part of the cell that belongs to its own edge, in units; a cell has ``2**(46 - bits)`` units;
- the weight class of the own edge, and the weight class of the alias, 8 bits each (see
  ``CLASSES``);
- the offset of the alias within the row, in ``bits`` bits, as many as offsets of this row need.

The weights are rounded to units once, so that they add up to all cells. Everything after that is
integer arithmetic. The probability of an edge therefore differs from its weight by at most 2**-45
of the sum of the row's weights.
"""

# What is not good yet: a table is as large as the graph's edges, 8 bytes each, and is made for
# the whole graph even where a few rows are drawn from; its rows are made by one thread.

import numpy as np
from numba import float64, int64, njit

from nodeflow._kernels.draw.uniform import read_sources
from nodeflow._kernels.instructions import bit_length, high_product, prefetch
from nodeflow._kernels.loops import inlined, loop
from nodeflow._kernels.rng import GOLDEN, U64, mix, stream

ROWS = 16  # rows between the prefetch of cells and their use; the same for neighbours
# weight classes: class c goes from c / 256 to (c + 1) / 256 of the largest weight of the row
CLASSES = 256
_BELOW = CLASSES - 0.01  # below 256, so that rounding puts no weight into too high a class
# weights of rows up to _TINY are lifted, exactly: 1 / TOTAL would overflow
_TINY = 2.0**-900
_LIFT = 2.0**600
# which edges ``_next`` looks for
LIGHT = False
HEAVY = True
# columns of ``sums``, see ``build_tables``
TOTAL = 0
MOST = 1
SQUARES = 2


@loop
def build_tables(indptr, weights, table, sums):
    """Fill ``table``, uint64 ``[E]``, and ``sums``, float64 ``[num_rows, 3]``, which both hold
    zeros before.

    The columns of ``sums`` are the sum W of the weights of a row; the largest weight; and the sum
    of (w / W)^2, the probability that two draws give the same edge.
    """
    rows = indptr.shape[0] - 1
    widest = 0
    for r in range(rows):
        widest = max(widest, indptr[r + 1] - indptr[r])
    units = np.empty(widest, np.int64)
    for r in range(rows):
        first = U64(indptr[r])
        degree = U64(indptr[r + 1] - indptr[r])
        total = 0.0
        largest = 0.0
        heaviest = U64(0)
        for o in range(degree):
            w = float64(weights[first + o])
            total += w
            if w > largest:
                largest = w
                heaviest = U64(o)
        if total == 0:
            continue
        bits = bit_length(degree - U64(1))
        whole = int64(1) << int64(U64(46) - bits)
        left = int64(degree) * whole
        lift = 1.0 if total > _TINY else _LIFT
        scale = float64(left) / (total * lift)
        share = 1 / (total * lift)
        per_class = _BELOW / (largest * lift)
        # Weights become whole units: the running sum is rounded, not the weight, so that errors do
        # not add up. The few units that are left over go to the heaviest edge.
        upto = 0.0
        squares = 0.0
        for o in range(degree):
            w = float64(weights[first + o]) * lift
            before = np.int64(upto + 0.5)
            upto += w * scale
            units[o] = np.int64(upto + 0.5) - before
            left -= units[o]
            squares += (w * share) * (w * share)
            table[first + o] = U64(int64(w * per_class))
        units[heaviest] += left
        sums[r, TOTAL] = total
        sums[r, MOST] = largest
        sums[r, SQUARES] = squares
        _fill(table[first : first + degree], bits, whole, units[: int64(degree)])


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def _fill(cells, bits, whole, units):
    """Turn the weight classes in ``cells`` into the entries of a row (Hübschle-Schneider, Sanders
    2022).

    Light edges come in turn, and a heavy edge fills up the cell of each. When at most a cell of a
    heavy edge is left, that is its own cell, and the next heavy edge fills it up. The units are
    integers and add up exactly: light edges last as long as heavy ones do, and those that remain
    fill their cells.
    """
    degree = U64(cells.shape[0])
    light = _next(LIGHT, units, U64(0), whole)
    heavy = _next(HEAVY, units, U64(0), whole)
    if heavy < degree:
        rest = units[heavy]
        kind = cells[heavy]
    while heavy < degree:
        if rest > whole:
            # The heavy edge has more than a cell left: it fills the cell of the next light edge.
            cells[light] = _entry(units[light], cells[light], kind, heavy, bits)
            rest -= whole - units[light]
            light = _next(LIGHT, units, light + U64(1), whole)
        else:
            # It has at most a cell left, its own, which the next heavy edge fills up.
            other = _next(HEAVY, units, heavy + U64(1), whole)
            if other == degree:
                cells[heavy] = _entry(whole, kind, kind, heavy, bits)
            else:
                cells[heavy] = _entry(rest, kind, cells[other], other, bits)
                rest += units[other] - whole
                kind = cells[other]
            heavy = other
    while light < degree:
        cells[light] = _entry(whole, cells[light], cells[light], light, bits)
        light = _next(LIGHT, units, light + U64(1), whole)


@inlined
def _entry(part, own, other, alias, bits):
    return ((U64(part) << U64(16) | own << U64(8) | other) << bits) | alias


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def _next(heavy, units, o, whole):
    """The first edge from ``o`` on that is heavier than a cell, or that is not; the degree where
    there is none.
    """
    while o < U64(units.shape[0]) and (units[o] > whole) != heavy:
        o += U64(1)
    return o


@inlined
def ask(state, first, degree, table, start, stop, positions, lows):
    """Draw the cells ``positions[start:stop]`` and prefetch them; return the next state.

    64 random bits times the degree of the row have 128 bits. The upper 64 are the cell, stored as a
    position. The lower 64 say where in the cell the point lies, in units of 2**-64 of a cell, and
    go into ``lows``. The probability of a stretch of the row is its length to within 2**-64.
    """
    for w in range(start, stop):
        state += GOLDEN
        bits = mix(state)
        position = int64(first + high_product(bits, degree))
        positions[U64(w)] = position
        lows[U64(w)] = bits * degree
        prefetch(table, position)
    return state


@inlined
def edge_of(entry, cell, low, bits):
    """Return ``(offset within the row, weight class)`` of the edge to which a point in a cell
    belongs.
    """
    alias = entry & ((U64(1) << bits) - U64(1))
    classes = entry >> bits
    if low >> (bits + U64(18)) < entry >> (bits + U64(16)):
        return cell, (classes >> U64(8)) & U64(255)
    return alias, classes & U64(255)


@loop
def draw_alias(rows, begin, degree, table, indices, ident, key, out_indptr, positions, src):
    """Fill ``positions`` and ``src`` with draws with replacement in the rows number ``rows`` of the
    draw.

    Draw j of a row takes number j of its stream.
    """
    n = rows.shape[0]
    lows = src.view(np.uint64)  # the memory of the result, until sources are read
    for step in range(n + 2 * ROWS):
        if step < n:
            i = rows[step]
            state = stream(key, ident[i])
            start = out_indptr[i]
            stop = out_indptr[i + 1]
            ask(state, U64(begin[i]), U64(degree[i]), table, start, stop, positions, lows)
        lagged = step - ROWS
        if 0 <= lagged < n:
            i = rows[lagged]
            first = U64(begin[i])
            bits = bit_length(U64(degree[i] - 1))
            for w in range(out_indptr[i], out_indptr[i + 1]):
                p = U64(positions[U64(w)])
                p = first + edge_of(table[p], p - first, lows[U64(w)], bits)[0]
                positions[U64(w)] = int64(p)
                prefetch(indices, int64(p))
        lagged = step - 2 * ROWS
        if 0 <= lagged < n:
            i = rows[lagged]
            read_sources(indices, out_indptr[i], out_indptr[i + 1], positions, src)
