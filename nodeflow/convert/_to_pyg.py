"""Graphs, NodeFlows and loaders as those of PyTorch Geometric: a batch is one graph, with counts per hop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from nodeflow._base.checks import check_type
from nodeflow._rows.rows import whole_column
from nodeflow.convert._columns import check_one_type, library, merged
from nodeflow.flow import Flow, NodeFlow
from nodeflow.graph import Frame, Graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def to_pyg(graph: Graph | NodeFlow) -> Data:
    """Return a PyTorch Geometric ``Data`` object of a graph, or of a NodeFlow such as a batch.

    For a ``Graph``: ``edge_index`` in edge id order, ``num_nodes`` and all columns under their own names.

    For a ``NodeFlow``: one graph of all layers, as PyTorch Geometric's ``NeighborLoader`` yields. Each node has one
    row, seeds first, then nodes by the hop that reaches them; edges are in the order of the hops too.

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

    Columns of the first layer and flow have a row per node or edge. A column of the last layer alone, such as labels
    that are copied for the seeds, has ``batch_size`` rows, so that ``batch.y[:batch.batch_size]`` is right for both.

    In such a graph a node has the same in-edges in every layer of the model. ``FullSampler``, the samplers of subgraphs
    and those of neighbours with ``reuse=True`` draw so. Where nodes draw anew in every flow, a node gets all edges that
    it drew in any of them, with the mean of their estimator weights (0 where a flow did not draw the edge): weighted
    sums stay unbiased. A model may also run flow by flow, ``conv((h, flow.take_dst(h)), torch.stack(flow.edges()))``.

    Raises ValueError for NodeFlows made with ``include_dst=False``, for flows that skip layers, for a column that only
    some flows have where nodes drew anew, and for names of columns that ``Data`` cannot hold: the same name for nodes
    and edges, or one from the table above. Raises ImportError without PyTorch Geometric; its message has the command
    that installs it.

    >>> from nodeflow import NeighborSampler
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata={"x": torch.ones(4, 8)})
    >>> to_pyg(graph)
    Data(x=[4, 8], edge_index=[2, 4], num_nodes=4)
    >>> batch = to_pyg(NeighborSampler(graph, [2, 2], reuse=True)([3]))
    >>> batch.n_id, batch.num_sampled_nodes
    (tensor([3, 2, 1]), [1, 1, 1])
    """
    if isinstance(graph, NodeFlow):
        check_one_type(graph.parent, "to_pyg")
        return _node_flow_data(graph)
    check_type(graph, "graph", Graph, "a Graph or a NodeFlow")
    check_one_type(graph, "to_pyg")
    _data_class()  # before columns are read
    ndata, edata = ({n: whole_column(c) for n, c in frame.items()} for frame in (graph.ndata, graph.edata))
    return _make_data({"edge_index": torch.stack(graph.edges()), "num_nodes": graph.num_nodes}, ndata, edata)


class _PygLoader:
    """The batches of a loader as batches of PyTorch Geometric."""

    def __init__(self, loader: Iterable[NodeFlow]) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Data]:
        return map(_node_flow_data, self.loader)

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"pyg_loader({self.loader!r})"


def pyg_loader(loader: Iterable[NodeFlow]) -> _PygLoader:
    """Return the batches of a loader as batches of PyTorch Geometric, for models written for ``NeighborLoader``.

    Every iteration is an epoch, as of ``loader``; ``len`` is the number of batches. The attribute ``loader`` is the
    loader itself, with its ``set_epoch`` and ``state_dict``. ``to_pyg`` says what a batch holds. Fanouts are in flow
    order, the seeds' last; ``num_neighbors`` of PyTorch Geometric has the seeds' first.

    Args:
        loader: a ``NodeFlowLoader``, a ``storage.Lookahead``, or anything that iterates over NodeFlows.

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


def _data_class() -> type[Data]:
    how = "install it with: pip install torch-geometric"
    return library("torch_geometric.data", "PyTorch Geometric", how).Data  # type: ignore[no-any-return]


def _make_data(
    parts: Mapping[str, Any], ndata: Mapping[str, Tensor], edata: Mapping[str, Tensor], reserved: Set[str] = frozenset()
) -> Data:
    """Return ``Data`` with ``parts``, and columns under their own names; ValueError for names that it cannot hold."""
    if both := sorted(set(ndata) & set(edata)):
        raise ValueError(f"a node and an edge column share a name, which Data cannot hold: {both}")
    columns = {**ndata, **edata}
    if taken := sorted((reserved | set(parts)) & set(columns)):
        raise ValueError(f"Data keeps the names {taken} for itself; give the columns of these names other ones first")
    data = _data_class()()
    for name, column in columns.items():
        try:
            setattr(data, name, column)
            held = data[name] is column and getattr(data, name) is column
        except (AttributeError, KeyError):
            held = False
        if not held:
            raise ValueError(f"Data cannot hold a column named {name!r}; give it another name first")
    for name, value in parts.items():
        setattr(data, name, value)
    return data


def _node_flow_data(batch: NodeFlow) -> Data:
    _data_class()  # before anything is computed
    _check_layers(batch)
    edges = _edges(batch)
    ndata, edata = _merged([layer.data for layer in batch.layers], "layer"), edges.columns
    if "edge_weight" in edata:
        raise ValueError(
            "a flow has a column 'edge_weight', the name that estimator weights have in PyTorch Geometric; give it "
            "another name. A sampler with weight='edge_weight' needs no such column: its estimator weights hold it"
        )
    parts = {name: part for name, part_of in PARTS.items() if (part := part_of(batch, edges)) is not None}
    return _make_data(parts, ndata, edata, PARTS.keys())


class _Edges(NamedTuple):
    """The edges of all flows, each once, grouped by destination; ends are rows of layer 0, ``eid`` parent ids.

    ``nested`` says whether a node has the same edges in all flows.
    """

    ends: tuple[Tensor, Tensor]
    nested: bool
    weight: Tensor | None
    eid: Tensor | None
    columns: dict[str, Tensor]


def per_hop(sizes: Sequence[int]) -> list[int]:
    """Return the number of nodes or edges that each hop adds, from the sizes of layers or flows."""
    return [more - less for less, more in pairwise([0, *reversed(sizes)])]


PARTS: dict[str, Callable[[NodeFlow, _Edges], Any]] = {
    "num_nodes": lambda batch, _: batch.front.num_nodes,
    "batch_size": lambda batch, _: batch.back.num_nodes,
    # where nodes drew anew, hops are no prefixes
    "num_sampled_nodes": lambda batch, edges: per_hop(batch.layer_sizes) if edges.nested else None,
    "num_sampled_edges": lambda batch, edges: per_hop(batch.flow_sizes) if edges.nested else None,
    "edge_index": lambda _, edges: torch.stack(edges.ends),
    "edge_weight": lambda _, edges: edges.weight,
    "e_id": lambda _, edges: edges.eid,
    "n_id": lambda batch, _: batch.front.parent_nid if batch.front.has_parent else None,
    "batch": lambda batch, _: batch.front.context,
    "seed_index": lambda batch, _: batch.seed_index,
    "seed_ids": lambda batch, _: batch.seed_ids if batch.has_seed_ids else None,
    "seed_data": lambda batch, _: dict(batch.seed_data) or None,
    "input_id": lambda batch, _: batch.seed_data.get("index"),
}
"""Attributes of a batch that are no columns."""


def _check_layers(batch: NodeFlow) -> None:
    """Raise ValueError unless every layer is the first part of the layer before it."""
    if len(batch.flows.pairs()) > batch.num_flows:
        raise ValueError(f"one graph cannot hold flows that skip layers, got the flows {batch.flows.pairs()}")
    for i, flow in enumerate(batch.flows):
        if not torch.equal(flow.dst_in_src, torch.arange(flow.num_dst, device=batch.device)):
            raise ValueError(
                f"layer {i} must begin with the nodes of layer {i + 1}, in their order: sample with include_dst=True"
            )


def _edges(batch: NodeFlow) -> _Edges:
    flows = list(batch.flows)
    if not flows:
        empty = torch.zeros(0, dtype=torch.int64, device=batch.device)
        return _Edges((empty, empty), True, None, None, {})
    if all(_is_prefix(inner, outer) for outer, inner in pairwise(flows)):
        outer, columns = flows[0], _merged([flow.data for flow in flows], "flow")
        return _Edges(outer.edges(), True, outer.weight, outer.parent_eid if outer.has_parent else None, columns)
    return _union(batch, flows)


def _union(batch: NodeFlow, flows: list[Flow]) -> _Edges:
    """The edges of flows that draw neighbours independently."""
    parents = all(flow.has_parent for flow in flows)
    src, dst = (torch.cat(ends) for ends in zip(*(flow.edges() for flow in flows), strict=True))
    eid = torch.cat([flow.parent_eid for flow in flows]) if parents else torch.full_like(src, -1)
    distinct, index = torch.unique(torch.stack([dst, src, eid]), dim=1, return_inverse=True)
    sizes = torch.tensor(batch.layer_sizes[1:], device=batch.device)
    # a node that drew in several flows has as many estimates of one sum: their mean is unbiased too
    draws = (dst[:, None] < sizes).sum(1)
    weight = torch.cat([flow.weight for flow in flows]) / draws
    mean = weight.new_zeros(distinct.shape[1]).index_add_(0, index, weight)
    names = {name for flow in flows for name in flow.data}
    for i, flow in enumerate(flows):
        if missing := names - set(flow.data):
            raise ValueError(
                f"flow {i} has no column {min(missing)!r}, which another flow has: nodes drew anew in every flow, so "
                "the graph of all edges needs it from each"
            )
    rows = torch.arange(len(index), device=batch.device)
    first = torch.full_like(distinct[0], len(index)).scatter_reduce_(0, index, rows, "amin")
    columns = {name: torch.cat([flow.data[name] for flow in flows])[first] for name in sorted(names)}
    return _Edges((distinct[1], distinct[0]), False, mean, distinct[2] if parents else None, columns)


def _is_prefix(flow: Flow, outer: Flow) -> bool:
    nodes, edges = flow.num_dst, flow.num_edges
    if outer.num_dst < nodes or outer.num_edges < edges or flow.has_parent != outer.has_parent:
        return False
    same = torch.equal(flow.indptr, outer.indptr[: nodes + 1]) and torch.equal(flow.indices, outer.indices[:edges])
    if same and flow.has_parent:
        same = torch.equal(flow.parent_eid, outer.parent_eid[:edges])
    return same and torch.equal(flow.weight, outer.weight[:edges])


def _merged(frames: Sequence[Frame], what: str) -> dict[str, Tensor]:
    words = f"differs from that of an earlier {what}, and Data holds one row per node or edge; delete one, or rename it"
    return merged((frame, f"{what} {i} {words}") for i, frame in enumerate(frames))
