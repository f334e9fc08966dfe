"""VRModel, VRGCN, VRGraphSAGE: sampled flows estimate the full propagation, with control variates
or without.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import check_one_of
from nodeflow._core.base.types import FileLike
from nodeflow._core.edges.view import EdgeView, as_view
from nodeflow._core.rows.rows import Rows
from nodeflow.control_variates import (
    History,
    Updater,
    control_variate,
    control_variate_dropout,
    exact_sums,
    neighbor_sampling,
)
from nodeflow.flow import Flow, NodeFlow
from nodeflow.graph import Graph
from nodeflow.nn._conv import draw_glorot, linear_map
from nodeflow.nn._linear_conv import LinearConv
from nodeflow.nn._model import FlowModel, check_batch
from nodeflow.nn._zoo import stack_widths
from nodeflow.ops import linear_sum, sparse_linear
from nodeflow.transform import edge_norm


class PropagationConv(LinearConv):
    """A linear map of propagated rows: ``h'_v = W sum over u of P_vu h_u (+ W_own h_v) + b``.

    The sum goes over the edges of the flow, with their weights. It is exact for flows with all
    edges, as in ``FlowModel.inference``, and else the estimate of neighbour sampling.

    Args:
        in_features, out_features: widths.
        own: add W_own, a second weight for the node's own row (GraphSAGE). Without it P should have
            self-loops (GCN).
        bias: add a learned bias.
        order: see ``LinearConv``.

    >>> from nodeflow import Graph, NeighborSampler
    >>> batch = NeighborSampler(Graph.from_edges([0, 1, 2], [1, 2, 0]), fanouts=[1])([2])
    >>> PropagationConv(4, 3)(batch, 0, torch.ones(batch.layer_sizes[0], 4)).shape
    torch.Size([1, 3])
    """

    weighted = True

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        own: bool = False,
        bias: bool = True,
        order: str = "auto",
    ) -> None:
        super().__init__(order)
        self.linear = linear_map(in_features, out_features, bias=bias)
        self.own = nn.Linear(in_features, out_features, bias=False) if own else None
        self.set_maps("linear", "own")
        self.reset_parameters()

    def aggregate(self, flow: Flow, h: Tensor) -> Tensor:
        """Return the propagated rows, ``[num_dst, width]``."""
        return neighbor_sampling(flow, h).to(self.linear.weight.dtype)

    def combine(self, total: Tensor, flow: Flow, h: Tensor | None) -> Tensor:
        """Return the result for propagated rows; ``h``, the rows of the sources, are read with
        ``own`` only.
        """
        # the sums of a history may be of another type than the weights
        if total.layout == torch.strided:
            total = total.to(self.linear.weight.dtype)
        pairs = [(total, self.linear.weight)]
        if self.own is not None:
            if h is None:
                raise TypeError("h is missing: this convolution reads a node's own row")
            pairs.append((flow.take_dst(h), self.own.weight))
        return linear_sum(*pairs, bias=self.linear.bias)


class VRModel(FlowModel):
    """A stack of ``PropagationConv`` whose sampled flows estimate the full propagation (Chen, Zhu,
    Song 2018).

    Args:
        convs: one per flow.
        estimator: "cv" control variates, "cvd" control variates for dropout, "ns" neighbour
            sampling without history.
        dropout: probability that an entry is set to zero before a convolution with a history, while
            training.
        embed: a linear map of the rows of the input layer, for inputs that are propagated already.

    Raises ValueError for another estimator.

    >>> from nodeflow import ControlVariateSampler, Graph
    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 0], edata={"p": torch.ones(3)})
    >>> x, model = torch.ones(3, 4), VRModel([PropagationConv(4, 8), PropagationConv(8, 3)], dropout=0.5)
    >>> history = model.start_history(graph.view(weight="p"), x)
    >>> batch = ControlVariateSampler(history, fanouts=[0, 1])([2])
    >>> model.history_widths, model(batch).shape
    ({1: 8}, torch.Size([1, 3]))
    """

    norm: ClassVar[str | None] = None
    """The normalisation of P, see ``transform.edge_norm``; None: weights are the caller's."""

    def __init__(
        self,
        convs: list[nn.Module],
        dropout: float,
        *,
        estimator: str = "cv",
        embed: nn.Linear | None = None,
    ) -> None:
        super().__init__(convs, dropout)
        # initialised like a PropagationConv
        if embed is not None:
            draw_glorot(embed)
        check_one_of(estimator, "estimator", ("cv", "cvd", "ns"))
        self.estimator = estimator
        self.embed = embed

    @property
    def history_widths(self) -> dict[int, int]:
        """The width of every layer with a history, by layer number: the argument ``widths`` of
        ``History``.
        """
        first = 1
        if self.embed is not None:
            first = 0
        return {i: self.convs[i].linear.in_features for i in range(first, len(self.convs))}  # type: ignore[union-attr,misc]

    @checked
    def start_history(
        self,
        graph: Graph | EdgeView,
        x: Tensor | Rows,
        *,
        chunk_size: int | None = None,
        progress: bool = False,
        aggregated: str = "on demand",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
        folder: FileLike | None = None,
    ) -> History:
        """Return a history for this model, whose rows one full pass of the model has made.

        Args:
            graph: the graph, or a view of it (``Graph.view``), whose weights are P. Without
                weights: those that ``VRGCN`` or ``VRGraphSAGE`` is defined with, which
                ``graph.edata["edge_norm"]`` then holds; for a model of your own 1 for every edge.
            x: rows of the input layer for all nodes. Their sums over all neighbours are computed
                once (``inputs`` of ``History``), unless the input layer has a history of its own.
            chunk_size, progress: of the pass, see ``Updater``.
            aggregated, dtype, device, folder: see ``History``.

        Raises what ``History`` and ``Updater`` raise.
        """
        view = as_view(graph)
        # a model that is defined with a normalisation brings it, unless the caller has
        # weights
        if view.weight is None and self.norm is not None:
            view.graph.edata["edge_norm"] = edge_norm(view, self.norm)
            view = view.with_weight("edge_norm")
        inputs = None if 0 in self.history_widths or self.estimator == "ns" else x
        history = History(
            view,
            self.history_widths,
            inputs=inputs,
            aggregated=aggregated,
            dtype=dtype,
            device=device,
            folder=folder,
        )
        Updater(self, history, x, chunk_size=chunk_size, progress=progress).run()
        return history

    def activate(self, i: int, h: Tensor) -> Tensor:
        if i == 0 and self.embed is not None:
            return sparse_linear(h, self.embed.weight, self.embed.bias).relu()
        return super().activate(i, h)

    def forward(self, batch: NodeFlow, h: Tensor | None = None) -> Tensor:
        """Return the outputs of the seeds, ``[layer_sizes[-1], out_features]``.

        Sets the column "h" of the history layers: their rows before dropout, without gradient, for
        ``History.push``.

        Args:
            batch: a NodeFlow with one flow per convolution; unless ``estimator="ns"``, with its
                history.
            h: rows of the input layer. None where they are not read: in a ``VRGCN`` whose history
                has the inputs.

        Raises ValueError for another number of flows, flows that skip layers, a batch without
        history, and with "ns" a batch with sums of inputs; TypeError for rows that are missing.
        """
        check_batch(self, batch)
        reads_inputs = self.estimator == "ns" or 0 in self.history_widths
        if h is None and (reads_inputs or self.convs[0].own is not None):
            raise TypeError("h is missing: this model reads the rows of the input layer")
        mean = h
        for i, flow in enumerate(batch.flows):
            if i not in self.history_widths:
                h = mean = self._first(flow, h)
                continue
            h = self.activate(i, h)
            mean = self.activate(i, mean) if self.estimator == "cvd" else h
            # a history holds the means under dropout, not the rows of one draw
            batch.ldata[i]["h"] = mean.detach()
            conv = self.convs[i]
            dropped = self.dropout(h)
            if self.estimator == "cvd":
                total, of_mean = control_variate_dropout(flow, dropped, mean)
                h = conv.combine(total, flow, dropped)  # type: ignore[operator]
                mean = conv.combine(of_mean, flow, mean)  # type: ignore[operator]
            else:
                estimate = neighbor_sampling
                if self.estimator == "cv":
                    estimate = control_variate
                total = estimate(flow, dropped)
                h = conv.combine(total, flow, dropped)  # type: ignore[operator]
        return h

    def _first(self, flow: Flow, h: Tensor | None) -> Tensor:
        """Return the result of the first convolution, whose inputs need no history."""
        if self.estimator != "ns":
            return self.convs[0].combine(exact_sums(flow), flow, h)  # type: ignore[operator,no-any-return]
        if "agg_h_0" in flow.dst_layer.data and flow.num_edges == 0:
            raise ValueError(
                "nothing was drawn in the first flow, since the batch has the sums of a history "
                "with inputs; for estimator='ns' draw neighbours there"
            )
        return self.convs[0](flow, h)  # type: ignore[no-any-return]


class _VRStack(VRModel):
    """A model of ``PropagationConv``, with the class attribute ``own``."""

    own: ClassVar[bool]

    def __init__(
        self,
        in_features: int,
        hidden: int,
        out_features: int,
        num_layers: int = 2,
        *,
        estimator: str = "cv",
        dropout: float = 0.0,
        precomputed: bool = False,
    ) -> None:
        widths = stack_widths(in_features, hidden, out_features, num_layers)
        embed = None
        # with ``own`` the rows are beside the propagated ones
        if precomputed:
            first, width = widths.pop(0)
            embed = nn.Linear(2 * first if self.own else first, width)
        convs: list[nn.Module] = [PropagationConv(i, o, own=self.own) for i, o in widths]
        super().__init__(convs, dropout, estimator=estimator, embed=embed)


class VRGCN(_VRStack):
    """GCN over sampled flows: ``h' = relu(P h W + b)`` with P of ``transform.edge_norm(graph)``
    over added self-loops.

    Args:
        in_features, hidden, out_features, num_layers: as for ``GraphSAGE``.
        estimator, dropout: see ``VRModel``.
        precomputed: the rows of the input layer are propagated already
            (``Propagation(graph.view(weight="p"))(x)``). The first of ``num_layers`` then needs no flow,
            so batches have ``num_layers - 1`` flows.

    >>> VRGCN(8, 4, 3, num_layers=2).history_widths, VRGCN(8, 4, 3, num_layers=2, precomputed=True).history_widths
    ({1: 4}, {0: 4})
    """

    own = False
    norm = "both"


class VRGraphSAGE(_VRStack):
    """GraphSAGE over sampled flows, with P of ``transform.edge_norm(graph, "right")``; arguments as
    for ``VRGCN``.

    With ``precomputed`` the rows of the input layer are ``torch.cat([x, propagated x], 1)``,
    ``[n, 2 * in_features]``.

    >>> from nodeflow import ControlVariateSampler, Graph
    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> x, model = torch.ones(3, 4), VRGraphSAGE(4, 8, 3)
    >>> history = model.start_history(graph, x)
    >>> batch = ControlVariateSampler(history, fanouts=[0, 1])([2])
    >>> model(batch, x[batch.layers[0].parent_nid]).shape
    torch.Size([1, 3])
    """

    own = True
    norm = "right"
