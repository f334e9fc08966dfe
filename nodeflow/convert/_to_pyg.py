"""Graphs, NodeFlows and loaders as those of PyTorch Geometric: a batch is one graph, with counts
per hop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from nodeflow._core.base.checks import check_type
from nodeflow._core.rows.rows import take_rows
from nodeflow._core.schema import Relation
from nodeflow.convert._columns import PLAIN, Columns, columns_of_type, library, merged, of_types
from nodeflow.flow import Flow, NodeFlow
from nodeflow.graph import Graph, Schema

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

_Store: TypeAlias = tuple[dict[str, Any], Mapping[str, Tensor]]
"""Attributes and columns of a node type or a relation; attributes that are None are left out."""


def to_pyg(graph: Graph | NodeFlow) -> Data | HeteroData:
    """Return a PyTorch Geometric ``Data`` object of a graph, or of a NodeFlow such as a batch.

    Where there are types it is a ``HeteroData``, with all that follows per type and relation, in
    ids within the types.

    For a ``Graph``: ``edge_index`` in edge id order, ``num_nodes`` and all columns under their own
    names.

    For a ``NodeFlow``: one graph of all layers, as PyTorch Geometric's ``NeighborLoader`` yields.
    Each node has one row, seeds first, then nodes by the hop that reaches them; edges are in the
    order of the hops too.

    =======================  =======================================================================================
    ``edge_index``           the edges of all flows, each once, int64 ``[2, E]``
    ``n_id``, ``e_id``       parent ids of nodes and edges (-1 for an edge without a parent), where there are any
    ``batch_size``           number of seeds, which are the first rows
    ``num_sampled_nodes``    number of nodes per hop, a list; the first are the seeds. For ``trim_to_layer``; left out
                             where nodes drew anew in every flow
    ``num_sampled_edges``    number of edges per hop, a list; left out there too
    ``edge_weight``          estimator weights ``[E]``, or the mean over the draws of a node that drew in several flows
    ``seed_index``           row of every seed asked for; differs from 0, 1, 2, ... where seeds repeat
    ``seed_ids``             seeds that are no nodes: ids of edges, parts, subgraphs; only for such samplers
    ``seed_data``            a dict of the columns of ``batch.seed_data``, where there are any
    ``input_id``             its column "index", where there is one
    ``batch``                ``layer.context``, where there are contexts: the number of a node's own subgraph
    =======================  =======================================================================================

    In ``HeteroData`` columns of all types become columns of each, ``seed_index`` has rows within
    types, and attributes of seeds belong to the type of the seeds; or to the whole object, where
    seeds are no single nodes.

    Columns of the first layer and flow have a row per node or edge. A column of the last layer
    alone, such as labels that are copied for the seeds, has ``batch_size`` rows, so that
    ``batch.y[:batch.batch_size]`` is right for both.

    In such a graph a node has the same in-edges in every layer of the model. ``FullSampler``, the
    samplers of subgraphs and those of neighbours with ``reuse=True`` draw so. Where nodes draw anew
    in every flow, a node gets all edges that it drew in any of them, with the mean of their
    estimator weights (0 where a flow did not draw the edge): weighted sums stay unbiased. A model
    may also run flow by flow, ``conv((h, flow.take_dst(h)), torch.stack(flow.edges()))``.

    Raises ValueError for NodeFlows made with ``include_dst=False``, for flows that skip layers, for
    a column that only some flows have where nodes drew anew, and for names of columns that ``Data``
    cannot hold: the same name for nodes and edges, or one from the table above. With types it also
    does so for edges that are none of the graph or run against their direction, and for a column
    that a type and all nodes have. Raises ImportError without PyTorch Geometric; its message has
    the command that installs it.

    >>> from nodeflow import NeighborSampler
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata={"x": torch.ones(4, 8)})
    >>> to_pyg(graph)
    Data(x=[4, 8], edge_index=[2, 4], num_nodes=4)
    >>> batch = to_pyg(NeighborSampler(graph, [2, 2], reuse=True)([3]))
    >>> batch.n_id, batch.num_sampled_nodes
    (tensor([3, 2, 1]), [1, 1, 1])
    """
    if isinstance(graph, NodeFlow):
        return _node_flow_data(graph)
    check_type(graph, "graph", Graph, "a Graph or a NodeFlow")
    _data_module()  # before columns are read
    of_nodes, of_edges = of_types(graph)
    nodes = {name: ({"num_nodes": size}, columns) for name, (size, columns) in of_nodes.items()}
    edges = {
        r: ({"edge_index": torch.stack([src, dst])}, columns)
        for r, (src, dst, columns) in of_edges.items()
    }
    return _joined(nodes, edges, {}, frozenset())


class _PygLoader:
    """The batches of a loader as batches of PyTorch Geometric."""

    def __init__(self, loader: Iterable[NodeFlow]) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Data | HeteroData]:
        return map(_node_flow_data, self.loader)

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"pyg_loader({self.loader!r})"


def pyg_loader(loader: Iterable[NodeFlow]) -> _PygLoader:
    """Return the batches of a loader as batches of PyTorch Geometric, for models written for
    ``NeighborLoader``.

    Every iteration is an epoch, as of ``loader``; ``len`` is the number of batches. The attribute
    ``loader`` is the loader itself, with its ``set_epoch`` and ``state_dict``. ``to_pyg`` says what
    a batch holds. Fanouts are in flow order, the seeds' last; ``num_neighbors`` of PyTorch
    Geometric has the seeds' first.

    Args:
        loader: a ``NodeFlowLoader``, a ``storage.Lookahead``, or anything that iterates over
            NodeFlows.

    Raises TypeError for an object that cannot be iterated; when iterated, what ``to_pyg`` raises.

    >>> import torch
    >>> from nodeflow import Graph, NeighborSampler, NodeFlowLoader
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata={"x": torch.ones(4, 8)})
    >>> sampler = NeighborSampler(graph, fanouts=[5, 10], reuse=True)  # num_neighbors=[10, 5]
    >>> for batch in pyg_loader(NodeFlowLoader(sampler, [0, 1, 2, 3], batch_size=2, ndata={0: ["x"]})):
    ...     print(batch.n_id, batch.x.shape, batch.batch_size)
    tensor([0, 1, 3, 2]) torch.Size([4, 8]) 2
    tensor([2, 3, 1, 0]) torch.Size([4, 8]) 2
    """
    check_type(loader, "loader", Iterable, "a loader of NodeFlows")
    return _PygLoader(loader)


def _data_module() -> Any:
    return library(
        "torch_geometric.data", "PyTorch Geometric", "install it with: pip install torch-geometric"
    )


def _joined(
    nodes: Mapping[str, _Store],
    edges: Mapping[Relation, _Store],
    seeds: Mapping[str, Any],
    taken: Set[str],
) -> Data | HeteroData:
    """Return the object with all types, and ``seeds``: ``Data`` for the types of a graph that has
    none.
    """
    if {*nodes, *edges} == PLAIN:
        ((of_nodes, ndata),) = nodes.values()
        ((of_edges, edata),) = edges.values()
        if both := sorted(set(ndata) & set(edata)):
            raise ValueError(
                f"a node and an edge column share a name, which Data cannot hold: {both}"
            )
        data = _data_module().Data()
        _fill(data, {**of_edges, **of_nodes, **seeds}, {**ndata, **edata}, taken)
        return data
    data = _data_module().HeteroData()
    for name, (parts, columns) in nodes.items():
        _fill(data.get_node_store(name), parts, columns, taken)
    for relation, (parts, columns) in edges.items():
        _fill(data.get_edge_store(*relation), parts, columns, taken)
    _fill(data, dict(seeds), {}, taken)
    return data


def _fill(data: Any, parts: dict[str, Any], columns: Mapping[str, Tensor], taken: Set[str]) -> None:
    """Set parts, and columns under their own names; raises ValueError for names that ``data``
    cannot hold.
    """
    if both := sorted((taken | set(parts)) & set(columns)):
        raise ValueError(
            f"Data keeps the names {both} for itself; give the columns of these names other ones "
            "first"
        )
    for name, column in columns.items():
        # some names are properties or methods of Data: it takes the column and gives another thing
        try:
            setattr(data, name, column)
            held = data[name] is column and getattr(data, name) is column
        except (AttributeError, KeyError):
            held = False
        if not held:
            raise ValueError(
                f"Data cannot hold a column named {name!r}; give it another name first"
            )
    for name, value in parts.items():
        if value is not None:
            setattr(data, name, value)


def _node_flow_data(batch: NodeFlow) -> Data | HeteroData:
    _data_module()  # before anything is computed
    _check_layers(batch)
    schema = Schema.of_one_type(0, 0)
    if all(layer.has_schema for layer in batch.layers):
        schema = batch.front.schema
    # a graph of one type with names of its own has types too
    typed = {*schema.nodes, *schema.relations} != PLAIN
    edges = {relation: _edges(batch, relation if typed else None) for relation in schema.relations}
    # hops can be counted only where each is a prefix of the next, in every relation
    nested = all(part.nested for part in edges.values())
    nodes = {name: _nodes(batch, name if typed else None, nested) for name in schema.nodes}
    if typed:
        edges, seeds = _by_types(batch, nodes, edges)
    else:
        seeds = _seed_parts(batch, batch.seed_index, batch.seed_data)
    stores = {}
    for relation, part in edges.items():
        parts = {
            "edge_index": torch.stack(part.ends),
            "edge_weight": part.weight,
            "e_id": part.eid,
            "num_sampled_edges": per_hop(part.sizes) if nested else None,
        }
        stores[relation] = parts, part.columns
    return _joined(nodes, stores, seeds, PARTS)


def _by_types(
    batch: NodeFlow, nodes: Mapping[str, _Store], edges: Mapping[Relation, _MergedEdges]
) -> tuple[dict[Relation, _MergedEdges], dict[str, Any]]:
    """Return edges by rows within types, and the attributes of seeds, which are given to the type
    of the seeds where these are nodes.
    """
    for i, flow in enumerate(batch.flows):
        if flow.num_edges != sum(part.sizes[i] for part in edges.values()):
            raise ValueError(
                f"HeteroData cannot hold edges that are none of the graph, which flow {i} has"
            )
    # rows of layer 0 are of all types, and HeteroData counts rows within each type
    place = torch.zeros_like(batch.front.parent_nid)
    for name in nodes:
        rows = batch.front.of(name).rows
        place[rows] = torch.arange(len(rows), device=rows.device)
    placed = {r: _within_types(batch, r, part, place) for r, part in edges.items()}
    # pairs of seeds, or seeds that are no nodes, belong to no single type
    index = batch.seed_index
    if index.ndim > 1 or batch.has_seed_ids:
        return placed, _seed_parts(batch, place[index], batch.seed_data)
    for name, (parts, _) in nodes.items():
        seeds = _among(batch.seed_ids, batch.front.schema.nodes[name])
        data = {key: take_rows(column, seeds) for key, column in batch.seed_data.items()}
        parts.update(_seed_parts(batch, place[index[seeds]], data))
    return placed, {}


def _seed_parts(batch: NodeFlow, index: Tensor, data: Mapping[str, Tensor]) -> dict[str, Any]:
    return {
        "seed_index": index,
        "seed_ids": batch.seed_ids if batch.has_seed_ids else None,
        "seed_data": dict(data) or None,
        "input_id": data.get("index"),
    }


def _among(ids: Tensor, wanted: range) -> Tensor:
    """Return the positions of those ids that are in a range."""
    return ((ids >= wanted.start) & (ids < wanted.stop)).nonzero().flatten()


def _within_types(
    batch: NodeFlow, relation: Relation, of: _MergedEdges, place: Tensor
) -> _MergedEdges:
    """Return edges of a relation by rows and ids within their types; ``place`` is the row of every
    node of layer 0.
    """
    schema = batch.front.schema
    nodes = batch.front.parent_nid
    for end, name in zip(of.ends, relation[::2], strict=True):
        if len(_among(nodes[end], schema.nodes[name])) < len(end):
            raise ValueError(
                f"HeteroData cannot hold edges of {relation} from end to start; draw with "
                "direction='in'"
            )
    # every edge is one of the graph, which the caller has checked
    eid = None if of.eid is None else of.eid - schema.relations[relation].start
    return of._replace(ends=(place[of.ends[0]], place[of.ends[1]]), eid=eid)


class _MergedEdges(NamedTuple):
    """The edges of all flows, each once, grouped by destination; ends are rows of layer 0, ``eid``
    parent ids.

    ``nested`` says whether a node has the same edges in all flows, ``sizes`` the numbers of edges
    of the flows.
    """

    ends: tuple[Tensor, Tensor]
    sizes: list[int]
    weight: Tensor | None
    eid: Tensor | None
    columns: Columns
    nested: bool = True


def per_hop(sizes: Sequence[int]) -> list[int]:
    """Return the number of nodes or edges that each hop adds, from the sizes of layers or flows."""
    return [more - less for less, more in pairwise([0, *reversed(sizes)])]


PARTS = frozenset(
    {
        "num_nodes",
        "batch_size",
        "num_sampled_nodes",
        "num_sampled_edges",
        "edge_index",
        "edge_weight",
        "e_id",
        "n_id",
        "batch",
        "seed_index",
        "seed_ids",
        "seed_data",
        "input_id",
    }
)
"""Attributes of a batch that are no columns."""


def _nodes(batch: NodeFlow, name: str | None, nested: bool) -> _Store:
    """Return the nodes of a type, in the order of layer 0; None: of a graph without types."""
    front = batch.front
    context = front.context
    if name is None:
        sizes = list(batch.layer_sizes)
        frames = [dict(layer.data) for layer in batch.layers]
        ids = None
        if front.has_parent:
            ids = front.parent_nid
    else:
        parts = [layer.of(name) for layer in batch.layers]
        sizes = [*map(len, parts)]
        ids = parts[0].parent_nid
        if context is not None:
            context = context[parts[0].rows]
        frames = []
        for layer, part in zip(batch.layers, parts, strict=True):
            cut = partial(take_rows, ids=part.rows)
            frames.append(columns_of_type(layer.data, part.data, cut, name))
    attributes = {
        "num_nodes": sizes[0],
        "batch_size": sizes[-1],
        # where nodes drew anew, hops are no prefixes
        "num_sampled_nodes": per_hop(sizes) if nested else None,
        "n_id": ids,
        "batch": context,
    }
    return attributes, _merged(frames, "layer")


def _check_layers(batch: NodeFlow) -> None:
    """Raise ValueError unless every layer is the first part of the layer before it."""
    if len(batch.flows.pairs()) > batch.num_flows:
        raise ValueError(
            f"one graph cannot hold flows that skip layers, got the flows {batch.flows.pairs()}"
        )
    for i, flow in enumerate(batch.flows):
        if not torch.equal(flow.dst_in_src, torch.arange(flow.num_dst, device=batch.device)):
            raise ValueError(
                f"layer {i} must begin with the nodes of layer {i + 1}, in their order: sample "
                "with include_dst=True"
            )


def _edges(batch: NodeFlow, relation: Relation | None) -> _MergedEdges:
    """Return the edges of a relation; None: of a graph without types."""
    flows = list(batch.flows)
    if relation is None:
        frames = [dict(flow.data) for flow in flows]
    else:
        frames = [_edge_columns(flow, relation) for flow in flows]
        flows = [flow.of(relation) for flow in flows]
    if any("edge_weight" in frame for frame in frames):
        raise ValueError(
            "a flow has a column 'edge_weight', the name that estimator weights have in PyTorch "
            "Geometric; give it another name. A sampler with weight='edge_weight' needs no such "
            "column: its estimator weights hold it"
        )
    if not flows:
        empty = torch.zeros(0, dtype=torch.int64, device=batch.device)
        return _MergedEdges((empty, empty), [], None, None, {})
    if not all(_is_prefix(inner, outer) for outer, inner in pairwise(flows)):
        return _union(batch, flows, frames)
    outer = flows[0]
    ids = None
    if outer.has_parent:
        ids = outer.parent_eid
    sizes = [flow.num_edges for flow in flows]
    return _MergedEdges(outer.edges(), sizes, outer.weight, ids, _merged(frames, "flow"))


def _edge_columns(flow: Flow, relation: Relation) -> Columns:
    """Return the columns of the edges of a relation: its own, and those of all edges."""
    columns = flow.of(relation).data
    if not flow.data:
        return dict(columns)
    rows = _among(flow.parent_eid, flow.dst_layer.schema.relations[relation])
    return columns_of_type(flow.data, columns, partial(take_rows, ids=rows), relation)


def _union(batch: NodeFlow, flows: list[Flow], frames: list[Columns]) -> _MergedEdges:
    """The edges of flows that draw neighbours independently."""
    ends = [flow.edges() for flow in flows]
    src = torch.cat([flow_src for flow_src, _ in ends])
    dst = torch.cat([flow_dst for _, flow_dst in ends])
    has_parents = all(flow.has_parent for flow in flows)
    eid = torch.full_like(src, -1)
    if has_parents:
        eid = torch.cat([flow.parent_eid for flow in flows])
    # one column of numbers per edge, destination first: unique also sorts by destination
    distinct, index = torch.unique(torch.stack([dst, src, eid]), dim=1, return_inverse=True)
    sizes = torch.tensor(batch.layer_sizes[1:], device=batch.device)
    # a node that drew in several flows has as many estimates of one sum: their mean is unbiased too
    draws = (dst[:, None] < sizes).sum(1)
    weight = torch.cat([flow.weight for flow in flows]) / draws
    mean = weight.new_zeros(distinct.shape[1]).index_add_(0, index, weight)
    for i, frame in enumerate(frames):
        if other := sorted(frame.keys() ^ frames[0].keys()):
            raise ValueError(
                f"column {other[0]!r} is in only one of the flows 0 and {i}: nodes drew anew in every "
                "flow, so the graph of all edges needs it from each"
            )
    # the first of the equal edges has their columns
    rows = torch.arange(len(index), device=batch.device)
    first = torch.full_like(distinct[0], len(index)).scatter_reduce_(0, index, rows, "amin")
    columns = {}
    for name in frames[0]:
        columns[name] = torch.cat([frame[name] for frame in frames])[first]
    return _MergedEdges(
        (distinct[1], distinct[0]),
        [flow.num_edges for flow in flows],
        mean,
        distinct[2] if has_parents else None,
        columns,
        nested=False,
    )


def _is_prefix(flow: Flow, outer: Flow) -> bool:
    if flow.has_parent != outer.has_parent:
        return False
    names = ["indptr", "indices", "weight", *["parent_eid"] * flow.has_parent]
    pairs = ((getattr(flow, name), getattr(outer, name)) for name in names)
    return all(torch.equal(part, whole[: len(part)]) for part, whole in pairs)


def _merged(frames: Sequence[Mapping[str, Tensor]], what: str) -> Columns:
    return merged(
        (
            frame,
            f"{what} {i} differs from that of an earlier {what}, and Data holds one row per node "
            "or edge; delete one, or rename it",
        )
        for i, frame in enumerate(frames)
    )
