"""HGTConv, the heterogeneous graph transformer, and RelativeTime, its encoding of differences of
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from nodeflow._core.base.checks import as_count, check_type
from nodeflow._core.schema import Schema
from nodeflow.flow import Flow, entering
from nodeflow.nn._conv import (
    FlowConv,
    check_schema,
    check_width,
    draw_glorot,
    edge_rows,
    edges_by_relation,
    linear_map,
)
from nodeflow.nn._typed_conv import joined, split_by_type
from nodeflow.ops import EdgeDot, Permute, Structure, aggregate, inverse, linear_sum, opaque


class RelativeTime(nn.Module):
    """Relative time encoding (Hu et al. 2020, equation 6): rows ``[k, width]`` of differences of
    time ``[k]``.

    A linear map of the sine (even entries i) and cosine (odd ones) of
    ``difference / 10000^(i / width)``. Take units of which there are thousands at most, such as
    days. ``HGTConv(edge_time=)`` has one; for rows of nodes add it to them.

    >>> RelativeTime(4)(torch.tensor([0, 3, -1])).shape
    torch.Size([3, 4])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = linear_map(as_count(width, "width", 1), width, bias=True)

    def forward(self, difference: Tensor) -> Tensor:
        weight = self.linear.weight
        # angles of bfloat16 would be wrong by whole turns
        exact = torch.promote_types(weight.dtype, torch.float32)
        entry = torch.arange(len(weight), dtype=exact, device=weight.device)
        angle = difference.to(entry).unsqueeze(1) * 10000.0 ** (-entry / len(weight))
        rows = torch.where(entry % 2 == 0, angle.sin(), angle.cos()).to(weight.dtype)
        return linear(rows, weight, self.linear.bias)


class HGTConv(FlowConv):
    """Convolution of the heterogeneous graph transformer (Hu, Dong, Wang, Sun 2020, equations 3 to
    5).

    Node types have maps to keys K, queries Q and values V; relations r two matrices and a prior mu
    per head. The score of u -> v is ``mu_r K(u) W_r Q(v) / sqrt(width of a head)``. Their softmax
    over all edges of v weighs the messages ``V(u) M_r``.
    ``h'_v = b A(gelu(sum of messages)) + (1 - b) h_v``, with a map A and a gate b of the type of v;
    where the widths differ, b is 1. Estimator weights are not used; those that differ within the
    edges of a node and relation give an ``IgnoredWeightWarning``. Memory: two rows for each source,
    and for each destination and relation into it.

    Args:
        in_features, out_features: widths of the rows of ``h`` and of the result.
        schema: node types and relations, ``graph.schema``.
        heads: number of heads, a divisor of ``out_features``.
        edge_time: an edge column, the time of the destination minus that of the source, whose
            ``RelativeTime`` is added to the row of the source (equation 6); None: without.

    Raises ValueError for sizes that do not fit, and when called on graphs of another schema.

    >>> from nodeflow import FullSampler, Graph
    >>> graph = Graph.typed({"author": 3, "paper": 2}, {("author", "writes", "paper"): ([0, 2], [1, 1])})
    >>> batch = FullSampler(graph, 1)([4])
    >>> HGTConv(8, 8, graph.schema, heads=2)(batch, 0, torch.ones(batch.layer_sizes[0], 8)).shape
    torch.Size([1, 8])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        schema: Schema,
        *,
        heads: int = 1,
        edge_time: str | None = None,
    ) -> None:
        super().__init__()
        self.in_features = as_count(in_features, "in_features", 1)
        self.heads = as_count(heads, "heads", 1)
        self.out_features = as_count(out_features, "out_features", 1)
        self.edge_time = edge_time
        check_type(schema, "schema", Schema, "a Schema, graph.schema")
        if not schema.relations or out_features % heads:
            raise ValueError(
                f"out_features must be a multiple of heads={heads}, and schema have a relation"
            )
        self.node_types = tuple(schema.nodes)
        self.relations = tuple(schema.relations)
        types = len(self.node_types)
        count = len(self.relations)
        size = out_features // heads

        def stack(*sizes: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(sizes))

        self.key, self.query, self.value = (
            stack(types, out_features, in_features) for _ in range(3)
        )
        self.key_bias, self.query_bias, self.value_bias, self.out_bias = (
            stack(types, out_features) for _ in range(4)
        )
        self.out = stack(types, out_features, out_features)
        self.prior = stack(count, heads)
        self.gate = stack(types)
        self.attention, self.message = (stack(count * heads, size, size) for _ in range(2))
        self.time = None if edge_time is None else RelativeTime(in_features)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new matrices (Glorot, Bengio 2010); biases are 0, priors and the gates before the
        sigmoid 1.
        """
        draw_glorot(self)
        biases = self.key_bias, self.query_bias, self.value_bias, self.out_bias
        # the first two, priors and gates, begin at 1, the biases at 0
        for i, parameter in enumerate((self.prior, self.gate, *biases)):
            nn.init.constant_(parameter, int(i < 2))

    @opaque
    def forward(self, flow: Flow, h: Tensor, edge_time: Tensor | None = None) -> Tensor:
        """Return ``[num_dst, out_features]`` for dense ``h`` ``[num_src, in_features]``.

        ``edge_time``: differences of time ``[num_edges]``; None: the flow's column.
        """
        check_width(self, h, self.in_features)
        check_schema(flow, self.relations, self.node_types)
        edges = torch.cat(edges_by_relation(flow, self.relations))
        if h.layout != torch.strided or len(edges) < flow.num_edges:
            raise ValueError(
                "h must be dense, as TypedLinear makes it, and every edge have a parent edge"
            )
        if self.time is None and edge_time is not None:
            raise TypeError(
                "edge_time was given, but this HGTConv has no encoding of time: make it with "
                "edge_time="
            )
        part, sizes = entering(flow, self.relations)
        self.check_weight(part, "use a sampler that draws all edges of a node and relation alike")
        own_rows = split_by_type(flow.dst_layer, flow.take_dst(h))
        rows = split_by_type(flow.src_layer, h)
        # rows of sources stay grouped by type: the sources of the edges are renumbered instead
        place = inverse(torch.cat([flow.src_layer.of(name).rows for name in rows]))
        sources = Structure._trusted(part.indptr, place[part.indices], flow.num_src)
        terms = [(sources, *self._mapped(rows.items()))]
        if self.time is not None:
            difference = edge_rows(flow, edge_time, str(self.edge_time))[edges]
            terms.append(self._times(flow, part, difference))
        share = self._shares(flow, edges, terms, self._queries(own_rows))
        sums = []
        for structure, _, value in terms:
            heads_of = value.unflatten(1, (self.heads, -1))
            sums.append(aggregate(structure, heads_of, "sum", share))
        total = torch.stack(sums).sum(0).flatten(1)
        totals = total.to(h.dtype).split(sizes)
        return joined(flow.dst_layer, self._results(own_rows, totals))

    def _queries(self, own_rows: dict[str, Tensor]) -> Tensor:
        """Return W Q of the destinations of every relation, one relation after another."""
        size = self.out_features // self.heads
        # K W Q of an edge is K times W Q of its destination: there are fewer destinations than
        # sources
        scale = (self.prior / size**0.5)[..., None, None]
        attention = self.attention.unflatten(0, (-1, self.heads)) * scale
        queries = []
        for relation, of_heads in zip(self.relations, attention, strict=True):
            i = self.node_types.index(relation[2])
            matrix = torch.block_diag(*of_heads)
            bias = matrix @ self.query_bias[i]
            queries.append(linear(own_rows[relation[2]], matrix @ self.query[i], bias))
        return torch.cat(queries)

    def _shares(
        self,
        flow: Flow,
        edges: Tensor,
        terms: list[tuple[Structure, Tensor, Tensor]],
        query: Tensor,
    ) -> Tensor:
        """Return the softmax of the scores over all edges of a node, by relation, [E, heads, 1]."""
        heads = self.heads
        parts = [EdgeDot.apply(structure, query, key, heads) for structure, key, _ in terms]
        scores = torch.stack(parts).sum(0)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        # the softmax is over all edges of a node, so scores leave the order by relation
        # and come back
        back = inverse(edges)
        scores = Permute.apply(scores, back, edges)
        return Permute.apply(flow.softmax(scores), edges, back).unsqueeze(2)

    def _results(self, own_rows: dict[str, Tensor], totals: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return the rows of each type, from the sums of messages of every relation."""
        messages: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in self.node_types}
        blocks_of = self.message.split(self.heads)
        for relation, total, of_heads in zip(self.relations, totals, blocks_of, strict=True):
            messages[relation[2]].append((total, torch.block_diag(*of_heads).T))
        results = {}
        for i, (name, pairs) in enumerate(messages.items()):
            if pairs:
                total = linear_sum(*pairs)
            else:
                total = own_rows[name].new_zeros(len(own_rows[name]), self.out_features)
            results[name] = linear(gelu(total), self.out[i], self.out_bias[i])
            # rows of two widths cannot be mixed by a gate
            if self.in_features == self.out_features:
                gate = self.gate[i].sigmoid()
                results[name] = gate * results[name] + (1 - gate) * own_rows[name]
        return results

    def _mapped(
        self, rows: Iterable[tuple[str, Tensor]], bias: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return the keys, and the values, of rows of several node types, in one tensor each."""
        keys = []
        values = []
        for name, x in rows:
            i = self.node_types.index(name)
            keys.append(linear(x, self.key[i], self.key_bias[i] if bias else None))
            values.append(linear(x, self.value[i], self.value_bias[i] if bias else None))
        return torch.cat(keys), torch.cat(values)

    def _times(
        self, flow: Flow, part: Flow, difference: Tensor
    ) -> tuple[Structure, Tensor, Tensor]:
        """Return the edges from the distinct times of each relation, and what these add to keys and
        values.
        """
        assert self.time is not None
        rows = []
        places = []
        total = 0
        sizes = [len(edges) for edges in edges_by_relation(flow, self.relations)]
        for relation, times in zip(self.relations, difference.split(sizes), strict=True):
            # many edges have the same time, which is encoded once
            distinct, place = torch.unique(times, return_inverse=True)
            rows.append((relation[0], self.time(distinct)))
            places.append(place + total)
            total += len(distinct)
        structure = Structure._trusted(part.indptr, torch.cat(places), total)
        return structure, *self._mapped(rows, bias=False)

    def extra_repr(self) -> str:
        return (
            f"{self.in_features}, {self.out_features}, heads={self.heads}, {len(self.relations)} "
            "relations"
        )
