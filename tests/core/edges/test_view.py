"""One view of edges: whatever takes it agrees with the dense matrix of its edges, and shares its
arrays.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from _support.effort import examples
from hypothesis import given, strategies as st
from torch import Tensor

from nodeflow import FullSampler, Graph, LaborSampler, NeighborSampler, nn
from nodeflow.control_variates import ControlVariateSampler, History
from nodeflow.graph import EdgeView
from nodeflow.propagation import Propagation
from nodeflow.transform import degrees, edge_norm


@st.composite
def typed_graphs(draw: st.DrawFn) -> Graph:
    """A graph of one or two relations, with a filter and weights; few edges, many of them twice."""
    sizes = {"a": draw(st.integers(1, 4)), "b": draw(st.integers(1, 3))}
    relations: dict[Any, Any] = {}
    for name, ends in {"to": ("a", "b"), "at": ("a", "a")}.items():
        count = draw(st.integers(0, 6))
        src, dst = (
            draw(st.lists(st.integers(0, sizes[end] - 1), min_size=count, max_size=count))
            for end in ends
        )
        relations[ends[0], name, ends[1]] = (src, dst)
    graph = Graph.typed(sizes, relations)
    numbers = st.lists(st.integers(0, 3), min_size=graph.num_edges, max_size=graph.num_edges)
    graph.edata["w"] = torch.tensor(draw(numbers), dtype=torch.float32) + 1
    graph.edata["keep"] = torch.tensor(draw(numbers), dtype=torch.int64) > 0
    return graph


def matrix(view: EdgeView) -> Tensor:
    """What ``view`` sums over, dense ``[num_nodes, num_nodes]``, float64, edge by edge."""
    graph = view.graph
    dense = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    for e, (u, v) in enumerate(zip(*(end.tolist() for end in graph.edges()), strict=True)):
        if view.where is None or graph.edata["keep"][e]:
            number = 1.0 if view.weight is None else float(graph.edata["w"][e])
            if view.direction != "out":
                dense[v, u] += number
            if view.direction == "out" or (view.direction == "both" and u != v):
                dense[u, v] += number
    return dense


def sums(sampler: Any, h: Tensor) -> Tensor:
    """The weighted sums of a batch of all nodes."""
    flow = sampler(range(sampler.graph.num_nodes)).flows[-1]
    return flow.aggregate(h[flow.src_layer.parent_nid], "sum", weight=flow.weight.double())


@examples(25)
@given(typed_graphs(), st.data())
def test_all_who_take_a_view_agree_with_its_matrix(graph, data):
    direction = data.draw(st.sampled_from(["in", "out", "both"]))
    where = data.draw(st.sampled_from([None, "keep", graph.edata["keep"]]))
    weight = data.draw(st.sampled_from([None, "w"]))
    view = graph.view(direction, where=where, weight=weight)
    dense = matrix(view)
    h = torch.arange(graph.num_nodes * 2, dtype=torch.float64).reshape(-1, 2) + 1
    for same in (view, pickle.loads(pickle.dumps(view)), copy.deepcopy(view)):
        sampler = FullSampler(same, 1)
        assert torch.equal(sums(sampler, h), dense @ h)
        assert repr(same) == repr(view)
        assert torch.equal(sums(pickle.loads(pickle.dumps(sampler)), h), dense @ h)
    left_out = data.draw(st.lists(st.integers(0, max(graph.num_edges - 1, 0)), max_size=3))
    if graph.num_edges:
        kept = graph.edata["keep"].clone() if where is not None else torch.ones(graph.num_edges) > 0
        kept[left_out] = False
        without = NeighborSampler(view, [-1]).without_edges(left_out)
        other = graph.view(direction, where=kept, weight=weight)
        assert torch.equal(sums(without, h), sums(FullSampler(other, 1), h))
    if direction == "both":
        return
    assert torch.equal(Propagation(view)(h), dense @ h)
    history = History(view, {1: 2}, dtype=torch.float64)
    history.write(1, range(graph.num_nodes), h)
    history.commit()
    assert torch.equal(history.aggregated_rows(1, range(graph.num_nodes)), dense @ h)
    batch = ControlVariateSampler(history, [-1, -1])(range(graph.num_nodes))
    assert torch.equal(batch.ldata[2]["agg_h_1"], dense @ h)
    entries, counts = matrix(graph.view(direction, where=where)), degrees(view)
    assert torch.equal(counts["in_degree"], dense.sum(1).float())
    assert torch.equal(counts["out_degree"], dense.sum(0).float())
    graph.edata["mean"] = edge_norm(view, "right")
    means = FullSampler(graph.view(direction, weight="mean"), 1)
    expected = entries / entries.sum(1, keepdim=True).clamp(min=1)
    torch.testing.assert_close(sums(means, h), expected @ h)
    conv = nn.SAGEConv(2, 3, weighted=False, bias=False).double()
    model = nn.FlowModel([conv])
    torch.testing.assert_close(
        model.inference(graph.view(direction, where=where), h),
        h @ conv.own.weight.T + expected @ h @ conv.neigh.weight.T,
    )


def test_all_who_take_a_view_share_its_arrays():
    graph = Graph.from_edges(range(50), np.arange(50) // 5, edata={"w": torch.rand(50) + 1})
    view = graph.view(where=torch.arange(50) % 2 == 0, weight="w")
    arrays = view.reader.edges.indices
    history = History(view, {1: 2})
    for sampler in (
        NeighborSampler(view, [2]),
        LaborSampler(view, [2]),
        ControlVariateSampler(history, [2, 2]),
    ):
        assert np.shares_memory(sampler.reader.edges.indices, arrays)
        assert sampler.reader.column is view.reader.column
    assert np.shares_memory(Propagation(view)._sums.edges.indices, arrays)


def test_a_view_shows_how_it_was_made():
    graph = Graph.from_edges([0, 1], [1, 2], edata={"w": torch.ones(2)})
    assert repr(graph.view()) == f"{graph!r}.view()"
    for text in ("graph.view('out', weight='w')", "graph.view(weight='w')", "graph.view('both')"):
        assert repr(eval(text)) == text.replace("graph", repr(graph))
    sampler = NeighborSampler(graph.view("out", weight="w"), [2])
    assert repr(sampler).startswith(f"NeighborSampler({graph!r}.view('out', weight='w'), fanouts=")
    assert repr(NeighborSampler(graph, [2])).startswith(f"NeighborSampler({graph!r}, fanouts=")
    with pytest.raises(AttributeError, match="view of a sampler is fixed"):
        sampler.view = graph.view()
