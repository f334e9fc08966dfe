"""What the tests of the layers compare with: dense matrices in float64."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from nodeflow import Flow, create_node_flow, flow_from_edges
from nodeflow.features import csr_tensor


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Flows with every destination in the source layer, at any row: no edges, repeated edges, loops, no nodes."""
    num_src = draw(st.integers(0, 6))
    rows = draw(st.permutations(range(num_src)))[: draw(st.integers(0, num_src))]
    if draw(st.booleans()):
        rows = sorted(rows) and list(range(len(rows)))  # the usual case: a prefix
    ends = st.tuples(st.integers(0, max(0, num_src - 1)), st.integers(0, max(0, len(rows) - 1)))
    edges = draw(st.lists(ends, max_size=14)) if rows else []
    flow = flow_from_edges([s for s, _ in edges], [d for _, d in edges], num_src=num_src, num_dst=len(rows))
    names = [10 + 3 * i for i in range(num_src)]
    return create_node_flow([flow], [names, [names[row] for row in rows]]).flows[0]


def dense(flow: Flow) -> tuple[Tensor, Tensor]:
    """Return how often every source feeds every destination, and which source every destination is, ``[dst, src]``."""
    adjacency, own = (torch.zeros(flow.num_dst, flow.num_src, dtype=torch.float64) for _ in range(2))
    for src, dst in zip(*(end.tolist() for end in flow.edges()), strict=True):
        adjacency[dst, src] += 1
    for dst, parent in enumerate(flow.dst_layer.parent_nid.tolist()):
        own[dst, flow.src_layer.parent_nid.tolist().index(parent)] = 1
    return adjacency, own


def dense_sage(adjacency: Tensor, own: Tensor, conv: nn.Module, h: Tensor) -> Tensor:
    """Algorithm 1 of the paper with its one matrix on the concatenation."""
    mean = adjacency @ h / adjacency.sum(1, keepdim=True).clamp(min=1)
    together = torch.cat([conv.own.weight, conv.neigh.weight], 1)
    out = torch.cat([own @ h, mean], 1) @ together.T
    return out if conv.neigh.bias is None else out + conv.neigh.bias


def dense_gcn(adjacency: Tensor, own: Tensor, conv: nn.Module, h: Tensor) -> Tensor:
    """D^-1 (A + I) h W^T + b."""
    loops = adjacency + own
    out = (loops / loops.sum(1, keepdim=True)) @ h @ conv.linear.weight.T
    return out if conv.linear.bias is None else out + conv.linear.bias


def as_csr(h: Tensor) -> Tensor:
    """The same rows as a sparse CSR tensor, in which row 0 also stores a zero."""
    stored = h != 0
    if h.numel():
        stored[0, 0] = True
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), stored.sum(1).cumsum(0)])
    return csr_tensor(indptr, stored.nonzero()[:, 1].contiguous(), h[stored], (h.shape[0], h.shape[1]))


def values(shape: tuple[int, ...], seed: int = 0, zeros: float = 0.0) -> Tensor:
    """Random float64 numbers, of which the share ``zeros`` is 0."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(shape, generator=generator, dtype=torch.float64)
    return numbers * (torch.rand(shape, generator=generator) >= zeros)


def gradients(out: Tensor, *inputs: Tensor) -> list[Tensor]:
    """Gradients of a weighted sum of ``out``, every entry with a weight of its own."""
    return list(torch.autograd.grad((out * values(tuple(out.shape), 99)).sum(), inputs))


def assert_near(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
