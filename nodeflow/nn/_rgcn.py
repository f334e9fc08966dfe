"""RGCNConv, the relational graph convolution, for edges of several types."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import as_count
from nodeflow._core.in_torch.ragged import ends_of
from nodeflow._core.rows.rows import take_rows
from nodeflow._core.schema import Relation, Schema
from nodeflow.flow import Flow, FullFlow
from nodeflow.nn._conv import (
    FlowConv,
    check_schema,
    check_width,
    draw_glorot,
    edge_rows,
    edges_by_relation,
    with_own_row,
)
from nodeflow.ops import Structure, aggregate, linear_sum, opaque, sparse_linear


class RGCNConv(FlowConv):
    """Relational graph convolution (Schlichtkrull et al. 2018, equations 2 to 4).

    ``h'_v = W_0 h_v + sum over relations r of W_r mean(h_u for the edges u -> v of type r) + b``.
    With bases, ``W_r = sum of a_rb V_b`` (equation 3); with blocks, ``W_r`` is block-diagonal
    (equation 4). The means ignore estimator weights. They are for samplers that draw all edges of a
    node and type with equal probability, such as ``NeighborSampler`` of typed graphs, or with
    ``edge_type``; other batches give an ``IgnoredWeightWarning``.

    Args:
        in_features, out_features: widths of the rows of ``h`` and of the result.
        num_relations: number of types; types are 0 to ``num_relations - 1``. Or a schema,
            ``graph.schema``: then the types are its relations, and there is no column.
        num_bases: number of bases; None: every relation has its own matrix.
        num_blocks: number of blocks of each matrix, a divisor of both widths; None, or 1: whole
            matrices.
        own: add the term ``W_0 h_v`` of a node's own row.
        bias: add a learned bias.
        edge_type: the column of ``flow.data`` with the types, integers ``[num_edges]``, for calls
            without them.

    Memory without bases: a row of ``in_features`` and a row of ``out_features`` for every pair of a
    destination and a type that occurs. Memory with bases: a number per edge and basis, and per
    basis rows ``[num_dst, in_features]``, or ``[num_src, out_features]`` if ``out_features`` is
    smaller. Sparse ``h`` is multiplied first, which takes a row of ``out_features`` for every pair
    of a source and a type, or of a source and a basis.

    >>> from nodeflow import flow_from_edges
    >>> flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1, data={"type": torch.tensor([0, 2])})
    >>> RGCNConv(4, 3, num_relations=3, own=False)(flow, torch.ones(2, 4)).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        num_relations: int | Schema,
        *,
        num_bases: int | None = None,
        num_blocks: int | None = None,
        own: bool = True,
        bias: bool = True,
        edge_type: str = "type",
    ) -> None:
        super().__init__()
        self.relations: tuple[Relation, ...] | None = None
        if isinstance(num_relations, Schema):
            self.relations = tuple(num_relations.relations)
            num_relations = len(self.relations)
        self.num_relations = as_count(num_relations, "num_relations", 1)
        self.edge_type = edge_type
        self.num_blocks = 1 if num_blocks is None else as_count(num_blocks, "num_blocks", 1)
        widths = as_count(out_features, "out_features", 1), as_count(in_features, "in_features", 1)
        is_divisor = not any(width % self.num_blocks for width in widths)
        if self.num_blocks > 1 and (num_bases is not None or not is_divisor):
            raise ValueError(
                "num_blocks needs widths that are multiples of it, and no num_bases; got "
                f"{num_blocks}"
            )
        count = self.num_relations
        coefficients = None
        if num_bases is not None:
            count = as_count(num_bases, "num_bases", 1)
            coefficients = nn.Parameter(torch.empty(self.num_relations, count))
        sizes = (width // self.num_blocks for width in widths)
        self.in_features = in_features
        self.weight = nn.Parameter(torch.empty(count * self.num_blocks, *sizes))
        self.coefficients = coefficients
        self.own = nn.Linear(in_features, out_features, bias=False) if own else None
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        self.reset_parameters()

    reset_parameters = draw_glorot

    def forward(self, flow: Flow, h: Tensor, edge_types: Tensor | None = None) -> Tensor:
        """Return ``[num_dst, out_features]``.

        Args:
            h: ``[num_src, in_features]``, dense or sparse CSR.
            edge_types: integers ``[num_edges]``; None: the relations of the schema, or the flow's
                column ``edge_type``.

        Raises ValueError for types that are not 0 to ``num_relations - 1``, for a graph of other
        relations than the schema has, and what ``FlowConv`` says.
        """
        check_width(self, h, self.in_features)
        if self.relations is not None and edge_types is None:
            check_schema(flow, self.relations)
            # -1 stays where an edge has no relation, and is refused below
            edge_types = torch.full_like(flow.indices, -1)
            for number, edges in enumerate(edges_by_relation(flow, self.relations)):
                edge_types[edges] = number
        types = edge_rows(flow, edge_types, self.edge_type)
        name = "relations"
        if self.relations is None:
            name = self.edge_type
        types = _checked_types(types, self.num_relations, name)
        exact = torch.promote_types(self.weight.dtype, torch.float32)
        # a key per pair of type and destination, since a mean is over the edges of one
        # relation
        keys = types * flow.num_dst + flow.edges()[1]
        _, pair, sizes = torch.unique(keys, return_inverse=True, return_counts=True)
        if flow.needs_weight and not isinstance(flow, FullFlow):
            self._check_weight_by_type(flow.weight, pair, len(sizes))
        # weight of each edge in the mean of its relation
        share = 1 / sizes[pair].to(exact)
        if self.coefficients is None:
            out = self._by_relation(flow, h, types, share)
        else:
            out = self._by_basis(flow, h, self.coefficients.to(exact)[types] * share.unsqueeze(1))
        return with_own_row(out.to(self.weight.dtype), flow, h, self.own, self.bias)

    @opaque
    def _check_weight_by_type(self, weight: Tensor, pair: Tensor, count: int) -> None:
        """Warn about weights that differ within a node and type.

        Weights that differ between types bias no mean.
        """
        # some weight of each pair, spread to its edges, equals all of them only where
        # none differs
        one_of_each = weight.new_empty(count).index_put_((pair,), weight)
        if not torch.equal(one_of_each[pair], weight):
            self.warn_ignored_weight(
                "use TypedConv of GINConv(weighted=True), or a sampler that draws all edges of a "
                "node and type alike"
            )

    def _by_basis(self, flow: Flow, h: Tensor, weights: Tensor) -> Tensor:
        """Return the sum over the edges, once per basis, with weights ``[num_edges, bases]``."""
        # sums move fewer numbers where they are made of the narrower rows
        is_narrower = self.weight.shape[1] < self.weight.shape[2]
        multiplies_first = h.layout != torch.strided or is_narrower
        parts = []
        summands = []
        for matrix, weight in zip(self.weight, weights.unbind(1), strict=True):
            if multiplies_first:
                parts.append(flow.aggregate(sparse_linear(h, matrix), "sum", weight=weight))
            else:
                total = flow.aggregate(h, "sum", weight=weight).to(h.dtype)
                summands.append((total, matrix))
        if multiplies_first:
            return torch.stack(parts).sum(0)
        return linear_sum(*summands)

    def _by_relation(self, flow: Flow, h: Tensor, types: Tensor, share: Tensor) -> Tensor:
        """Return the means of every relation times its matrix.

        Sparse rows are multiplied first, then averaged.
        """
        src, dst = flow.edges()
        is_dense = h.layout == torch.strided
        ends = src
        if is_dense:
            ends = dst
        count = flow.num_src
        if is_dense:
            count = flow.num_dst
        keys = types * count + ends
        pairs, pair, sizes = torch.unique(keys, return_inverse=True, return_counts=True)
        # pairs are sorted by type first, so those of one type are contiguous: one matrix product
        # per relation
        starts = torch.arange(self.num_relations + 1, device=pairs.device) * count
        counts = torch.searchsorted(pairs, starts).diff().tolist()
        if is_dense:
            order = pair.argsort(stable=True)
            edges = Structure._trusted(ends_of(sizes), src[order], flow.num_src)
            rows = aggregate(edges, h, "mean").split(counts)
        else:
            rows = tuple(take_rows(h, ids) for ids in (pairs % count).split(counts))
        products = []
        for x, blocks in zip(rows, self.weight.split(self.num_blocks), strict=True):
            if self.num_blocks == 1:
                matrix = blocks[0]
            else:
                matrix = torch.block_diag(*blocks)
            products.append(sparse_linear(x, matrix))
        edges = Structure._trusted(flow.indptr, pair, len(pairs))
        return aggregate(edges, torch.cat(products), "sum", share)


def _checked_types(types: Tensor, num_relations: int, name: str) -> Tensor:
    """Return types of edges as int64; raises TypeError or ValueError for others."""
    if types.ndim != 1 or types.is_floating_point() or types.dtype == torch.bool:
        raise TypeError(
            f"{name!r} must hold one integer per edge, got {types.dtype} {tuple(types.shape)}"
        )
    bad = (types < 0) | (types >= num_relations)
    if bad.any():
        edge = int(bad.nonzero()[0])
        raise ValueError(
            f"{name!r} must be 0 to {num_relations - 1}, but edge {edge} has {int(types[edge])}"
        )
    return types.to(torch.int64)
