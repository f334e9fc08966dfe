"""Whole models: one convolution per flow of a NodeFlow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nodeflow._base.checks import as_count
from nodeflow.flow import Flow, NodeFlow
from nodeflow.graph import Graph
from nodeflow.nn._gat import GATConv, GATv2Conv
from nodeflow.nn._gcn import GraphConv
from nodeflow.nn._jumping import Jumping
from nodeflow.nn._rgcn import RGCNConv
from nodeflow.nn._sage import SAGEConv
from nodeflow.ops import sparse_linear
from nodeflow.propagation import Propagation
from nodeflow.propagation._full_pass import FullPass, check_features

NORMS: dict[str, Callable[[int], nn.Module]] = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
"""What ``norm`` of a model may be."""


_BETWEEN = ("step", "activate", "convolve")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@cache
def _takes_relu(forward: Callable[..., Any]) -> bool:
    return "relu" in inspect.signature(forward).parameters


class FlowModel(nn.Module):
    """A stack of convolutions, the i-th computed on flow i, with normalisation, activation and dropout between them.

    Args:
        convs: modules that map ``(flow, h)`` to the rows of the flow's destinations.
        dropout: probability of an entry to be zeroed before every convolution but the first, while training.
        widths: the width of the inputs and of every convolution's outputs, which ``norm``, ``residual`` and ``jumping``
            need to know.
        activation: what the rows of every layer between go through. ``torch.relu`` is left to convolutions whose
            ``forward`` takes ``relu=True``, where nothing else comes between.
        norm: "batch" or "layer": normalise them before (Ioffe, Szegedy 2015; Ba, Kiros, Hinton 2016); None: not.
        residual: add to the rows that a convolution gives a node those that it had; a learned linear map of them where
            the widths differ.
        jumping: "cat" or "max": compute the outputs from the rows of all layers (see ``Jumping``), the last one being
            normalised and activated as the others; None: they are what the last convolution gives.
        out_features: width of the outputs, with ``jumping``.

    Raises ValueError for an unknown ``norm`` or ``jumping``, and for ``widths`` that are missing or not one more than
    the convolutions.
    """

    def __init__(
        self, convs: list[nn.Module], dropout: float = 0.0, *, widths: Sequence[int] | None = None,
        activation: Callable[[Tensor], Tensor] = torch.relu, norm: str | None = None, residual: bool = False,
        jumping: str | None = None, out_features: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.dropout = nn.Dropout(dropout)
        self.activation = activation
        self.norms = self.residuals = self.jumping = None
        if norm is None and not residual and jumping is None:
            return
        if widths is None or len(widths) != len(convs) + 1:
            given = "None" if widths is None else f"{len(widths)}"
            raise ValueError(
                f"norm, residual and jumping need widths: {len(convs) + 1} numbers for {len(convs)} convolutions, the "
                f"width of the inputs and that of every convolution's outputs; got {given}"
            )
        if norm is not None:
            if norm not in NORMS:
                raise ValueError(f"norm must be one of {', '.join(map(repr, NORMS))} or None, got {norm!r}")
            self.norms = nn.ModuleList(map(NORMS[norm], widths[1:] if jumping else widths[1:-1]))
        if residual:
            self.residuals = nn.ModuleList(_residual(i, o) for i, o in pairwise(widths))
        if jumping is not None:
            if out_features is None or len({*widths[1:]}) > 1:
                raise ValueError(
                    "jumping needs out_features, the width of the outputs, and the same width of every convolution's; "
                    f"got out_features={out_features}, widths={list(widths)}"
                )
            self.jumping = Jumping(jumping, widths[-1], len(convs), out_features)

    def forward(self, batch: NodeFlow, h: Tensor) -> Tensor:
        """Return the outputs of the seeds, ``[layer_sizes[-1], out_features]``.

        Args:
            batch: a NodeFlow with as many flows as the model has convolutions, else ValueError.
            h: rows of the input layer, ``[layer_sizes[0], in_features]``, dense or sparse CSR.

        With ``residual`` or ``jumping``, raises ValueError when a destination is not in the source layer (sample with
        ``include_dst=True``).
        """
        if batch.num_flows != len(self.convs):
            raise ValueError(f"a model of {len(self.convs)} layers needs as many flows, got {batch!r}")
        check_features(h)
        kept: list[Tensor] = []  # with jumping: the rows of the layers passed, of the nodes that are still there
        activated = False
        for i, flow in enumerate(batch.flows):
            h = self.dropout(h) if activated else self.step(i, h)
            if self.jumping is not None and i:
                kept = [flow.take_dst(rows) for rows in (*kept, h)]
            activated = self._ends_in_relu(i)
            h = self.convolve(i, flow, h, relu=True) if activated else self.convolve(i, flow, h)
        return h if self.jumping is None else self.jumping([*kept, self.step(len(self.convs), h)])

    def step(self, i: int, h: Tensor) -> Tensor:
        """What happens to the rows of layer ``i``, which enter convolution ``i``: nothing to the inputs.

        Else what ``activate`` does, and dropout. Those of the last layer get there with ``jumping`` only.
        """
        h = self.activate(i, h)
        return self.dropout(h) if i else h

    def activate(self, i: int, h: Tensor) -> Tensor:
        """Return the rows of layer ``i`` before dropout: normalised, then activated, but for the inputs."""
        if i == 0:
            return h
        return self.activation(h if self.norms is None else self.norms[i - 1](h))

    def _ends_in_relu(self, i: int) -> bool:
        """Whether convolution ``i`` is to take the positive part itself: nothing is between, and nobody looks there."""
        if torch.compiler.is_compiling() or self.activation is not torch.relu or i == len(self.convs) - 1:
            return False
        between = (self.norms, self.residuals, self.jumping) != (None, None, None)
        cls, conv = type(self), self.convs[i]
        changed = any(name in vars(self) or getattr(cls, name) is not getattr(FlowModel, name) for name in _BETWEEN)
        hooked = nn.modules.module._has_any_global_hook() or any(getattr(conv, name) for name in _HOOKS)
        own = "forward" not in vars(conv) and _takes_relu(type(conv).forward)
        return own and not (between or changed or hooked)

    def convolve(self, i: int, flow: Flow, h: Tensor, **options: Any) -> Tensor:
        """Return what convolution ``i`` makes of the rows that enter it, with what ``residual`` adds.

        ``options`` are further arguments of the convolution. Errors get a note that says where they arose.
        """
        try:
            out: Tensor = self.convs[i](flow, h, **options)
            if self.residuals is None:
                return out
            own, linear = flow.take_dst(h), self.residuals[i]
            if isinstance(linear, nn.Linear):
                return out + sparse_linear(own, linear.weight)
            return out + (own if own.layout == torch.strided else own.to_dense())
        except Exception as error:
            where = f"layer {i} of {type(self).__name__}, {type(self.convs[i]).__name__}"
            error.add_note(f"in {where}, on {flow!r} with rows of shape {tuple(h.shape)}")
            raise

    @torch.no_grad()
    def inference(
        self, graph: Graph | Propagation, h: Tensor, *, nodes: Any = None, weight: str | None = None,
        rows: int | None = None, progress: bool = False,
    ) -> Tensor:  # fmt: skip
        """Return the outputs of all nodes, or of some, from their full neighbourhoods, ``[nodes, out_features]``.

        Computed layer by layer, without dropout; equal to the forward pass over the whole graph. Every module is left
        in the mode it was in.

        Args:
            graph: the graph; or a ``Propagation``, such as that of a ``History``, which says also along which edges and
                with which weights. Convolutions that read edge columns find those of the graph.
            h: rows of all nodes, ``[num_nodes, in_features]``, dense or sparse CSR.
            nodes: parent ids, repeats allowed, of the nodes wanted; None: all. Of every layer only the rows that these
                depend on are computed.
            weight: for convolutions that use ``flow.weight``: the edge column that the sampler had as ``weight``.
            rows: how many nodes are computed at a time; None: all at once.
            progress: show a bar.

        Memory: the rows of two layers (with ``jumping`` those of all layers for the nodes wanted), and what a
        convolution needs for ``rows`` nodes, their edges and their neighbours.

        Raises ValueError for ``weight`` beside a propagation, IndexError for unknown nodes, and what ``Propagation``
        raises.
        """
        if isinstance(graph, Propagation) and weight is not None:
            raise ValueError("the propagation has its weights; leave out weight")
        propagation = graph if isinstance(graph, Propagation) else Propagation(graph, weight=weight)
        passing = FullPass(self, propagation, nodes=nodes, rows=rows, progress=progress)
        for out in passing(h):
            h = out
        return h if passing.index is None else h[passing.index]

    @torch.no_grad()
    def layers(
        self, propagation: Propagation, h: Tensor, *, rows: int | None = None, progress: bool = False
    ) -> Iterator[Tensor]:
        """Give the rows of all nodes that enter each convolution, before dropout, and at last the outputs.

        Arguments as for ``inference``; the propagation says along which edges, and with which weights.
        """
        yield from FullPass(self, propagation, rows=rows, progress=progress)(h)


def _residual(in_features: int, out_features: int) -> nn.Module:
    if in_features == out_features:
        return nn.Identity()
    linear = nn.Linear(in_features, out_features, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def _widths(in_features: int, hidden: int, out_features: int, num_layers: int) -> list[tuple[int, int]]:
    count = as_count(num_layers, "num_layers", 1)
    widths = [in_features, *[hidden] * (count - 1), out_features]
    return list(pairwise(widths))


class _Stack(FlowModel):
    """A model of convolutions of one kind."""

    conv: ClassVar[Callable[..., nn.Module]]

    def __init__(
        self, in_features: int, hidden: int, out_features: int, num_layers: int = 2, *, dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = torch.relu, norm: str | None = None, residual: bool = False,
        jumping: str | None = None, **conv: Any,
    ) -> None:  # fmt: skip
        pairs = _widths(in_features, hidden, out_features if jumping is None else hidden, num_layers)
        convs = [self.make(i, o, jumping is None and n == len(pairs), conv) for n, (i, o) in enumerate(pairs, 1)]
        super().__init__(
            convs, dropout, widths=[in_features, *(o for _, o in pairs)], activation=activation, norm=norm,
            residual=residual, jumping=jumping, out_features=out_features,
        )  # fmt: skip

    def make(self, in_features: int, out_features: int, last: bool, options: dict[str, Any]) -> nn.Module:
        """Return a convolution; ``last``: its rows are the outputs."""
        return type(self).conv(in_features, out_features, **options)


class GraphSAGE(_Stack):
    """GraphSAGE: ``SAGEConv`` layers (Hamilton, Ying, Leskovec 2017).

    Args:
        in_features, hidden, out_features: widths of the inputs, of every layer between, and of the outputs.
        num_layers: number of convolutions = number of flows.
        dropout, activation, norm, residual, jumping: see ``FlowModel``.
        conv: further keywords go to every convolution.

    >>> from nodeflow import Graph, NeighborSampler
    >>> batch = NeighborSampler(Graph.from_edges([0, 1], [1, 2]), [2, 2])([2])
    >>> GraphSAGE(4, 8, 3, num_layers=2)(batch, torch.ones(batch.layer_sizes[0], 4)).shape
    torch.Size([1, 3])
    """

    conv = SAGEConv


class GCN(_Stack):
    """A graph convolutional network: ``GraphConv`` layers (Kipf, Welling 2017).

    Arguments as for ``GraphSAGE``; ``conv_norm`` is the ``norm`` of the convolutions ("both" is the paper's), since
    ``norm`` is that between them.

    >>> GCN(4, 8, 3, num_layers=2, norm="layer", conv_norm="both").convs[1].norm
    'both'
    """

    conv = GraphConv

    def make(self, in_features: int, out_features: int, last: bool, options: dict[str, Any]) -> nn.Module:
        """Return a convolution."""
        others = {name: value for name, value in options.items() if name != "conv_norm"}
        return super().make(in_features, out_features, last, {**others, "norm": options.get("conv_norm", "right")})


class RGCN(_Stack):
    """A relational graph convolutional network: ``RGCNConv`` layers (Schlichtkrull et al. 2018).

    Arguments as for ``GraphSAGE``, and those of ``RGCNConv``, of which ``num_relations`` must be given.

    >>> RGCN(4, 8, 3, num_layers=2, num_relations=5, num_bases=2).convs[0].coefficients.shape
    torch.Size([5, 2])
    """

    conv = RGCNConv


class GAT(_Stack):
    """A graph attention network: ``GATConv`` layers (Velickovic et al. 2018), with ELU between them.

    The heads of every layer between are put side by side, and are ``hidden // heads`` wide; the outputs are the mean of
    heads (equation 6). Arguments as for ``GraphSAGE``, and those of ``GATConv``.

    Raises ValueError where ``hidden`` is not a multiple of ``heads``.

    >>> [conv.linear.weight.shape[0] for conv in GAT(4, 8, 3, num_layers=2, heads=2).convs]
    [8, 6]
    """

    conv: ClassVar[Callable[..., nn.Module]] = GATConv

    def __init__(
        self, in_features: int, hidden: int, out_features: int, num_layers: int = 2, *, heads: int = 1,
        activation: Callable[[Tensor], Tensor] = torch.nn.functional.elu, **options: Any,
    ) -> None:  # fmt: skip
        if hidden % as_count(heads, "heads", 1):
            raise ValueError(f"hidden must be a multiple of heads, got hidden={hidden}, heads={heads}")
        super().__init__(in_features, hidden, out_features, num_layers, heads=heads, activation=activation, **options)

    def make(self, in_features: int, out_features: int, last: bool, options: dict[str, Any]) -> nn.Module:
        """Return a convolution; ``last``: its rows are the outputs, the mean of heads."""
        width = out_features if last else out_features // options["heads"]
        return type(self).conv(in_features, width, concat=not last, **options)


class GATv2(GAT):
    """A graph attention network of ``GATv2Conv`` layers (Brody, Alon, Yahav 2022). Arguments as for ``GAT``."""

    conv = GATv2Conv
