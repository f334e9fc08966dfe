"""GraphConv, the graph convolution of Kipf and Welling."""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._core.base.checks import check_one_of
from nodeflow.flow import Flow, FullFlow, Layer
from nodeflow.nn._conv import linear_map
from nodeflow.nn._linear_conv import LinearConv
from nodeflow.transform import IN_DEGREE, OUT_DEGREE


class GraphConv(LinearConv):
    """Graph convolution over a node and its neighbours (Kipf, Welling 2017).

    ``h'_v = W (sum of p_uv h_u for the edges u -> v, + p_vv h_v) + b``, where d_in(v) is the number
    of edges that enter v, d_out(u) the number of edges that leave u, and l is 1 with self-loops, 0
    without:

    - ``norm="right"``: ``p_uv = 1 / (d_in(v) + l)``, a mean: D^-1 (A + I);
    - ``norm="both"``: ``p_uv = ((d_out(u) + l) (d_in(v) + l))^-1/2``, equation 2 of the paper;
    - ``norm="none"``: ``p_uv = 1``.

    ``degrees="sampled"`` counts the edges of the flow and ignores estimator weights. It is for
    whole graphs, and for samplers that draw all edges of a node with equal probability, such as
    ``NeighborSampler`` without ``prob``. Other batches (``flow.needs_weight``) give an
    ``IgnoredWeightWarning``. ``degrees="parent"`` takes the degrees of the parent graph and
    multiplies each edge by its estimator weight. The sum is then an unbiased estimate of the sum
    over all edges, for every sampler with unbiased weights. The degrees are node columns of the
    batch: "in_degree" for "right", "in_degree" and "out_degree" for "both" (see
    ``transform.degrees``).

    Args:
        in_features, out_features: widths of the rows of ``h`` and of the result.
        norm: "right", "both" or "none".
        self_loops: add the node's own row, as if every node had an edge to itself besides those of
            the graph.
        degrees: "sampled" or "parent".
        bias: add a learned bias.
        order, relu: see ``LinearConv``.

    Raises ValueError for another ``norm``, ``degrees`` or ``order``.

    >>> from nodeflow import Graph, NeighborSampler, transform
    >>> graph = Graph.from_edges([1, 2, 3, 0], [0, 0, 0, 3])
    >>> graph.ndata.update(transform.degrees(graph))
    >>> batch = NeighborSampler(graph, [2])([0])
    >>> batch.copy_from_parent(["in_degree", "out_degree"])  # or ndata= of a loader
    >>> GraphConv(4, 3, norm="both", degrees="parent")(batch, 0, torch.ones(batch.layer_sizes[0], 4)).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        norm: str = "right",
        self_loops: bool = True,
        degrees: str = "sampled",
        bias: bool = True,
        order: str = "auto",
        relu: bool = False,
    ) -> None:
        super().__init__(order, relu=relu)
        check_one_of(norm, "norm", ("right", "both", "none"))
        check_one_of(degrees, "degrees", ("sampled", "parent"))
        self.norm = norm
        self.self_loops = bool(self_loops)
        self.degrees = degrees
        if degrees == "sampled":
            self.weight_advice = "use GCN(degrees='parent'), or GraphConv(degrees='parent')"
        self.weighted = norm == "both" or degrees == "parent"
        self.loops = self.self_loops
        self.linear = linear_map(in_features, out_features, bias=bias)
        self.set_maps("linear")
        self.reset_parameters()

    def aggregate(self, flow: Flow, h: Tensor) -> Tensor:
        """Return the sums of the rows times their p, ``[num_dst, width]``."""
        edge, own_factor, scale = self._factors(flow, torch.promote_types(h.dtype, torch.float32))
        if not self.self_loops:
            out = flow.aggregate(h, "sum", weight=edge)
        else:  # in place: allocating another matrix of this size costs more than the arithmetic
            rows, h = flow.share_dst(h)
            out = flow.aggregate(h, "sum", weight=edge)
            if own_factor is None:
                out = out.add_(rows)
            else:
                out = out.addcmul_(rows.to(out.dtype), own_factor)
        if scale is not None:
            out = out.mul_(scale)
        return out.to(h.dtype)

    def _factors(
        self, flow: Flow, dtype: torch.dtype
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return the factors of edges ``[num_edges]``, own rows and sums ``[num_dst, 1]``; None
        stands for ones.
        """
        edge = None
        if self.degrees == "parent":
            edge = flow.weight.to(dtype)
        if self.norm == "none":
            return edge, None, None
        if self.degrees == "sampled":
            entering = flow.in_degrees
        else:
            entering = degree_column(flow.dst_layer, IN_DEGREE, "destination")
        # the loop of a node is one edge more at both of its ends
        entering = entering.to(dtype) + int(self.self_loops)
        if self.norm == "right":
            inverse_root = _inverse(entering)
            if edge is None:
                return None, None, inverse_root.unsqueeze(1)
            return edge * inverse_root[flow.structure.dst], inverse_root.unsqueeze(1), None
        if self.degrees == "parent":
            leaving = degree_column(flow.src_layer, OUT_DEGREE, "source")
        else:
            # a flow of all edges into some nodes knows out-degrees of its sources in the whole graph
            leaving = flow.all_out_degrees if isinstance(flow, FullFlow) else flow.out_degrees
        inverse_root = _inverse((leaving.to(dtype) + int(self.self_loops)).sqrt())
        end = _inverse(entering.sqrt())
        along = inverse_root[flow.indices] * end[flow.structure.dst]
        own_factor = None
        if self.self_loops:
            own_factor = (flow.take_dst(inverse_root) * end).unsqueeze(1)
        return along if edge is None else edge * along, own_factor, None

    def extra_repr(self) -> str:
        return (
            f"norm={self.norm!r}, self_loops={self.self_loops}, degrees={self.degrees!r}, "
            f"{super().extra_repr()}"
        )


def _inverse(x: Tensor) -> Tensor:
    """Return 1 / x, and 0 where x is 0, for nodes without edges."""
    return torch.where(x > 0, x.reciprocal(), 0.0)


def degree_column(layer: Layer, name: str, which: str, option: str = "degrees='parent'") -> Tensor:
    """Return the column ``name`` of a layer, ``[num_nodes]``; ValueError where it is missing or has
    another shape.
    """
    if name not in layer.data:
        raise ValueError(
            f"{option} needs the column {name!r} in the {which} layer, which has "
            f"{', '.join(map(repr, layer.data)) or 'no columns'}: set "
            "graph.ndata.update(transform.degrees(graph)) once, and copy the columns to batches, "
            f"with ndata=['{IN_DEGREE}', '{OUT_DEGREE}'] of a loader or with "
            f"batch.copy_from_parent(['{IN_DEGREE}', '{OUT_DEGREE}']); without a parent graph set "
            "the columns of the layers, batch.ldata[i], yourself"
        )
    column = layer.data[name]
    if column.shape != (layer.num_nodes,):
        raise ValueError(
            f"the column {name!r} must have one number per node, got shape {tuple(column.shape)}"
        )
    return column
