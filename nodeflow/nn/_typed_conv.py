"""TypedConv, a convolution per relation; and what layers of several types share: blocks of edges, names, assembly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nodeflow._base.checks import check_one_of, check_type
from nodeflow._base.frozen import Lazy
from nodeflow._rows.rows import take_rows
from nodeflow._schema.schema import Relation
from nodeflow.flow import WRONG_WAY, Flow, FlowParts, Layer, narrowed
from nodeflow.nn._conv import FlowConv, check_width
from nodeflow.nn._sage import SAGEConv
from nodeflow.ops import Permute, Structure, inverse, linear_sum, opaque


def module_name(name: str | Relation) -> str:
    """Return what a module is called in a ``ModuleDict``, which refuses dots and some words, such as "type"."""
    words = name if isinstance(name, str) else " ".join(name)
    return f"<{words.replace('%', '%25').replace('.', '%2E')}>"


class Blocks(NamedTuple):
    """The edges of some relations as one flow, whose destinations are those of the type of each relation in turn.

    Its sources are those of the flow it was made of; ``sizes`` are the numbers of destinations of each relation, and
    ``edges`` the edges of each in that flow.
    """

    flow: Flow
    sizes: list[int]
    edges: list[Tensor]

    @classmethod
    def of(cls, flow: Flow, relations: Sequence[Relation]) -> Blocks:
        """Return the blocks of a flow. Raises ValueError for edges into nodes of other types."""
        places = {relation: i for i, relation in enumerate(flow.dst_layer.schema.relations)}
        edges = [flow.by_relation.edges[places[relation]] for relation in relations]
        begins, sizes = [flow.indptr.new_zeros(1)], []
        for relation, own in zip(relations, edges, strict=True):
            rows = flow.dst_layer.of(relation[2]).rows
            begins.append(torch.searchsorted(own, flow.indptr).diff()[rows])
            sizes.append(len(rows))
        indptr, chosen = torch.cat(begins).cumsum(0), torch.cat(edges)
        if int(indptr[-1]) < len(chosen):
            raise ValueError(WRONG_WAY)
        parts: FlowParts = {"weight": Lazy(lambda: flow.weight[chosen]) if flow.needs_weight else None}
        structure, dst = Structure._trusted(indptr, flow.indices[chosen], flow.num_src), Layer(sum(sizes))
        return cls(type(flow)._trusted(structure, flow.src_layer, dst, (0, 1), **parts), sizes, edges)


def by_type(layer: Layer, rows: Tensor) -> dict[str, Tensor]:
    """Return dense rows of a layer by the type of their nodes."""
    parts = [layer.of(name).rows for name in layer.schema.nodes]
    order = torch.cat(parts)
    blocks = Permute.apply(rows, order, inverse(order)).split([len(part) for part in parts])
    return dict(zip(layer.schema.nodes, blocks, strict=True))


def assembled(layer: Layer, blocks: Mapping[str, Tensor]) -> Tensor:
    """Return rows of all nodes of a layer from the rows of those of each type."""
    order = torch.cat([layer.of(name).rows for name in blocks])
    return Permute.apply(torch.cat(list(blocks.values())), inverse(order), order)


class TypedConv(FlowConv):
    """A convolution for each relation, whose results at a node are combined.

    ``h'_v = the sum, mean or maximum of conv_r(flow.of(r), h)_v over the relations r that can enter the type of v``,
    also those of which v has no edge. A relation that is left out passes nothing; the rows of types that no relation
    of ``convs`` enters are 0. All types share one matrix of rows.

    Args:
        convs: the convolutions by relation: a triple, or a name that only one relation has.
        reduce: "sum", "mean" or "max".

    ``SAGEConv`` layers with means are computed together, from one reading of the rows, without calling them. Others are
    called with the destinations of their relation's type and the sources of its edges only. Raises TypeError and
    ValueError for other arguments; when called, KeyError for relations that the graph does not have.

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
        check_one_of(reduce, "reduce", ("sum", "mean", "max"))
        if not convs:
            raise ValueError("convs must have a relation at least")
        for name, conv in convs.items():
            check_type(conv, f"convs[{name!r}]", nn.Module, "a convolution")
            if isinstance(conv, FlowConv):
                conv.advised = self.advised  # one warning, not one per relation
        self.names, self.reduce = list(convs), reduce
        self.convs = nn.ModuleDict({module_name(name): conv for name, conv in convs.items()})

    @opaque
    def forward(self, flow: Flow, h: Tensor) -> Tensor:
        """Return ``[num_dst, out_features]`` for ``h`` ``[num_src, in_features]``, dense or sparse CSR."""
        schema, convs = flow.dst_layer.schema, list(self.convs.values())
        relations = [schema.relation(name) for name in self.names]
        if len({*relations}) < len(relations):
            raise ValueError(f"convs name one relation twice: {self.names}")
        sage = [conv for conv in convs if type(conv) is SAGEConv and conv.is_plain_mean]
        if len(sage) == len(convs) and h.layout == torch.strided:
            blocks = self._of_means(flow, h, relations, sage)
        else:
            blocks = self._of_each(flow, h, relations, convs)
        some = next(iter(blocks.values()))
        for name in schema.nodes:
            if name not in blocks:
                blocks[name] = some.new_zeros(len(flow.dst_layer.of(name)), *some.shape[1:])
        return assembled(flow.dst_layer, blocks)

    def _of_each(self, flow: Flow, h: Tensor, relations: list[Relation], convs: list[nn.Module]) -> dict[str, Tensor]:
        pairs = [narrowed(flow.of(relation), flow.dst_layer.of(relation[2]).rows) for relation in relations]
        # one gather, whose gradient is one matrix, not one for each relation
        if h.layout == torch.strided:
            rows = take_rows(h, torch.cat([src for _, src in pairs])).split([len(src) for _, src in pairs])
        else:
            rows = tuple(take_rows(h, src) for _, src in pairs)
        outs: dict[str, list[Tensor]] = {}
        for relation, conv, (part, _), x in zip(relations, convs, pairs, rows, strict=True):
            outs.setdefault(relation[2], []).append(conv(part, x))
        return {name: self._combined(of_type) for name, of_type in outs.items()}

    def _of_means(self, flow: Flow, h: Tensor, relations: list[Relation], convs: list[SAGEConv]) -> dict[str, Tensor]:
        for conv in convs:
            check_width(conv, h, conv.neigh.in_features)
        own, h = flow.share_dst(h)
        together, rows = Blocks.of(flow, relations), by_type(flow.dst_layer, own)
        convs[0].check_weight(together.flow)
        means = together.flow.aggregate(h, "mean").to(h.dtype).split(together.sizes)
        entering: dict[str, list[tuple[SAGEConv, Tensor]]] = {}
        for relation, conv, mean in zip(relations, convs, means, strict=True):
            entering.setdefault(relation[2], []).append((conv, mean))
        out = {}
        for name, parts in entering.items():
            groups = [[part] for part in parts] if self.reduce == "max" else [parts]
            out[name] = self._combined([_sage_sum(rows[name], group) for group in groups])
            out[name] = out[name] / len(parts) if self.reduce == "mean" else out[name]
        return out

    def _combined(self, outs: list[Tensor]) -> Tensor:
        if len(outs) == 1:
            return outs[0]
        rows = torch.stack(outs)
        return rows.amax(0) if self.reduce == "max" else rows.sum(0) if self.reduce == "sum" else rows.mean(0)


def _sage_sum(own: Tensor, parts: list[tuple[SAGEConv, Tensor]]) -> Tensor:
    """Return the sum of the results of several ``SAGEConv`` layers from own rows and the means of each."""
    weights: list[Tensor] = [conv.own.weight for conv, _ in parts]
    biases: list[Tensor] = [conv.neigh.bias for conv, _ in parts if conv.neigh.bias is not None]
    bias = torch.stack(biases).sum(0) if biases else None
    return linear_sum(
        (own, torch.stack(weights).sum(0)), *((mean, conv.neigh.weight) for conv, mean in parts), bias=bias
    )
