"""What the tests of the layers compare with: dense matrices in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from nodeflow import Flow, create_node_flow, flow_from_edges
from nodeflow.nn import GINConv, GraphConv, PropagationConv, SAGEConv


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Flows with every destination in the source layer, at any row: no edges, repeated edges,
    loops, no nodes.
    """
    num_src = draw(st.integers(0, 6))
    rows = draw(st.permutations(range(num_src)))[: draw(st.integers(0, num_src))]
    if draw(st.booleans()):
        rows = sorted(rows) and list(range(len(rows)))  # the usual case: a prefix
    ends = st.tuples(st.integers(0, max(0, num_src - 1)), st.integers(0, max(0, len(rows) - 1)))
    edges = draw(st.lists(ends, max_size=14)) if rows else []
    flow = flow_from_edges(
        [s for s, _ in edges], [d for _, d in edges], num_src=num_src, num_dst=len(rows)
    )
    names = [10 + 3 * i for i in range(num_src)]
    return create_node_flow([flow], [names, [names[row] for row in rows]]).flows[0]


def dense(flow: Flow) -> tuple[Tensor, Tensor]:
    """Return how often every source feeds every destination, and which source every destination is,
    ``[dst, src]``.
    """
    adjacency, own = (
        torch.zeros(flow.num_dst, flow.num_src, dtype=torch.float64) for _ in range(2)
    )
    for src, dst in zip(*(end.tolist() for end in flow.edges()), strict=True):
        adjacency[dst, src] += 1
    for dst, parent in enumerate(flow.dst_layer.parent_nid.tolist()):
        own[dst, flow.src_layer.parent_nid.tolist().index(parent)] = 1
    return adjacency, own


def dense_max(adjacency: Tensor, h: Tensor) -> Tensor:
    """The largest of the neighbours' numbers, 0 without neighbours."""
    neighbors = adjacency > 0
    rows = torch.where(neighbors.unsqueeze(2), h.unsqueeze(0), -torch.inf)
    found = rows.amax(1) if h.shape[0] else rows.sum(1)
    return torch.where(neighbors.any(1, keepdim=True), found, 0)


def dense_mean(adjacency: Tensor, h: Tensor) -> Tensor:
    """The mean of the neighbours' rows, 0 without neighbours."""
    return adjacency @ h / adjacency.sum(1, keepdim=True).clamp(min=1)


def dense_sage(adjacency: Tensor, own: Tensor, conv: nn.Module, h: Tensor) -> Tensor:
    """Algorithm 1 of the paper with its one matrix on the concatenation; equation 2 with "gcn", 3
    with "pool".
    """
    bias = 0 if conv.neigh.bias is None else conv.neigh.bias
    if conv.aggregator == "gcn":
        return dense_mean(adjacency + own, h) @ conv.neigh.weight.T + bias
    if conv.aggregator == "mean":
        near = dense_mean(adjacency, h)
    else:
        near = dense_max(adjacency, (h @ conv.pool.weight.T + conv.pool.bias).relu())
    together = torch.cat([conv.own.weight, conv.neigh.weight], 1)
    return torch.cat([own @ h, near], 1) @ together.T + bias


def normalised(adjacency: Tensor, own: Tensor, norm: str, self_loops: bool) -> Tensor:
    """The matrix that a graph convolution multiplies the rows with; degrees are sums of the
    adjacency, plus loops.
    """
    loops = int(self_loops)
    total = adjacency + loops * own
    entering = adjacency.sum(1) + loops
    leaving = adjacency.sum(0) + loops
    entering[entering == 0] = leaving[leaving == 0] = 1  # nothing is divided there
    if norm == "both":
        return torch.diag(entering**-0.5) @ total @ torch.diag(leaving**-0.5)
    return total if norm == "none" else torch.diag(1 / entering) @ total


def dense_gcn(adjacency: Tensor, own: Tensor, conv: nn.Module, h: Tensor) -> Tensor:
    """The normalised adjacency times h W^T, + b."""
    out = normalised(adjacency, own, conv.norm, conv.self_loops) @ h @ conv.linear.weight.T
    return out if conv.linear.bias is None else out + conv.linear.bias


def dense_gin(adjacency: Tensor, own: Tensor, conv: nn.Module, h: Tensor) -> Tensor:
    """Equation 4.1 of the paper."""
    near = {"sum": torch.matmul, "mean": dense_mean, "max": dense_max}[conv.aggregator](
        adjacency, h
    )
    return conv.mlp((1 + conv.eps) * (own @ h) + near)


def dense_propagation(adjacency: Tensor, own: Tensor, conv: nn.Module, h: Tensor) -> Tensor:
    """Weights of 1: the plain sum, and a node's own row with a matrix of its own."""
    out = adjacency @ h @ conv.linear.weight.T
    out = out if conv.own is None else out + own @ h @ conv.own.weight.T
    return out if conv.linear.bias is None else out + conv.linear.bias


def _gin(i: int, o: int, bias: bool, **options: Any) -> nn.Module:
    mlp = nn.Sequential(nn.Linear(i, 4, bias=bias), nn.Tanh(), nn.Linear(4, o, bias=bias))
    return GINConv(mlp, eps=0.5, **options)


CONVS: dict[str, tuple[Callable[..., nn.Module], Callable[..., Tensor]]] = {
    "sage": (lambda i, o, b, **k: SAGEConv(i, o, bias=b, **k), dense_sage),
    "sage gcn": (lambda i, o, b, **k: SAGEConv(i, o, aggregator="gcn", bias=b, **k), dense_sage),
    "sage pool": (lambda i, o, b: SAGEConv(i, o, aggregator="pool", bias=b), dense_sage),
    "gcn": (lambda i, o, b, **k: GraphConv(i, o, bias=b, **k), dense_gcn),
    "gcn both": (lambda i, o, b, **k: GraphConv(i, o, norm="both", bias=b, **k), dense_gcn),
    "gcn both alone": (
        lambda i, o, b, **k: GraphConv(i, o, norm="both", self_loops=False, bias=b, **k),
        dense_gcn,
    ),
    "gcn none": (lambda i, o, b, **k: GraphConv(i, o, norm="none", bias=b, **k), dense_gcn),
    "gcn alone": (lambda i, o, b, **k: GraphConv(i, o, self_loops=False, bias=b, **k), dense_gcn),
    "propagation": (lambda i, o, b, **k: PropagationConv(i, o, bias=b, **k), dense_propagation),
    "propagation own": (
        lambda i, o, b, **k: PropagationConv(i, o, own=True, bias=b, **k),
        dense_propagation,
    ),
    "gin": (_gin, dense_gin),
    "gin mean": (lambda i, o, b: _gin(i, o, b, aggregator="mean"), dense_gin),
    "gin max": (lambda i, o, b: _gin(i, o, b, aggregator="max", train_eps=True), dense_gin),
}
"""Of every convolution how it is made, of ``(in_features, out_features, bias)``, and its dense
form.
"""

KINDS = list(CONVS)
LINEAR = [name for name in KINDS if "pool" not in name and "gin" not in name]
"""Those that compute in either order."""
OWN = [name for name in KINDS if "alone" not in name and name != "propagation"]
"""Those that read a node's own row."""


def make_conv(
    kind: str, in_features: int, out_features: int, bias: bool = True, **options: Any
) -> nn.Module:
    """A convolution in float64 whose parameters are all random, the bias too, which may start at
    0.
    """
    conv = CONVS[kind][0](in_features, out_features, bias, **options).double()
    for i, parameter in enumerate(conv.parameters()):
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(i))
    return conv


def dense_conv(kind: str, conv: nn.Module, flow: Flow, h: Tensor) -> Tensor:
    """What a convolution gives on a flow, from dense matrices."""
    return CONVS[kind][1](*dense(flow), conv, h)


def small_flow(*, edges: list[int] | None = None) -> Flow:
    """Destination 0 with a double edge and a loop, 1 without edges, 2 with one; destinations are
    not the prefix.

    ``edges`` is the order in which they are given.
    """
    order = edges or [0, 1, 2, 3]
    src = [3, 3, 2, 0]
    dst = [0, 0, 0, 2]
    flow = flow_from_edges([src[e] for e in order], [dst[e] for e in order], num_src=4, num_dst=3)
    return create_node_flow([flow], [[5, 6, 7, 8], [7, 5, 6]]).flows[0]


def as_csr(h: Tensor) -> Tensor:
    """The same rows as a sparse CSR tensor, in which row 0 also stores a zero."""
    stored = h != 0
    if h.numel():
        stored[0, 0] = True
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), stored.sum(1).cumsum(0)])
    return torch.sparse_csr_tensor(
        indptr, stored.nonzero()[:, 1].contiguous(), h[stored], size=h.shape, check_invariants=True
    )


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
