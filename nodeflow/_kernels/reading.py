"""Pieces of a file, read by the operating system's ``pread`` from sorted places, neighbours in one
call.

Systems without ``pread`` copy them from a map of the file.
"""

from typing import Any

from numba import types

from nodeflow._kernels.loops import loop
from nodeflow._kernels.rng import U64

_pread: Any = types.ExternalFunction(
    "pread", types.intp(types.intc, types.intp, types.uintp, types.int64)
)


@loop
def read_pieces(file, offsets, sizes, order, to, align, scratch, out, first, last):
    """Copy pieces of an open file into ``out``; piece p, ``sizes[p]`` bytes at ``offsets[p]``, to
    ``to[p]``.

    ``order`` numbers the pieces by ascending offset; those from ``first`` to ``last`` are read.
    Reads begin and end at multiples of ``align`` bytes, and go through ``scratch``, whose address
    is such a multiple, and whose size, at least two, is the most that one call reads. Pieces whose
    blocks touch are read together, and no block is read twice in a row.

    Returns the bytes read. If a read failed or met the end of the file, minus the offset where it
    did, minus 1.
    """
    room = scratch.shape[0]
    total = 0
    i = first
    while i < last:
        p = order[i]
        begin = offsets[p] // align * align
        end = (offsets[p] + sizes[p] + align - 1) // align * align
        j = i + 1
        while j < last:  # as many pieces as touch and fit
            p = order[j]
            stop = (offsets[p] + sizes[p] + align - 1) // align * align
            if offsets[p] // align * align > end or stop - begin > room:
                break
            end = max(end, stop)
            j += 1
        while begin < end:  # a single piece may be larger than the scratch
            wanted = min(end - begin, room)
            have = 0
            while have < wanted:
                got = _pread(file, scratch.ctypes.data + have, wanted - have, begin + have)
                if got <= 0:
                    break
                have += got
                if have % align != 0:  # the end of the file
                    break
            total += have
            for k in range(i, j):
                p = order[k]
                low = max(offsets[p], begin)
                high = min(offsets[p] + sizes[p], begin + wanted)
                if high > begin + have:
                    return -(begin + have) - 1
                shift = to[p] - offsets[p]
                for c in range(low, high):
                    out[U64(c + shift)] = scratch[U64(c - begin)]
            begin += wanted
        i = j
    return total


@loop
def copy_pieces(mapped, offsets, sizes, order, to, out, first, last):
    """As ``read_pieces``, from all bytes of the file, mapped."""
    total = 0
    for i in range(first, last):
        p = order[i]
        begin = offsets[p]
        size = sizes[p]
        if begin + size > mapped.shape[0]:
            return -max(begin, mapped.shape[0]) - 1
        for c in range(size):
            out[U64(to[p] + c)] = mapped[U64(begin + c)]
        total += size
    return total
