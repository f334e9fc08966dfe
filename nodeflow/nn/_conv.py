"""FlowConv, the base class of convolutions; and what convolutions share: new weights, and checks of
rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor, nn

from nodeflow._core.base.calls import Explained
from nodeflow._core.base.checks import as_count, check_num_rows, describe
from nodeflow._core.schema import Relation
from nodeflow.flow import Flow, FullFlow, NodeFlow
from nodeflow.ops import opaque, sparse_linear

EQUAL_PROBABILITY = (
    "use a layer that reads flow.weight, or a sampler that draws all edges of a node alike"
)
"""Advice for layers that have no weighted form."""


class IgnoredWeightWarning(UserWarning):
    """A layer ignores the estimator weights of a batch, so its sums or means over the neighbours
    are biased.
    """


class FlowConv(nn.Module, metaclass=Explained):
    """A layer that computes the rows of a flow's destinations from the rows of its sources.

    Subclasses define ``forward(flow, h, ...)``. They are called as ``conv(flow, h)``, or as
    ``conv(batch, i, h)`` for flow ``i`` of a NodeFlow, or ``conv(batch, (i, j), h)`` for the flow
    from layer ``i`` to layer ``j``. A flow of a whole graph (``create_full_node_flow``) is a flow
    like any other. Convolutions that read a node's own row raise ValueError when a destination is
    not in the source layer (sample with ``include_dst=True``). Those that read a row per edge take
    it in a call, or from a column of ``flow.data``: ValueError for another number of rows, KeyError
    for a flow without the column.

    >>> import torch
    >>> from nodeflow import flow_from_edges
    >>> class Sum(FlowConv):
    ...     def forward(self, flow, h):
    ...         return flow.aggregate(h, "sum")
    >>> Sum()(flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1), torch.tensor([[1.0], [2.0]]))
    tensor([[3.]])
    """

    weight_advice: str | None = None
    """Advice for flows with ``needs_weight``, of a layer that ignores ``flow.weight``; None: the
    layer uses it.
    """

    def __init__(self) -> None:
        super().__init__()
        # advice given already; the layers of a FlowModel share it
        self.advised: set[str] = set()

    def __call__(self, where: Flow | NodeFlow, *args: Any, **kwargs: Any) -> Any:
        """Run the layer on a Flow, or on flow ``args[0]`` of a NodeFlow; hooks see the flow."""
        # the flow is chosen before hooks run, so that these see the flow
        if isinstance(where, NodeFlow):
            if not args or isinstance(args[0], Tensor):
                raise TypeError(
                    f"with a NodeFlow, call {type(self).__name__} as conv(batch, i, h) for flow i, "
                    "or as conv(batch, (i, j), h) for the flow from layer i to layer j"
                )
            flow = where.flows[args[0]]
            args = args[1:]
        elif isinstance(where, Flow):
            flow = where
        else:
            raise TypeError(
                f"call {type(self).__name__} as conv(flow, h) or conv(batch, i, h), got "
                f"{describe(where)} first"
            )
        if self.weight_advice is not None:
            self.check_weight(flow, self.weight_advice)
        return super().__call__(flow, *args, **kwargs)

    @opaque
    def check_weight(self, flow: Flow, advice: str) -> None:
        """Give an ``IgnoredWeightWarning`` for a flow with ``needs_weight``, but for those of all
        edges.
        """
        if advice not in self.advised and flow.needs_weight and not isinstance(flow, FullFlow):
            self.warn_ignored_weight(advice)

    def warn_ignored_weight(self, advice: str) -> None:
        """Give an ``IgnoredWeightWarning`` with ``advice``, once per model."""
        if advice not in self.advised:
            self.advised.add(advice)
            name = type(self).__name__
            warnings.warn(
                f"{name} ignores flow.weight, but the sampled edges of a node have different "
                f"weights, so its result is biased: {advice}",
                IgnoredWeightWarning,
                stacklevel=4,
            )


def linear_map(in_features: int, out_features: int, *, bias: bool) -> nn.Linear:
    """Return a linear map. Raises TypeError or ValueError for widths that are no numbers of at
    least 1.
    """
    return nn.Linear(
        as_count(in_features, "in_features", 1),
        as_count(out_features, "out_features", 1),
        bias=bias,
    )


def draw_glorot(module: nn.Module) -> None:
    """Draw new weights (Glorot, Bengio 2010), each matrix of a stack by itself, and biases of 0."""
    for parameter in module.parameters():
        # a stack of matrices is drawn one by one: torch would count it into the fan-in
        if parameter.ndim == 1:
            nn.init.zeros_(parameter)
        else:
            for matrix in parameter if parameter.ndim == 3 else [parameter]:
                nn.init.xavier_uniform_(matrix)


def check_width(conv: nn.Module, h: Tensor, width: int) -> None:
    """Raise ValueError unless the rows ``h`` are ``width`` wide."""
    if h.shape[-1:] != (width,):
        raise ValueError(
            f"{type(conv).__name__} takes rows of width {width} (in_features), got shape "
            f"{tuple(h.shape)}"
        )


def check_schema(
    flow: Flow, relations: Sequence[Relation], node_types: Iterable[str] | None = None
) -> None:
    """Raise ValueError unless a flow's graph has the relations and node types of a layer, in any
    order.
    """
    schema = flow.dst_layer.schema
    if {*schema.relations} != {*relations} or {*schema.nodes} != {*(node_types or schema.nodes)}:
        raise ValueError(
            f"the layer is for the relations {relations}; the graph has another schema, {schema}"
        )


def check_range(ids: Tensor, size: int, name: str, words: str) -> None:
    """Raise IndexError unless numbers go from 0 to ``size - 1``; ``words`` say what these are."""
    if ids.numel():
        low, high = (int(end) for end in ids.aminmax())
        if low < 0 or high >= size:
            wrong = high
            if low < 0:
                wrong = low
            raise IndexError(f"{name} holds {wrong}, but {words} are 0 to {size - 1}")


def with_own_row(
    out: Tensor, flow: Flow, h: Tensor, own_map: nn.Linear | None, bias: Tensor | None
) -> Tensor:
    """Return rows of destinations plus a map of each one's own row, and a bias, if there are any."""
    if own_map is not None:
        out = out + sparse_linear(flow.take_dst(h), own_map.weight)
    if bias is None:
        return out
    return out + bias


def edges_by_relation(flow: Flow, relations: Sequence[Relation]) -> list[Tensor]:
    """Return the edges of each relation of a layer, in the layer's order, which the graph's need
    not be.
    """
    return [
        flow.by_relation.edges(flow.dst_layer.schema.number(relation)) for relation in relations
    ]


def edge_rows(flow: Flow, given: Tensor | None, column: str) -> Tensor:
    """Return the rows that a convolution reads per edge, ``[num_edges, ...]``: those given, else
    a column of the flow.
    """
    rows = flow.data[column] if given is None else given
    check_num_rows(
        rows.shape,
        f"{column!r}",
        flow.num_edges,
        "edge of the flow",
        " (of a column of the graph take the rows flow.parent_eid)",
    )
    return rows
