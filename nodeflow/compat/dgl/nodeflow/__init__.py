"""NodeFlow: the sampled layers and blocks of DGL 0.4, by its names, id spaces and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from nodeflow._core.base.checks import ALL, _All, as_ids, as_index, describe
from nodeflow.compat.dgl._data import Initializer, as_initializer
from nodeflow.compat.dgl._functions import DEFAULT, of_edges, of_nodes
from nodeflow.compat.dgl._graph import DGLGraph
from nodeflow.compat.dgl._queries import BaseGraph, as_vector
from nodeflow.flow import Flow, Layer, NodeFlow as Batch
from nodeflow.graph import Frame, Graph

__all__ = ["NodeFlow"]

Names = Sequence[Sequence[str]] | _All | None


class NodeFlow(BaseGraph):
    """Layers of nodes of a parent graph, and blocks of edges between them; samplers make it.

    Nodes and edges have ids that are consecutive over all layers and blocks, layer 0 first. The
    queries of ``DGLGraph`` take and return these. The last layer holds the seeds. Numbers of layers
    and blocks may be negative.

    ``layers[i].data`` and ``blocks[i].data`` are the columns of a layer and of a block.
    ``layer_size``, ``block_size``, ``layer_nid``, ``block_eid``, ``layer_parent_nid``,
    ``block_parent_eid``, ``map_to_parent_nid``, ``map_to_parent_eid``, ``layer_in_degree`` and
    ``layer_out_degree`` are as in DGL, the degrees in the NodeFlow. Ids and degrees are int64; a
    self-loop that was added has the parent id -1. ``register_apply_node_func`` sets the function of
    a block for its destinations.

    ``batch`` is the ``nodeflow.NodeFlow`` behind it, whose frames are the same, ``graph`` the
    structure over all layers as a ``nodeflow.Graph``.

    >>> from nodeflow.compat import dgl
    >>> g = dgl.DGLGraph([(0, 2), (1, 2), (2, 0)])
    >>> (nf,) = dgl.contrib.sampling.NeighborSampler(g, 1, 9, num_hops=1, seed_nodes=[2])
    >>> nf.layer_parent_nid(0), nf.layer_nid(1), nf.block_parent_eid(0)
    (tensor([0, 1]), tensor([2]), tensor([0, 1]))
    >>> nf.batch
    NodeFlow(2 -> 1 nodes, 2 edges)
    """

    is_readonly = True

    def __init__(self, parent: DGLGraph, nfobj: Batch) -> None:
        self.num_layers = nfobj.num_layers
        self.num_blocks = nfobj.num_flows
        super().__init__(self.num_blocks)
        # draws with probabilities of their own come from another one
        graph = parent.graph
        self._parent = parent
        self.batch = nfobj if nfobj.parent is graph else nfobj.with_parent(graph)

    @cached_property
    def graph(self) -> Graph:
        """The structure over all layers, by the ids of this NodeFlow."""
        return self.batch.as_graph()

    def _block(self, block_id: int) -> int:
        return as_index(block_id, "block_id", self.num_blocks)

    def _local(self, ids: Any, name: str, part: int, *, edges: bool = False) -> Any:
        """Ids of a layer's nodes, or of a block's edges, as rows of its frame; raises IndexError
        for other ids.
        """
        if isinstance(ids, _All):
            return ALL
        what = "node"
        starts = self.batch.layer_offsets()
        if edges:
            what = "edge"
            starts = self.batch.flow_offsets()
        # ids go on through all layers, or blocks: each begins where the one before ends
        first = starts[part]
        return as_ids(as_vector(ids), name, starts[part + 1], what, lower=first) - first

    # ---- sizes and ids

    @property
    def layers(self) -> Sequence[Layer]:
        """``nf.layers[i].data`` are the columns of layer i."""
        return self.batch.layers

    @property
    def blocks(self) -> Sequence[Flow]:
        """``nf.blocks[i].data`` are the columns of block i."""
        return self.batch.flows

    def layer_size(self, layer_id: int) -> int:
        """Return the number of nodes of a layer."""
        return self.batch.layers[layer_id].num_nodes

    def block_size(self, block_id: int) -> int:
        """Return the number of edges of a block."""
        return self.batch.flows[block_id].num_edges

    def layer_nid(self, layer_id: int) -> Tensor:
        """Return the ids of the nodes of a layer, int64."""
        return self.batch.layers(layer_id)

    def layer_parent_nid(self, layer_id: int) -> Tensor:
        """Return the ids in the parent graph of the nodes of a layer, int64."""
        return self.batch.layers[layer_id].parent_nid.cpu()

    def block_eid(self, block_id: int) -> Tensor:
        """Return the ids of the edges of a block, int64."""
        return self.batch.flows(block_id)

    def block_parent_eid(self, block_id: int) -> Tensor:
        """Return the ids in the parent graph of the edges of a block, int64; -1 for a self-loop
        that was added.
        """
        return self.batch.flows[block_id].parent_eid.cpu()

    def layer_in_degree(self, layer_id: int) -> Tensor:
        """Return the numbers of edges that enter the nodes of a layer, int64."""
        return self.batch.in_degrees(layer_id).cpu()

    def layer_out_degree(self, layer_id: int) -> Tensor:
        """Return the numbers of edges that leave the nodes of a layer, int64."""
        return self.batch.out_degrees(layer_id).cpu()

    def map_to_parent_nid(self, nid: Any) -> Tensor:
        """Return the ids in the parent graph of nodes, int64."""
        return self.batch.map_to_parent_nid(as_vector(nid)).cpu()

    def map_to_parent_eid(self, eid: Any) -> Tensor:
        """Return the ids in the parent graph of edges, int64; -1 for a self-loop that was added."""
        return self.batch.map_to_parent_eid(as_vector(eid)).cpu()

    def map_from_parent_nid(
        self, layer_id: int, parent_nids: Any, remap_local: bool = False
    ) -> Tensor:
        """Return the ids (``remap_local``: rows) that parent nodes have in a layer, int64; -1 for
        those not in it.
        """
        nodes = as_vector(parent_nids)
        return self.batch.map_from_parent_nid(
            layer_id, nodes, remap_local=remap_local, allow_missing=True
        ).cpu()

    def block_edges(
        self, block_id: int, remap_local: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(src, dst, eid)`` of a block, int64, by destination; with ``remap_local`` local
        ids.
        """
        i = self._block(block_id)
        src, dst = (end.cpu() for end in self.batch.flows[i].edges())
        eid = torch.arange(len(src))
        if remap_local:
            return src, dst, eid
        nodes = self.batch.layer_offsets()
        return src + nodes[i], dst + nodes[i + 1], eid + self.batch.flow_offsets()[i]

    # ---- columns

    def set_n_initializer(
        self, initializer: Initializer, layer_id: Any = ALL, field: str | None = None
    ) -> None:
        """Set the function of (shape, dtype, device, range) that fills rows of new columns that
        nobody sets.
        """
        frames = self.batch.ldata[:]
        if not isinstance(layer_id, _All):
            frames = (self.batch.ldata[layer_id],)
        for frame in frames:
            frame.set_initializer(as_initializer(initializer), field)

    def set_e_initializer(
        self, initializer: Initializer, block_id: Any = ALL, field: str | None = None
    ) -> None:
        """Set the function of (shape, dtype, device, range) that fills rows of new columns that
        nobody sets.
        """
        for i in self.blocks_of(block_id):
            self.batch.flows[i].data.set_initializer(as_initializer(initializer), field)

    def copy_from_parent(
        self,
        node_embed_names: Names = ALL,
        edge_embed_names: Names = ALL,
        ctx: torch.device | str | None = None,
    ) -> None:
        """Replace the columns of layers and blocks by columns of the parent graph, on the device
        ``ctx`` or on its own.

        Names are a list for every layer or block (else ValueError), ALL for all columns, or None to
        leave them alone. A frame of the parent without columns replaces nothing. Self-loops that
        were added get zeros.
        """
        g = self._parent
        nodes = _chosen(node_embed_names if g.ndata else None, [g.ndata] * self.num_layers)
        edges = _chosen(edge_embed_names if g.edata else None, [g.edata] * self.num_blocks)
        columns = [*(g.ndata if nodes else g.edata).values()]
        if ctx is None and columns:
            ctx = columns[0].device
        moved = self.batch
        if ctx is not None and torch.device(ctx) != moved.device:
            moved = moved.to(ctx)
        moved.copy_from_parent(nodes, edges)
        # DGL replaces a frame: columns that are not copied go
        copied = [(moved.ldata[i], names) for i, names in nodes.items()]
        copied += [(moved.fdata[i], names) for i, names in edges.items()]
        for frame, names in copied:
            for name in set(frame) - set(names):
                del frame[name]
        self.batch = moved

    def copy_to_parent(self, node_embed_names: Names = ALL, edge_embed_names: Names = ALL) -> None:
        """Write columns of layers and blocks into the parent's, in place; arguments are those of
        ``copy_from_parent``.

        If several layers hold a node, the layer nearest to the seeds wins.
        """
        self.batch.copy_to_parent(
            _chosen(node_embed_names, list(self.batch.ldata)),
            _chosen(edge_embed_names, list(self.batch.fdata)),
        )

    # ---- message passing

    def apply_layer(self, layer_id: int, func: Any = DEFAULT, v: Any = ALL) -> None:
        """Apply a function to all nodes of a layer, or to the nodes ``v`` of it, and store what it
        returns.

        The function registered for block i is that of layer i + 1.
        """
        i = as_index(layer_id, "layer_id", self.num_layers)
        if isinstance(func, str) and func == DEFAULT:
            if i == 0:
                func = None
            else:
                func = self.function("apply node", func, i - 1)
        if func is None:
            raise ValueError(
                f"there is no function for layer {i}: pass one, or register one for the block "
                "before it"
            )
        self.batch.apply_layers(i, of_nodes(func), self._local(v, "v", i))

    def apply_block(self, block_id: int, func: Any = DEFAULT, edges: Any = ALL) -> None:
        """Apply a function to edges of a block (ids, or a pair of their ends) and store what it
        returns.
        """
        i = self._block(block_id)
        func = self.function("apply edge", func, i)
        edges = self.edge_ids_at(edges)
        self.batch.apply_flows(i, of_edges(func), self._local(edges, "edges", i, edges=True))

    def block_compute(
        self,
        block_id: int,
        message_func: Any = DEFAULT,
        reduce_func: Any = DEFAULT,
        apply_node_func: Any = DEFAULT,
        v: Any = ALL,
    ) -> None:
        """Compute layer i + 1, or the nodes ``v`` of it, from messages along block i."""
        i = self._block(block_id)
        message, reduce, update = self.functions((message_func, reduce_func, apply_node_func), i)
        rows = self._local(v, "v", i + 1)
        self.batch.flow_compute(i, of_edges(message), of_nodes(reduce), of_nodes(update), rows)

    def prop_flow(
        self,
        message_funcs: Any = DEFAULT,
        reduce_funcs: Any = DEFAULT,
        apply_node_funcs: Any = DEFAULT,
        flow_range: Any = ALL,
    ) -> None:
        """Run ``block_compute`` over blocks: ALL, one, or a slice; functions may be lists with one
        for every block.
        """
        if isinstance(flow_range, slice):
            blocks = range(self.num_blocks)[flow_range]
        else:
            blocks = self.blocks_of(flow_range)
        if blocks.step != 1:
            raise ValueError(f"flow_range must take consecutive blocks, got {flow_range}")
        roles = (message_funcs, reduce_funcs, apply_node_funcs)
        for functions in roles:
            if isinstance(functions, list) and len(functions) != self.num_blocks:
                raise ValueError(
                    f"a list must have a function per block ({self.num_blocks}), got "
                    f"{len(functions)}"
                )
        for i in blocks:
            functions = [role[i] if isinstance(role, list) else role for role in roles]
            self.block_compute(i, *functions)

    def __repr__(self) -> str:
        return f"dgl.{self.batch!r}"


def _chosen(names: Names, sources: Sequence[Frame]) -> dict[int, list[str]]:
    """The names of the columns that every layer or block takes part in a copy with; all are those
    of ``sources``.
    """
    if names is None:
        return {}
    if isinstance(names, _All):
        names = [list(frame) for frame in sources]
    is_list = isinstance(names, (list, tuple)) and len(names) == len(sources)
    if not is_list or any(isinstance(of_part, str) for of_part in names):
        raise ValueError(
            f"names must be a list of {len(sources)} lists of columns, got {describe(names)}"
        )
    return dict(enumerate(map(list, names)))
