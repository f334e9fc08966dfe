"""Graphs, batches and loaders from and to PyTorch Geometric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nodeflow._base.checks import check_type, describe
from nodeflow._rows.rows import whole_column
from nodeflow.convert._pyg_batch import node_flow_data
from nodeflow.convert._pyg_data import check_attributes, data_class, edge_index, make_data, with_rows
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def from_pyg(
    data: Data, *, node_columns: Sequence[str] | None = None, edge_columns: Sequence[str] | None = None
) -> Graph:
    """Return the graph of a PyTorch Geometric ``Data`` object (one node type, one edge type).

    Edge ids follow ``edge_index``. Tensors with a row per node or per edge become columns under their own names (``x``,
    ``y``, ``edge_attr``, ...). Other attributes, such as a further list of node ids (``edge_label_index``), are left
    out. The batch of a loader becomes a NodeFlow by ``from_pyg_batch``.

    Args:
        data: the object. For ``HeteroData`` pass ``data.to_homogeneous()``.
        node_columns, edge_columns: names of the attributes that become columns of nodes or of edges. None takes those
            that ``Data`` holds to be such: it counts rows, and where there are as many nodes as edges, the word "edge"
            in the name tells an edge column.

    Raises ValueError for an object without ``edge_index`` and for a named attribute that has another number of rows,
    TypeError for another class, KeyError for a name that is not there.

    >>> import torch_geometric.data
    >>> from_pyg(torch_geometric.data.Data(x=torch.ones(3, 8), edge_index=torch.tensor([[0, 1], [1, 2]])))
    Graph(3 nodes, 2 edges, ndata: x)
    """
    src, dst = edge_index(data)
    num_nodes = int(data.num_nodes)
    ndata = _columns(data, node_columns, "node_columns", data.node_attrs, num_nodes)
    edata = _columns(data, edge_columns, "edge_columns", data.edge_attrs, len(src))
    for named, other in ((node_columns, edata), (edge_columns, ndata)):
        for name in named or ():
            other.pop(name, None)  # names given by the caller take precedence over Data's own classification
    return Graph.from_edges(src, dst, num_nodes=num_nodes, ndata=ndata, edata=edata)


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
    sums stay unbiased. For a layer of the model per flow run it flow by flow,
    ``conv((h, flow.take_dst(h)), torch.stack(flow.edges()))``.

    Raises ValueError for NodeFlows made with ``include_dst=False``, for flows that skip layers, for a column that only
    some flows have where nodes drew anew, and for names of columns that ``Data`` cannot hold: the same name for nodes
    and edges, or one from the table above. Raises ImportError without PyTorch Geometric; its message has the command
    that installs it.

    >>> from nodeflow import NeighborSampler
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata={"x": torch.ones(4, 8)})
    >>> to_pyg(graph)
    Data(x=[4, 8], edge_index=[2, 4], num_nodes=4)
    >>> batch = to_pyg(NeighborSampler(graph, [2, 2], reuse=True)([3]))
    >>> batch.n_id, batch.edge_index, batch.num_sampled_nodes
    (tensor([3, 2, 1]), tensor([[1, 2],
            [0, 1]]), [1, 1, 1])
    """
    if isinstance(graph, NodeFlow):
        return node_flow_data(graph)
    check_type(graph, "graph", Graph, "a Graph or a NodeFlow")
    data_class()  # before columns are read
    ndata, edata = ({n: whole_column(c) for n, c in frame.items()} for frame in (graph.ndata, graph.edata))
    return make_data({"edge_index": torch.stack(graph.edges()), "num_nodes": graph.num_nodes}, ndata, edata)


def _columns(data: Any, names: Iterable[str] | None, argument: str, all_names: Any, num_rows: int) -> dict[str, Tensor]:
    check_attributes(data, names, argument)
    if names is None:
        names = [name for name in all_names() if name != "edge_index" and with_rows(data[name], num_rows)]
    elif (wrong := next((name for name in names if not with_rows(data[name], num_rows)), None)) is not None:
        raise ValueError(f"{argument}: {wrong!r} must be a tensor with {num_rows} rows, got {describe(data[wrong])}")
    return {name: data[name] for name in names}


class _PygLoader:
    """The batches of a loader as batches of PyTorch Geometric."""

    def __init__(self, loader: Iterable[NodeFlow]) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Data]:
        return map(node_flow_data, self.loader)

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"pyg_loader({self.loader!r})"


def pyg_loader(loader: Iterable[NodeFlow]) -> _PygLoader:
    """Return the batches of a loader as batches of PyTorch Geometric, for models written for ``NeighborLoader``.

    Every iteration is an epoch, as of ``loader``; ``len`` is the number of batches. The attribute ``loader`` is the
    loader itself, with its ``set_epoch`` and ``state_dict``. ``to_pyg`` says what a batch holds. With ``reuse=True`` a
    node draws once, as there; else it has the edges of all its draws. Fanouts are in flow order here, the seeds' last;
    ``num_neighbors`` of PyTorch Geometric has the seeds' first. Columns are those that the loader copies.

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
