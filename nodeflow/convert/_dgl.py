"""Graphs from and to DGL, and NodeFlows from and to its message-flow graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import LARGEST, as_ids, describe
from nodeflow._core.rows.rows import take_rows, whole_column
from nodeflow.convert._columns import (
    PLAIN,
    by_destination,
    check_one_type,
    library,
    merged,
    of_types,
)
from nodeflow.flow import Flow, Layer, NodeFlow
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure

if TYPE_CHECKING:
    import dgl

_DGL = "dgl", "DGL", "see https://www.dgl.ai/pages/start.html for how to install it"
_ID = "_ID"
_WEIGHT = "edge_weights"
"""DGL's names of the columns of parent ids (``dgl.NID``, ``dgl.EID``) and of estimator weights
(``LaborSampler``).
"""


def from_dgl(graph: dgl.DGLGraph) -> Graph:
    """Return the graph of a DGL graph, with its types and all columns; ids stay, within types.

    The types of ``dgl.graph``, "_N" and "_E", are those of a graph without types. Raises TypeError
    for other objects.
    """
    if not hasattr(graph, "canonical_etypes"):
        raise TypeError(f"graph must be a graph of DGL, got {describe(graph)}")
    if getattr(graph, "is_block", False):
        raise TypeError(
            "graph is a block of DGL; from_dgl_blocks makes a NodeFlow of a list of them"
        )
    nodes: dict[str, Any] = {
        t: dict(graph.nodes[t].data) or graph.num_nodes(t) for t in graph.ntypes
    }
    edges = {
        r: (*graph.edges(etype=r, order="eid"), dict(graph.edges[r].data))
        for r in graph.canonical_etypes
    }
    # the names that DGL gives to the types of a graph without types
    if {*nodes, *edges} == {"_N", ("_N", "_E", "_N")}:
        nodes = {"node": nodes["_N"]}
        edges = {("node", "edge", "node"): edges["_N", "_E", "_N"]}
    return Graph.typed(nodes, edges)


@checked
def to_dgl(graph: Graph) -> dgl.DGLGraph:
    """Return a DGL graph with the types of a graph and all columns; ids stay, within types.

    A graph without types becomes a homogeneous one. DGL sorts the names of types. Columns of all
    nodes, or of all edges, become columns of each type. Raises ValueError for a column that a type
    has too, ImportError without DGL.
    """
    module = library(*_DGL)
    nodes, edges = of_types(graph)
    if {*nodes, *edges} == PLAIN:
        nodes = {"_N": nodes["node"]}
        edges = {("_N", "_E", "_N"): edges["node", "edge", "node"]}
    sizes = {name: size for name, (size, _) in nodes.items()}
    dgl_graph: dgl.DGLGraph = module.heterograph(
        {r: (src, dst) for r, (src, dst, _) in edges.items()}, sizes
    )
    for name, (_, columns) in nodes.items():
        _fill(dgl_graph.nodes[name].data, columns)
    for relation, (_, _, columns) in edges.items():
        _fill(dgl_graph.edges[relation].data, columns)
    return dgl_graph


@checked
def from_dgl_blocks(blocks: Sequence[dgl.DGLGraph], *, parent: Graph | None = None) -> NodeFlow:
    """Return the NodeFlow of DGL's message-flow graphs, inputs first, as DGL's samplers return
    them.

    Source nodes of block i are layer i, its edges are flow i, and its destination nodes are layer i
    + 1. The columns ``dgl.NID`` and ``dgl.EID`` become parent ids, and ``edge_weights`` (the name
    that ``dgl.dataloading.LaborSampler`` uses) estimator weights. All other columns stay. Edges are
    sorted by destination where they are not.

    Args:
        blocks: one or more blocks; the destinations of one are the sources of the next.
        parent: the graph that the parent ids belong to.

    Raises ValueError for blocks that do not follow one another, or whose columns of a shared layer
    differ; TypeError for other objects; IndexError for a parent id that ``parent`` does not have.
    """
    if (
        not isinstance(blocks, Sequence)
        or not blocks
        or not all(getattr(b, "is_block", False) for b in blocks)
    ):
        raise TypeError(
            f"blocks must be a list of one or more blocks of DGL, got {describe(blocks)}"
        )
    for i, (one, other) in enumerate(pairwise(blocks)):
        if one.num_dst_nodes() != other.num_src_nodes():
            raise ValueError(
                f"the destinations of block {i} must be the sources of block {i + 1}, but there "
                f"are {one.num_dst_nodes()} and {other.num_src_nodes()}"
            )
    sizes = [blocks[0].num_src_nodes(), *(block.num_dst_nodes() for block in blocks)]
    layers = []
    for i, size in enumerate(sizes):
        # a layer is the destinations of one block and the sources of the next
        sides = [block.srcdata for block in blocks[i : i + 1]] + [
            block.dstdata for block in blocks[i - 1 : i] if i
        ]
        columns = merged(
            (
                dict(side),
                f"layer {i} differs between the destinations of block {i - 1} and the sources of "
                f"block {i}",
            )
            for side in sides
        )
        ids = columns.pop(_ID, None)
        if ids is not None:
            ids = torch.from_numpy(as_ids(ids, f"parent ids of layer {i}", LARGEST).copy())
        layers.append(Layer(size, ids, Frame(size, columns)))
    flows = [_flow(block, layers[i], layers[i + 1], i) for i, block in enumerate(blocks)]
    return NodeFlow(layers, flows, parent=parent)


@checked
def to_dgl_blocks(batch: NodeFlow) -> list[dgl.DGLGraph]:
    """Return the flows of a NodeFlow as DGL's message-flow graphs, inputs first.

    Block i has the edges of flow i in their order, with local ids. ``srcdata`` and ``dstdata`` have
    the columns of layers i and i + 1, ``edata`` those of the flow. Parent ids are in ``dgl.NID``
    and ``dgl.EID`` where there are any, estimator weights in ``edata["edge_weights"]``. Seeds that
    repeat are one row; ``batch.seed_index`` has the repeats.

    Raises ValueError for flows that skip layers, contexts, and columns with one of these names;
    ImportError without DGL.
    """
    create_block = library(*_DGL).create_block
    if len(batch.flows.pairs()) > batch.num_flows:
        raise ValueError(
            f"blocks of DGL cannot hold flows that skip layers, got the flows {batch.flows.pairs()}"
        )
    check_one_type(batch.parent, "to_dgl_blocks")
    if any(layer.context is not None for layer in batch.layers):
        raise ValueError(
            "blocks of DGL cannot hold a node in several contexts (seeds or times), which this "
            "batch has"
        )
    blocks = []
    for flow in batch.flows:
        block = create_block(flow.edges(), num_src_nodes=flow.num_src, num_dst_nodes=flow.num_dst)
        for frame, layer in ((block.srcdata, flow.src_layer), (block.dstdata, flow.dst_layer)):
            _fill(frame, layer.data, **{_ID: layer.parent_nid if layer.has_parent else None})
        ids = None
        if flow.has_parent:
            ids = flow.parent_eid
        _fill(block.edata, flow.data, **{_ID: ids, _WEIGHT: flow.weight})
        blocks.append(block)
    return blocks


def _fill(frame: Any, columns: Mapping[str, Tensor], **more: Tensor | None) -> None:
    if taken := [name for name in more if name in columns]:
        raise ValueError(
            f"DGL's blocks keep the column name {taken[0]!r} for ids and weights; give yours "
            "another name"
        )
    for name, column in {**columns, **more}.items():
        if column is not None:
            frame[name] = whole_column(column)


def _flow(block: Any, src_layer: Layer, dst_layer: Layer, number: int) -> Flow:
    src, dst = (end.to(torch.int64) for end in block.edges(order="eid"))
    indptr, indices, order = by_destination(src, dst, dst_layer.num_nodes)
    structure = Structure(indptr, indices, src_layer.num_nodes)
    columns = dict(block.edata)
    if order is not None:
        columns = {name: take_rows(column, order) for name, column in columns.items()}
    eid = columns.pop(_ID, None)
    if eid is not None:
        eid = eid.to(torch.int64)
    weight = columns.pop(_WEIGHT, None)
    data = Frame(structure.num_edges, columns)
    return Flow(
        structure,
        src_layer,
        dst_layer,
        (number, number + 1),
        parent_eid=eid,
        weight=weight,
        data=data,
    )
