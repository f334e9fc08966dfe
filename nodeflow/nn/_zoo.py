"""Models of the literature: GraphSAGE, GCN, GIN, RGCN, GAT and GATv2."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import as_count
from nodeflow.nn._between import BatchNorm
from nodeflow.nn._gat import GATConv, GATv2Conv
from nodeflow.nn._gcn import GraphConv
from nodeflow.nn._gin import GINConv
from nodeflow.nn._model import FlowModel
from nodeflow.nn._rgcn import RGCNConv
from nodeflow.nn._sage import SAGEConv


def stack_widths(
    in_features: int, hidden: int, out_features: int, num_layers: int
) -> list[tuple[int, int]]:
    """Return ``(in_features, out_features)`` of every convolution of a stack."""
    count = as_count(num_layers, "num_layers", 1)
    names = {"in_features": in_features, "hidden": hidden, "out_features": out_features}
    first, inner, last = (as_count(width, name, 1) for name, width in names.items())
    widths = [first, *[inner] * (count - 1), last]
    return list(pairwise(widths))


class _Stack(FlowModel):
    """A model of convolutions of one kind, the class attribute ``conv``."""

    conv: ClassVar[Callable[..., nn.Module]]

    def __init__(
        self,
        in_features: int,
        hidden: int,
        out_features: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = torch.relu,
        norm: str | None = None,
        residual: bool = False,
        jumping: str | None = None,
        **conv: Any,
    ) -> None:
        last_width = hidden
        if jumping is None:
            last_width = out_features
        pairs = stack_widths(in_features, hidden, last_width, num_layers)
        convs: list[nn.Module] = []
        for first, width in pairs:
            is_last = jumping is None and len(convs) + 1 == len(pairs)
            convs.append(self.make(first, width, is_last, conv))
        super().__init__(
            convs,
            dropout,
            widths=[in_features, *(o for _, o in pairs)],
            activation=activation,
            norm=norm,
            residual=residual,
            jumping=jumping,
            out_features=out_features,
        )
        # only now the model knows whether anything stands between convolution and ReLU
        for inner in self.convs[:-1]:
            if self._applies_relu(inner):
                inner.relu = True

    def make(
        self, in_features: int, out_features: int, last: bool, options: dict[str, Any]
    ) -> nn.Module:
        """Return a convolution; ``last``: its rows are the outputs."""
        return type(self).conv(in_features, out_features, **options)


class GraphSAGE(_Stack):
    """GraphSAGE: ``SAGEConv`` layers (Hamilton, Ying, Leskovec 2017).

    Args:
        in_features, hidden, out_features: widths of the inputs, of the inner layers, and of the
            outputs.
        num_layers: number of convolutions, equal to the number of flows.
        dropout, activation, norm, residual, jumping: see ``FlowModel``.
        conv: further keywords, passed to every convolution (see ``SAGEConv``).

    With ``torch.relu``, the default, and no ``norm``, ``residual`` or ``jumping``, every
    convolution but the last applies the ReLU itself (``relu=True``), which is faster: forward hooks
    see its result after the ReLU. With ``torch.nn.ReLU()``, in subclasses that override
    ``activate``, and for convolutions that override ``forward`` it is a step of its own.

    >>> from nodeflow import Graph, NeighborSampler
    >>> batch = NeighborSampler(Graph.from_edges([0, 1], [1, 2]), [2, 2])([2])
    >>> GraphSAGE(4, 8, 3, num_layers=2)(batch, torch.ones(batch.layer_sizes[0], 4)).shape
    torch.Size([1, 3])
    """

    conv = SAGEConv


class GCN(_Stack):
    """A graph convolutional network: ``GraphConv`` layers (Kipf, Welling 2017).

    Arguments as for ``GraphSAGE``. ``norm`` normalises rows between convolutions; ``conv_norm`` is
    the ``norm`` of the convolutions (the paper's is "both"). Further keywords are those of
    ``GraphConv``.

    >>> GCN(4, 8, 3, num_layers=2, norm="layer", conv_norm="both").convs[1].norm
    'both'
    """

    conv = GraphConv

    def make(
        self, in_features: int, out_features: int, last: bool, options: dict[str, Any]
    ) -> nn.Module:
        others = dict(options)
        others["norm"] = others.pop("conv_norm", "right")
        return super().make(in_features, out_features, last, others)


class GIN(_Stack):
    """A graph isomorphism network: ``GINConv`` layers (Xu, Hu, Leskovec, Jegelka 2019).

    The ``mlp`` of a layer is two linear maps with batch normalisation and ReLU between them. Sums
    are multiplied by estimator weights (``weighted=True``), so for sampled batches they estimate
    those over all neighbours. Arguments as for ``GraphSAGE``, for dense rows only; further keywords
    are those of ``GINConv``.

    >>> GIN(4, 8, 3, num_layers=2).convs[1].mlp[-1]
    Linear(in_features=8, out_features=3, bias=True)
    """

    conv = GINConv

    def make(
        self, in_features: int, out_features: int, last: bool, options: dict[str, Any]
    ) -> nn.Module:
        inner = out_features
        if last:
            inner = in_features
        mlp = nn.Sequential(
            nn.Linear(in_features, inner),
            BatchNorm(inner),
            nn.ReLU(),
            nn.Linear(inner, out_features),
        )
        return GINConv(mlp, **{"weighted": True, **options})


class RGCN(_Stack):
    """A relational graph convolutional network: ``RGCNConv`` layers (Schlichtkrull et al. 2018).

    Arguments as for ``GraphSAGE``. Further keywords are those of ``RGCNConv``; ``num_relations`` is
    required.

    >>> RGCN(4, 8, 3, num_layers=2, num_relations=5, num_bases=2).convs[0].coefficients.shape
    torch.Size([5, 2])
    """

    conv = RGCNConv


class GAT(_Stack):
    """A graph attention network: ``GATConv`` layers (Velickovic et al. 2018), with ELU between
    them.

    Inner layers concatenate their heads, which are ``hidden // heads`` wide. The outputs are the
    mean of the heads (equation 6). Arguments as for ``GraphSAGE``; further keywords are those of
    ``GATConv``.

    Raises ValueError if ``hidden`` is not a multiple of ``heads``.

    >>> [conv.linear.weight.shape[0] for conv in GAT(4, 8, 3, num_layers=2, heads=2).convs]
    [8, 6]
    """

    conv: ClassVar[Callable[..., nn.Module]] = GATConv

    def __init__(
        self,
        in_features: int,
        hidden: int,
        out_features: int,
        num_layers: int = 2,
        *,
        heads: int = 1,
        activation: Callable[[Tensor], Tensor] = torch.nn.functional.elu,
        **options: Any,
    ) -> None:
        if hidden % as_count(heads, "heads", 1):
            raise ValueError(
                f"hidden must be a multiple of heads, got hidden={hidden}, heads={heads}"
            )
        super().__init__(
            in_features,
            hidden,
            out_features,
            num_layers,
            heads=heads,
            activation=activation,
            **options,
        )

    def make(
        self, in_features: int, out_features: int, last: bool, options: dict[str, Any]
    ) -> nn.Module:
        width = out_features
        if not last:
            width = out_features // options["heads"]
        return type(self).conv(in_features, width, concat=not last, **options)


class GATv2(GAT):
    """A graph attention network of ``GATv2Conv`` layers (Brody, Alon, Yahav 2022). Arguments as for
    ``GAT``.

    >>> from nodeflow import Graph, NeighborSampler
    >>> batch = NeighborSampler(Graph.from_edges([0, 1, 2], [1, 2, 0]), fanouts=[1, 1])([2])
    >>> GATv2(4, 8, 3, heads=2)(batch, torch.ones(batch.layer_sizes[0], 4)).shape
    torch.Size([1, 3])
    """

    conv = GATv2Conv
