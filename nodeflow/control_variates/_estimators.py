"""Estimates of a full propagation from a sampled flow: neighbour sampling, control variates, and
those for dropout.
"""

from __future__ import annotations

from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.rows.rows import is_sparse
from nodeflow.flow import Flow, FullFlow, Layer


@checked
def neighbor_sampling(flow: Flow, h: Tensor) -> Tensor:
    """Estimate the full propagation of ``h`` by the weighted sum over the drawn edges, without
    history.

    ``NS_v = sum over drawn u of (n(v) / D) P_vu h_u``: the estimator weights of the flow. Unbiased,
    and exact with all edges.

    Args:
        flow: drawn edges, with estimator weights.
        h: ``[num_src, width]``.

    Returns ``[num_dst, width]``.

    >>> import torch
    >>> from nodeflow import Graph, NeighborSampler
    >>> graph = Graph.from_edges([0, 1, 2, 3], [3, 3, 3, 0])
    >>> flow = NeighborSampler(graph, fanouts=[2])([3]).flows[0]
    >>> neighbor_sampling(flow, torch.ones(flow.num_src, 2))  # 2 of 3 drawn, each with weight 3 / 2
    tensor([[3., 3.]])
    """
    return flow.aggregate(h, "sum", weight=flow.weight.to(h.dtype))


@checked
def control_variate(flow: Flow, h: Tensor) -> Tensor:
    """Estimate the full propagation of ``h`` with the history as control variate (Chen, Zhu, Song
    2018, equation 5).

    ``CV_v = sum over drawn u of (n(v) / D) P_vu (h_u - history_u) + sum over all u of P_vu history_u``.
    It is unbiased whatever the history is. It is exact with all edges, and where the history equals
    ``h``. Gradients flow through the drawn ``h`` only.

    Args:
        flow: flow i of a batch that has the columns ``h_i`` in layer i and ``agg_h_i`` in layer i +
            1 (``ControlVariateSampler``, or ``History.pull``). Where flow 0 has only ``agg_h_0``,
            the exact sums of the inputs, these are the result. In full passes and
            ``FlowModel.inference`` the result is the sum over all edges.
        h: ``[num_src, width]``, the rows whose earlier values the history has.

    Returns ``[num_dst, width]``. Raises ValueError for a batch without these columns, or with
    columns of another width.

    >>> import torch
    >>> from nodeflow import ControlVariateSampler, Graph, History
    >>> graph = Graph.from_edges([0, 1, 2, 3], [3, 3, 3, 0], edata={"p": torch.full((4,), 0.5)})
    >>> history = History(graph.view(weight="p"), {1: 2})
    >>> batch = ControlVariateSampler(history, fanouts=[-1, 2])([3])
    >>> h = torch.ones(batch.layer_sizes[1], 2)
    >>> control_variate(batch.flows[1], h)
    tensor([[1.5000, 1.5000]])
    """
    if isinstance(flow, FullFlow):
        return neighbor_sampling(flow, h)
    i = flow.layers[0]
    if i == 0 and "h_0" not in flow.src_layer.data and "agg_h_0" in flow.dst_layer.data:
        sums = exact_sums(flow)
        if sums.shape[1:] != h.shape[1:]:
            raise ValueError(
                f"the inputs of the history have width {sums.shape[1]}, but the rows have "
                f"{h.shape[1]}"
            )
        if is_sparse(sums):
            return sums
        return sums.to(h.dtype)
    advice = (
        "; sample with a ControlVariateSampler whose history has layer "
        f"{i}{' or the inputs' if i == 0 else ''} (or, for a batch that was drawn with the "
        "history's weights and direction, call history.pull(batch))"
    )
    # rows near their history leave a small difference, whose sampled sum has little noise
    history = _column(flow.src_layer, f"h_{i}", advice)
    sums = _column(flow.dst_layer, f"agg_h_{i}", advice)
    if history.shape[1:] != h.shape[1:]:
        raise ValueError(
            f"layer {i} of the history has width {history.shape[1]}, but the rows have {h.shape[1]}"
        )
    return neighbor_sampling(flow, h - history.to(h.dtype)) + sums.to(h.dtype)


@checked
def control_variate_dropout(flow: Flow, h: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """Estimate the propagation of ``h``, rows under dropout, and of ``mean``, their means (Chen,
    Zhu, Song 2018, CVD).

    ``CVD_v = sum over drawn u of sqrt(n(v) / D) P_vu (h_u - mean_u) + CV_v(mean)``, unbiased as CV
    is. Where each D of the n nodes are equally likely, dropout adds no more variance than to the
    full propagation, since its noise is independent from node to node; draws with replacement and
    with ``prob`` are noisier.

    Args:
        flow: as for ``control_variate``, with the column ``scale`` in layer i + 1 (n(v) / D).
        h: rows after dropout, ``[num_src, width]``.
        mean: rows before it, likewise.

    Returns the two estimates ``[num_dst, width]``, of ``h`` and of ``mean``. Raises as
    ``control_variate``.

    >>> import torch
    >>> from nodeflow import ControlVariateSampler, Graph, History
    >>> graph = Graph.from_edges([0, 1, 2, 3], [3, 3, 3, 0], edata={"p": torch.full((4,), 0.5)})
    >>> history = History(graph.view(weight="p"), {1: 2})
    >>> batch = ControlVariateSampler(history, fanouts=[-1, 2])([3])
    >>> mean = torch.ones(batch.layer_sizes[1], 2)
    >>> sums, sums_of_means = control_variate_dropout(batch.flows[1], 2 * mean, mean)
    >>> sums.shape, sums_of_means
    (torch.Size([1, 2]), tensor([[1.5000, 1.5000]]))
    """
    if isinstance(flow, FullFlow):
        return neighbor_sampling(flow, h), neighbor_sampling(flow, mean)
    scale = _column(
        flow.dst_layer, "scale", " in its destination layers; sample with a ControlVariateSampler"
    )
    scale = scale.to(h.dtype).clamp(min=1).sqrt()
    # the noise of dropout has mean 0, so it needs no history, only the right variance
    estimate = control_variate(flow, mean)
    noise = neighbor_sampling(flow, h - mean) / scale.unsqueeze(1)
    return noise + estimate, estimate


@checked
def exact_sums(flow: Flow) -> Tensor:
    """Return the sums of the inputs over all neighbours, ``[num_dst, width]``, of a history with
    ``inputs``.

    Raises ValueError for a batch without them.

    >>> import torch
    >>> from nodeflow import ControlVariateSampler, Graph, History
    >>> graph = Graph.from_edges([0, 1, 2, 3], [3, 3, 3, 0])
    >>> history = History(graph, {1: 2}, inputs=torch.arange(4.0).view(4, 1))
    >>> batch = ControlVariateSampler(history, fanouts=[0, 2])([3])
    >>> batch.layers[1].parent_nid, exact_sums(batch.flows[0]).flatten()
    (tensor([3, 0, 2]), tensor([3., 3., 0.]))
    """
    return _column(
        flow.dst_layer,
        f"agg_h_{flow.layers[0]}",
        (
            ", the sums of the inputs over all neighbours: make the history with inputs=x (or the "
            "model with precomputed=True), and sample with a ControlVariateSampler"
        ),
    )


def _column(layer: Layer, name: str, advice: str) -> Tensor:
    if name not in layer.data:
        raise ValueError(f"the batch has no column {name!r}{advice}")
    return layer.data[name]
