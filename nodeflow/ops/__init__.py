"""Differentiable operations on the edges of one flow, given as a ``Structure``. Autograd lives in
this module only.

Layers are written with ``aggregate``, ``segment_reduce``, ``segment_softmax``, ``gather_src``,
``gather_dst`` and ``aggregate_beside_own``. ``message_reduce`` and ``message`` run any built-in
message function, with or without a reduction. ``sparse_linear`` applies a weight matrix to sparse
rows, ``linear_sum`` several to several. ``dropout`` is torch's, but faster for bfloat16;
``product_type`` says how rows of bfloat16 are multiplied. ``split_messages``, ``split_sources``,
``split_rows`` and ``join_rows`` group destinations by degree for functions that take a mailbox.

docs/architecture.md says who sums which rows ("Who sums what"), and where to change it. Beyond
that:

- The gradient of a sum is slow: rows of sources that are narrow (``_compiled.NARROW``), or stay in
  the cache while those of destinations do not (``CACHED``), are added to as they come; for others
  the edges are sorted by source first.
- Another reduction is an entry of ``_reductions.REDUCTIONS``; for any message with an executor
  there, and a name in ``fn``. The executors choose the code that runs a pair of message and
  reduction; ``_chunked`` runs every pair.
- A gradient is wrong: ``_autograd`` (sums, dots, gathers), ``_chunked`` (extremes, products),
  ``_aggregate``.
- A new version of torch breaks something: ``_torch_state`` has all its private names.

A change must keep: float16 and bfloat16 are summed in float32; results have the same bits for any
number of threads and on every run; rows without edges give +0.0 and finite gradients. Time it
beside the version before, checked out in ``../before``:
``python benchmarks/aggregate.py --ops sum mean --widths 16 64 256 --before ../before``.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.ops._aggregate import (
    aggregate,
    aggregate_beside_own,
    rows_beside_own as rows_beside_own,
)
from nodeflow.ops._autograd import (
    EdgeDot as EdgeDot,
    Permute as Permute,
    bag as bag,
    inverse as inverse,
)
from nodeflow.ops._buckets import join_rows, split_messages, split_rows, split_sources
from nodeflow.ops._compiled import CACHED as CACHED
from nodeflow.ops._linear import dropout, in_bfloat16 as in_bfloat16, linear_sum, sparse_linear
from nodeflow.ops._messages import message, message_reduce
from nodeflow.ops._moduli import sum_moduli as sum_moduli
from nodeflow.ops._products import product_type
from nodeflow.ops._segment import gather_dst, gather_src, segment_reduce, segment_softmax
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import opaque as opaque

__all__ = [
    "Structure",
    "aggregate",
    "aggregate_beside_own",
    "dropout",
    "gather_dst",
    "gather_src",
    "join_rows",
    "linear_sum",
    "message",
    "message_reduce",
    "product_type",
    "segment_reduce",
    "segment_softmax",
    "sparse_linear",
    "split_messages",
    "split_rows",
    "split_sources",
]
