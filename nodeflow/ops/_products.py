"""Products of dense rows and a weight, in the type that the processor multiplies fast.

Rows of bfloat16 take half the memory of float32 on every processor, but not every one multiplies
them as they are in less time. Tiles (AMX) do, and so do AMD's AVX-512 instructions for bfloat16,
which take half to a quarter of the time. Intel's without tiles took 1.4 times as long as float32,
AVX2 alone 6 to 40 times: there a piece of the rows is converted in the processor's cache,
multiplied in float32, and rounded once.
"""

from __future__ import annotations

import os
from functools import cache

import torch
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name
from torch import Tensor

from nodeflow.ops._torch_state import has_tiles

BLOCK = 2048
"""Rows computed at a time on a CPU: what is added to them, and the ReLU, finds them in the
processor's cache.
"""

SMALL = 32
"""Rows of the smallest of the pieces that products in bfloat16 are made of."""

DEEP = 512
"""Rows of the largest of the pieces that sums of products over rows in bfloat16 are made of: more
are slower.
"""

PARTS = 8
LEAST = 128
"""Parts of the rows that the gradient of a weight is summed up from, and rows that a part has at
least.
"""


def product_type(device: torch.device | str = "cpu") -> torch.dtype:
    """Return the type in which a device multiplies rows of bfloat16: bfloat16 where that is fast,
    else float32.

    ``device`` is a torch device, or its name. It is bfloat16 on accelerators, on processors with
    AMX, and on those of AMD with AVX-512 for bfloat16 (since Zen 4). The type is the same for the
    whole process, and for every process on the machine: it is read from the processor, the system's
    leave to use its tiles, and ``ONEDNN_MAX_CPU_ISA`` (or ``DNNL_MAX_CPU_ISA``): where it is set,
    whatever instructions it leaves, the type is float32. Times are not measured, since two
    runs could then differ in rounding.

    >>> product_type() in (torch.bfloat16, torch.float32)
    True
    """
    is_fast = torch.device(device).type != "cpu" or _multiplies()
    if is_fast:
        return torch.bfloat16
    return torch.float32


@cache
def _multiplies() -> bool:
    """Whether torch's library multiplies bfloat16 in less time than float32."""
    if not torch.backends.mkldnn.is_available():
        return False
    # oneDNN, which multiplies, obeys these variables: with fewer instructions it would be slow
    most = os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA")
    return most is None and (has_tiles() or has_fast_pairs())


def has_fast_pairs() -> bool:
    """Whether the processor sums two products of bfloat16 by AVX-512 in the time of one of float32,
    as AMD's do.
    """
    return get_host_cpu_name().startswith("znver") and bool(
        get_host_cpu_features().get("avx512bf16")
    )


def _in_pieces(x: Tensor) -> bool:
    """Whether products with these rows are made piece by piece: those of bfloat16 on a
    processor.
    """
    return x.dtype == torch.bfloat16 and x.device.type == "cpu"


def is_widened(x: Tensor) -> bool:
    """Whether products with these rows are computed in float32, though the rows are bfloat16."""
    return x.dtype == torch.bfloat16 and product_type(x.device) == torch.float32


def widened(x: Tensor) -> Tensor:
    """Return rows or a weight in the type in which products are computed."""
    if is_widened(x):
        return x.float()
    return x


def pieces(x: Tensor, block: int = BLOCK) -> list[int]:
    """Return the numbers of rows, at most ``block``, that products with ``x`` are computed for at a
    time.

    For products in bfloat16 on a CPU, oneDNN compiles code for every number of rows, which takes
    longer than the product of some thousand rows. Batches have ever new numbers of rows, so these
    are made of few numbers: a block, each half of it, and what is left of the smallest.
    """
    size = len(x)
    if not _in_pieces(x) or is_widened(x):
        return [min(block, size - begin) for begin in range(0, size, block)]
    sizes = [block] * (size // block)
    block = block // 2
    while block >= SMALL:
        if size & block:
            sizes.append(block)
        block //= 2
    if size % SMALL:
        return [*sizes, size % SMALL]
    return sizes


def times(x: Tensor, w: Tensor) -> Tensor:
    """Return ``x @ w`` for many rows, in the type of ``x``."""
    if not _in_pieces(x):
        return x @ w
    exact = widened(w)
    return torch.cat([(widened(rows) @ exact).to(x.dtype) for rows in x.split(pieces(x) or [0])])


def outer(g: Tensor, x: Tensor) -> Tensor:
    """Return ``g.T @ x`` for many rows, for bfloat16 on a CPU in float32.

    Parts that threads need not share are faster.
    """
    # in bfloat16 rounding every part would lose digits, so parts are added in float32
    if _in_pieces(g):
        total = torch.zeros((g.shape[1], x.shape[1]))
        sizes = pieces(g, DEEP)
        for left, right in zip(g.split(sizes), x.split(sizes), strict=True):
            if is_widened(left):
                total.addmm_(left.float().t(), right.float())
            else:
                total += left.t() @ right
        return total
    size = len(x) // PARTS
    covered = PARTS * size
    if size < LEAST or not (g.is_contiguous() and x.is_contiguous()):
        return g.t() @ x
    left, right = (rows[:covered].view(PARTS, size, rows.shape[1]) for rows in (x, g))
    out = torch.bmm(left.transpose(1, 2), right).sum(0)
    if covered < len(x):
        out = torch.addmm(out, x[covered:].t(), g[covered:])
    return out.t().contiguous()
