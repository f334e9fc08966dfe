"""Full propagation against dense matrices: all rows, some, filters, both directions, sparse rows, narrow floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from _support.graphs import sparse_column
from hypothesis import given
from hypothesis import strategies as st

from nodeflow import Graph, nn
from nodeflow.propagation import Propagation
from nodeflow.propagation import _edge_sums as propagation
from nodeflow.testing import graphs


def dense(graph: Graph, weight: str | None, direction: str, mask: torch.Tensor | None) -> torch.Tensor:
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    src, dst = (end.tolist() for end in graph.edges())
    for e in range(graph.num_edges):
        if mask is None or bool(mask[e]):
            v, u = (dst[e], src[e]) if direction == "in" else (src[e], dst[e])
            matrix[v, u] += 1.0 if weight is None else float(graph.edata[weight][e])
    return matrix


@given(graphs(), st.data(), st.sampled_from(["in", "out"]), st.booleans(), st.sampled_from([1, 3, 2**20]))
def test_sums_are_those_of_the_matrix(
    graph: Graph, data: st.DataObject, direction: str, filtered: bool, at_once: int
) -> None:
    size = graph.num_nodes
    graph.edata["w"] = torch.linspace(-2, 3, graph.num_edges)
    mask = torch.arange(graph.num_edges) % 3 != 1 if filtered else None
    weight = data.draw(st.sampled_from([None, "w"]))
    rows = data.draw(st.lists(st.integers(0, size - 1), max_size=8)) if size else []
    h = torch.from_numpy(np.random.default_rng(0).standard_normal((size, 3)))
    of = Propagation(graph, weight=weight, direction=direction, edge_filter=mask)
    matrix = dense(graph, weight, direction, mask)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(propagation, "_EDGES", at_once)
        torch.testing.assert_close(of(h), matrix @ h)
        torch.testing.assert_close(of(h, rows), (matrix @ h)[rows])
        torch.testing.assert_close(of(h[:, 0], rows), (matrix @ h)[rows][:, 0])
        torch.testing.assert_close(of(h.float()), (matrix @ h).float(), rtol=1e-4, atol=1e-4)
        narrow = h.to(torch.bfloat16)
        torch.testing.assert_close(of(narrow, rows), (matrix @ narrow.double()).float()[rows], rtol=1e-4, atol=1e-4)
    if size:
        import scipy.sparse

        sparse = sparse_column(scipy.sparse.csr_array(np.where(h.numpy() > 0, h.numpy(), 0)))
        torch.testing.assert_close(of(sparse).to_dense(), matrix @ sparse.to_dense())
        torch.testing.assert_close(of(sparse, rows).to_dense(), (matrix @ sparse.to_dense())[rows])
    assert torch.equal(of.degrees, (torch.ones(()) * (dense(graph, None, direction, mask)).sum(1)).long())


@given(graphs(min_nodes=1), st.sampled_from(["in", "out"]), st.integers(1, 4))
def test_flows_of_ranges_hold_all_edges_once(graph: Graph, direction: str, rows: int) -> None:
    graph.edata["w"] = torch.linspace(-2, 3, graph.num_edges)
    of = Propagation(graph, weight="w", direction=direction)
    h = torch.arange(graph.num_nodes).double().unsqueeze(1)
    found, edges = [], []
    for start, stop in of.ranges(rows):
        flow = of.flow(start, stop)
        assert flow.dst_layer.parent_nid.tolist() == list(range(start, stop))
        assert torch.equal(flow.take_dst(h), h[start:stop])
        found.append(flow.aggregate(h, "sum", weight=flow.weight.double()))
        assert torch.equal(flow.weight, graph.edata["w"][flow.parent_eid])
        edges += flow.parent_eid.tolist()
    torch.testing.assert_close(torch.cat(found), of(h))
    assert sorted(edges) == list(range(graph.num_edges))


def test_hubs_and_gradients() -> None:
    graph = Graph.from_edges(range(1, 70_001), [0] * 70_000)
    h = torch.ones(70_001, 2, requires_grad=True)
    out = Propagation(graph)(h, [0, 5])
    assert out.tolist() == [[70_000.0, 70_000.0], [0.0, 0.0]]
    assert not out.requires_grad


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda g, h: Propagation(g, weight="no"), KeyError, "no"),
        (lambda g, h: Propagation(g, direction="up"), ValueError, "direction must be 'in' or 'out'"),
        (lambda g, h: Propagation(g)(h[:2]), ValueError, "rows, one per node of the graph"),
        (lambda g, h: Propagation(g)(h, [9]), IndexError, r"nodes\[0\] is 9"),
        (lambda g, h: Propagation(g).ranges(0), ValueError, "chunk_size must be at least 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_mistakes(make: Any, error: Any, words: str, graph: Graph) -> None:
    with pytest.raises(error, match=words):
        make(graph, torch.ones(6, 2))


def test_flows_of_a_float64_column_are_exact() -> None:
    graph = Graph.from_edges([0, 1, 2], [2, 2, 2], edata={"p": torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)})
    propagation, h = Propagation(graph, weight="p"), torch.tensor([[1.0], [2.0], [5.0]], dtype=torch.float64)
    for flow in (propagation.flow(0, 3), propagation.flow_into(np.array([2]))):
        assert torch.equal(flow.weight, graph.edata["p"][flow.parent_eid])
        rows = h[flow.src_layer.parent_nid]
        sums = flow.aggregate(rows, "sum", weight=flow.weight)
        assert torch.allclose(sums, propagation(h)[flow.dst_layer.parent_nid], rtol=1e-15, atol=0)


def test_inference_through_a_filter_of_edges() -> None:
    graph = Graph.from_edges([0, 1, 2, 0], [2, 2, 0, 1])
    keep = torch.tensor([True, False, True, True])
    model, h = nn.GraphSAGE(2, 3, 2, num_layers=2), torch.tensor([[1.0, 0], [3, 4], [5, 6]])
    kept = Graph.from_edges([0, 2, 0], [2, 0, 1])
    assert torch.equal(model.inference(graph, h, edge_filter=keep), model.inference(kept, h))
    with pytest.raises(ValueError, match="leave out weight and edge_filter"):
        model.inference(Propagation(graph), h, edge_filter=keep)
