"""TypedLinear, dense rows of the nodes of all types, and TypedModel, a model that begins with
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nodeflow._core.base.calls import Explained
from nodeflow._core.base.checks import as_count, check_type
from nodeflow._core.base.types import FileLike, IdsLike
from nodeflow._core.edges.view import EdgeView
from nodeflow._core.rows.rows import Rows, fetch_rows
from nodeflow.flow import Flow, Layer, LayerPart, NodeFlow
from nodeflow.graph import Graph
from nodeflow.nn._between import NORMS
from nodeflow.nn._conv import linear_map
from nodeflow.nn._model import FlowModel, check_batch, whole_graph
from nodeflow.nn._typed_conv import joined, module_name
from nodeflow.ops import opaque, sparse_linear
from nodeflow.propagation import Propagation


class TypedLinear(nn.Module, metaclass=Explained):
    """Rows of one width for the nodes of all types: a linear map of the features of each type, or
    learned rows.

    Args:
        widths: by node type the width of its features, ``layer.of(name).data[column]``, dense or
            sparse CSR; or a module that makes rows of ids within the type, such as
            ``torch.nn.Embedding(num_nodes, out_features)``; or a ``storage.EmbeddingTable`` of the
            nodes of the type, or of all nodes of the graph, which types may share.
        out_features: width of the rows.
        column: the name of the column of features.

    Raises TypeError or ValueError for other arguments; when called, ValueError for a type that
    ``widths`` does not have and rows or tables of another shape, KeyError where there is no column.

    >>> from nodeflow import FullSampler
    >>> nodes = {"author": 3, "paper": {"x": torch.ones(2, 8)}}
    >>> graph = Graph.typed(nodes, {("author", "writes", "paper"): ([0, 2], [1, 1])})
    >>> batch = FullSampler(graph, 1)(graph.nodes["paper"].to_graph([1]))
    >>> batch.copy_from_parent(["x"])
    >>> encoder = TypedLinear({"author": torch.nn.Embedding(3, 16), "paper": 8}, 16)
    >>> encoder(batch).shape, encoder(graph).shape
    (torch.Size([3, 16]), torch.Size([5, 16]))
    """

    def __init__(self, widths: Mapping[str, Any], out_features: int, *, column: str = "x") -> None:
        super().__init__()
        check_type(widths, "widths", Mapping, "a dict from node types to widths or tables")
        check_type(column, "column", str, "the name of a column")
        self.out_features = as_count(out_features, "out_features", 1)
        self.column = column
        self.maps = nn.ModuleDict()
        self._tables = {}
        for name, width in widths.items():
            if hasattr(width, "pull"):
                self._tables[name] = width
            elif isinstance(width, nn.Module):
                self.maps[module_name(name)] = width
            else:
                count = as_count(width, f"widths[{name!r}]", 1)
                self.maps[module_name(name)] = linear_map(count, out_features, bias=True)

    @opaque
    def forward(self, where: NodeFlow | Layer | Graph) -> Tensor:
        """Return rows ``[num_nodes, out_features]`` of a layer (of a batch: layer 0); of a graph,
        without gradient.
        """
        if isinstance(where, Graph):
            # in pieces, so that features that lie in files are never in memory
            # together
            rows = EncodedRows(self, where)
            with torch.no_grad():
                return torch.cat(
                    [rows.fetch(ids) for ids in torch.arange(where.num_nodes).split(2**16)]
                )
        layer = where.layers[0] if isinstance(where, NodeFlow) else where
        check_type(layer, "the argument of TypedLinear", Layer, "a NodeFlow, a layer or a graph")
        return self.rows_of(layer, lambda name, part: part.data[self.column])

    def rows_of(self, layer: Layer, features: Callable[[str, LayerPart], Tensor]) -> Tensor:
        """Return the rows of a layer, with the features of each type from a function."""
        blocks = {}
        for name in layer.schema.nodes:
            part = layer.of(name)
            key = module_name(name)
            if name in self._tables:
                # a table has a row per node of its type, or of the whole graph,
                # under other ids
                table = self._tables[name]
                sizes = (len(layer.schema.ids(name)), layer.schema.num_nodes)
                if table.shape[0] not in sizes:
                    raise ValueError(
                        f"the table of {name!r} must have a row per node of the type, {sizes[0]}, "
                        f"or of the graph, {sizes[1]}, got {table.shape[0]}"
                    )
                ids = part.parent_nid
                if table.shape[0] != sizes[0]:
                    ids = layer.parent_nid[part.rows]
                blocks[name] = table.pull(ids, ids.device)
            elif key not in self.maps:
                raise ValueError(
                    f"widths has no node type {name!r}, which the graph has: give its width, or a "
                    "table"
                )
            elif isinstance(module := self.maps[key], nn.Linear):
                x = features(name, part).to(module.weight.device, module.weight.dtype)
                if x.shape[1:] != (module.in_features,):
                    raise ValueError(
                        f"{name!r} takes rows of width {module.in_features}, got shape "
                        f"{tuple(x.shape)}"
                    )
                blocks[name] = sparse_linear(x, module.weight, module.bias)
            else:
                blocks[name] = module(part.parent_nid)
            if blocks[name].shape != (len(part), self.out_features):
                raise ValueError(
                    f"rows of {name!r} must be {self.out_features} wide (out_features), got "
                    f"{tuple(blocks[name].shape)} for {len(part)} nodes"
                )
        return joined(layer, blocks)


class EncodedRows:
    """The rows that an encoder makes of the nodes of a graph, made when they are fetched: ``Rows``
    for full passes.
    """

    def __init__(self, encoder: TypedLinear, graph: Graph) -> None:
        self.encoder = encoder
        self.graph = graph

    @property
    def shape(self) -> tuple[int, int]:
        return self.graph.num_nodes, self.encoder.out_features

    @property
    def dtype(self) -> torch.dtype:
        return self.fetch(torch.arange(0)).dtype

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows of nodes, ``[k, out_features]``."""
        nodes = self.graph.nodes
        column = self.encoder.column
        some = next(self.encoder.parameters(), ids)
        layer = Layer._trusted(len(ids), ids.to(some.device), schema=self.graph.schema)
        rows = self.encoder.rows_of(
            layer, lambda name, part: fetch_rows(nodes[name].data[column], part.parent_nid)
        )
        if out is None:
            return rows
        return out.copy_(rows)


class TypedModel(FlowModel):
    """A model of several node types: a ``TypedLinear``, convolutions, and a linear map of the rows
    of the seeds.

    Normalisation, activation and dropout follow every convolution, also the last. All types share
    them.

    Args:
        encoder: makes the rows of the inputs; or their width, where calls give them.
        convs: convolutions such as ``TypedConv``, ``RGCNConv`` and ``HGTConv``, from and to rows of
            that width.
        out_features: width of the outputs.
        dropout, activation, norm, residual: see ``FlowModel``, also for the errors.

    >>> from nodeflow import Graph, NeighborSampler, nn
    >>> edges = {("author", "writes", "paper"): ([0, 2], [1, 1])}
    >>> graph = Graph.typed({"author": 3, "paper": {"x": torch.rand(2, 8)}}, edges, reverse=True)
    >>> encoder = nn.TypedLinear({"author": torch.nn.Embedding(3, 16), "paper": 8}, 16)
    >>> model = nn.TypedModel(encoder, [nn.HGTConv(16, 16, graph.schema, heads=2) for _ in range(2)], 4, norm="layer")
    >>> batch = NeighborSampler(graph, [5, 5])(graph.nodes["paper"].to_graph([1]))
    >>> batch.copy_from_parent(["x"])
    >>> model(batch).shape, model.inference(graph).shape
    (torch.Size([1, 4]), torch.Size([5, 4]))
    >>> batch.back.by_type(model.embed(batch))["paper"].shape  # the rows before the head, of the seeds of a type
    torch.Size([1, 16])
    """

    def __init__(
        self,
        encoder: TypedLinear | int,
        convs: list[nn.Module],
        out_features: int,
        dropout: float = 0.0,
        *,
        activation: Callable[[Tensor], Tensor] | None = torch.relu,
        norm: str | None = None,
        residual: bool = False,
    ) -> None:
        check_type(
            encoder,
            "encoder",
            TypedLinear | int,
            "a TypedLinear, or the width of the rows that calls give",
        )
        if isinstance(encoder, TypedLinear):
            width = encoder.out_features
        else:
            width = as_count(encoder, "encoder", 1)
        widths = [width] * (len(convs) + 1)
        super().__init__(
            convs, dropout, widths=widths, activation=activation, norm=norm, residual=residual
        )
        # the head reads normalised rows too, so there is a norm more than between
        # convolutions
        if norm is not None and self.norms is not None:
            self.norms.append(NORMS[norm](width))
        self.encoder = encoder if isinstance(encoder, TypedLinear) else None
        self.head = linear_map(width, out_features, bias=True)

    def forward(self, batch: NodeFlow, h: Tensor | None = None) -> Tensor:
        """Return the outputs of the seeds; ``h``: the rows of the inputs, None: those that the
        encoder makes.
        """
        return super().forward(batch, self._maker(batch) if h is None else h)

    def embed(self, batch: NodeFlow, h: Tensor | None = None) -> Tensor:
        """Return the rows of the seeds that enter the head, ``[layer_sizes[-1], width]``; ``h`` as
        for a call.
        """
        rows = self._maker(batch) if h is None else h
        check_batch(self, batch)
        for i, flow in enumerate(batch.flows):
            rows = super().convolve(i, flow, self.step(i, rows))
        return self.step(len(self.convs), rows)

    def convolve(self, i: int, flow: Flow, h: Tensor, *, dropout: float = 0.0) -> Tensor:
        out = super().convolve(i, flow, h, dropout=dropout)
        if i + 1 < len(self.convs):
            return out
        return sparse_linear(self.step(i + 1, out), self.head.weight, self.head.bias)

    @torch.no_grad()
    def inference(
        self,
        graph: Graph | EdgeView | Propagation,
        h: Tensor | Rows | None = None,
        *,
        nodes: IdsLike | None = None,
        chunk_size: int | None = None,
        progress: bool = False,
        out: Tensor | None = None,
        folder: FileLike | None = None,
    ) -> Tensor:
        """Return the outputs of all nodes, or of some, see ``FlowModel.inference``; ``h`` as for a
        call.
        """
        rows = EncodedRows(self._maker, whole_graph(graph)) if h is None else h
        return super().inference(
            graph,
            rows,
            nodes=nodes,
            chunk_size=chunk_size,
            progress=progress,
            out=out,
            folder=folder,
        )

    @property
    def _maker(self) -> TypedLinear:
        if self.encoder is None:
            raise TypeError("h must be the rows of the inputs, because this model has no encoder")
        return self.encoder
