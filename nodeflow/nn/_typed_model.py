"""TypedModel: an encoder of the node types, convolutions, and a linear map of the seeds' rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import torch
from torch import Tensor, nn

from nodeflow._base.checks import check_type
from nodeflow._rows.rows import Rows
from nodeflow.flow import Flow, NodeFlow
from nodeflow.graph import Graph
from nodeflow.nn._between import NORMS
from nodeflow.nn._conv import linear_map
from nodeflow.nn._model import FlowModel, InferenceOptions
from nodeflow.nn._typed_linear import EncodedRows, TypedLinear
from nodeflow.propagation import Propagation


class TypedModel(FlowModel):
    """A model of graphs with several node types: encoder, convolutions, and a linear map of the last layer's rows.

    Normalisation, activation and dropout follow every convolution, also the last.

    Args:
        encoder: makes the rows of the input layer, of one width for all types.
        convs: convolutions such as ``TypedConv``, ``RGCNConv`` and ``HGTConv``, from and to rows of that width.
        out_features: width of the outputs of the seeds, whatever their types are.
        dropout, activation, norm, residual: see ``FlowModel``; a norm is shared by all types.

    >>> from nodeflow import Graph, NeighborSampler
    >>> from nodeflow.nn import HGTConv
    >>> edges = {("author", "writes", "paper"): ([0, 2], [1, 1])}
    >>> graph = Graph.typed({"author": 3, "paper": {"x": torch.rand(2, 8)}}, edges, reverse=True)
    >>> encoder = TypedLinear({"author": nn.Embedding(3, 16), "paper": 8}, 16)
    >>> model = TypedModel(encoder, [HGTConv(16, 16, graph.schema, heads=2) for _ in range(2)], 4, norm="layer")
    >>> batch = NeighborSampler(graph, [5, 5])(graph.nodes["paper"].to_graph([1]))
    >>> batch.copy_from_parent(["x"])
    >>> model(batch).shape, model.inference(graph).shape
    (torch.Size([1, 4]), torch.Size([5, 4]))
    """

    def __init__(
        self,
        encoder: TypedLinear,
        convs: list[nn.Module],
        out_features: int,
        dropout: float = 0.0,
        *,
        activation: Callable[[Tensor], Tensor] | None = torch.relu,
        norm: str | None = None,
        residual: bool = False,
    ) -> None:
        check_type(encoder, "encoder", TypedLinear, "a TypedLinear")
        width = encoder.out_features
        widths = [width] * (len(convs) + 1)
        super().__init__(convs, dropout, widths=widths, activation=activation, norm=norm, residual=residual)
        if norm is not None and self.norms is not None:
            self.norms.append(NORMS[norm](width))
        self.encoder, self.head = encoder, linear_map(width, out_features, bias=True)

    def forward(self, batch: NodeFlow, h: Tensor | None = None) -> Tensor:
        """Return the outputs of the seeds, ``[layer_sizes[-1], out_features]``.

        ``h``: rows of the input layer; None: those of the encoder. Errors as for ``FlowModel`` and the encoder.
        """
        return super().forward(batch, self.encoder(batch) if h is None else h)

    def convolve(self, i: int, flow: Flow, h: Tensor, *, dropout: float = 0.0) -> Tensor:
        out = super().convolve(i, flow, h, dropout=dropout)
        if i + 1 < len(self.convs):
            return out
        outputs: Tensor = self.head(self.step(i + 1, out))
        return outputs

    @torch.no_grad()
    def inference(
        self, graph: Graph | Propagation, h: Tensor | Rows | None = None, **options: Unpack[InferenceOptions]
    ) -> Tensor:
        """Return the outputs of all nodes, or of some, see ``FlowModel.inference``; ``h`` None: rows of the encoder."""
        whole = graph.graph if isinstance(graph, Propagation) else graph
        return super().inference(graph, EncodedRows(self.encoder, whole) if h is None else h, **options)
