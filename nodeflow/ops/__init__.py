"""Differentiable operations on the edges of one flow, given as a ``nodeflow.ops._structure.Structure``.

``aggregate``, ``segment_reduce``, ``segment_softmax``, ``gather_src``, ``gather_dst`` and
``aggregate_beside_own`` are what layers are written with; ``message_reduce`` and ``message`` run any built-in message
function with or without a reduction; ``sparse_linear`` applies a weight matrix to sparse rows, ``linear_sum`` several
to several; ``split_messages``, ``split_rows`` and ``join_rows`` group destinations by degree for functions that take a
mailbox.
Autograd lives here and nowhere else.

Where to change an operation:

- ``_plan``: which code runs a pair of message and reduction. Faster code for a pair is chosen here.
- ``_autograd``: the differentiable primitives. ``bag`` sums the rest: float16, bfloat16, and on GPUs.
- ``_compiled``: which tensors the compiled loops take (``is_native``), and how their work is shared between threads.
  The loops lie in ``nodeflow/_kernels/reduce``.
- ``_chunked``: every other pair, in pieces. ``_aggregate`` and ``_several``: several reductions from one reading.

Promises that a change must keep: sums add in float32 at least; results have the same bits for any number of threads;
rows without edges give +0.0 and finite gradients.
"""

from nodeflow.ops._aggregate import aggregate
from nodeflow.ops._buckets import join_rows, split_messages, split_rows
from nodeflow.ops._linear_sum import linear_sum
from nodeflow.ops._messages import message, message_reduce
from nodeflow.ops._opaque import opaque
from nodeflow.ops._own import aggregate_beside_own
from nodeflow.ops._segment import gather_dst, gather_src, segment_reduce, segment_softmax
from nodeflow.ops._sparse_linear import sparse_linear

message, message_reduce = opaque(message), opaque(message_reduce)
gather_dst, gather_src = opaque(gather_dst), opaque(gather_src)
segment_reduce, segment_softmax = opaque(segment_reduce), opaque(segment_softmax)
join_rows, split_messages, split_rows = opaque(join_rows), opaque(split_messages), opaque(split_rows)

__all__ = [
    "aggregate",
    "aggregate_beside_own",
    "gather_dst",
    "gather_src",
    "join_rows",
    "linear_sum",
    "message",
    "message_reduce",
    "segment_reduce",
    "segment_softmax",
    "sparse_linear",
    "split_messages",
    "split_rows",
]
