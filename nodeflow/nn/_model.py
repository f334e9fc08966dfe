"""FlowModel: a stack of convolutions, one per flow of a NodeFlow; and Jumping, outputs from the
rows of every layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import TypeGuard, cast

import torch
from torch import Tensor, nn

from nodeflow._core.base.calls import Explained, checked
from nodeflow._core.base.checks import check_num_rows, check_one_of, check_type, describe
from nodeflow._core.base.types import FileLike, IdsLike
from nodeflow._core.edges.view import EdgeView
from nodeflow._core.rows.rows import Rows
from nodeflow.flow import Flow, NodeFlow
from nodeflow.graph import Graph
from nodeflow.nn._between import NORMS, Dropout
from nodeflow.nn._conv import FlowConv, draw_glorot
from nodeflow.nn._linear_conv import LinearConv
from nodeflow.ops import in_bfloat16, linear_sum, sparse_linear
from nodeflow.propagation import FullPass, Propagation, check_features, check_out


def whole_graph(edges: Graph | EdgeView | Propagation) -> Graph:
    """Return the graph that ``inference`` is of; raises TypeError for anything else."""
    if isinstance(edges, Graph):
        return edges
    if isinstance(edges, EdgeView | Propagation):
        return cast(Graph, edges.graph)
    raise TypeError(
        "inference takes a Graph, a view of one or a Propagation first, and then rows, got "
        f"{describe(edges)}; for a batch call model(batch, h)"
    )


class FlowModel(nn.Module, metaclass=Explained):
    """A stack of convolutions, the i-th computed on flow i, with normalisation, activation and
    dropout between them.

    Args:
        convs: modules that map ``(flow, h)`` to the rows of the flow's destinations.
        dropout: probability of an entry to be zeroed before every convolution but the first, while
            training.
        widths: the width of the inputs and of every convolution's outputs; needed for ``norm``,
            ``residual`` and ``jumping``.
        activation: the function applied to the rows of every inner layer; None: no function, for
            convolutions that activate their own results.
        norm: "batch" (Ioffe, Szegedy 2015) or "layer" (Ba, Kiros, Hinton 2016): normalise the rows
            of inner layers before the activation; None: no normalisation.
        residual: add a node's row in the layer before to the result of the convolution, through a
            learned linear map where the widths differ.
        jumping: "cat" or "max": compute the outputs from the rows of all layers (see ``Jumping``),
            where the last layer is normalised and activated like the others; None: the outputs are
            the rows of the last convolution.
        out_features: width of the outputs, with ``jumping``.

    Raises ValueError for an unknown ``norm`` or ``jumping``, and for ``widths`` that are missing or
    not one more than the convolutions; TypeError for an ``activation`` that cannot be called.

    >>> from nodeflow import Graph, NeighborSampler
    >>> from nodeflow.nn import SAGEConv
    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> model = FlowModel([SAGEConv(4, 8), SAGEConv(8, 3)], dropout=0.5)
    >>> batch = NeighborSampler(graph, fanouts=[1, 1])([2])
    >>> model(batch, torch.ones(batch.layer_sizes[0], 4)).shape, model.inference(graph, torch.ones(3, 4)).shape
    (torch.Size([1, 3]), torch.Size([3, 3]))
    """

    def __init__(
        self,
        convs: list[nn.Module],
        dropout: float = 0.0,
        *,
        widths: Sequence[int] | None = None,
        activation: Callable[[Tensor], Tensor] | None = torch.relu,
        norm: str | None = None,
        residual: bool = False,
        jumping: str | None = None,
        out_features: int | None = None,
    ) -> None:
        super().__init__()
        check_type(
            activation, "activation", Callable | None, "a function, such as torch.relu, or None"
        )
        self.convs = nn.ModuleList(convs)
        if not len(self.convs):
            raise ValueError("convs must hold at least one convolution, got an empty list")
        # one warning per model, not one per layer
        advised: set[str] = set()
        for conv in self.convs.modules():
            if isinstance(conv, FlowConv):
                conv.advised = advised
        self.dropout = Dropout(dropout)
        self.activation = activation
        self.norms = self.residuals = self.jumping = None
        if norm is None and not residual and jumping is None:
            return
        if widths is None or len(widths) != len(convs) + 1:
            raise ValueError(
                f"norm, residual and jumping need widths: {len(convs) + 1} numbers for "
                f"{len(convs)} convolutions, the width of the inputs and that of every "
                f"convolution's outputs; got {widths and len(widths)}"
            )
        check_one_of(norm, "norm", (*NORMS, None))
        if norm is not None:
            self.norms = nn.ModuleList(map(NORMS[norm], widths[1:] if jumping else widths[1:-1]))
        if residual:
            self.residuals = nn.ModuleList(_residual(i, o) for i, o in pairwise(widths))
        if jumping is not None:
            if out_features is None or len({*widths[1:]}) > 1:
                raise ValueError(
                    "jumping needs out_features, the width of the outputs, and the same width of "
                    f"every convolution's; got out_features={out_features}, widths={list(widths)}"
                )
            self.jumping = Jumping(jumping, widths[-1], len(convs), out_features)

    def forward(self, batch: NodeFlow, h: Tensor) -> Tensor:
        """Return the outputs of the seeds, ``[layer_sizes[-1], out_features]``.

        Args:
            batch: a NodeFlow with one flow per convolution, each from a layer to the next.
            h: rows of the input layer, ``[layer_sizes[0], in_features]``, dense or sparse CSR.

        Raises ValueError for other flows and other numbers of rows and, with ``residual`` or
        ``jumping``, when a destination is not in the source layer (sample with
        ``include_dst=True``); TypeError for arguments of another type.
        """
        check_batch(self, batch)
        check_features(h)
        check_num_rows(
            h.shape,
            "h",
            batch.layer_sizes[0],
            "node of the input layer",
            ": of rows x of all nodes take x[batch.layers[0].parent_nid]",
        )
        # with jumping: rows of earlier layers, of the nodes in the present layer
        kept: list[Tensor] = []
        # whether the previous convolution has applied activation and dropout itself
        dropped = False
        for i, flow in enumerate(batch.flows):
            if not dropped:
                h = self.step(i, h)
            if self.jumping is not None and i:
                kept = [flow.take_dst(rows) for rows in (*kept, h)]
            dropped = self._drops_within(i, h)
            if dropped:
                h = self.convolve(i, flow, h, dropout=self.dropout.p)
            else:  # a subclass may drop nothing itself
                h = self.convolve(i, flow, h)
        if self.jumping is not None:
            h = self.jumping([*kept, self.step(len(self.convs), h)])
        return h

    def step(self, i: int, h: Tensor) -> Tensor:
        """Return the rows of layer ``i`` as they enter convolution ``i``: ``activate``, then
        dropout.

        The inputs (layer 0) stay as they are. The last layer has a step with ``jumping`` only.
        """
        h = self.activate(i, h)
        if i:
            h = self.dropout(h)
        return h

    def activate(self, i: int, h: Tensor) -> Tensor:
        """Return the rows of layer ``i`` before dropout: normalised, then activated, but for the
        inputs.

        ReLU is left out where the convolution before has applied it (``relu=True``).
        """
        if i == 0:
            return h
        if self.norms is not None:
            h = self.norms[i - 1](h)
        elif self.activation is torch.relu and self.residuals is None:
            is_activated = getattr(self.convs[i - 1], "relu", False)
            if is_activated:
                return h
            return h.relu()
        if self.activation is None:
            return h
        return self.activation(h)

    def _applies_relu(self, conv: nn.Module) -> TypeGuard[LinearConv]:
        """Whether a convolution may apply the ReLU: nothing reads or changes the rows before it."""
        # a subclass that overrides a method may change rows there
        return (
            all(part is None for part in (self.norms, self.residuals, self.jumping))
            and self.activation is torch.relu
            and type(self).activate is FlowModel.activate
            and isinstance(conv, LinearConv)
            and type(conv).forward is LinearConv.forward
        )

    def _drops_within(self, i: int, h: Tensor) -> bool:
        """Whether convolution ``i`` applies dropout itself, after bias and ReLU: in bfloat16 on a
        CPU.

        All three then take one pass over the rows, and one over their gradient.
        """
        # in bfloat16 one loop adds the bias, takes the ReLU and drops, which saves passes
        # over the rows
        if not in_bfloat16(h) or i + 1 == len(self.convs):
            return False
        # a subclass, or another module in the place of dropout, may do otherwise
        methods = (type(self).step, type(self).convolve)
        if type(self.dropout) is not Dropout or methods != (FlowModel.step, FlowModel.convolve):
            return False
        conv = self.convs[i]
        drops = self.dropout.training and self.dropout.p > 0
        return drops and self._applies_relu(conv) and conv.relu

    def convolve(self, i: int, flow: Flow, h: Tensor, *, dropout: float = 0.0) -> Tensor:
        """Return the result of convolution ``i`` for the rows that enter it, plus the residual if
        there is one.

        With ``dropout``, for a ``LinearConv`` only, the convolution applies dropout itself. Errors
        get a note that names the layer.
        """
        try:
            if dropout:
                options = {"dropout": dropout}
            else:
                options = {}
            out: Tensor = self.convs[i](flow, h, **options)
            if self.residuals is None:
                return out
            # only destinations go on, so only their rows are added
            own_rows = flow.take_dst(h)
            linear = self.residuals[i]
            if isinstance(linear, nn.Linear):
                return out + sparse_linear(own_rows, linear.weight)
            return out + (own_rows if own_rows.layout == torch.strided else own_rows.to_dense())
        except Exception as error:
            # errors of torch seldom say which layer it was, and which types met there
            where = f"convolution {i} of {type(self).__name__}, {type(self.convs[i]).__name__}"
            weight = next(self.convs[i].parameters(), h)
            error.add_note(
                f"in {where}, on {flow!r} with rows of shape {tuple(h.shape)}, {h.dtype} and "
                f"{h.layout}; weights are {weight.dtype}, flow.weight {flow.weight.dtype}"
            )
            raise

    @torch.no_grad()
    def inference(
        self,
        graph: Graph | EdgeView | Propagation,
        h: Tensor | Rows,
        *,
        nodes: IdsLike | None = None,
        chunk_size: int | None = None,
        progress: bool = False,
        out: Tensor | None = None,
        folder: FileLike | None = None,
    ) -> Tensor:
        """Return the outputs of all nodes, or of some, from their full neighbourhoods,
        ``[nodes, out_features]``.

        Computed layer by layer, without dropout; equal to the forward pass over the whole graph.
        Every module is left in the mode it was in.

        Args:
            graph: the graph, or a view of it (``Graph.view``), as of the sampler, which says also
                along which edges and with which weights; or a ``Propagation``. Convolutions that
                read edge columns find those of the graph.
            h: rows of all nodes, ``[num_nodes, in_features]``, dense or sparse CSR; or an object
                with ``shape``, ``dtype`` and ``fetch(ids, out=None)``, which returns the rows
                ``ids`` of a dense one.
            nodes: parent ids, repeats allowed, of the nodes wanted; None: all. Of every layer only
                the rows that these depend on are computed.
            chunk_size: number of nodes computed at a time; None: all at once.
            progress: show a bar.
            out: a tensor that takes the outputs and is returned, of their shape and type;
                ``storage.create`` makes one that maps a file. If an error comes up, some of it may
                have been written.
            folder: where the rows of inner layers lie in files while it computes; None: in memory.
                The files are gone afterwards. Rows are computed on the device of the model, and
                ``chunk_size`` None is 65,536.

        Memory: the rows of two layers (with ``jumping`` those of all layers for the nodes wanted),
        and what a convolution needs for ``chunk_size`` nodes, their edges and their neighbours.
        With ``folder`` this last part only, and the outputs unless ``out`` maps a file. The outputs
        are equal up to rounding, whatever the ``chunk_size`` and with or without ``folder``.

        Of a graph that lies on several processes, each computes the nodes that it owns: all of them
        call this together, and get the outputs of ``nodes``, which may differ between them; None:
        of the nodes that they own, in the order of ``graph.masters``. ``folder`` is for one
        process.

        Raises TypeError for an argument that is no graph, ValueError for an ``out`` that does not
        fit, IndexError for unknown nodes, OSError where the disk cannot hold a layer, and what
        ``Propagation`` raises.
        """
        parent = whole_graph(graph)
        with parent.peers.together("inference"):
            if not isinstance(graph, Propagation):
                graph = Propagation(graph)
            passing = FullPass(
                self, graph, nodes=nodes, chunk_size=chunk_size, progress=progress, folder=folder
            )
            out = check_out(out, passing.num_outputs)
            if isinstance(h, Tensor) and h.layout == torch.strided and out is not None:
                # outputs of one range would replace rows that later ranges still
                # read
                storage = out.untyped_storage().data_ptr()
                if out.numel() and storage == h.untyped_storage().data_ptr():
                    raise ValueError(
                        "out must be another tensor than h, whose rows are read until the end"
                    )
            passing.out = out if nodes is None else None
            for entering in passing(h):
                rows = entering
            return passing.outputs(rows, out)

    @torch.no_grad()
    @checked
    def layers(
        self,
        propagation: Propagation,
        h: Tensor | Rows,
        *,
        chunk_size: int | None = None,
        progress: bool = False,
        folder: FileLike | None = None,
    ) -> Iterator[Tensor]:
        """Yield the input rows of each convolution for all nodes, before dropout, and finally the
        outputs.

        Arguments as for ``inference``; the propagation says along which edges, and with which
        weights. With ``folder`` the first ones given are ``h`` itself, and the others map files.
        Where several processes hold the graph, they are the rows of the nodes that this one owns;
        all processes call this together, and ``folder`` must be None.
        """
        yield from FullPass(
            self, propagation, chunk_size=chunk_size, progress=progress, folder=folder
        )(h)


class Jumping(nn.Module):
    """A linear map of the rows that a node had in every layer (Xu et al. 2018, section 4).

    Args:
        mode: "cat" concatenates the rows of all layers, "max" takes the maximum of every entry.
        width: width of the rows of every layer.
        num_layers: number of layers.
        out_features: width of the result.

    Raises ValueError for another mode.

    >>> Jumping("max", 2, 3, 1).linear.weight.shape, Jumping("cat", 2, 3, 1).linear.weight.shape
    (torch.Size([1, 2]), torch.Size([1, 6]))
    """

    def __init__(self, mode: str, width: int, num_layers: int, out_features: int) -> None:
        super().__init__()
        check_one_of(mode, "jumping", ("cat", "max"))
        self.mode = mode
        self.width = width
        self.linear = nn.Linear(width * num_layers if mode == "cat" else width, out_features)

    def forward(self, rows: list[Tensor]) -> Tensor:
        """Return ``[n, out_features]`` for the rows of every layer, ``[n, width]`` each."""
        if self.mode == "max":
            return cast("Tensor", self.linear(reduce(torch.maximum, rows)))
        # the rows are never concatenated: those of each layer meet their own columns of
        # the matrix
        matrices = self.linear.weight.split(self.width, 1)
        return linear_sum(*zip(rows, matrices, strict=True), bias=self.linear.bias)


def inference(
    model: nn.Module,
    graph: Graph | EdgeView | Propagation,
    h: Tensor | Rows,
    *,
    nodes: IdsLike | None = None,
    chunk_size: int | None = None,
    progress: bool = False,
    out: Tensor | None = None,
    folder: FileLike | None = None,
) -> Tensor:
    """Return ``FlowModel.inference`` of the one FlowModel in ``model``: for a wrapped model.

    A wrapper such as ``torch.optim.swa_utils.AveragedModel``, ``DataParallel`` or a module of your
    own has no method ``inference``. Only the FlowModel inside is computed; steps of the wrapper
    before or after it are not. The keywords are those of ``FlowModel.inference``.

    Raises TypeError for what is no module, ValueError unless ``model`` is or holds exactly one
    FlowModel.

    >>> from nodeflow.nn import GCN
    >>> wrapped = torch.optim.swa_utils.AveragedModel(GCN(2, 4, 3))
    >>> inference(wrapped, Graph.from_edges([0, 1], [1, 2]), torch.ones(3, 2)).shape
    torch.Size([3, 3])
    """
    check_type(model, "model", nn.Module, "a torch.nn.Module")
    # a wrapper may hold the model at any depth
    models = [module for module in model.modules() if isinstance(module, FlowModel)]
    if len(models) != 1:
        raise ValueError(
            f"model must hold one FlowModel, got {len(models)} in {type(model).__name__}"
        )
    return models[0].inference(
        graph,
        h,
        nodes=nodes,
        chunk_size=chunk_size,
        progress=progress,
        out=out,
        folder=folder,
    )


def check_batch(model: FlowModel, batch: object) -> None:
    """Raise TypeError unless ``batch`` is a NodeFlow, ValueError if its flows do not match the
    model's layers.
    """
    name = type(model).__name__
    if not isinstance(batch, NodeFlow):
        raise TypeError(
            f"call {name} as model(batch, h) with a NodeFlow first, got {describe(batch)}; for a "
            "whole graph use model.inference(graph, x), for one flow model.convs[i](flow, h)"
        )
    if batch.num_flows != len(model.convs):
        layers = len(model.convs)
        raise ValueError(
            f"{name} has {layers} layers and needs batches of {layers} flows, got {batch!r}: "
            "num_layers of a model is batch.num_flows"
        )
    skipping = [pair for pair in batch.flows.pairs() if pair[1] != pair[0] + 1]
    if skipping:
        raise ValueError(
            f"{name} computes flow i from layer i to layer i + 1 only, but the batch has a flow "
            f"{skipping[0]} that skips layers: write a model whose forward calls conv(batch, (i, "
            "j), h) for it"
        )


def _residual(in_features: int, out_features: int) -> nn.Module:
    if in_features == out_features:
        return nn.Identity()
    linear = nn.Linear(in_features, out_features, bias=False)
    draw_glorot(linear)
    return linear
