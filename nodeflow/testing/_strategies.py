"""Hypothesis strategies for graphs, seeds, NodeFlows and what goes with them: small ones, with many
corner cases.

Columns hold small integers, so that their sums are exact in any order. A failing test prints code
that makes its graph again, without the columns, and the call that made its NodeFlow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from hypothesis import note, strategies as st
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import as_count
from nodeflow.flow import Flow, NodeFlow, create_full_node_flow, create_node_flow, flow_from_edges
from nodeflow.graph import Frame, Graph
from nodeflow.sampling import NeighborSampler

_Columns = Mapping[str, tuple[int, ...]]


@checked
@st.composite
def graphs(
    draw: st.DrawFn,
    min_nodes: int = 0,
    max_nodes: int = 8,
    max_edges: int = 20,
    multi_edges: bool = True,
    self_loops: bool = True,
    node_columns: _Columns | None = None,
    edge_columns: _Columns | None = None,
) -> Graph:
    """Strategy for graphs, among them the empty graph, graphs without edges, and graphs with
    isolated nodes.

    Args:
        min_nodes, max_nodes: bounds on the number of nodes.
        max_edges: bound on the number of edges.
        multi_edges, self_loops: whether graphs may have these.
        node_columns, edge_columns: float32 columns that hold integers from -8 to 8, as a dict from
            name to the shape of one row.

    >>> from hypothesis import given
    >>> @given(graphs(node_columns={"feat": (3,)}))
    ... def test_features_have_a_row_per_node(graph):
    ...     assert graph.ndata["feat"].shape == (graph.num_nodes, 3)
    >>> test_features_have_a_row_per_node()
    """
    num_nodes = draw(st.integers(min_nodes, max_nodes))
    pair = st.tuples(*[st.integers(0, max(0, num_nodes - 1))] * 2)
    if not self_loops:
        pair = pair.filter(lambda ends: ends[0] != ends[1])
    # without self-loops an edge needs two nodes
    if num_nodes <= int(not self_loops):
        max_edges = 0
    src, dst = _ends(draw, pair, max_edges, unique=not multi_edges)
    ndata = draw(_columns(num_nodes, node_columns))
    edata = draw(_columns(len(src), edge_columns))
    if draw(st.booleans()):
        note(f"graph = Graph.from_edges({src}, {dst}, num_nodes={num_nodes})")
        return Graph.from_edges(src, dst, num_nodes=num_nodes, ndata=ndata, edata=edata)
    # without edge ids: the position among the in-edges is the id
    ends = np.array([src, dst], np.int64).reshape(2, -1)
    counts = np.bincount(ends[1], minlength=num_nodes)
    indptr = np.append(0, counts.cumsum())
    indices = ends[0][ends[1].argsort(kind="stable")]
    note(f"graph = Graph({indptr.tolist()}, {indices.tolist()})")
    return Graph(indptr, indices, ndata=ndata, edata=edata)


def _ends(
    draw: st.DrawFn, pair: st.SearchStrategy[tuple[int, ...]], most: int, *, unique: bool = False
) -> tuple[list[int], list[int]]:
    """Draw up to ``most`` edges; return their sources and their destinations."""
    if most:
        edges = draw(st.lists(pair, max_size=most, unique=unique))
    else:
        edges = []
    return [u for u, _ in edges], [v for _, v in edges]


@checked
@st.composite
def typed_graphs(
    draw: st.DrawFn,
    max_types: int = 3,
    max_relations: int = 4,
    max_nodes: int = 4,
    max_edges: int = 8,
) -> Graph:
    """Strategy for graphs of several node types and relations, some without nodes or edges.

    Several relations may have one name. The types are "a", "b" and so on.

    Args:
        max_types, max_relations: bounds on the number of types and of relations.
        max_nodes, max_edges: bounds on the number of nodes of a type, and of edges of a relation.

    >>> from hypothesis import given
    >>> @given(typed_graphs())
    ... def test_ids_are_ranges(graph):
    ...     assert sum(map(len, graph.schema.nodes.values())) == graph.num_nodes
    >>> test_ids_are_ranges()
    """
    sizes = draw(st.lists(st.integers(0, max_nodes), min_size=1, max_size=max_types))
    nodes = {chr(ord("a") + i): size for i, size in enumerate(sizes)}
    of_type = st.sampled_from(list(nodes))
    relations = st.lists(
        st.tuples(of_type, st.sampled_from("xyz"), of_type), max_size=max_relations, unique=True
    )
    edges = {}
    for relation in draw(relations):
        last = [nodes[relation[end]] - 1 for end in (0, 2)]
        pair = st.tuples(*(st.integers(0, max(node, 0)) for node in last))
        edges[relation] = _ends(draw, pair, max_edges if min(last) >= 0 else 0)
    note(f"graph = Graph.typed({nodes}, {edges})")
    return Graph.typed(nodes, edges)


@checked
def seeds(graph: Graph, min_size: int = 0, max_size: int = 8) -> st.SearchStrategy[list[int]]:
    """Strategy for seeds: lists of node ids of ``graph``, in any order, with repeats, possibly
    empty.

    Args:
        graph: the graph of the ids; without nodes the list is empty.
        min_size, max_size: bounds on the length of the list.

    >>> seeds(Graph.from_edges([0], [1]), min_size=2).example()  # doctest: +SKIP
    [1, 0, 1]
    """
    if graph.num_nodes == 0:
        return st.just([])
    return st.lists(st.integers(0, graph.num_nodes - 1), min_size=min_size, max_size=max_size)


@checked
@st.composite
def node_flows(
    draw: st.DrawFn,
    max_layers: int = 4,
    parents: bool | None = None,
    skips: bool = True,
    columns: bool = True,
    include_dst: bool | None = None,
) -> NodeFlow:
    """Strategy for NodeFlows: sampled ones, full ones, and ones made by hand, with skips and pooled
    layers.

    Neighbours are drawn uniformly, so all edges of a node have the same estimator weight. To test a
    layer with weights that differ, draw from ``graphs`` and ``seeds`` with
    ``NeighborSampler(graph, [1], prob="p")``, after setting
    ``graph.edata["p"] = 1.0 + torch.arange(graph.num_edges) % 3``.

    Args:
        max_layers: bound on the number of layers.
        parents: True for NodeFlows with a parent graph, False for those without, None for both.
        skips: whether NodeFlows without a parent graph may have flows that skip layers, and layers
            without parent ids.
        columns: whether layers and flows may have a float32 column "h" that holds integers. A test
            sets other columns itself:
            ``for flow in batch.flows: flow.data["e"] = torch.ones(flow.num_edges)``.
        include_dst: True for NodeFlows whose layers begin with the nodes of the next layer, in
            their order, as neural network layers that use ``flow.take_dst`` need; then no layer is
            pooled. None for others too.

    >>> from hypothesis import given
    >>> @given(node_flows())
    ... def test_sizes(batch):
    ...     assert len(batch.layer_sizes) == batch.num_layers
    >>> test_sizes()
    """
    with_parent = parents
    if parents is None:
        with_parent = draw(st.booleans())
    if include_dst not in (None, True):
        raise ValueError(f"include_dst must be True or None, got {include_dst!r}")
    prefix = include_dst is True
    if with_parent:
        batch = draw(_sampled(max_layers, prefix))
    else:
        batch = draw(_by_hand(max_layers, skips, prefix))
    for part in (*batch.layers, *batch.flows):
        if columns and draw(st.booleans()):
            part.data.update(draw(_columns(part.data.num_rows, {"h": (2,)})))
    return batch


@st.composite
def _sampled(draw: st.DrawFn, max_layers: int, prefix: bool) -> NodeFlow:
    graph = draw(graphs())
    num_flows = draw(st.integers(0, max_layers - 1))
    if num_flows == 0 or draw(st.booleans()):
        loops = draw(st.booleans())
        note(f"create_full_node_flow(graph, {num_flows}, add_self_loop={loops})")
        return create_full_node_flow(graph, num_flows, add_self_loop=loops)
    fanouts = draw(st.lists(st.sampled_from([-1, 1, 2]), min_size=num_flows, max_size=num_flows))
    include_dst = prefix or draw(st.booleans())
    edges = graph.view(draw(st.sampled_from(["in", "out"])))
    options: dict[str, Any] = {
        "replace": draw(st.booleans()),
        "include_dst": include_dst,
        "reuse": include_dst and draw(st.booleans()),
        "seed": draw(st.integers(0, 9)),
    }
    ids = draw(seeds(graph))
    note(f"NeighborSampler({edges!r}, {fanouts}, **{options})({ids})")
    return NeighborSampler(edges, fanouts, **options)(ids)


@st.composite
def _by_hand(draw: st.DrawFn, max_layers: int, skips: bool, prefix: bool) -> NodeFlow:
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=max_layers))
    if prefix:
        # a layer begins with the next one, so it is at least as large
        sizes.sort(reverse=True)
    pairs = [(i, i + 1) for i in range(len(sizes) - 1)]
    if skips:
        pairs += [(i, j) for j in range(len(sizes)) for i in range(j - 1) if draw(st.booleans())]
    flows = {}
    for i, j in pairs:
        pair = st.tuples(*(st.integers(0, max(0, sizes[k] - 1)) for k in (i, j)))
        src, dst = _ends(draw, pair, 8 if sizes[i] and sizes[j] else 0)
        count = len(src)
        eid = draw(st.none() | st.lists(st.integers(-1, 30), min_size=count, max_size=count))
        weight = draw(st.none() | st.just(torch.arange(count) + 0.5))
        flows[i, j] = flow_from_edges(
            src, dst, num_src=sizes[i], num_dst=sizes[j], parent_eid=eid, weight=weight
        )
    ids: list[list[int] | None] = []
    for size in sizes:
        if prefix and ids and ids[0] is not None:
            ids.append(ids[0][:size])
        elif skips and not prefix and len(sizes) > 1 and draw(st.booleans()):
            ids.append(None)  # pooled
        else:
            distinct = st.lists(st.integers(0, 30), min_size=size, max_size=size, unique=True)
            ids.append(draw(distinct))
    return create_node_flow(flows, ids)


@st.composite
def _columns(draw: st.DrawFn, num_rows: int, columns: _Columns | None) -> dict[str, Tensor]:
    # one drawn number per frame: drawing every entry is slow, and shrinking entries makes no
    # failure clearer
    if not columns:
        return {}
    random = np.random.default_rng(draw(st.integers(0, 99)))
    drawn = {name: random.integers(-8, 9, (num_rows, *shape)) for name, shape in columns.items()}
    return {name: torch.from_numpy(array.astype(np.float32)) for name, array in drawn.items()}


@st.composite
def flows(
    draw: st.DrawFn, max_nodes: int = 6, max_edges: int = 10, columns: _Columns | None = None
) -> Flow:
    """Strategy for single flows, as convolutions take them: all edges of a graph, or some with
    estimator weights.

    The sources begin with the destinations, so that ``flow.take_dst`` works.

    Args:
        max_nodes, max_edges: bounds on the graph.
        columns: float32 columns of the edges, as a dict from name to the shape of one row.

    >>> from hypothesis import given
    >>> @given(flows(columns={"time": (1,)}))
    ... def test_columns_have_a_row_per_edge(flow):
    ...     assert flow.data["time"].shape == (flow.num_edges, 1)
    >>> test_columns_have_a_row_per_edge()
    """
    graph = draw(graphs(max_nodes=max_nodes, max_edges=max_edges, edge_columns=columns))
    if draw(st.booleans()):
        batch = create_full_node_flow(graph, 1)
    else:
        fanout = draw(st.sampled_from([1, 2]))
        batch = NeighborSampler(graph, [fanout])(draw(seeds(graph)))
    batch.copy_from_parent(edata=list(columns or {}))
    return batch.flows[0]


def fanouts(num_flows: int, largest: int = 3) -> st.SearchStrategy[list[int]]:
    """Strategy for fanouts, one per flow: numbers from 1 to ``largest``, and -1 for all neighbours.

    >>> fanouts(2).example()  # doctest: +SKIP
    [1, -1]
    """
    count = as_count(num_flows, "num_flows")
    return st.lists(st.integers(1, largest) | st.just(-1), min_size=count, max_size=count)


def frames(num_rows: int, max_columns: int = 3) -> st.SearchStrategy[Frame]:
    """Strategy for frames of ``num_rows`` rows: columns of float32, int64 and bool, with one to
    three dimensions.

    >>> from hypothesis import given
    >>> @given(frames(4))
    ... def test_rows(frame):
    ...     assert all(len(column) == 4 for column in frame.values())
    >>> test_rows()
    """
    as_count(num_rows, "num_rows")

    def column_of(kind: torch.dtype, shape: list[int], seed: int) -> Tensor:
        numbers = np.random.default_rng(seed).integers(-8, 9, (num_rows, *shape))
        return torch.from_numpy(numbers).to(kind)

    column = st.builds(
        column_of,
        st.sampled_from([torch.float32, torch.int64, torch.bool]),
        st.lists(st.integers(1, 3), max_size=2),
        st.integers(0, 99),
    )
    columns = st.dictionaries(st.sampled_from("abcd"), column, max_size=max_columns)
    return columns.map(lambda chosen: Frame(num_rows, chosen))


@st.composite
def temporal_graphs(
    draw: st.DrawFn, max_nodes: int = 6, max_edges: int = 12, last: int = 10
) -> tuple[Graph, list[int], list[int]]:
    """Strategy for a graph with an edge column "time" (int64, 0 to ``last``), seeds, and a time for
    every seed.

    Equal times, times before the first edge and after the last one are among them.

    >>> from hypothesis import given
    >>> from nodeflow import TemporalNeighborSampler
    >>> @given(temporal_graphs())
    ... def test_nothing_from_the_future(drawn):
    ...     graph, ids, times = drawn
    ...     batch = TemporalNeighborSampler(graph, [2])(ids, times=torch.tensor(times, dtype=torch.int64))
    ...     assert (graph.edata["time"][batch.flows[0].parent_eid] <= max(times, default=0)).all()
    >>> test_nothing_from_the_future()
    """
    graph = draw(graphs(max_nodes=max_nodes, max_edges=max_edges))
    moment = st.integers(0, last)
    stamps = draw(st.lists(moment, min_size=graph.num_edges, max_size=graph.num_edges))
    graph.edata["time"] = torch.tensor(stamps, dtype=torch.int64)
    ids = draw(seeds(graph, max_size=4))
    times = draw(st.lists(st.integers(-1, last + 1), min_size=len(ids), max_size=len(ids)))
    note(f'graph.edata["time"] = torch.tensor({stamps}, dtype=torch.int64)')
    return graph, ids, times


def triples(
    num_nodes: int = 6, num_relations: int = 3, max_size: int = 10
) -> st.SearchStrategy[Tensor]:
    """Strategy for triples of knowledge graphs, (source, relation, destination), int64 ``[n, 3]``;
    some come twice.

    >>> from hypothesis import given
    >>> @given(triples(num_nodes=4, num_relations=2))
    ... def test_relations(links):
    ...     assert (links[:, 1] < 2).all()
    >>> test_relations()
    """
    nodes = st.integers(0, num_nodes - 1)
    triple = st.tuples(nodes, st.integers(0, num_relations - 1), nodes)
    rows = st.lists(triple, max_size=max_size)
    return rows.map(lambda some: torch.tensor(some, dtype=torch.int64).reshape(-1, 3))
