"""HGTConv, the heterogeneous graph transformer."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from nodeflow._base.checks import as_count, check_type
from nodeflow._schema.schema import Schema
from nodeflow.flow import Flow
from nodeflow.nn._conv import FlowConv, check_relations, check_width, draw_glorot, edge_rows
from nodeflow.nn._typed_conv import Blocks, assembled, by_type
from nodeflow.nn._typed_linear import RelativeTime
from nodeflow.ops import EdgeDot, Permute, Structure, aggregate, inverse, linear_sum, opaque

_ADVICE = "use a sampler that draws all edges of a node and relation alike"


class HGTConv(FlowConv):
    """Convolution of the heterogeneous graph transformer (Hu, Dong, Wang, Sun 2020, equations 3 to 5).

    Per head, with keys K, queries Q and values V of each node type, and two matrices and a prior mu of each relation:
    the score of an edge u -> v of relation r is ``mu_r K(u) W_r Q(v) / sqrt(width)``; the softmax over all edges of v
    weighs the messages ``V(u) M_r``. Then ``h'_v = b A(gelu(sum)) + (1 - b) h_v``, with a linear map A and a learned
    gate b in (0, 1) of the type of v; where ``in_features`` and ``out_features`` differ, ``h'_v = A(gelu(sum))``.

    The softmax ignores estimator weights; those that differ within the edges of a node and relation give an
    ``IgnoredWeightWarning``.

    Args:
        in_features, out_features: widths of the rows of ``h`` and of the result, all heads together.
        schema: the node types and relations, ``graph.schema``.
        heads: number of heads, a divisor of ``out_features``.
        edge_time: an edge column with the time of the destination minus that of the source: the ``RelativeTime`` of it
            is added to the source's row for that edge (equation 6); None: without.

    Memory: keys and values of all sources, and a row of ``out_features`` for every relation and destination that it can
    enter. Raises ValueError for sizes that do not fit, and when called on a graph with other types or relations.

    >>> from nodeflow import FullSampler, Graph
    >>> graph = Graph.typed({"author": 3, "paper": 2}, {("author", "writes", "paper"): ([0, 2], [1, 1])})
    >>> batch = FullSampler(graph, 1)([4])
    >>> HGTConv(8, 8, graph.schema, heads=2)(batch, 0, torch.ones(batch.layer_sizes[0], 8)).shape
    torch.Size([1, 8])
    """

    def __init__(
        self, in_features: int, out_features: int, schema: Schema, *, heads: int = 1, edge_time: str | None = None
    ) -> None:
        super().__init__()
        self.in_features, self.heads = as_count(in_features, "in_features", 1), as_count(heads, "heads", 1)
        self.out_features, self.edge_time = as_count(out_features, "out_features", 1), edge_time
        check_type(schema, "schema", Schema, "a Schema, graph.schema")
        if not schema.relations:
            raise ValueError("schema must have a relation at least")
        if out_features % heads:
            raise ValueError(f"out_features must be a multiple of heads, got {out_features} and {heads}")
        self.node_types, self.relations = tuple(schema.nodes), tuple(schema.relations)
        types, size = len(self.node_types), out_features // heads
        self.key, self.query, self.value = (
            nn.Parameter(torch.empty(types, out_features, in_features)) for _ in range(3)
        )
        self.out = nn.Parameter(torch.empty(types, out_features, out_features))
        self.key_bias, self.query_bias, self.value_bias, self.out_bias = (
            nn.Parameter(torch.empty(types, out_features)) for _ in range(4)
        )
        self.attention, self.message = (
            nn.Parameter(torch.empty(len(self.relations) * heads, size, size)) for _ in range(2)
        )
        self.prior, self.gate = nn.Parameter(torch.empty(len(self.relations), heads)), nn.Parameter(torch.empty(types))
        self.time = None if edge_time is None else RelativeTime(in_features)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new matrices (Glorot, Bengio 2010); biases are 0, priors and the gates before the sigmoid 1."""
        draw_glorot(self)
        for name, parameter in self.named_parameters():
            if name.endswith("_bias"):
                nn.init.zeros_(parameter)
        nn.init.ones_(self.prior), nn.init.ones_(self.gate)

    @opaque
    def forward(self, flow: Flow, h: Tensor, edge_time: Tensor | None = None) -> Tensor:
        """Return ``[num_dst, out_features]`` for dense ``h`` ``[num_src, in_features]``.

        ``edge_time`` ``[num_edges]``: differences of time; None: the flow's column.
        """
        check_width(self, h, self.in_features)
        layer, heads, size = flow.dst_layer, self.heads, self.out_features // self.heads
        check_relations(flow, self.relations)
        if tuple(layer.schema.nodes) != self.node_types:
            raise ValueError(f"the layer is for the node types {self.node_types}, but the graph has {layer.schema}")
        if self.time is None and edge_time is not None:
            raise TypeError("edge_time was given, but this HGTConv has no encoding of time: make it with edge_time=")
        if h.layout != torch.strided:
            raise ValueError("h must be dense, got sparse rows: TypedLinear maps rows of features to dense ones")
        blocks, number = Blocks.of(flow, self.relations), {name: i for i, name in enumerate(self.node_types)}
        edges = torch.cat(blocks.edges)
        if len(edges) < flow.num_edges:
            raise ValueError("every edge must have a parent edge, which has a relation: take batches of a sampler")
        self.check_weight(blocks.flow, _ADVICE)
        own, rows = by_type(layer, flow.take_dst(h)), by_type(flow.src_layer, h)
        # rows of sources stay grouped by type: the sources of the edges are renumbered instead
        place = inverse(torch.cat([flow.src_layer.of(name).rows for name in self.node_types]))
        indptr = blocks.flow.indptr
        sources = [(Structure._trusted(indptr, place[blocks.flow.indices], flow.num_src), *self._mapped(rows.items()))]
        if self.time is not None:
            sources.append(self._times(blocks, edge_rows(flow, edge_time, str(self.edge_time))[edges]))
        # K W Q of an edge is K times W Q of its destination: there are fewer destinations than sources
        attention = self.attention.unflatten(0, (-1, heads)) * (self.prior / size**0.5)[..., None, None]
        into = [relation[2] for relation in self.relations]
        query = torch.cat(
            [
                linear(own[name], matrix @ self.query[number[name]], matrix @ self.query_bias[number[name]])
                for name, matrix in zip(into, map(torch.block_diag, *attention.unbind(1)), strict=True)
            ]
        )
        scores = torch.stack([EdgeDot.apply(to, query, key, heads) for to, key, _ in sources]).sum(0)
        scores = Permute.apply(scores.to(torch.promote_types(scores.dtype, torch.float32)), inverse(edges), edges)
        share = Permute.apply(flow.softmax(scores), edges, inverse(edges)).unsqueeze(2)
        sums = [aggregate(to, value.unflatten(1, (heads, size)), "sum", share) for to, _, value in sources]
        parts = torch.stack(sums).sum(0).flatten(1).to(h.dtype).split(blocks.sizes)
        messages = map(torch.block_diag, *self.message.unflatten(0, (-1, heads)).unbind(1))
        entering: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in self.node_types}
        for name, part, matrix in zip(into, parts, messages, strict=True):
            entering[name].append((part, matrix.T))
        return assembled(layer, {name: self._out(number[name], own[name], of) for name, of in entering.items()})

    def _mapped(self, rows: Iterable[tuple[str, Tensor]], bias: bool = True) -> tuple[Tensor, Tensor]:
        """Return the keys and the values of rows, by the type of their nodes, in one tensor each."""
        pairs = [(self.node_types.index(name), x) for name, x in rows]
        maps = (self.key, self.key_bias), (self.value, self.value_bias)
        key, value = (torch.cat([linear(x, w[i], b[i] if bias else None) for i, x in pairs]) for w, b in maps)
        return key, value

    def _times(self, blocks: Blocks, difference: Tensor) -> tuple[Structure, Tensor, Tensor]:
        """Return the edges, from distinct times of each relation, and the keys and values that these add to sources."""
        assert self.time is not None
        rows, places, total = [], [], 0
        for relation, part in zip(self.relations, difference.split([len(own) for own in blocks.edges]), strict=True):
            distinct, place = torch.unique(part, return_inverse=True)
            rows.append((relation[0], self.time(distinct)))
            places.append(place + total)
            total += len(distinct)
        return Structure._trusted(blocks.flow.indptr, torch.cat(places), total), *self._mapped(rows, bias=False)

    def _out(self, i: int, own: Tensor, sums: list[tuple[Tensor, Tensor]]) -> Tensor:
        """Return the results at nodes of type ``i``, from their own rows and the sums of each relation."""
        total = linear_sum(*sums) if sums else own.new_zeros(len(own), self.out_features)
        out = linear(gelu(total), self.out[i], self.out_bias[i])
        return out if self.in_features != self.out_features else own.lerp(out, self.gate[i].sigmoid())

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, heads={self.heads}, {len(self.relations)} relations"
