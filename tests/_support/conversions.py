"""Graphs with columns of many types, and the check that two graphs are the same to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from _support.pages import ROOT
from nodeflow import Graph, NodeFlow
from nodeflow.testing import assert_same_node_flow


def filled(graph: Graph, *, sparse: bool = False) -> Graph:
    """Return ``graph`` with columns of many types and widths, with NaN, infinity, and large
    integers.
    """
    generator = torch.Generator().manual_seed(graph.num_nodes * 31 + graph.num_edges)
    n = graph.num_nodes
    e = graph.num_edges
    graph.ndata["x"] = torch.randn(n, 3, generator=generator)
    graph.ndata["precise"] = torch.rand(n, dtype=torch.float64, generator=generator)
    graph.ndata["label"] = torch.arange(n) - 2**62
    graph.ndata["mask"] = torch.rand(n, generator=generator) < 0.5
    graph.edata["edge_attr"] = torch.rand(e, 2, dtype=torch.float64, generator=generator)
    graph.edata["kind"] = (torch.arange(e) % 7).to(torch.int8)
    graph.edata["flag"] = torch.rand(e, generator=generator) < 0.5
    odd = torch.rand(e, generator=generator)
    odd[::3] = float("nan")
    odd[1::5] = float("-inf")
    graph.edata["odd"] = odd
    if sparse:
        graph.ndata["words"] = (
            torch.rand(n, 5, generator=generator) * (torch.arange(5) % 2)
        ).to_sparse_csr()
    return graph


def ends(graph: Graph) -> list[list[int]]:
    return [end.tolist() for end in graph.edges()]


def assert_same_graph(one: Graph, other: Graph) -> None:
    """Fail unless ids, order of edges and all columns are the same."""
    assert (one.num_nodes, ends(one)) == (other.num_nodes, ends(other))
    assert_same_columns(one.ndata, other.ndata)
    assert_same_columns(one.edata, other.edata)


def assert_same_columns(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> None:
    assert sorted(one) == sorted(other)
    for name in one:
        assert_same_column(one[name], other[name], name)


def assert_same_column(one: Tensor, other: Tensor, name: str) -> None:
    assert (one.dtype, one.shape, one.layout) == (other.dtype, other.shape, other.layout), name
    if one.layout == torch.sparse_csr:
        for part in ("crow_indices", "col_indices", "values"):
            assert torch.equal(getattr(one, part)(), getattr(other, part)()), name
    else:
        assert torch.equal(one.nan_to_num(1e30), other.nan_to_num(1e30)), name
        assert torch.equal(one != one, other != other), name


def assert_same_batch(one: NodeFlow, other: NodeFlow, *, frames: bool = True) -> None:
    """Fail unless layers, flows and seeds are the same, and with ``frames`` all columns."""
    one.validate()
    assert_same_node_flow(one, other, frames=frames)
    assert_same_columns(one.seed_data, other.seed_data)
    for flow, wanted in zip(one.flows, other.flows, strict=True):
        assert torch.equal(flow.dst_in_src, wanted.dst_in_src)


def stored(name: str) -> dict[str, Tensor]:
    """Return the arrays of a file in ``tests/convert``."""
    with np.load(ROOT / "tests" / "convert" / name) as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def below(arrays: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {
        key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)
    }


def types(frame: Mapping[str, Any]) -> dict[str, torch.dtype]:
    return {name: column.dtype for name, column in frame.items()}


@st.composite
def typed_graphs(draw: st.DrawFn) -> Graph:
    """Return graphs of several node types and relations, some of them empty, with columns per type
    and of all nodes.
    """
    names = [f"t{i}" for i in range(draw(st.integers(1, 4)))]
    nodes: dict[str, Any] = {name: draw(st.integers(0, 5)) for name in names}
    edges: dict[Any, Any] = {}
    for i in range(draw(st.integers(0, 5))):
        a, b = (draw(st.sampled_from(names)) for _ in range(2))
        count = draw(st.integers(0, 8)) if nodes[a] and nodes[b] else 0
        src, dst = ([draw(st.integers(0, nodes[of] - 1)) for _ in range(count)] for of in (a, b))
        edges[a, draw(st.sampled_from(["r", f"r{i}"])), b] = (
            src,
            dst,
            {"w": torch.rand(count), "kind": torch.arange(count)},
        )
    for i, name in enumerate(names):
        if draw(st.booleans()):
            own = filled(Graph.from_edges([], [], num_nodes=nodes[name]), sparse=True).ndata
            nodes[name] = {**own, "wide": torch.rand(nodes[name], i + 1, dtype=torch.float64)}
    return Graph.typed(nodes, edges, reverse=draw(st.booleans()))


def assert_same_typed_graph(one: Graph, other: Graph) -> None:
    """Fail unless types, ids, order of edges and the columns of all types are the same."""
    assert one.schema == other.schema
    assert ends(one) == ends(other)
    for parts, others in ((one.nodes, other.nodes), (one.relations, other.relations)):
        for name, part in parts.items():
            assert_same_columns(part.data, others[name].data)
