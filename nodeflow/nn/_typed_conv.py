"""TypedConv, a convolution per relation; and rows of layers by the type of their nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import check_one_of, check_type
from nodeflow._core.rows.rows import take_rows
from nodeflow._core.schema import Relation
from nodeflow.flow import Flow, Layer, entering, without_unread
from nodeflow.nn._conv import FlowConv
from nodeflow.nn._gcn import GraphConv
from nodeflow.nn._sage import SAGEConv
from nodeflow.ops import Permute, inverse, linear_sum, opaque


def module_name(name: str | Relation) -> str:
    """Return a name for a ``ModuleDict``, which refuses dots and some words, such as "type"."""
    parts = [name] if isinstance(name, str) else name
    # as in addresses of pages: every name has one form, and another name has another
    words = [part.replace("%", "%25").replace(".", "%2E").replace(" ", "%20") for part in parts]
    return f"<{' '.join(words)}>"


def split_by_type(layer: Layer, rows: Tensor) -> dict[str, Tensor]:
    """Return dense rows of a layer by the type of their nodes."""
    parts = [layer.of(name).rows for name in layer.schema.nodes]
    # one permutation, whose gradient is a permutation too, instead of an indexing per type
    order = torch.cat(parts)
    blocks = Permute.apply(rows, order, inverse(order)).split([len(part) for part in parts])
    return dict(zip(layer.schema.nodes, blocks, strict=True))


def joined(layer: Layer, blocks: Mapping[str, Tensor]) -> Tensor:
    """Return the rows of a layer from those of the nodes of each type."""
    order = torch.cat([layer.of(name).rows for name in blocks])
    rows = torch.cat(list(blocks.values()))
    return Permute.apply(rows, inverse(order), order)


_ADVICE = (
    "use sums in every relation, GINConv(weighted=True) or GraphConv(norm='none', "
    "degrees='parent'), or a sampler that draws all edges of a node and relation alike, such as "
    "NeighborSampler"
)


REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda results: results.sum(0),
    "mean": lambda results: results.mean(0),
    "max": lambda results: results.amax(0),
}
"""Ways to combine the results of relations, ``[relations, nodes, features]``, to
``[nodes, features]``.
"""


class TypedConv(FlowConv):
    """A convolution for each relation: ``h'_v`` combines ``conv_r(flow.of(r), h)_v`` over the
    relations r.

    These are the relations of ``convs`` that can enter the type of v, also where v has no edge of
    them. Types that none can enter have rows of 0. ``SAGEConv`` layers with means are computed
    together, without calling them.

    Args:
        convs: convolutions by relation: a triple, or a name that only one relation has. Others pass
            nothing. None may read degrees of nodes in the graph (``SAGEConv(weighted=True)``):
            these count the edges of all relations. Sums read estimator weights:
            ``GINConv(weighted=True)``, ``GraphConv(norm="none", degrees="parent")``.
        reduce: "sum", "mean" or "max".

    Raises TypeError or ValueError for other arguments; when called, KeyError for relations that are
    not there.

    >>> from nodeflow import FullSampler, Graph
    >>> from nodeflow.nn import GATConv
    >>> edges = {("author", "writes", "paper"): ([0, 2], [1, 1]), ("paper", "cites", "paper"): ([0], [1])}
    >>> batch = FullSampler(Graph.typed({"author": 3, "paper": 2}, edges), 1)([4])
    >>> conv = TypedConv({"writes": SAGEConv(8, 4), ("paper", "cites", "paper"): GATConv(8, 4)}, "mean")
    >>> conv(batch, 0, torch.ones(batch.layer_sizes[0], 8)).shape
    torch.Size([1, 4])
    """

    def __init__(self, convs: Mapping[str | Relation, nn.Module], reduce: str = "sum") -> None:
        super().__init__()
        check_type(convs, "convs", Mapping, "a dict from relations to convolutions")
        check_one_of(reduce, "reduce", REDUCTIONS)
        if not convs:
            raise ValueError("convs must have a relation at least")
        for name, conv in convs.items():
            check_type(conv, f"convs[{name!r}]", nn.Module, "a convolution")
            reads_degrees = isinstance(conv, GraphConv | SAGEConv) and conv.weighted
            if reads_degrees and getattr(conv, "norm", "") != "none":
                raise ValueError(
                    f"convs[{name!r}] divides by degrees of nodes, which count the edges of all "
                    f"relations; for estimator weights {_ADVICE}"
                )
            if isinstance(conv, FlowConv):
                # one warning, not one per relation
                conv.advised = self.advised
                conv.weight_advice = conv.weight_advice and _ADVICE
        self.names = list(convs)
        self.reduce = reduce
        # a relation has one name in files, whether it is spelled as a triple or not
        short = [name if isinstance(name, str) else name[1] for name in convs]
        self.convs = nn.ModuleDict()
        for part, (name, conv) in zip(short, convs.items(), strict=True):
            self.convs[module_name(part if short.count(part) == 1 else name)] = conv

    @opaque
    def forward(self, flow: Flow, h: Tensor) -> Tensor:
        """Return ``[num_dst, out_features]`` for ``h`` ``[num_src, in_features]``, dense or sparse
        CSR.
        """
        layer = flow.dst_layer
        convs = list(self.convs.values())
        relations = [layer.schema.relation(name) for name in self.names]
        if len(flow.by_relation.order) < flow.num_edges:
            raise ValueError(
                "every edge must have a relation: edges of random walks and added self-loops have "
                "none, so take one convolution for all of them, such as SAGEConv"
            )
        if len({*relations}) < len(relations):
            raise ValueError(f"convs must name every relation once, got {self.names}")
        sage = [conv for conv in convs if type(conv) is SAGEConv and conv.aggregator == "mean"]
        plain = [conv for conv in sage if not conv.relu and conv.order != "transform"]
        is_linear = len(plain) == len(convs) and self.reduce in ("sum", "mean")
        if is_linear and h.layout == torch.strided:
            blocks = self._of_means(flow, h, relations, plain)
        else:
            blocks = self._of_each(flow, h, relations, convs)
        # types that no relation enters have rows too, of zeros
        some = next(iter(blocks.values()))
        for name in layer.schema.nodes:
            if name not in blocks:
                blocks[name] = some.new_zeros(len(layer.of(name)), *some.shape[1:])
        return joined(layer, blocks)

    def _of_each(
        self, flow: Flow, h: Tensor, relations: list[Relation], convs: list[nn.Module]
    ) -> dict[str, Tensor]:
        parts = [without_unread(entering(flow, [r], flow.of(r).data)[0]) for r in relations]
        # one gather, whose gradient is one matrix, not one for each relation
        if h.layout == torch.strided:
            sources = torch.cat([src for _, src in parts])
            rows = take_rows(h, sources).split([len(src) for _, src in parts])
        else:
            rows = tuple(take_rows(h, src) for _, src in parts)
        outs: dict[str, list[Tensor]] = {}
        for relation, conv, (part, _), x in zip(relations, convs, parts, rows, strict=True):
            outs.setdefault(relation[2], []).append(conv(part, x))
        reduce = REDUCTIONS[self.reduce]
        return {name: reduce(torch.stack(of_type)) for name, of_type in outs.items()}

    def _of_means(
        self, flow: Flow, h: Tensor, relations: list[Relation], convs: list[SAGEConv]
    ) -> dict[str, Tensor]:
        """Return the results from the means of all relations, made in one reading of the rows, and
        own rows.
        """
        own_rows, h = flow.share_dst(h)
        part, sizes = entering(flow, relations)
        convs[0].check_weight(part, str(convs[0].weight_advice))
        rows = split_by_type(flow.dst_layer, own_rows)
        means = part.aggregate(h, "mean").to(h.dtype).split(sizes)
        of_type: dict[str, list[tuple[SAGEConv, Tensor]]] = {}
        for relation, conv, mean in zip(relations, convs, means, strict=True):
            of_type.setdefault(relation[2], []).append((conv, mean))
        blocks = {}
        for name, pairs in of_type.items():
            # the sum over relations of W_r h_v is one product, with the sum of the
            # maps
            maps: list[Tensor] = [conv.own.weight for conv, _ in pairs]
            own_map = torch.stack(maps).sum(0)
            biases: list[Tensor] = [
                conv.neigh.bias for conv, _ in pairs if conv.neigh.bias is not None
            ]
            bias = None
            if biases:
                bias = torch.stack(biases).sum(0)
            summands = [(mean, conv.neigh.weight) for conv, mean in pairs]
            total = linear_sum((rows[name], own_map), *summands, bias=bias)
            blocks[name] = total / len(pairs) if self.reduce == "mean" else total
        return blocks
